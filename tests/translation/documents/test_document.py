"""A translated document keeps every byte that is no prose, every tag and every placeholder."""

import io
import re
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import docx
import polib
import pytest
from made_documents import MAKERS, Turned, made

from sixfold.errors import DataError, RequestError
from sixfold.translation.documents.document import Document, DocumentPart
from sixfold.translation.documents.formats import FORMATS, format_of, is_archive
from sixfold.translation.documents.placement import place_markup, place_segments, text_to_translate
from sixfold.translation.documents.steps import translate_document
from sixfold.translation.documents.units import Piece, Run, make_unit
from sixfold.translation.result import Details, Link, Notice, Translation


@pytest.mark.parametrize("form", MAKERS)
def test_what_is_not_changed_comes_back_byte_for_byte(form):
    for number in range(200 if not is_archive(form) else 50):
        data = made(form, number)
        translation, report = translate_document(Turned(same=True), data, form)
        assert translation == data, number
        assert report.notices == []


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


def test_each_text_is_written_in_the_run_that_it_is_in_and_a_run_without_text_stays():
    plain, bold, link = Run("<r>", "</r>"), Run("<r b>", "</r>"), Run("<r u>", "</r>")
    pieces = [
        Piece((0, 1), "a note ", run=plain), Piece((1, 2), "so", run=bold), Piece((2, 3), kind="single"),
        Piece((3, 4), kind="open"), Piece((4, 5), "here", run=link), Piece((5, 6), kind="close"),
        Piece((6, 7), " stays", run=plain),
    ]  # fmt: skip
    unit = make_unit(pieces, collapses=False)
    assert unit.text == "a note sohere stays"
    part = DocumentPart("a.*[b]c", (unit,), FORMATS["html"], [])
    placed, _ = place_markup(unit, Turned().translate(unit.text), False)
    assert part.render({0: placed}) == "<r>STAYS </r><r b></r>*[<r u>SOHERE</r>]<r> NOTE A</r>"
    placed = place_segments(unit, ["A note ", "SO", "HERE", " STAYS"])
    assert part.render({0: placed}) == "<r>A note </r><r b>SO</r>*[<r u>HERE</r>]<r> STAYS</r>"


def test_an_atom_stays_in_its_markup_whatever_the_alignment_says():
    pieces = [
        Piece((0, 1), "see "), Piece((1, 2), kind="open"), Piece((2, 3), "x.y", "atom"), Piece((3, 4), kind="close"),
        Piece((4, 5), " and "), Piece((5, 6), kind="open"), Piece((6, 7), "z", "atom"), Piece((7, 8), kind="close"),
        Piece((8, 9), " or \U000f0000"),
    ]  # fmt: skip
    unit = make_unit(pieces, collapses=False)
    part = DocumentPart("s[x]a{z}.", (unit,), FORMATS["html"], [])
    text = text_to_translate(unit).text
    first, second = (text[at] for at in (4, 10))
    assert text == f"see {first} and {second} or \U000f0000"
    assert len({first, second, "\U000f0000"}) == 3
    turned = f"\U000f0000 o {second} a {first} s"
    wrong = (Link((4, 5), (0, 3), 1.0), Link((8, 9), (10, 11), 1.0))
    translation = Translation(text, turned, 0.0, ("en", "zh"), _explain=lambda: Details((), wrong))
    assert part.render({0: place_markup(unit, translation, False)[0]}) == "\U000f0000 o {z} a [x] s"


def test_words_on_both_sides_of_markup_get_a_space_where_the_language_has_spaces():
    pieces = [Piece((0, 1), "看"), Piece((1, 2), kind="open"), Piece((2, 3), "图"), Piece((3, 4), kind="close"),
              Piece((4, 5), "片")]  # fmt: skip
    unit = make_unit(pieces, collapses=False)
    part = DocumentPart("a*b*c", (unit,), FORMATS["html"], [])
    assert part.render({0: place_segments(unit, ["See", "the", "picture"], True)}) == "See *the* picture"
    assert part.render({0: place_segments(unit, ["看", "图", "片"], False)}) == "看*图*片"


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
