"""What is made to keep a reader busy for ever is read in no time; these hang where a search goes back and forth."""

import pytest

from sixfold.errors import DataError
from sixfold.translation.document import Document
from sixfold.translation.units import PLACEHOLDER, Unit


@pytest.mark.parametrize(
    ("form", "data"),
    [
        ("html", b"<a " + b"a" * 40 + b'"'),
        ("html", b'<a href="' * 20_000),
        ("html", b"<" * 200_000),
        ("html", b"<!--" * 50_000),
        ("html", b"<b>" * 20_000 + b"x" + b"</b>" * 20_000),
        ("markdown", b"[" * 20_000),
        ("markdown", b"*a " * 20_000),
        ("markdown", b"` " * 20_000),
        ("csv", b'"' * 100_001),
        ("po", b'msgid "a"\n' + b'"b"\n' * 50_000 + b"x"),
        ("xliff", b"<source>" * 20_000),
        ("xliff", b"<source>a</source><target>" * 5_000),
        ("srt", b"1 --> 2\n" * 20_000),
    ],
)
def test_a_broken_document_is_read_and_comes_back(form, data):
    assert Document.read(data, form).write({}) == data


def test_what_is_too_deep_is_said():
    with pytest.raises(DataError, match="nested less deeply"):
        Document.read(b"[" * 5_000, "yaml")


def test_pairs_too_deep_inside_each_other_are_single_marks():
    (unit,) = Document.read(b"<p>" + b"<b>a " * 3_000 + b"x" + b"</b>" * 3_000, "html").units
    assert sum(mark.kind == "open" for mark in unit.marks) == sum(mark.kind == "close" for mark in unit.marks) == 50
    assert len(unit.marks) == 6_000 - 2  # the outermost pair is around all of the text and stays outside


@pytest.mark.parametrize("text", ["a" * 50_000, "a." * 50_000, "{" * 50_000, "%" * 50_000, "http://" * 20_000])
def test_placeholders_are_looked_for_in_one_go(text):
    assert len(PLACEHOLDER.findall(text)) <= 1
    assert Unit((0, 1), text).all_atoms() == [] or text.startswith("http")
