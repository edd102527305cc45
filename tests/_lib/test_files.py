"""Files are written as a whole or not at all."""

import os
import stat
import threading
from pathlib import Path

import pytest

from skselect._lib.files import whole_file, write_together, write_whole


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_has_the_usual_mode_and_a_replaced_one_keeps_its_own(tmp_path):
    new, usual = tmp_path / "new", tmp_path / "usual"
    usual.touch()
    write_whole(new, "text")
    assert mode_of(new) == mode_of(usual)
    for mode in (0o600, 0o640, 0o666):
        new.chmod(mode)
        with whole_file(new) as part:
            assert mode_of(part) == mode
            part.write_text(f"{mode}")
        assert (new.read_text(), mode_of(new)) == (f"{mode}", mode)
    assert sorted(tmp_path.iterdir()) == [new, usual]


@pytest.mark.parametrize("is_there", [True, False])
def test_links_stay_links(tmp_path, is_there):
    (tmp_path / "folder").mkdir()
    real, middle, link = tmp_path / "folder" / "real", tmp_path / "middle", tmp_path / "link"
    if is_there:
        real.write_text("old")
    middle.symlink_to(Path("folder") / "real")
    link.symlink_to(middle)
    write_whole(link, "new")
    assert link.readlink() == middle
    assert middle.is_symlink()
    assert real.read_text() == "new"
    assert list((tmp_path / "folder").iterdir()) == [real]


def test_pipes_and_devices_are_written_directly(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    link = tmp_path / "link"
    link.symlink_to(pipe)
    read = []
    for path in [pipe, link]:
        reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
        reader.start()
        write_whole(path, "text")
        reader.join()
    assert read == ["text", "text"]
    assert pipe.is_fifo()
    write_whole(Path("/dev/null"), "text")
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("is_there", [True, False])
def test_a_folder_that_takes_no_new_file_is_refused(tmp_path, monkeypatch, is_there):
    path = tmp_path / "f.txt"
    if is_there:
        path.write_text("old")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(ValueError, match=r"no file can be made in the folder .*Make the folder"):
        write_whole(path, "new")
    assert not is_there or path.read_text() == "old"
    write_whole(Path("/dev/null"), "text")


def test_a_file_is_on_the_disk_before_it_replaces_the_old_one(tmp_path, monkeypatch):
    path, done = tmp_path / "f.txt", []
    path.write_text("old")
    fsync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda file: done.append(os.fstat(file).st_ino) or fsync(file))
    monkeypatch.setattr(Path, "replace", lambda *both: done.append("replace") or replace(*both))
    write_whole(path, "new")
    assert done == [path.stat().st_ino, "replace", tmp_path.stat().st_ino]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_what_fails_leaves_the_old_file_alone(tmp_path, error):
    path = tmp_path / "t"
    path.write_text("old")
    foreign = tmp_path / "t.part"
    foreign.write_text("mine")

    def fail():
        with whole_file(path) as part:
            part.write_text("half")
            raise error

    with pytest.raises(error):
        fail()
    assert path.read_text() == "old"
    write_whole(path, "new")
    assert (path.read_text(), foreign.read_text()) == ("new", "mine")
    assert sorted(tmp_path.iterdir()) == [path, foreign]


def test_two_runs_do_not_share_what_they_write(tmp_path):
    path = tmp_path / "t"
    with whole_file(path) as one:
        one.write_text("one")
        with whole_file(path) as two:
            two.write_text("two")
        assert path.read_text() == "two"
    assert path.read_text() == "one"


def test_nothing_is_replaced_unless_all_can_be_written(tmp_path):
    paths = [tmp_path / "a", tmp_path / "nowhere" / "b"]
    paths[0].write_text("old")
    with pytest.raises(ValueError, match="there is no folder"):
        write_together(dict.fromkeys(paths, "new"))
    assert paths[0].read_text() == "old"
    write_together({paths[0]: "new a", tmp_path / "b": "new b"})
    assert [path.read_text() for path in sorted(tmp_path.iterdir())] == ["new a", "new b"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_a_full_disk_is_named():
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        write_whole(Path("/dev/full"), "text")
