"""A translated document keeps every byte that is no prose, every tag and every placeholder."""

import io
import re
import sysconfig
from collections import Counter
from importlib.metadata import distributions
from itertools import islice
from pathlib import Path
from xml.etree import ElementTree

import docx
import polib
import pytest
import yaml
from made_documents import ATOMS, MAKERS, Turned, made, structure

from sixfold.errors import DataError, RequestError
from sixfold.translation.documents.document import Document
from sixfold.translation.documents.formats import FORMATS, format_of, is_archive
from sixfold.translation.documents.inline import place_marks
from sixfold.translation.documents.steps import translate_document
from sixfold.translation.documents.units import Mark, Unit
from sixfold.translation.result import Link, Notice, Translation


@pytest.mark.parametrize("form", MAKERS)
def test_what_is_not_changed_comes_back_byte_for_byte(form):
    for number in range(1000 if form != "docx" else 40):
        data = made(form, number)
        translation, report = translate_document(Turned(same=True), data, form)
        assert translation == data, number
        assert report.notices == []


@pytest.mark.parametrize("form", MAKERS)
def test_structure_and_placeholders_survive_a_translation(form):
    changed = 0
    for number in range(300 if form != "docx" else 20):
        data = made(form, number)
        translation, _ = translate_document(Turned(), data, form)
        changed += translation != data
        assert structure(form, translation) == structure(form, data), (number, data, translation)
        if form != "docx":
            for atom in ATOMS:
                assert translation.count(atom.encode()) >= data.count(atom.encode()), (atom, data, translation)
    assert changed or form in ("po", "xliff")  # those have their translations already


def real_documents():
    """Yield this project's pages, and the READMEs and data files of installed packages."""
    root = Path(__file__).parents[3]
    yield from ((path, path.read_bytes()) for path in [*root.glob("*.md"), *root.glob("docs/**/*.md")])
    for each in distributions():
        text = each.read_text("METADATA") or ""
        if "Description-Content-Type: text/markdown" in text:
            yield Path(f"{each.name}.md"), text.partition("\n\n")[2].encode()
    kinds = (".html", ".json", ".yaml", ".yml", ".po", ".csv", ".docx")
    for packages in map(Path, sysconfig.get_paths()["purelib"].splitlines()):
        for kind in kinds:
            some = (path for path in sorted(packages.rglob(f"*{kind}")) if path.stat().st_size < 200_000)
            yield from ((path, path.read_bytes()) for path in islice(some, 25))


def test_real_documents_survive():
    seen = Counter()
    for path, data in real_documents():
        form = format_of(path)
        try:
            before = structure(form, data)
            if form == "markdown":
                before = [each for each in before if not isinstance(each, Counter)]
        except (ValueError, yaml.YAMLError, OSError):  # made to be broken, for tests
            continue
        translation, _ = translate_document(Turned(same=True), data, form)
        assert translation == data, path
        translation, _ = translate_document(Turned(), data, form)
        after = structure(form, translation)
        if form == "markdown":  # emphasis is ambiguous enough in the wild
            after = [each for each in after if not isinstance(each, Counter)]
        assert after == before, path
        seen[form] += 1
    assert seen["markdown"] > 20
    assert seen["json"] > 5


def translated(form, text, translator=None):
    data = text if isinstance(text, bytes) else text.encode()
    translation, report = translate_document(translator or Turned(), data, form)
    return translation if isinstance(text, bytes) else translation.decode(), [
        notice.kind for _, notice in report.notices
    ]


def test_tags_follow_their_words_and_stay_nested():
    page = "<p>one <b>two <i>three</i></b> four<wbr> five<br>six seven</p>"
    assert translated("html", page) == ("<p><wbr>FIVE FOUR <b><i>THREE</i> TWO</b> ONE<br>SEVEN SIX</p>", [])
    page = '<p>see <a href="/a" title="the page">this page</a></p><pre>this page</pre>'
    assert translated("html", page)[0] == '<p><a href="/a" title="PAGE THE">PAGE THIS</a> SEE</p><pre>this page</pre>'
    assert translated("html", '<p class="notranslate">this page</p>')[0] == '<p class="notranslate">this page</p>'
    assert translated("html", "<p>call <code>a &lt; b</code> now")[0] == "<p>NOW <code>a &lt; b</code> CALL"


class Forgetful(Turned):
    """Loses words with a z, and has no alignment."""

    def translate(self, text, *_):
        translation = " ".join(word.upper() for word in text.split() if "z" not in word and word != "two")
        return Translation(text, translation, 0.0, self.languages)


def test_a_tag_without_words_is_reported_and_code_stays():
    translation, kinds = translated("html", "<p>one <b>two</b> three</p>", Forgetful())
    assert Counter(re.findall(r"<.*?>", translation)) == Counter(["<p>", "<b>", "</b>", "</p>"])
    assert kinds == ["markup"]
    translation, _ = translated("markdown", "Open `zip it` and `z` now\n", Forgetful())
    assert translation.count("`zip it`") == translation.count("`z`") == 1


class Unsure(Turned):
    """Leaves every text as it is, with a notice."""

    languages = ("en", "zh")

    def translate(self, text, *_):
        return Translation(text, text, 0.0, self.languages, warnings=(Notice("copied", "left as it is"),))


def test_units_that_stay_as_they_are_have_notices_too_in_the_order_of_the_document():
    page = "Where is the station?\n\n我们昨天去了图书馆。\n\n42\n\nМы вчера ходили в библиотеку.\n\n那里有很多旧书。\n"
    translation, report = translate_document(Unsure(), page.encode(), "markdown")
    assert translation.decode() == page
    assert [(line, notice.kind) for line, notice in report.notices] == [
        ("1", "copied"), ("3", "same-language"), ("7", "language"), ("9", "same-language")
    ]  # fmt: skip


def test_code_names_and_figures_are_no_other_language():
    page = "# `pip install`\n\n王小明\n\nOK\n\n2024年\n\nThe menu says 红烧肉 and the waiter nods.\n\n<https://例子.测试/>\n"
    assert translated("markdown", page)[1] == []


def test_words_between_two_pairs_are_shared_out_and_none_is_left_outside_of_a_run():
    unit = Unit((0, 9), "ab cd ef", (Mark(0, "open", (0, 0)), Mark(2, "close", (0, 0)), Mark(6, "open", (0, 0)),
                Mark(8, "close", (0, 0))), covered=True)  # fmt: skip
    links = [Link((0, 2), (6, 8), 1.0), Link((3, 5), (3, 5), 1.0), Link((6, 8), (0, 2), 1.0)]
    positions, is_complete = place_marks(unit, "EF CD AB", links)
    assert positions == [(0, 2), (6, 3), (6, 0), (8, 1)]
    assert is_complete


def test_catalogues_get_the_translations_that_they_lack():
    text = 'msgid ""\nmsgstr "Language: xx\\n"\n\nmsgid "a \\"b\\"\\n"\n"c"\nmsgstr ""\n\nmsgid "so"\nmsgstr "kept"\n'
    translation, _ = translated("po", text)
    assert [entry.msgstr for entry in polib.pofile(translation)] == ['C "B" A', "kept"]
    many = 'msgid "one file"\nmsgid_plural "many files"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    assert polib.pofile(translated("po", many)[0])[0].msgstr_plural == {0: "FILE ONE", 1: "FILES MANY"}
    unit = '<unit><segment>\n  <source>one <pc id="1">two</pc> <ph id="2"/></source>{}\n</segment></unit>'
    for target in ("", "\n  <target/>", "\n  <target></target>"):
        translation, _ = translated("xliff", unit.format(target))
        bare = re.sub(r'\s*<ph id="2"/>\s*', "", translation)
        assert '<target><pc id="1">TWO</pc> ONE</target>' in bare
        assert translation.count('<ph id="2"/>') == 2
        ElementTree.fromstring(translation)
    kept = unit.format("\n  <target>said</target>")
    assert translated("xliff", kept)[0] == kept


def test_a_word_document_keeps_how_its_words_look():
    document = docx.Document()
    paragraph = document.add_paragraph("the ")
    paragraph.add_run("old").bold = True
    paragraph.add_run(" house & garden")
    out = io.BytesIO()
    document.save(out)
    translation, _ = translated("docx", out.getvalue())
    (read,) = docx.Document(io.BytesIO(translation)).paragraphs
    assert read.text == "GARDEN & HOUSE OLD THE"
    assert "".join(run.text for run in read.runs if run.bold).strip() == "OLD"
    with pytest.raises(DataError, match="expected a DOCX file"):
        translated("docx", b"PK no")


@pytest.mark.parametrize(
    ("form", "data", "message"),
    [
        ("json", b'{"a": ', "expected JSON"),
        ("json", b"[" * 100_000, "expected JSON"),
        ("yaml", b"a: [b", "expected YAML"),
        ("html", b"<p>\n\xff", ":2: expected UTF-8; got byte 0xff"),
        ("docx", b"", "expected a DOCX file"),
    ],
)
def test_a_document_of_another_format_is_an_error(form, data, message):
    with pytest.raises(DataError, match=message):
        translated(form, data)


def test_formats_follow_from_names_or_are_forced():
    assert format_of(Path("a.HTML")) == "html"
    assert format_of(Path("a.txt")) is None
    assert format_of(Path("a.html"), "text") is None
    assert format_of(Path("a"), "srt") == "srt"
    with pytest.raises(RequestError, match="--format: expected one of text, html"):
        format_of(Path("a"), "word")
    assert MAKERS.keys() == FORMATS.keys()


def test_a_byte_order_mark_and_empty_documents_stay():
    for form in {form for form in FORMATS if not is_archive(form)} - {"json"}:
        assert translated(form, b"") == (b"", [])
    assert translated("html", b"\xef\xbb\xbf<p>so")[0] == b"\xef\xbb\xbf<p>SO"
    assert Document.read(b"<b></b>", "html").parts["document"].units == ()
