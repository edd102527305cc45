"""Files of predictions: read and written without a change."""

import csv
import io
import json
import shlex
import uuid
from contextlib import nullcontext as nothing
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from skselect import AbstentionPolicy, Predictions
from skselect.cli import reading, table_files
from skselect.cli.cells import look_up, text_to_numbers
from skselect.cli.main import main, make_parser
from skselect.cli.options import CsvLayout, EvaluateOptions
from skselect.cli.table_files import TableFile
from skselect.cli.tables import Table, open_table
from skselect.predictions.predictions import VERDICTS
from tests.refusals import check_refused

PROBA = {"label": "truth", "proba": ("p_no", "p_yes")}
some = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
EVERY = pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
KINDS = pytest.mark.parametrize("kind", ["csv", "parquet"])


@pytest.fixture
def written(tmp_path):
    """Return a function that writes a table or a text, and opens the file."""

    def written(content, kind="csv", **options):
        path = tmp_path / f"t.{kind}"
        if isinstance(content, str):
            path.write_text(content, encoding="utf-8")
        elif isinstance(content, pa.Table):
            pq.write_table(content, path)
        elif kind == "jsonl":
            rows = content.astype(object).where(content.notna(), None).to_dict("records")
            path.write_text("\n".join(map(json.dumps, rows)))
        else:
            getattr(content, f"to_{kind}")(path, index=False)
        return open_file(path, **options)

    def open_file(path, **options):
        file = TableFile.open(path, **options)
        paths[file.name] = path
        return file

    return written


#: Where the files of this test are.
paths = {}


def opened(file, options):
    """Return the table that a command opens."""
    given = make_parser().parse_args(["evaluate", str(paths[file.name]), *options.split()])
    return open_table(paths[file.name], EvaluateOptions(**vars(given)))


LABELS = {
    "text": ["no", "yes"], "numbers": [0, 1], "negative": [-1, 1], "booleans": [False, True],
    "digits and text": ["1", "x"], "floats": [0.5, 1.5],
}  # fmt: skip


def table_of(labels, rng, n=40):
    p = np.round(rng.random(n), 6)
    truth = np.array(labels)[(rng.random(n) < p).astype(int)]
    truth[:2] = labels
    said = np.array(labels)[(p > 0.5).astype(int)]
    score = np.round(10 * rng.random(n), 3)
    site = rng.choice(["a", "b"], n)
    return pd.DataFrame({
        "truth": truth, "p_no": 1 - p, "p_yes": p, "said": said, "score": score, "site": site,
    })  # fmt: skip


# What is read -----------------------------------------------------------------------------------


@EVERY
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_predictions_are_those_of_the_table(labels, kind, written, rng):
    frame = table_of(labels, rng)
    file = written(frame, kind)
    options = "--label truth --proba p_no p_yes --subgroups site"
    with pytest.warns(UserWarning, match="use --classes to change this"):
        table = opened(file, options)
    assert table.classes.tolist() == labels
    found, groups = table.predictions()
    truth, proba = frame["truth"].to_numpy(), frame[["p_no", "p_yes"]].to_numpy()
    expected = Predictions.from_proba(truth, proba, labels=labels)
    for field in ["y_true", "y_pred", "y_proba", "classes"]:
        np.testing.assert_array_equal(getattr(found, field), getattr(expected, field))
    assert groups["site"].tolist() == frame["site"].tolist()
    one, _ = Table(file, table.classes, "truth", proba=("p_yes",)).predictions()
    np.testing.assert_array_equal(one.y_proba[:, 1], frame["p_yes"])
    options = "--label truth --answer said --confidence-column score"
    found, groups = opened(file, options).predictions()
    np.testing.assert_array_equal(found.y_true == found.y_pred, frame["truth"] == frame["said"])
    np.testing.assert_array_equal(found.confidence, frame["score"])
    assert groups.shape == (40, 0)
    if kind == "parquet":
        file = written(frame.assign(p_yes=frame["p_yes"].astype("float32")), kind)
        options = f"--label truth --proba p_yes --classes {labels[0]} {labels[1]}"
        found = opened(file, options).predictions()[0]
        p_yes = frame["p_yes"].astype("float32")
        expected = Predictions.from_proba(frame["truth"], p_yes, labels=labels)
        np.testing.assert_array_equal(found.y_proba, expected.y_proba)


JUDGED = {"answer": "said", "confidence": "score", "subgroups": ("site",), "is_judged": True}


@EVERY
def test_verdicts_are_those_of_the_table(kind, written, rng):
    frame = table_of(["no", "yes"], rng)
    words = rng.choice(["Right", "wrong", "correct", "incorrect", "true", "0", ""], 40)
    frame["judged"], frame["drawn"] = pd.Series(words).replace("", None), rng.uniform(0.1, 1, 40)
    frame.loc[frame["judged"].isna(), "score"] = None  # read only where there is a verdict
    file = written(frame, kind)
    for column, drawn in ((None, None), ("drawn", frame["drawn"])):
        table = Table(file, VERDICTS, "judged", **JUDGED, audit_proba=column)
        found, groups = table.predictions()
        expected = Predictions.from_verdicts(words, frame["score"], audit_proba=drawn)
        pd.testing.assert_frame_equal(found.to_frame(), expected.to_frame(), rtol=1e-9)
        assert groups["site"].tolist() == frame["site"][words != ""].tolist()
    for cells in ([1.0, 0.0, None], [True, False, None], [True, False, True]):
        file = written(pd.DataFrame({"judged": cells, "b": 1}), kind)
        read = Table(file, VERDICTS, "judged", **JUDGED).codes(file.rows()["judged"]).tolist()
        assert read == [{True: 0, False: 1, None: -1}[cell] for cell in cells]
    frame["judged"] = frame["judged"].replace("Right", "perhaps")
    with pytest.raises(ValueError, match=r"'judged' must hold right or wrong .* holds 'perhaps'"):
        Table(written(frame, kind), VERDICTS, "judged", **JUDGED).predictions()
    nothing = written(frame.assign(judged=None), kind)
    with pytest.raises(ValueError, match="'judged' holds no verdict"):
        Table(nothing, VERDICTS, "judged", **JUDGED).predictions()


NO_TABLE = "is no table with one JSON object per line"


@pytest.mark.parametrize(("text", "words"), [
    ('{"a": 1, "b": 2}\n\n{"a": 2}\n', r"row 2 lacks \['b'\], .* Write null"),
    ('{"a": 1, "b": null}\n{"a": 2, "c": 1}\n', r"row 1 lacks \['c'\]"),
    ('{"a": 1}\n{"a": 1}{"a": 2}\n', f"{NO_TABLE}, see row 2: Extra data"),
    ('{"a": 1}\n\n{"a": "x"}\n', "column 'a' cannot hold 'x' of row 2: .* are of another type"),
    ("a,b\n1,2\n", NO_TABLE), ("[1]\n", NO_TABLE), ("\n", "has no rows"),
    # These integers would become floats.
    ('{"a": 1.5}\n{"a": 9007199254740993}\n', "'a' cannot hold 9007199254740993 of row 2"),
    ('{"a": 1}\n{"a": -9223372036854775809}\n', 'as text, such as "-9223372036854775809"'),
])  # fmt: skip
def test_lines_of_json_that_are_no_table(text, words, written):
    with pytest.raises(ValueError, match=words):
        written(text, "jsonl")


def test_columns_of_json_that_nothing_reads_may_hold_anything(written):
    for cell in ["[1, 2]", '{"c": 2}']:
        file = written(f'{{"a": 1, "b": {cell}}}\n', "jsonl")
        with pytest.raises(ValueError, match=r"column 'b' holds values of the type (list|struct)"):
            opened(file, "--label a --proba b --classes 1 2")


def test_names_of_cases_are_text_and_seven_is_no_fraction(written):
    for numbers in ([7, 2**53 + 1], [7.0, 8.5]):
        file = written(pa.table({"id": numbers}), "parquet")
        assert file.names(file.rows()["id"]).tolist() == ["7", str(numbers[1])]


@pytest.mark.parametrize(("text", "expected"), [
    (["-1", "1"], [-1, 1]), (["0.5", "1.0"], [0.5, 1.0]), (["True", "False"], [True, False]),
    *[(text, None) for text in (
        ["01", "2"], ["1", "x"], ["+1", "2"], ["true", "false"], [" 1", "2"], ["1", "1.0"],
        ["1e5", "100000.0"], ["1_0", "2"], ["9" * 30, "1"], ["1.10", "1.2"], ["250.00", "1.5"],
        ["1e3", "2"], ["-0", "1"], ["0.5", "1"], ["\uff11", "2"], ["nan", "1.0"], ["inf", "1"],
        ["9223372036854775808", "1"], ["0.1", "0.10000000000000001"],
    )],
])  # fmt: skip
def test_text_that_means_numbers(text, expected):
    assert text_to_numbers(np.array(text)).tolist() == (expected or text)


@pytest.mark.parametrize(("known", "same", "others"), [
    ([0, 12], ["12", "12.0", "12.00", " 12 ", 12, 12.0, np.int8(12), Decimal("12.0")],
     ["012", "1_2", "12e0", "+12", "12.00000000000000001", "1\uff12", "12.5", "0x0c", 13]),
    ([0.5, 1.5], ["1.5", "1.50", 1.5], ["01.5", "15e-1", "1,5"]),
    (["1.1", "1.10"], ["1.10"], ["1.100", "01.10", 1.5, 1.1, "+1.10"]),
    ([False, True], ["True", True, "1"], ["true", "2", "01"]),
    ([5, 2**60 + 1], [str(2**60 + 1), 2**60 + 1], [2**60, float(2**60), "1e18"]),
])  # fmt: skip
def test_cells_that_mean_a_known_value(known, same, others):
    assert look_up(same, known) == [1] * len(same)
    assert 1 not in look_up(others, known)
    assert look_up(["", None, float("nan")], known) == [-1] * 3
    is_text = any(isinstance(value, str) for value in known)
    assert look_up([" NA "], known) == [-2 if is_text else -1]


def test_subgroups_are_typed_by_the_whole_column(written):
    for sites, expected in [
        (["1"] * 8 + ["x"] * 8 + ["1"] * 4, ["1"] * 8 + ["x"] * 8 + ["1"] * 4),
        ([1, 2, 1, "", *[1, 2] * 8], [1, 2, 1, *[1, 2] * 8]),
    ]:
        frame = pd.DataFrame({"truth": ["a", "b"] * 10, "p": 0.5, "site": sites})
        columns = {"label": "truth", "proba": ("p",), "subgroups": ("site",)}
        groups = Table(written(frame), np.array(["a", "b"]), **columns).predictions()[1]
        assert groups["site"].dropna().tolist() == expected


# What is refused --------------------------------------------------------------------------------


def spoilt(column, row, value):
    """Return a function that puts a value into a table."""
    return lambda t: t.assign(**{column: t[column].astype(object).where(t.index != row, value)})


@pytest.mark.parametrize(("spoil", "message"), [
    (spoilt("truth", 9, None), "'truth' has 1 missing values, the first in row 10;"),
    (spoilt("p_no", 12, None), "'p_no' has 1 missing values, the first in row 13;"),
    (spoilt("p_no", 8, 7), r"hold probabilities from 0 to 1, but row 9 holds 7\. Divide"),
    (lambda t: t.assign(p_no=0.4, p_yes=np.where(t.index < 8, 0.6, 0.7)),
     r"\['p_no', 'p_yes'\] must sum to one, but in row 9 they sum to 1\.1\."),
    (lambda t: t.drop(columns="p_yes"), "no column 'p_yes'"),
])  # fmt: skip
@KINDS
def test_what_is_wrong_is_named(spoil, message, kind, written, rng):
    file = written(spoil(table_of(["no", "yes"], rng)), kind)
    with pytest.raises(ValueError, match=message):
        opened(file, "--label truth --proba p_no p_yes --classes no yes").predictions()


@pytest.mark.parametrize(
    ("word", "wanted"),
    [("inf", "finite numbers"), ("1e400", "finite numbers"), ("-Infinity", "finite numbers"),
     ("0,93", "numbers"), ("True", "numbers"), ("FALSE", "numbers"), ("missing", "numbers")],
)  # fmt: skip
def test_what_is_no_number_is_named(word, wanted, written):
    file = written(f'truth,p_no,p_yes\nno,NA,.25\n\nyes,"{word}",.5\nno,x,.5\n')
    file = file if wanted == "numbers" else written(f'truth,p_no\nno,NA\nyes,"{word}"\n')
    message = rf"t\.csv: column 'p_no' must hold {wanted}, but row 2 holds '{word}'"
    with pytest.raises(ValueError, match=message):
        file.numbers(file.rows()["p_no"])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("nowhere.csv", None, r"there is no file .*nowhere\.csv"),
        (".", None, "cannot be read: .* Is a directory"),
        ("t.parquet", b"no", "cannot be read as Parquet"),
        ("t.csv", b"\n", "no CSV table: it is empty"),
        ("t.csv", b"a,b", "has no rows"),
        ("t.csv", b'"a,b\n' + b"1,2\n" * 50_000, "the quotes of the header do not balance"),
        ("t.csv", b"a;b\n1;2\n", "with a comma between them"),
        ("t.csv", b"a,b,a\n1,2,3\n", r"several columns of the name \['a'\]"),
        ("t.csv", b"a,b\n1,2,\n", r"t\.csv: row 1 has 3 cells, not 2\."),
        ("t.csv", b"a,b,c,d\n1,.5,.5,a\n2,.5,.", r"row 2 has 3 cells, not 4\."),
        ("t.csv", b'\r\na,b\r\n\r\n"x\ny",2\r\n\r\n1\r\n', r"row 2 has 1 cells, not 2\."),
        ("t.csv", b"a,b\n" + b"1,2\n" * 99 + b"\n1,2,3\n1\n", r"row 100 has 3 cells, not 2\."),
        ("t.csv", b"a,b\n" + b"1,2\n" * 50 + b"\xf6,2\n", r"t\.csv is not written in 'utf-8'"),
    ],
)
def test_files_that_are_no_tables(name, content, message, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_BLOCK", 64)  # bytes: rows are counted from block to block
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        TableFile.open(tmp_path / name)


@pytest.mark.parametrize(
    "kind", [pa.string_view(), pa.dictionary(pa.int32(), pa.string())], ids=str
)
def test_views_and_categories_are_text(kind, written, rng):
    frame = table_of(["no", "yes"], rng)
    cells = {name: pa.array(frame[name].tolist(), kind) for name in ("truth", "said")}
    try:
        file = written(pa.table(cells | {"score": frame["score"]}), "parquet")
    except pa.ArrowNotImplementedError:
        pytest.skip("this version of Arrow writes no views")
    right = opened(file, "--label truth --answer said --confidence-column score").predictions()[0]
    np.testing.assert_array_equal(right.y_true == right.y_pred, frame["truth"] == frame["said"])


@pytest.mark.filterwarnings("ignore:--proba")
def test_labels_and_answers_of_one_kind_and_each_column_in_one_role(written, rng):
    dates = pd.to_datetime(["2026-01-01"] * 2)
    frame = pd.DataFrame({"truth": [["a"], ["b"]], "when": dates, "raw": [b"a", b"b"]})
    frame["category"] = frame["when"].astype("category")
    strange = written(frame.assign(p=0.5, q=0.5), "parquet")
    plain = written(table_of([0, 1], rng))
    for file, options, named in [
        (strange, "--label truth --proba p", "'truth' holds values of the type list"),
        (strange, "--label when --proba p", "labels of the kind"),
        *((strange, f"--label p --answer {x} --confidence-column q", f"'{x}' holds values of the")
          for x in ("when", "category", "raw")),
        *((plain, f"--label truth {x}", "named twice") for x in [
            "--proba truth p_yes", "--proba p_yes p_yes", "--answer truth --confidence-column p_no",
        ]),
    ]:  # fmt: skip
        check_refused(named, opened, file, options)
    mixed = opened(written("truth,1,x\n1,.5,.5\nx,.5,.5\n"), "--label truth")
    assert mixed.classes.tolist() == ["1", "x"]  # text, both of them


# Numbers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["", " ", "NA", "n/a", "#N/A", "<NA>", "NaN", "nan", "null",
                                  "NULL", "None", " - "])  # fmt: skip
@pytest.mark.parametrize("decimal", [".", ","])
def test_usual_words_for_missing_numbers(word, decimal, written):
    text = f"truth;p_no;p_yes\nno;0.75;.25\nyes;{word};.5\nno;5e-1;.5\n".replace(".", decimal)
    file = written(text, layout=CsvLayout(";", decimal))
    table = Table(file, np.array(["no", "yes"]), **PROBA)
    with pytest.warns(UserWarning, match="of column 'p_no' counted") if word.strip() else nothing():
        numbers, known = table.numbers(file.rows())
    assert known.tolist() == [True, False, True]
    np.testing.assert_array_equal(numbers[[0, 2]], [[0.75, 0.25], [0.5, 0.5]])
    message = r"t\.csv: column 'p_no' has 1 missing values, the first in row 2;"
    with pytest.raises(ValueError, match=message):
        table.predictions()


def test_labels_may_have_decimal_commas(written):
    file = written("truth;p\n1,0;0,5\n0;0,5\n0,5;0,5\n1,00,0;0,5\n", layout=CsvLayout(";", ","))
    codes = Table(file, np.array([0, 1]), label="truth").codes(file.rows()["truth"])
    assert codes.tolist() == [1, 0, -2, -2]


@pytest.mark.parametrize("value", [None, np.nan, pd.NA])
@pytest.mark.parametrize("dtype", ["float32", "float64", "Float64", "object"])
def test_missing_numbers_of_any_type(value, dtype, written):
    p_no = pd.Series([0.75, 0.5, 0.5], dtype=dtype).where([True, False, True], value)
    file = written(pd.DataFrame({"p_no": p_no, "p_yes": [0.25, 0.5, 0.5]}), "parquet")
    _, known = Table(file, np.array(["no", "yes"]), **PROBA).numbers(file.rows())
    assert known.tolist() == [True, False, True]


NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(r"-?0\.[0-9]{1,40}", fullmatch=True),
    st.integers(-(10**25), 10**25).map(str),
    st.sampled_from(["007", " .5", "5.", "+1", "1E-400", "4.9e-324", "-0.0", "", "n/A"]),
)


@some
@given(texts=st.lists(NUMBERS, min_size=1, max_size=20), decimal=st.sampled_from(".,"))
def test_numbers_are_those_of_python_to_the_last_bit(texts, decimal, written):
    lines = [f"{text.replace('.', decimal)};007" for text in texts]
    file = written("\n".join(["p;id", *lines]), layout=CsvLayout(";", decimal))
    found = file.numbers(file.rows()["p"])
    expected = [np.nan if text in ("", "n/A") else float(text) for text in texts]
    np.testing.assert_array_equal(found.view(np.int64), np.array(expected).view(np.int64))
    assert file.rows()["id"].eq("007").all()


# Writing ----------------------------------------------------------------------------------------

HOSTILE = st.text("\r\n\",;\t|\x00\x1c\ufeff\u2028é='\\ .-1aN", max_size=6)


@some
@given(data=st.data())
@pytest.mark.parametrize("source", ["csv", "jsonl", "parquet"])
def test_no_cell_moves_another_one(source, data, tmp_path):
    """What `apply` writes of any table is read by pandas, and by itself, as it was."""
    n, name = data.draw(st.integers(1, 6)), data.draw(HOSTILE.filter(lambda x: x != "id"))
    sep, decimal = data.draw(st.sampled_from([",.", ";,", "\t.", "|,", ",,"]))
    encoding = data.draw(st.sampled_from(["utf-8", "utf-16"]))
    column = st.lists(HOSTILE, min_size=n, max_size=n)
    frame = pd.DataFrame({"id": data.draw(column), f"n{name}": data.draw(column)})
    p = np.array(data.draw(st.lists(st.floats(0, 1), min_size=n, max_size=n)))
    rows, path, out = frame.assign(p=p), tmp_path / f"t.{source}", tmp_path / "d.csv"
    if source == "csv":
        how = {"sep": sep, "decimal": decimal, "encoding": encoding, "quoting": csv.QUOTE_ALL}
        rows.assign(p=[repr(x).replace(".", decimal) for x in p.tolist()]).to_csv(
            path, index=False, **how
        )
    elif source == "jsonl":
        path.write_text("\n".join(map(json.dumps, rows.to_dict("records"))))
    else:
        rows.to_parquet(path)
    policy = AbstentionPolicy(classes=np.array(["no", "yes"]), threshold=0.7)
    policy.to_json(tmp_path / "policy.json")
    options = ["--policy", tmp_path / "policy.json", "--proba", "p", "--classes", "no", "yes"]
    layout = ["--separator", sep, "--decimal", decimal, "--encoding", encoding, "--out", out]
    assert main(list(map(str, ["apply", path, *options, *layout]))) == 0
    expected = policy.decide(np.column_stack([1 - p, p]))
    read = {"sep": sep, "encoding": encoding, "dtype": str, "keep_default_na": False}
    found = [pd.read_csv(out, **read, engine="python")]
    if "\0" not in out.read_text(encoding=encoding):  # where older versions end the cell
        found.append(pd.read_csv(out, **read))
    for table in [*found, TableFile.open(out, CsvLayout(sep, decimal, encoding)).rows()]:
        assert table[frame.columns].to_numpy().tolist() == frame.to_numpy().tolist()
        assert table["accepted"].tolist() == [str(x) for x in expected["accepted"]]
        assert table["decision"].tolist() == expected["label"].fillna("").tolist()
        numbers = table["confidence"].str.replace(decimal, ".", regex=False).astype(float)
        assert numbers.tolist() == expected["confidence"].tolist()


NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)


@pytest.mark.parametrize(("cells", "texts"), [
    (["a", None, '5"', "b\rc"], ["a", "", '"5"""', '"b\rc"']),
    ([True, None, False], ["True", "", "False"]),
    ([2**63 - 1, None, -3], ["9223372036854775807", "", "-3"]),
    (pa.array([2**64 - 1], pa.uint64()), ["18446744073709551615"]),
    ([0.1, 1.0, -0.0, float("nan"), None, 1e300], ["0;1", "1;0", "-0;0", "", "", "1e+300"]),
    (pa.array(np.float32([0.1, 3])), ["0;1", "3;0"]),
    ([Decimal("0.10"), Decimal("2.00")], ["0;10", "2;00"]),
    ([date(2026, 1, 31)], ["2026-01-31"]),
    ([time(9, 30)], ["09:30:00.000000"]),
    (pa.array([NOW], pa.timestamp("s", "UTC")), ["2026-01-31 09:30:00Z"]),
    (pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
    (pa.nulls(2), ["", ""]),
    ([[1, 2]], None), ([{"a": 1}], None), ([b"a"], None), ([timedelta(1)], None),
    (pa.array([uuid.UUID(int=7).bytes], pa.binary(16)), None),
    (pa.array([b"a"]).dictionary_encode(), None),
])  # fmt: skip
def test_cells_are_written_as_their_text_or_refused(cells, texts):
    table, file = pa.table({"id": range(len(cells)), "x": cells}), io.StringIO(newline="")
    if texts is None:
        with pytest.raises(ValueError, match=r"cannot hold column 'x', .* Write a \.parquet"):
            table_files.write_csv(table, file, "|", ";")
        assert not file.getvalue()
    else:
        table_files.write_csv(table, file, "|", ";")
        rows = zip(["id", *range(len(texts))], ["x", *texts], strict=True)
        assert file.getvalue() == "".join(f"{k}|{text}\n" for k, text in rows)


@EVERY
def test_answers_of_another_cut_off_stand_beside_the_probabilities(kind, written, rng, capsys):
    p_yes = rng.random(60)
    truth = np.where(rng.random(60) < p_yes, "yes", "no")
    frame = pd.DataFrame({"truth": truth, "p_no": 1 - p_yes, "p_yes": p_yes})
    frame["answer"] = np.where(p_yes > 0.3, "yes", "no")
    file = written(frame, kind)
    table = Table(file, np.array(["no", "yes"]), **PROBA, answer="answer")
    predictions, _ = table.predictions()
    direct = Predictions.from_proba(
        truth, frame[["p_no", "p_yes"]].to_numpy(), decision="estimator", y_pred=frame["answer"]
    )
    assert predictions.y_pred.tolist() == direct.y_pred.tolist()
    assert np.array_equal(predictions.y_proba, direct.y_proba)
    assert predictions.rule.decision == "estimator"
    columns = f"{paths[file.name]} --label truth --proba p_no p_yes --answer answer"
    assert main(shlex.split(f"evaluate {columns} --brief")) == 0
    n_wrong = (frame["answer"] != truth).sum()
    assert f"of the answers are wrong ({n_wrong} of 60;" in capsys.readouterr().out
    for command in (f"tune {columns} --target .2", f"evaluate {columns} --confidence-column p_yes"):
        assert main(shlex.split(command)) == 2
        assert "either --proba columns, or --answer and" in capsys.readouterr().err
