"""Some columns of a table are translated, by name or number, and every other byte stays."""

import csv
import io

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from made_documents import Turned

from sixfold.errors import DataError, RequestError
from sixfold.translation.documents.steps import translate_document


def translated(text, columns=(), form="csv", header=False):
    return translate_document(Turned(), text.encode(), form, columns=columns, header=header)[0].decode()


TABLE = 'id,title,"the, note"\r\na b,"one ""two""\nlines",c d\r\n\r\ne f,,g h,i j\r\nk l\r\n,m n'


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (["title"], 'id,title,"the, note"\r\na b,"LINES ""TWO"" ONE",c d\r\n\r\ne f,,g h,i j\r\nk l\r\n,N M'),
        (["the, note", "1"], 'id,title,"the, note"\r\nB A,"one ""two""\nlines",D C\r\n\r\nF E,,H G,i j\r\nL K\r\n,m n'),
        ([" 4 "], 'id,title,"the, note"\r\na b,"one ""two""\nlines",c d\r\n\r\ne f,,g h,J I\r\nk l\r\n,m n'),
        ([2], 'id,title,"the, note"\r\na b,"LINES ""TWO"" ONE",c d\r\n\r\ne f,,g h,i j\r\nk l\r\n,N M'),
        (["4", "id"], 'id,title,"the, note"\r\nB A,"one ""two""\nlines",c d\r\n\r\nF E,,g h,J I\r\nL K\r\n,m n'),
    ],
)
def test_only_what_is_named_or_numbered_is_translated(columns, expected):
    assert translated(TABLE, columns) == expected


def test_the_first_row_is_translated_only_if_that_is_asked_for():
    for form, separator in (("csv", ","), ("tsv", "\t")):
        table = separator.join(["a b", "c d"]) + "\n" + separator.join(["e f", "g h"]) + "\n"
        assert translated(table, form=form) == table.replace("e f", "F E").replace("g h", "H G")
        assert (
            translated(table, form=form, header=True)
            == separator.join(["B A", "D C"]) + "\n" + separator.join(["F E", "H G"]) + "\n"
        )
    assert translated("a b,c d\ne f,g h\n", ["c d"], header=True) == "a b,D C\ne f,H G\n"


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_is_what_the_first_line_has_most_of_outside_quotation_marks(separator):
    rows = [["id", "a,;|\tb, c,, ;;||\t\t", "text", "note"], ["1", "one two", "x; y, z|w", "it's"]]
    out = io.StringIO()
    csv.writer(out, delimiter=separator, quoting=csv.QUOTE_NONNUMERIC).writerows(rows)
    (_, row) = csv.reader(io.StringIO(translated(out.getvalue()), newline=""), delimiter=separator)
    assert row == ["1", "TWO ONE", "Z|W Y, X;", "IT'S"]


def test_what_programs_read_in_a_cell_stays():
    table = 'a,b,c\r\n#ff0000,en-US,=SUM(A1:B2)\r\n"=IF(A1>2,""yes"",""no"")",https://a.b/c,2024-01-02\r\n'
    assert translated(table) == table


def test_a_quotation_mark_that_is_not_closed_is_an_error_with_the_line_of_its_row():
    with pytest.raises(DataError, match=r"document:3: expected a table; unexpected end of data"):
        translated('a,b\nc,d\n"e f,g\nh,i\n')
    assert translated('a,b\nc d "e",f "g" h\n') == 'a,b\n"""E"" D C","H ""G"" F"\n'


def test_a_cell_with_text_after_its_closing_quotation_mark_stays():
    assert translated('a,b\n"c d"@example.org,e f\n') == 'a,b\n"c d"@example.org,F E\n'


def test_a_cell_may_be_longer_than_the_limit_of_the_csv_module():
    table = "a,b\n" + "c d " * 40_000 + ",e f\n"
    assert translated(table).endswith(",F E\n")


def test_semicolons_tabs_marks_and_names_that_stand_twice_are_understood():
    assert translated("\n\na;b;a\na b;c, d;e f\n", ["a"]) == "\n\na;b;a\nB A;c, d;F E\n"
    assert translated('id\t"a b"\nx y\t"c d\n', ['"a b"'], "tsv") == 'id\t"a b"\nx y\tD "C\n'
    assert translated("\ufeffid,text\na b,c d\n", ["id"]) == "\ufeffid,text\nB A,c d\n"
    assert translated("a  b,c\nd e,f g", ["a b"]) == "a  b,c\nE D,f g"
    assert translated("", ["a"]) == ""
    assert translated("\r\n", [7], "tsv") == "\r\n"


@pytest.mark.parametrize(
    ("columns", "message", "hint"),
    [
        (["titel"], "--columns: expected one of id, title, the, note; got 'titel'", "did you mean 'title'?"),
        ([""], "expected one of id, title, the, note; got ''", None),
        (["title", "5"], "expected a number from 1 to 4; got 5", None),
        ([0], "expected a number from 1 to 4; got 0", None),
        ([-1], "expected one of id, title, the, note; got '-1'", None),
    ],
)
def test_a_missing_column_is_an_error_that_names_the_columns(columns, message, hint):
    with pytest.raises(RequestError) as raised:
        translated(TABLE, columns)
    assert message in str(raised.value)
    assert raised.value.hint == hint


@pytest.mark.parametrize("form", ["html", "docx", "json"])
def test_columns_of_what_is_no_table_are_refused(form):
    with pytest.raises(RequestError, match=f"--columns: expected a document in the format csv or tsv; got {form}"):
        translated("{}", ["a"], form)


CELLS = st.sampled_from(["", "a b", 'c "d"', "e,f g", "h\ni", "j\r\nk", " ", "1", '"', "l;m"])


@given(st.lists(st.lists(CELLS, min_size=1, max_size=4), min_size=1, max_size=5), st.integers(1, 4), st.booleans())
@example([["", "a b"], [""], ["", "", "c d"]], 2, False)
@example([["a b", "", ""], ["c d"]], 3, True)
def test_cells_are_those_that_the_csv_module_finds(rows, number, returns):
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n" if returns else "\n").writerows([["x", "y,"], *rows])
    if number > max(2, *map(len, rows)):
        with pytest.raises(RequestError, match="expected a number from 1 to"):
            translated(out.getvalue(), [number])
        return
    translated_rows = csv.reader(io.StringIO(translated(out.getvalue(), [number]), newline=""))
    assert next(translated_rows) == ["x", "y,"]
    for row, after in zip(rows, translated_rows, strict=True):
        assert len(after) == len(row)
        for column, (cell, result) in enumerate(zip(row, after, strict=True), start=1):
            assert result.split() == Turned().translate(cell).text.split() if column == number else result == cell
