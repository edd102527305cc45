"""Files of predictions: read in pieces as they would be read whole."""

import csv
import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skselect import Outcomes, Predictions
from skselect.cli import tables
from skselect.cli.main import make_parser
from skselect.cli.tables import CsvLayout, Table, TableFile, open_table, write_rows
from skselect.predictions.predictions import VERDICTS

PROBA = {"label": "truth", "proba": ("p_no", "p_yes")}
ANSWER = {"label": "truth", "answer": "said", "confidence": "score"}
some = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


EVERY = pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])


@pytest.fixture(params=["csv", "parquet"])
def kind(request):
    return request.param


@pytest.fixture(autouse=True)
def _pieces(monkeypatch):
    monkeypatch.setattr(tables, "_PIECE", 7)  # rows of a Parquet file
    monkeypatch.setattr(tables, "_BLOCK", 400)  # bytes of a CSV file


@pytest.fixture
def written(tmp_path):
    """Return a function that writes a table or a text, and opens the file."""

    def written(content, kind="csv", **options):
        path = tmp_path / f"t.{kind}"
        if isinstance(content, str):
            path.write_text(content, encoding="utf-8")
        elif kind == "jsonl":
            rows = content.astype(object).where(content.notna(), None).to_dict("records")
            path.write_text("\n".join(map(json.dumps, rows)))
        else:
            getattr(content, f"to_{kind}")(path, index=False)
        return TableFile.open(path, **options)

    return written


def opened(file, options):
    """Return the table that a command opens."""
    given = make_parser().parse_args(["evaluate", str(file.path), *options.split()])
    return open_table(file.path, given)


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
    for confidence in ("max_proba", "margin", "entropy", "gini"):
        outcomes, _ = table.outcomes(confidence)
        expected = Outcomes.from_proba(truth, proba, labels=labels, confidence=confidence)
        np.testing.assert_array_equal(outcomes.loss, expected.loss)
        np.testing.assert_array_equal(outcomes.confidence, expected.confidence)
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
        p_yes = file.whole()["p_yes"]
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


def test_lines_of_json_are_a_table_or_are_refused(written):
    text = (
        '{"id": 1, "when": "2026-01-31", "said": "007"}\n\n{"id": 2, "when": null, "said": "é"}\n'
    )
    file = written(text, "jsonl")
    assert file.whole()["when"].fillna("").tolist() == ["2026-01-31", ""]  # texts stay as written
    assert file.whole()["said"].tolist() == ["007", "é"]
    no_table = "is no table with one JSON object per line"
    for text, words in [
        ('{"a": 1, "b": 2}\n\n{"a": 2}\n', r"row 1 .* has the keys \['a'\], .*Write null"),
        ('{"a": 1, "b": null}\n{"a": 2, "c": 1}\n', r"row 1 .* has the keys \['a', 'c'\]"),
        ('{"a": null,\n "b": 2}\n', no_table),
        ('{"a": 1}\n{"a": "x"}\n', "changed from number to string in row 1"),
        ("a,b\n1,2\n", no_table),
        ("", f"{no_table}: Empty"),
    ]:
        with pytest.raises(ValueError, match=words):
            written(text, "jsonl")
    for cell in ["[1, 2]", '{"c": 2}']:  # columns that nothing reads may hold anything
        file = written(f'{{"a": 1, "b": {cell}}}\n', "jsonl")
        with pytest.raises(ValueError, match=r"column 'b' holds values of the type (list|struct)"):
            opened(file, "--label a --proba b --classes 1 2")


def test_pieces_are_the_whole_in_order(kind, written, rng):
    frame = table_of(["no", "yes"], rng)
    file = written(frame, kind)
    pieces = list(file.pieces())
    assert len(pieces) > 3
    expected = frame.astype(str) if kind == "csv" else frame  # as it is written
    pd.testing.assert_frame_equal(
        pd.concat(pieces), expected, check_dtype=False, check_index_type=False
    )
    pd.testing.assert_frame_equal(file.whole(), frame, check_dtype=False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (["-1", "1"], [-1, 1]), (["0.5", "1"], [0.5, 1.0]), (["1e3", "2"], [1000.0, 2.0]),
        (["True", "False"], [True, False]), (["01", "2"], None), (["1", "x"], None),
        (["+1", "2"], None), (["true", "false"], None), ([" 1", "2"], None), (["1", "1.0"], None),
        (["1e5", "100000.0"], None), (["1_0", "2"], None), (["9" * 30, "1"], None),
    ],
)  # fmt: skip
def test_text_that_means_numbers(text, expected):
    assert tables.text_to_numbers(np.array(text)).tolist() == (expected or text)


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


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (spoilt("truth", 9, None), "'truth' has 1 missing .* (line 11|row 9 )"),
        (spoilt("p_no", 12, None), "'p_no' has 1 missing .* (line 14|row 12 )"),
        (spoilt("p_no", 8, 7), r"hold .* from 0 to 1, but (line 10|row 8 .*) holds 7\. Divide"),
        (lambda t: t.assign(p_no=0.4, p_yes=np.where(t.index < 8, 0.6, 0.7)),
         r"\['p_no', 'p_yes'\] must sum to one, but in (line 10|row 8 .*) they sum to 1\.1\."),
        (lambda t: t.drop(columns="p_yes"), "no column 'p_yes'"),
        (lambda t: t.iloc[:0], "has no rows"),
    ],
)  # fmt: skip
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
    file = written(f'truth,p_no,p_yes\nno,NA,.25\nyes,"{word}",.5\nno,.5,.5\n')
    message = rf"t\.csv: column 'p_no' must hold {wanted}, but line 3 holds '{word}'"
    with pytest.raises(ValueError, match=message):
        file.numbers(file.rows()["p_no"])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("nowhere.csv", None, r"there is no file .*nowhere\.csv"),
        ("t.parquet", b"no", "cannot be read as Parquet"),
        ("t.csv", b"", "no CSV table: it is empty"),
        ("t.csv", b"a,b", "has no rows"),
        ("t.csv", b"a;b\n1;2\n", "with a comma between them"),
        ("t.csv", b"a,b,a\n1,2,3\n", r"several columns of the name \['a'\]"),
        ("t.csv", b"a,b\n1,2,\n", r"t\.csv: line 2 has 3 cells, the first line has 2\."),
        ("t.csv", b"a,b,c,d\n1,.5,.5,a\n2,.5,.", r"line 3 has 3 cells, the first line has 4\."),
        ("t.csv", b"a,b\n" + b"1,2\n" * 50 + b"\xf6,2\n", r"--encoding: t\.csv is not written in"),
    ],
)
def test_files_that_are_no_tables(name, content, message, tmp_path):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        TableFile.open(tmp_path / name)


@pytest.mark.parametrize(
    "kind", [pa.string_view(), pa.dictionary(pa.int32(), pa.string())], ids=str
)
def test_views_and_categories_are_text(kind, tmp_path, rng):
    frame = table_of(["no", "yes"], rng)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    for name in ("truth", "said"):
        cells = pa.array(frame[name].tolist(), kind)
        table = table.set_column(table.column_names.index(name), name, cells)
    try:
        pq.write_table(table, tmp_path / "t.parquet")
    except pa.ArrowNotImplementedError:
        pytest.skip("this version of Arrow writes no views")
    file = TableFile.open(tmp_path / "t.parquet")
    found = opened(file, "--label truth --answer said --confidence-column score")
    right = found.predictions()[0]
    np.testing.assert_array_equal(right.y_true == right.y_pred, frame["truth"] == frame["said"])
    file.rows().to_csv(tmp_path / "t.csv")


def test_labels_and_answers_that_are_lists_dates_bytes_or_mixed(written):
    dates = pd.to_datetime(["2026-01-01"] * 2)
    frame = pd.DataFrame({"truth": [["a"], ["b"]], "when": dates, "raw": [b"a", b"b"]})
    frame["category"] = frame["when"].astype("category")
    file = written(frame.assign(p=0.5, q=0.5), "parquet")
    for options, message in [
        ("--label truth --proba p", "'truth' holds values of the type list"),
        ("--label when --proba p", "labels of the kind 'Time"),
        ("--label p --answer when --confidence-column q", "'when' holds values of the type time"),
        ("--label p --answer category --confidence-column q", "values of the type timestamp"),
        ("--label p --answer raw --confidence-column q", "'raw' holds values of the type binary"),
    ]:
        with pytest.raises(ValueError, match=message):
            opened(file, options)
    mixed = opened(written("truth,1,x\n1,.5,.5\nx,.5,.5\n"), "--label truth")
    assert mixed.classes.tolist() == ["1", "x"]  # text, both of them


def test_a_column_has_one_role(written, rng):
    file = written(table_of([0, 1], rng))
    for said in ["--proba truth p_yes", "--proba p_yes p_yes",
                 "--answer truth --confidence-column score"]:  # fmt: skip
        with pytest.raises(ValueError, match="are named twice"):
            opened(file, f"--label truth {said}")


# Numbers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["", " ", "NA", "n/a", "#N/A", "<NA>", "NaN", "nan", "null",
                                  "NULL", "None", " - "])  # fmt: skip
@pytest.mark.parametrize("decimal", [".", ","])
def test_usual_words_for_missing_numbers(word, decimal, written):
    text = f"truth;p_no;p_yes\nno;0.75;.25\nyes;{word};.5\nno;5e-1;.5\n".replace(".", decimal)
    file = written(text, layout=CsvLayout(";", decimal))
    table = Table(file, np.array(["no", "yes"]), **PROBA)
    numbers, known = table.numbers(file.rows())
    assert known.tolist() == [True, False, True]
    np.testing.assert_array_equal(numbers[[0, 2]], [[0.75, 0.25], [0.5, 0.5]])
    message = r"t\.csv: column 'p_no' has 1 missing values, the first in line 3;"
    with pytest.raises(ValueError, match=message):
        table.predictions()


def test_labels_may_have_decimal_commas(written):
    file = written("truth;p\n1,0;0,5\n0;0,5\n0,5;0,5\n1,00,0;0,5\n", layout=CsvLayout(";", ","))
    codes = Table(file, np.array([0, 1]), label="truth").codes(file.rows()["truth"])
    assert codes.tolist() == [1, 0, -2, -2]


def test_decimals_and_large_integers_are_rounded_as_python_rounds_them(tmp_path, rng):
    texts = [f"{x:.6f}" for x in rng.random(200)]
    numbers = {"d": pa.array(map(Decimal, texts)), "n": pa.array(2**62 + np.arange(200) * 97)}
    pq.write_table(pa.table(numbers), tmp_path / "t.parquet")
    file = TableFile.open(tmp_path / "t.parquet")
    assert file.numbers(file.rows()["d"]).tolist() == list(map(float, texts))
    assert file.numbers(file.rows()["n"]).tolist() == [float(n) for n in numbers["n"].to_pylist()]


@pytest.mark.parametrize("value", [None, np.nan, pd.NA])
@pytest.mark.parametrize("dtype", ["float32", "float64", "Float64", "object"])
def test_missing_numbers_of_any_type(value, dtype, written):
    p_no = pd.Series([0.75, 0.5, 0.5], dtype=dtype).where([True, False, True], value)
    file = written(pd.DataFrame({"p_no": p_no, "p_yes": [0.25, 0.5, 0.5]}), "parquet")
    for piece in [file.rows(), file.whole()]:
        _, known = Table(file, np.array(["no", "yes"]), **PROBA).numbers(piece)
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
    pieces = list(file.pieces(["p", "id"]))
    found = np.concatenate([file.numbers(piece["p"]) for piece in pieces])
    expected = [np.nan if text in ("", "n/A") else float(text) for text in texts]
    np.testing.assert_array_equal(found.view(np.int64), np.array(expected).view(np.int64))
    assert all((piece["id"] == "007").all() for piece in pieces)


# Lines ------------------------------------------------------------------------------------------


def test_lines_are_those_of_an_editor_and_cells_may_be_long(written, monkeypatch):
    file = written('\ufeff\n"a\nb",c\n\n1,"x\ny"\n  \n2,z\n\t\n3,"w"\n')
    assert list(file.types) == ["a\nb", "c"]
    assert [file.place(row) for row in range(3)] == ["line 5", "line 8", "line 10"]
    assert file.rows()["c"].tolist() == ["x\ny", "z", "w"]
    monkeypatch.undo()
    file = written(f'a,b\n"{"x" * 200_000}",1\n')
    assert file.place(0) == "line 2"
    assert len(file.whole().loc[0, "a"]) == 200_000


def first_unequal_row(path):
    """Return line and cells of the first row of another length than the first, row by row."""
    with path.open(newline="", encoding="utf-8") as file:
        reader, start, width = csv.reader(file), 1, None
        for cells in reader:
            width = width or len(cells)
            if cells and len(cells) != width:
                return start, len(cells)
            start = reader.line_num + 1
    return None


CELLS = st.sampled_from(["", "1", "é", "x y", '"a,b"', '"a\nb"', '"say ""no"""', '5" pipe', '"x"y'])


@some
@given(data=st.data(), end=st.sampled_from(["\n", "\r\n", "\r"]))
def test_rows_of_another_length_are_refused(data, end, tmp_path):
    width = data.draw(st.integers(2, 3))
    row = st.lists(CELLS, min_size=width, max_size=width)
    odd = st.lists(CELLS, min_size=2, max_size=5)
    rows = data.draw(st.lists(st.one_of(row, row, row, odd, st.just([])), max_size=12))
    path = tmp_path / "t.csv"
    lines = [",".join("abc"[:width]), *map(",".join, rows)]
    path.write_bytes((end.join(lines) + data.draw(st.sampled_from(["", end]))).encode())
    expected = first_unequal_row(path)
    if expected is not None:
        line, n_cells = expected
        with pytest.raises(ValueError, match=f"line {line} has {n_cells} cells"):
            TableFile.open(path)
    elif any(rows):
        with path.open(newline="", encoding="utf-8") as text_file:
            _, *cells = filter(None, csv.reader(text_file))
        found = TableFile.open(path).rows().to_numpy().tolist()
        assert found == cells


# Writing ----------------------------------------------------------------------------------


FLOATS = [0.1, -0.0, 1.0, 1e-4, 9.9e-5, 1e-05, 5e-324, 1e9, 1e10 + 0.5, 1e16, 1e22, np.inf, np.nan]


@pytest.mark.parametrize("layout", [",.", ";,", "\t.", "^,"])
@some
@given(
    st.lists(st.sampled_from(FLOATS) | st.floats(), min_size=4, max_size=4),
    st.lists(st.none() | st.text('aé ,;^\t"\r\n.1', max_size=3), min_size=4, max_size=4),
)
def test_rows_are_written_as_pandas_writes_them(layout, floats, texts):
    rows = pd.DataFrame({"float": floats, "text": texts, "whole": [-3, 0, 2**62, 7]})
    rows["yes"] = [True, False, True, True]
    rows["object"] = rows["text"].astype(object)
    for name, kind in (("float", "Float64"), ("whole", "Int64"), ("yes", "boolean")):
        rows[kind] = rows[name].astype(kind).where(rows["yes"])
    for name, kind in (("float", pa.float64()), ("yes", pa.bool_()), ("text", pa.string())):
        rows[f"arrow {name}"] = rows[name].astype(pd.ArrowDtype(kind))
    separator, decimal = layout
    said = {"sep": separator, "decimal": decimal, "lineterminator": "\n"}
    expected = rows.to_csv(index=False, header=False, **said)
    needs_quotes = any(set(text or "") & {separator, '"', "\r", "\n"} for text in texts)
    assert write_rows(rows, *layout) == (None if needs_quotes else expected)


@pytest.mark.parametrize("cells", [
    np.float32([0.1, 2]), pd.to_datetime(["2026-01-01"] * 2), [b"a", b"b"],
])  # fmt: skip
def test_pandas_writes_what_is_not_known_to_be_the_same(cells):
    rows = pd.DataFrame(
        {"id": [1, 2], "cell": pd.Series(cells, dtype=getattr(cells, "dtype", object))}
    )
    assert write_rows(rows, ",") is None
