"""Documents made to keep a parser busy are read in time; a pattern that backtracks would hang on them."""

import re

import pytest
from made_documents import Turned, made

from sixfold.errors import DataError
from sixfold.translation.cancellation import Cancelled, cancellable
from sixfold.translation.documents.document import Document
from sixfold.translation.documents.formats import FORMATS, is_archive
from sixfold.translation.documents.steps import document_steps, is_prose, run_steps, translate_document
from sixfold.translation.protection import protected_spans
from sixfold.translation.request import TranslationRequest


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
        ("csv", b'"' * 100_002),
        ("po", b'msgid "a"\nmsgstr ""\n' + b'"b"\n' * 50_000),
        ("xliff", b"<xliff>" + b"<source>a</source><target>" * 400 + b"</target>" * 400 + b"</xliff>"),
        ("srt", b"1\n00:00:01,000 --> 00:00:02,000\n" * 5_000),
    ],
)
def test_a_broken_document_is_read_and_comes_back(form, data):
    assert translate_document(Turned(same=True), data, form)[0] == data


def test_what_is_too_deep_is_said():
    for form in ("json", "yaml"):
        with pytest.raises(DataError, match=r"^a.txt.*nested less deeply"):
            Document.read(b"[" * 100_000, form, "a.txt")


@pytest.mark.parametrize(
    ("form", "data", "message"),
    [
        ("json", b'{"a": 1,\n "b" 2}', "strings.txt:2: expected JSON; column 6: Expecting ':' delimiter"),
        ("yaml", b"a: b\nc: [d\n", "strings.txt:3: expected YAML; "),
        ("yaml", b"a: \x01", "strings.txt: expected YAML; "),
        ("html", b"a\n\xff", "strings.txt:2: expected UTF-8; got byte 0xff"),
        ("docx", b"a", "strings.txt: expected a DOCX file; "),
        ("csv", b'"' * 100_001, "strings.txt:1: expected a table; unexpected end of data"),
        ("po", b'msgid "a"\n' + b'"b"\n' * 50_000 + b"x", "strings.txt:50002: expected msgid, msgstr or a comment"),
        ("xliff", b"<source>" * 20_000, "strings.txt:1: expected elements at most 1000 deep"),
        ("srt", b"1 --> 2\n" * 20_000, "strings.txt:1: expected the times of a cue; got '1 --> 2'"),
    ],
)
def test_a_mistake_is_told_with_the_name_of_the_file(form, data, message):
    with pytest.raises(DataError) as error:
        Document.read(data, form, "strings.txt")
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("form", [form for form in FORMATS if not is_archive(form)])
def test_a_byte_order_mark_is_no_text_and_stays_where_it_is(form):
    data = b"\xef\xbb\xbf" + made(form, 1)
    output, _ = translate_document(Turned(), data, form)
    assert output.startswith(b"\xef\xbb\xbf")
    assert output.count("\ufeff".encode()) == 1
    assert output.removeprefix(b"\xef\xbb\xbf") == translate_document(Turned(), made(form, 1), form)[0]


@pytest.mark.parametrize("form", FORMATS)
def test_reading_and_writing_can_be_stopped(form):
    data = made(form, 1)
    with cancellable(lambda: True), pytest.raises(Cancelled):
        Document.read(data, form, "a")
    document, request = Document.read(data, form, "a"), TranslationRequest(*Turned.languages)
    if any(is_prose(unit.text, Turned.languages) for part in document.parts.values() for unit in part.units):
        with cancellable(lambda: True), pytest.raises(Cancelled):
            run_steps(document_steps(document, request), Turned().translate_request)
    with cancellable(lambda: False):
        steps = document_steps(document, request)
        assert run_steps(steps, Turned().translate_request) == translate_document(Turned(), data, form)


def test_the_longer_of_two_codes_is_not_taken_for_the_shorter():
    data = b"<p>Use <code>map()</code> not <code>map</code> here</p>"
    output, _ = translate_document(Turned(), data, "html")
    assert sorted(re.findall(rb"<code>[^<]*</code>", output)) == [b"<code>map()</code>", b"<code>map</code>"]


def test_pairs_too_deep_inside_each_other_are_single_marks():
    document = Document.read(b"<p>" + b"<b>a " * 3_000 + b"x" + b"</b>" * 3_000, "html")
    (unit,) = document.parts["document"].units
    assert sum(mark.kind == "open" for mark in unit.marks) == sum(mark.kind == "close" for mark in unit.marks) == 50
    assert len(unit.marks) == 6_000 - 2  # the outermost pair is around all of the text and stays outside


@pytest.mark.parametrize("text", ["a" * 50_000, "a." * 50_000, "{" * 50_000, "%" * 50_000, "http://" * 20_000])
def test_placeholders_are_looked_for_in_one_go(text):
    assert len(protected_spans(text)) <= (1 if text.startswith("http") else 0)
