"""The checkers of the documents benchmark find planted damage, and its table counts what came of each document."""

import io
import json
import shutil
import sys
import zipfile
from pathlib import Path

import docx
import odf.opendocument
import odf.text
import openpyxl
import pptx
import pytest
from made_documents import Turned

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))  # at the end: its modules hide nothing

import documents
from document_outlines import icu_outline, placeholders
from hostile_translator import HostileEngine, LawlessTranslator, hostile_translator

from sixfold.errors import DataError

PO = (
    'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
    '#: a.c:1\n#, c-format\nmsgid "Open %s in {place}"\nmsgstr ""\n'
)
SRT = "1\n00:00:01,000 --> 00:00:02,000\n<i>Open it</i> now\n\n2\n00:00:03,000 --> 00:00:04,000\nSo\n"
XLIFF = (
    '<xliff version="1.2"><file><body><trans-unit id="1"><source>Open <x id="2"/> it</source><target>so <x id="2"/>'
    '</target></trans-unit><trans-unit id="3" translate="no"><source>Kept</source></trans-unit></body></file></xliff>'
)
MAN = ".TH OPEN 1\n.SH NAME\nopen \\- opens\n.SH OPTIONS\n.TP\n.B \\-\\-force\nUse \\fIforce\\fP now.\n"
RST = (
    "Title\n=====\n\nSee `this page <https://a.b/c>`_ and ``code`` with *care* and :ref:`one <two>`.\n\n"
    ".. note::\n\n   So it is.\n\n.. versionadded:: 2.0\n   It is new.\n\n.. code-block:: sh\n\n   go now\n"
)
LATEX = (
    "\\section{One}\nSee \\textbf{two} and $x^2$ in \\ref{a}. % so\n\n\\begin{itemize}\n\\item Three\n\\end{itemize}\n"
)
HTML = (
    '<!DOCTYPE html><title>So</title><p>Open <a href="/x?a=1">this <b>page</b></a> with <code>map()</code>.</p>'
    '<p title="so">Go</p>'
)
MARKDOWN = "---\ntitle: One\n---\n# Two\n\nSee [this page](https://a.b/c) and `code` **here**.\n\n- three\n- four\n"
JSON = '{"a": "Open {name} now", "b": ["{n, plural, one {# cat} other {# cats}}", 2, "<b>so</b>"]}'
YAML = "a: &x Open %{name} now\nb:\n  - so\n  - 2\n"
CSV = "name,size\nOpen it,2\nnow,3\n"

# The format and its text, what of it is replaced, and the fault that must be found; "" for a good translation.
DAMAGES = [
    ("po", PO, 'place}"\nmsgstr ""', 'place}"\nmsgstr "于 {place} %s"', ""),
    ("po", PO, 'place}"\nmsgstr ""', 'place}"\nmsgstr "于 {place}"', "placeholder lost"),
    ("po", PO, 'place}"\nmsgstr ""', 'place}"\nmsgstr "%s {place} {place}"', "placeholder invented"),
    ("po", PO, "a.c:1", "a.c:2", "structure"),
    ("po", PO, 'msgstr ""\n', 'msgstr "a"b"\n', "malformed"),
    ("srt", SRT, "Open it", "打开", ""),
    ("srt", SRT, "04,000\nSo", "04,000\n\nSo", "structure"),
    ("srt", SRT, "02,000", "02,500", "structure"),
    ("srt", SRT, "</i>", "", "lost"),
    ("vtt", "WEBVTT\n\n" + SRT.replace(",", "."), "</i>", "</b>", "invented"),
    ("xliff", XLIFF, "so <", "于 <", ""),
    ("xliff", XLIFF, 'so <x id="2"/>', "so", "invented"),
    ("xliff", XLIFF, "Kept", "Lost", "structure"),
    ("xliff", XLIFF, "so <x", "so & <x", "malformed"),
    ("rst", RST, "So it is", "如此", ""),
    ("rst", RST, "with *care*", "with *care *", "invented"),
    ("rst", RST, "*care*", "*care", "invented"),
    ("rst", RST, "``code``", "``kode``", "lost"),
    ("rst", RST, "<two>", "<three>", "invented"),
    ("rst", RST, "   go now", "   go then", "structure"),
    ("rst", RST, "versionadded:: 2.0", "versionadded:: 2.1", "structure"),
    ("latex", LATEX, "Three", "三", ""),
    ("latex", LATEX, "{two}", "{two", "structure"),
    ("latex", LATEX, "\\end{itemize}", "\\end{enumerate}", "structure"),
    ("latex", LATEX, "Three", "50 % three", "invented"),
    ("latex", LATEX, "x^2", "x^3", "lost"),
    ("html", HTML, "this <b>page</b>", "<b>这</b>页", ""),
    ("html", HTML, 'title="so"', 'title="如此"', ""),
    ("html", HTML, "?a=1", "?a=2", "lost"),
    ("html", HTML, "<b>page</b>", "page", "lost"),
    ("html", HTML, "map()", "plan()", "lost"),
    ("html", HTML, ">Go<", "><p>Go<", "structure"),
    ("markdown", MARKDOWN, "here", "这里", ""),
    ("markdown", MARKDOWN, "**here**", "** here**", "lost"),
    ("markdown", MARKDOWN, "(https://a.b/c)", " (https://a.b/c)", "lost"),
    ("markdown", MARKDOWN, "- four", "-four", "structure"),
    ("markdown", MARKDOWN, "title: One", "title: One: two", "malformed"),
    ("json", JSON, "Open {name} now", "现在 {name}", ""),
    ("json", JSON, "{name}", "{ name", "placeholder lost"),
    ("json", JSON, "{# cats}", "{# 猫}", ""),
    ("json", JSON, "other {", "其他 {", "placeholder invented"),
    ("json", JSON, "{# cats}}", "{# cats", "placeholder invented"),
    ("json", JSON, "2,", "3,", "structure"),
    ("json", JSON, "so</b>", "so</i>", "placeholder invented"),
    ("json", JSON, "Open ", '"Open', "malformed"),
    ("yaml", YAML, "- so", "- 如此", ""),
    ("yaml", YAML, "%{name}", "%{Name}", "placeholder lost"),
    ("yaml", YAML, "- so", "- 'so", "malformed"),
    ("yaml", YAML, "- so", "- no: so", "structure"),
    ("csv", CSV, "Open it", '"打开,它"', ""),
    ("csv", CSV, "Open it", "打开,它", "structure"),
    ("csv", CSV, "name", "名", "structure"),
    ("csv", CSV, ",3", ",4", "lost"),
    ("man", MAN, "opens", "打开", ""),
    ("man", MAN, "\\-\\-force", "\\-\\-Force", "lost"),
    ("man", MAN, ".SH OPTIONS", "SH OPTIONS", "structure"),
    ("man", MAN, "\\fIforce\\fP", "force", "lost"),
]


@pytest.mark.parametrize(("form", "text", "old", "new", "kind"), DAMAGES)
def test_planted_damage_is_found_and_a_good_translation_is_not_damage(form, text, old, new, kind):
    if form == "man" and shutil.which("mandoc") is None and kind in ("lost", ""):
        pytest.skip("mandoc is not installed")
    assert text.count(old) >= 1
    faults = documents.faults_of(form, text.encode(), text.replace(old, new, 1).encode())
    assert (kind in [fault.kind for fault in faults]) if kind else faults == []


def rewritten(data, changes):
    """Return an archive whose members are changed by functions."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for entry in old.infolist():
            change = changes.get(entry.filename, lambda content: content)
            new.writestr(entry, change(old.read(entry)), entry.compress_type)
    return out.getvalue()


def saved(document):
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def word_document():
    document = docx.Document()
    paragraph = document.add_paragraph("Open ")
    paragraph.add_run("it").bold = True
    paragraph.add_run().add_break()
    document.add_table(1, 2).cell(0, 0).text = "so"
    return saved(document)


def slides():
    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[0])
    slide.shapes.title.text = "Open it"
    return saved(presentation)


def workbook():
    book = openpyxl.Workbook()
    for row in (["Open it", 2], ["now", "=SUM(B1:B1)"]):
        book.active.append(row)
    return saved(book)


def text_document():
    document = odf.opendocument.OpenDocumentText()
    paragraph = odf.text.P(text="Open ")
    paragraph.addElement(odf.text.Span(text="it"))
    document.text.addElement(paragraph)
    return saved(document)


def book():
    out = io.BytesIO()
    page = '<html xmlns="http://www.w3.org/1999/xhtml"><body><p id="a">Open <a href="#a">it</a></p></body></html>'
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("mimetype", "application/epub+zip")
        file.writestr("META-INF/container.xml", '<container><rootfile full-path="b/c.opf"/></container>')
        item = '<item id="i" href="d.xhtml" media-type="application/xhtml+xml"/>'
        file.writestr("b/c.opf", f'<package><manifest>{item}</manifest><spine><itemref idref="i"/></spine></package>')
        file.writestr("b/d.xhtml", page)
    return out.getvalue()


def replaced(old, new):
    def change(content):
        assert old.encode() in content
        return content.replace(old.encode(), new.encode(), 1)

    return change


@pytest.mark.parametrize(
    ("make", "form", "member", "old", "new", "kind"),
    [
        (word_document, "docx", "word/document.xml", "Open ", "打开", ""),
        (word_document, "docx", "word/document.xml", "Open ", "A & B", "malformed"),
        (word_document, "docx", "word/document.xml", "<w:br/>", "", "lost"),
        (word_document, "docx", "word/document.xml", "<w:tc>", "<w:tc><w:p/>", "structure"),
        (word_document, "docx", "docProps/thumbnail.jpeg", "JFIF", "JFIX", "structure"),
        (slides, "pptx", "ppt/slides/slide1.xml", "Open it", "打开", ""),
        (slides, "pptx", "ppt/slides/slide1.xml", "Open it", "<", "malformed"),
        (slides, "pptx", "ppt/slides/slide1.xml", 'type="ctrTitle"', 'type="body"', "lost"),
        (workbook, "xlsx", "xl/sharedStrings.xml", "Open it", "打开", ""),
        (workbook, "xlsx", "xl/worksheets/sheet1.xml", "SUM", "总和", "structure"),
        (workbook, "xlsx", "xl/workbook.xml", 'name="Sheet"', 'name="表"', "structure"),
        (text_document, "odt", "content.xml", "Open ", "打开", ""),
        (text_document, "odt", "content.xml", "<text:span>it</text:span>", "it", "lost"),
        (text_document, "odt", "content.xml", "Open ", "&nbsp;", "malformed"),
        (book, "epub", "b/d.xhtml", "Open ", "打开", ""),
        (book, "epub", "b/d.xhtml", 'href="#a"', 'href="#b"', "structure"),
        (book, "epub", "b/d.xhtml", "Open ", "<br>", "malformed"),
        (book, "epub", "b/c.opf", "d.xhtml", "e.xhtml", "malformed"),
        (book, "epub", "mimetype", "epub", "zip", "malformed"),
    ],
)
def test_planted_damage_of_archives_is_found(make, form, member, old, new, kind):
    data = make()
    damaged = rewritten(data, {member: replaced(old, new)})
    faults = documents.faults_of(form, data, damaged)
    assert (kind in [fault.kind for fault in faults]) if kind else faults == []


def test_what_is_no_document_of_its_format_is_not_accepted():
    for form in ("docx", "pptx", "xlsx", "odt", "epub"):
        assert documents.outline_of(form, b"PK no") is None
    for form, text in (("json", "{"), ("yaml", "a: [b"), ("po", 'msgid "a\n'), ("xliff", "<xliff>"), ("html", b"\xff")):
        assert documents.outline_of(form, text if isinstance(text, bytes) else text.encode()) is None


def test_a_book_whose_mimetype_is_not_the_first_member_is_damaged_unless_the_source_is_so():
    with zipfile.ZipFile(io.BytesIO(book())) as old:
        members = {name: old.read(name) for name in old.namelist()}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in members.items():
            new.writestr(name, content)
    assert [fault.kind for fault in documents.faults_of("epub", book(), out.getvalue())] == ["invented"]
    assert documents.faults_of("epub", out.getvalue(), book()) == []


def test_icu_messages_and_placeholders_are_read():
    message = "It''s '{'so'}' {n, plural, offset:1 =0 {none} other {{name} has # {x, number, integer}}}"
    assert icu_outline(message) == {
        "/n, plural offset:1": 1, "/n, plural offset:1/=0": 1, "/n, plural offset:1/other": 1,
        "/n, plural offset:1/other/name": 1, "/n, plural offset:1/other/#": 1,
        "/n, plural offset:1/other/x, number, integer": 1,
    }  # fmt: skip
    assert icu_outline("{n, plural, one {a}") is icu_outline("{n, plural}") is icu_outline("}") is None
    text = "%s of {{ n }} at https://a.b/c. <b class='x'>me@b.c</b> %(a)d 5% of"
    assert set(placeholders(text)) == {
        "%s", "{{ n }}", "https://a.b/c", "<b class='x'>", "me@b.c", "</b>", "%(a)d"
    }  # fmt: skip


class Refusing:
    """A translator that finds fault with every text, or that crashes."""

    def __init__(self, error):
        self.error = error

    def route(self, *_):
        raise self.error


def measured(tmp_path, name, text, translator):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return documents.measure(path, documents.form_of(path), "en", translator)


def test_the_outcome_of_each_document_is_counted(tmp_path):
    page = "# Open it\n\nNow `go`.\n"
    translated, output = measured(tmp_path, "markdown/a.md", page, Turned())
    assert output.decode() == "# IT OPEN\n\n`go`. NOW\n"
    refused, _ = measured(tmp_path, "json/a.json", "{", Turned())
    wrongly, _ = measured(tmp_path, "json/b.json", '{"a": "so it is"}', Refusing(DataError("no")))
    crashed, _ = measured(tmp_path, "json/c.json", '{"a": "so it is"}', Refusing(KeyError("no")))
    outcomes = [each.outcome for each in (translated, refused, wrongly, crashed)]
    assert outcomes == ["translated", "refused", "wrongly refused", "crashed"]
    assert [documents.is_good(each) for each in (translated, refused, wrongly, crashed)] == [True, True, False, False]
    damaged = documents.Measurement(
        "d.md", "markdown", "translated", faults=documents.faults_of("markdown", b"# a", b"a")
    )
    assert not documents.is_good(damaged)
    lines = documents.table([translated, refused, wrongly, crashed, damaged])
    assert lines[2:] == [
        f"| markdown | 2 | 0 | 1 in 1 | 0 (0) | 0 | 0 | 2 | 100.0% | 0.0% | 0 | {translated.seconds:.1f} |",
        "| json | 3 | 0 | 0 in 0 | 2 (1) | 1 | 0 | 0 | 0.0% | 0.0% | 0 | 0.0 |",
        f"| all | 5 | 0 | 1 in 1 | 2 (1) | 1 | 0 | 2 | 100.0% | 0.0% | 0 | {translated.seconds:.1f} |",
    ]


@pytest.mark.parametrize(
    ("text", "has_word"),
    [
        ("Title", True), ("SYNOPSIS", True), ("[Top]", True), ("Open GtkCellArea", True), ("Type a key.", True),
        ("是（x）", True), ("X", False), ("8268b7dc", False), ("sheet2.ods", False), ("GtkCellArea", False),
        ("a = b", False), ("map(item)", False), ("--all", False), ("https://a.b/some/page", False),
        ("{name} (%s)", False), ("1.6b1", False),
    ],
)  # fmt: skip
def test_a_text_without_a_word_to_translate_is_a_code(text, has_word):
    assert documents.has_word(text) is has_word


def test_codes_are_counted_apart_and_words_that_are_copied_are_not_translated(tmp_path):
    text = '{"a": "open it", "b": "TITLE", "c": "x2", "d": "X"}'
    measurement, _ = measured(tmp_path, "json/a.json", text, Turned())
    counts = measurement.units, measurement.translated, measurement.codes, measurement.copied
    assert counts == (2, 1, 2, ["TITLE"])


def test_a_catalogue_in_traditional_characters_is_translated_into_them(tmp_path):
    translator = LawlessTranslator()
    measurement, _ = measured(tmp_path, "po/a.po", PO.replace("Content", 'Language: zh_TW\\n"\n"Content'), translator)
    assert (measurement.outcome, translator.languages) == ("translated", ("en", "zh-Hant"))


def test_documents_are_chosen_by_format_number_and_size(tmp_path):
    for name in ("markdown/a.md", "markdown/b.md", "json/a.json", "subtitles/a.srt", "odf/a.odp"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("This is the text of it. " * (1 + 9 * ("b.md" in name)), encoding="utf-8")
    found = list(documents.documents_in(tmp_path))
    assert sorted(form for _, form, _ in found) == ["json", "markdown", "markdown", "odp", "srt"]
    assert len(documents.chosen(found, [], 1, None)) == 4
    assert [path.name for path, _, _ in documents.chosen(found, ["markdown"], None, 100)] == ["a.md"]
    rows = [{"file": "json/a.json", "language": "zh"}]
    (tmp_path / "manifest.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert list(documents.documents_in(tmp_path)) == [(tmp_path / "json/a.json", "json", "zh")]


def test_the_hostile_decoder_and_the_lawless_translator_drop_double_and_move_spans_and_write_markup():
    text = "Open {name} in `map()` and go to https://a.b/c now"
    outputs = [LawlessTranslator(seed=seed).translate(text).text for seed in range(60)]
    counts = {output.count("{name}") for output in outputs}
    assert counts == {0, 1, 2}
    assert {output.find("{name}") < output.find("`map()`") for output in outputs} == {True, False}
    assert any("]]>" in output or "<" in output for output in outputs)
    with hostile_translator() as translator:
        direction = translator.direction("en", "zh")
        assert isinstance(direction.engine, HostileEngine)
        source = direction.encoder_input(direction.tokenizer.encode("Open \ue000 and \ue001 now"))
        written = [
            direction.tokenizer.decode(HostileEngine(direction, seed).decode([source])[0][0].tokens)
            for seed in range(60)
        ]
        assert {text.count("\ue000") for text in written} >= {0, 1, 2}
        # What the pipeline makes of it has every part once.
        result = translator.translate(text).text
        assert all(result.count(part) == 1 for part in ("{name}", "`map()`", "https://a.b/c"))
