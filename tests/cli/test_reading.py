"""What a file is, told by its first bytes; quotes that do not balance; keys that stand twice."""

import bz2
import gzip
import io
import lzma
import pickle
import zipfile

import pandas as pd
import pyarrow as pa
import pyarrow.feather as arrow_feather
import pytest

from skselect.cli.options import CsvLayout
from skselect.cli.table_files import TableFile

FRAME = pd.DataFrame({"truth": ["no", "yes", "no"], "p_no": [0.75, 0.25, 0.5], "note": list("abc")})
TEXT = FRAME.to_csv(index=False)


@pytest.fixture
def read(tmp_path):
    """Return a function that writes a file of some bytes, and returns its rows."""

    def read(content, name="t.csv", **layout):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return TableFile.open(path, CsvLayout(**layout))

    return read


def zipped(**files):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("_", "."), content)
    return packed.getvalue()


def written(write):
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def stream(table, file):
    with pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)


TABLES = {
    "gzip": gzip.compress(TEXT.encode(), mtime=0),
    "bz2": bz2.compress(TEXT.encode()),
    "packed twice": gzip.compress(bz2.compress(TEXT.encode()), mtime=0),
    "xz": lzma.compress(TEXT.encode()),
    "zip": zipped(t_csv=TEXT),
    "parquet": written(FRAME.to_parquet),
    "feather": written(lambda file: arrow_feather.write_feather(FRAME, file)),
    "stream of Arrow": written(lambda file: stream(pa.Table.from_pandas(FRAME), file)),
    "packed JSON lines": gzip.compress(
        FRAME.to_json(orient="records", lines=True).encode(), mtime=0
    ),
    "array of objects": FRAME.to_json(orient="records").encode(),
    "indented array": FRAME.to_json(orient="records", indent=2).encode(),
    "JSON lines": FRAME.to_json(orient="records", lines=True).encode(),
    "Excel's first line": b"sep=,\r\n" + TEXT.encode(),
    "Excel's semicolons": b"\xef\xbb\xbfsep=;\r\n" + TEXT.replace(",", ";").encode(),
}


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("name", ["t.csv", "t", "t.txt"])
def test_the_first_bytes_tell_what_is_read(kind, name, read):
    pd.testing.assert_frame_equal(read(TABLES[kind], name).typed(), FRAME)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("kind", ["json", "jsonl"])
def test_json_is_read_in_any_unicode(kind, encoding, read):
    text = FRAME.to_json(orient="records", lines=kind == "jsonl").replace("yes", "größer")
    frame = read(text.encode(encoding), f"t.{kind}", encoding="cp1252").typed()
    assert frame["truth"].tolist() == ["no", "größer", "no"]


@pytest.mark.parametrize(("content", "name", "message"), [
    (zipped(a_csv=TEXT, b_csv=TEXT), "t.zip", r"is a ZIP archive of 2 files, \['a.csv', 'b.csv'\]"),
    (b"PK\x03\x04" + b"x" * 50, "t.zip", "cannot be unpacked"),
    (gzip.compress(TEXT.encode(), mtime=0)[:30], "t.csv", "cannot be unpacked"),
    (lzma.compress(TEXT.encode())[:40], "t.csv.xz", "cannot be unpacked"),
    (pickle.dumps(FRAME), "t.pkl", "is a pickle, which may run code"),
    (b"%PDF-1.7\n", "t.pdf", "is a PDF"),
    (b"\x89HDF\r\n\x1a\n", "t.h5", "is an HDF5 file"),
    (b"SQLite format 3\0", "t.db", "is an SQLite database"),
    (b"<!DOCTYPE html>\n<html>", "t.csv", "is a page of HTML"),
    (b"\n <table><tr>", "t.csv", "is a page of HTML"),
    (b"\0" * 99, "t.csv", "every second of its bytes is 0"),
    (TEXT.encode("utf-16-le"), "t.csv", "every second of its bytes is 0"),
    (b"[1, 2]", "t.json", "is JSON, but no array of objects"),
    (b"[1, 2", "t.json", "is no JSON"),
    (zipped(), "t.zip", "is an empty ZIP archive"),
    (b"\x89PNG\r\n", "t.csv", "is a picture"),
    (b"\xff\xff\xff\xff" * 9, "t.arrow", "begins like a stream of Arrow"),
    (FRAME.to_json(orient="split").encode(), "t.json", "perhaps a column in each of its keys"),
    (FRAME.to_json().encode(), "t.json", "perhaps a column in each of its keys"),
    (b'[{"a": 1}, {"b": 1}]', "t.json", r"row 1 lacks \['b'\]"),
    (b"\xff\xfe\xfd", "t.jsonl", "JSON is always Unicode"),
    (f"{'a' * 200_000}\n1\n".encode(), "t.csv", "it has one column only, 'aaa"),
])  # fmt: skip
def test_what_is_no_table_is_named(content, name, message, read):
    with pytest.raises(ValueError, match=message):
        read(content, name)


@pytest.mark.parametrize(("content", "name"), [
    ('{"p": 0.9, "p": 0.1}\n', "t.jsonl"), ('[{"p": 1, "p": 1}]', "t.json"),
    ('[{"p": 1, "p": 1}]', "t.csv"),
])  # fmt: skip
def test_a_key_that_stands_twice(content, name, read):
    with pytest.raises(ValueError, match="the key 'p' stands twice in one object"):
        read(content, name)


@pytest.mark.parametrize(("row", "message"), [
    ('1,.9,"a\n2,.1,b\n3,.2,c', "the quotes of row 1 do not balance"),
    ('1,.9,"5" pipe"', "the quotes of row 1 do not balance"),
    ('0,.9,a\n1,.9,"a"b', "the quotes of row 2 do not balance"),
    (r'1,.9,"he said \"hi\""', "the quotes of row 1 do not balance"),
    ('0,.9,a\n\n1,.9,"6 pipe\n2,.1,b\n3,.2,c\n4,.2,6"\n5,.1,x', "row 2 has a cell of 4 lines"),
    ('1,.9,"a,b\n"', None),
    ('1,.9,"a\n2,.1,b"\n3,.2,c', "row 1 has a cell of 2 lines"),
    ('0,.9,a\nx,.5,"5 in\ny,,b\nz,1e-2,6 in"\ny,.2,c', "row 2 has a cell of 3 lines"),
    ('u,v,"w\nx,y,z"', None), ('1,.9,"two\n10,mostly,red"', None),
])  # fmt: skip
@pytest.mark.parametrize("separator", [",", ";"])
def test_quotes_that_do_not_balance(row, message, separator, read):
    text = f"id,p,note\n{row}\n".replace(",", separator)
    if message is None:
        assert len(read(text, separator=separator).rows()) == 1
        return
    with pytest.raises(ValueError, match=message):
        read(text, separator=separator)


@pytest.mark.parametrize("text", [
    'p,note\n.9,"a\n.2,b\n.8,c"\n.7,d\n', 'note,p\n"a,.9\nb,.2\nc",.8\nd,.7\n',
    'note;p\n"a;0,9\nb;0,2"\nd;0,7\n', 'p\tnote\n87 %\t"a\n90 %\tb"\n',
])  # fmt: skip
def test_rows_that_a_quote_swallows_in_a_table_of_two_columns(text, read):
    sign = next(sign for sign in ";\t," if sign in text)
    with pytest.raises(
        ValueError, match=r"row 1 has a cell of [23] lines, and each of them looks like a"
    ):
        read(text, separator=sign)
    assert len(read(text.replace('"', ""), separator=sign).rows()) == text.count("\n") - 1


def test_two_rows_between_two_inch_signs_are_not_one(read):
    text = 'id,a,b,note\n1,2,3,"5 pipe\n2,3,4,6"\n3,4,5,x\n'
    with pytest.raises(ValueError, match="row 1 has a cell of 2 lines"):
        read(text)
    assert len(read(text.replace("2,3,4,6", "two, three")).rows()) == 2


@pytest.mark.parametrize("cell", [
    'a 5" pipe', '5"', '"5"" pipe"', '"two\nlines, and\nthree"', '""', "'a'", '" x"',
    '"Dear you,\nall is well.\nYours, me"',
])  # fmt: skip
def test_other_quotes_are_read_as_written(cell, read):
    [note] = read(f"id,p,note\n1,.9,{cell}\n").rows()["note"]
    assert note == cell.strip('"').replace('""', '"') or note == cell


def test_cells_of_any_length(read):
    long = "x" * 200_000
    assert read(f'id,"{long}"\n1,"{long}"\n').rows()[long].tolist() == [long]


def test_text_and_numbers_of_a_workbook_may_have_decimal_commas(tmp_path):
    pytest.importorskip("openpyxl")
    path = tmp_path / "t.xlsx"
    pd.DataFrame({"p": ["0,5", "0,25"], "q": [0.5, 0.75], "n": [1, 2]}).to_excel(path, index=False)
    file = TableFile.open(path, CsvLayout(decimal=","))
    frame = file.rows()
    assert [file.numbers(frame[name]).tolist() for name in frame] == [
        [0.5, 0.25],
        [0.5, 0.75],
        [1, 2],
    ]
