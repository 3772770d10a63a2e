"""OpenDocument: texts, slides and sheets, with spans, notes, fields and tracked changes."""

import io
import re
import zipfile

import pytest
from made_documents import Turned, made
from made_office import ODF, zipped
from odf import opendocument

from sixfold.translation.documents.document import Document
from sixfold.translation.documents.office import odt
from sixfold.translation.documents.steps import translate_document

NAMES = {"office": "office", "text": "text", "table": "table", "draw": "drawing", "svg": "svg-compatible"}
NAMESPACES = "".join(f' xmlns:{prefix}="{ODF.format(name)}"' for prefix, name in NAMES.items())


def content_of(body):
    return f"<office:document-content{NAMESPACES}><office:body>{body}</office:body></office:document-content>"


def units_of(body):
    (part,) = Document.read(zipped({"content.xml": content_of(body)}), "odt").parts.values()
    return [unit.text for unit in part.units]


def translated(body, form="odt"):
    data, report = translate_document(Turned(), zipped({"content.xml": content_of(body)}), form)
    assert report.untranslated == 0
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return re.search(r"<office:body>(.*)</office:body>", file.read("content.xml").decode(), re.S)[1]


def test_spans_and_links_follow_their_words():
    body = '<text:p>the <text:span text:style-name="T1">old</text:span> house &amp; <text:a>this page</text:a></text:p>'
    expected = (
        '<text:p><text:a>PAGE THIS</text:a> &amp; HOUSE <text:span text:style-name="T1">OLD</text:span> THE</text:p>'
    )
    assert translated(body) == expected


def test_spaces_tabs_and_breaks():
    assert units_of("<text:p>a b\n  c<text:s text:c='3'/>d</text:p>") == ["a b c d"]
    assert units_of("<text:p>one day<text:tab/>two days</text:p>") == ["one day", "two days"]
    assert units_of("<text:p>one day<text:line-break/>and a night</text:p>") == ["one day and a night"]
    assert units_of("<text:p>one day.<text:line-break/>Two days</text:p>") == ["one day.", "Two days"]
    assert units_of("<text:p>a <text:span>b c<text:tab/>d e</text:span> f</text:p>") == ["a", "b c", "d e", "f"]


def test_fields_and_notes_stay_in_their_sentence():
    field = "<text:page-number>page seven</text:page-number>"
    assert translated(f"<text:p>on {field} we rest</text:p>") == f"<text:p>REST WE {field} ON</text:p>"
    note = "<text:note><text:note-citation>1 a</text:note-citation><text:note-body>{}</text:note-body></text:note>"
    output = translated(f"<text:p>we{note.format('<text:p>or so</text:p>')} rest</text:p>")
    assert note.format("<text:p>SO OR</text:p>") in output
    assert output.endswith("WE</text:p>")


def test_tracked_changes_and_scripts_stay():
    change = "<text:tracked-changes><text:deletion><text:p>this is gone</text:p></text:deletion></text:tracked-changes>"
    assert translated(f"{change}<text:p>this stays</text:p>") == f"{change}<text:p>STAYS THIS</text:p>"
    start, end = '<text:bookmark-start text:name="b"/>', '<text:bookmark-end text:name="b"/>'
    output = translated(f"<text:p>we see {start}this page{end} now</text:p>")
    assert f"{start}PAGE THIS{end}" in output


def test_cells_with_values_and_texts_that_formulas_use_stay():
    cell = '<table:table-cell office:value-type="{}"{}><text:p>{}</text:p></table:table-cell>'
    kept = [
        cell.format("float", ' office:value="4"', "4 or so"),
        cell.format("string", ' table:formula="of:=IF([.A1]=&quot;all done&quot;;1;2)"', "or so"),
        cell.format("string", "", "all done"),
    ]
    output = translated("".join([*kept, cell.format("string", "", "so done")]), "ods")
    assert output == "".join([*kept, cell.format("string", "", "DONE SO")])


def test_headers_descriptions_and_slides_are_translated():
    frame = (
        '<draw:frame draw:name="Frame one"><svg:title>the cat</svg:title><svg:desc>a grey cat</svg:desc></draw:frame>'
    )
    output = translated(
        f"<draw:page>{frame}<draw:text-box><text:p>one slide</text:p></draw:text-box></draw:page>", "odp"
    )
    assert 'draw:name="Frame one"' in output
    assert re.findall(r">([^<>]+)<", output) == ["CAT THE", "CAT GREY A", "SLIDE ONE"]
    members = {"content.xml": content_of(""), "styles.xml": content_of("<text:p>the header</text:p>")}
    data, _ = translate_document(Turned(), zipped(members), "odt")
    assert b"HEADER THE" in zipfile.ZipFile(io.BytesIO(data)).read("styles.xml")


def test_the_language_of_a_style_is_written():
    style = (
        '<style:text-properties fo:language="en" fo:country="US" style:language-asian="ja" style:country-asian="JP"/>'
    )
    assert odt.set_language(style, "de") == style.replace('"en"', '"de"').replace('"US"', '"none"')
    assert odt.set_language(style, "zh-CN") == style.replace('"ja"', '"zh"').replace('"JP"', '"none"')
    assert odt.set_language(style.replace("en", "zxx"), "de") == style.replace("en", "zxx")
    assert odt.structure(f"<a>{style}</a>".replace("style:t", "t")) != []


@pytest.mark.parametrize("form", ["odt", "odp", "ods"])
def test_odfpy_opens_what_is_written_and_the_mimetype_is_first_and_stored(form):
    for number in range(20):
        data, _ = translate_document(Turned(), made(form, number), form)
        first = zipfile.ZipFile(io.BytesIO(data)).infolist()[0]
        assert (first.filename, first.compress_type, first.extra) == ("mimetype", zipfile.ZIP_STORED, b"")
        before, after = (opendocument.load(io.BytesIO(each)) for each in (made(form, number), data))
        texts = [sorted(str(each.body).lower().replace(" ", "")) for each in (before, after)]
        assert texts[0] == texts[1]


def test_the_structure_sees_what_would_damage_a_text():
    def structure(inside):
        return odt.structure(content_of(f"<text:p>{inside}</text:p>"))

    source = structure('a <text:span text:style-name="T1">b</text:span> <text:date>c</text:date><text:s/>')
    assert structure('<text:date>c</text:date>x <text:span text:style-name="T1">y z</text:span>') == source
    for damaged in (
        "a <text:date>c</text:date>",
        '<text:span text:style-name="T2">b</text:span><text:date>c</text:date>',
        '<text:span text:style-name="T1">b</text:span><text:date>d</text:date>',
        '<text:span text:style-name="T1">b<text:date>c</text:date></text:span>',
    ):
        assert structure(damaged) != source


def test_what_is_written_from_right_to_left_is_written_from_left_to_right():
    style = f'<style:paragraph-properties xmlns:style="{ODF.format("style")}" style:writing-mode="rl-tb"/>'
    assert odt.set_language(style, "en") == style.replace("rl-tb", "lr-tb")
    assert odt.set_language(style, "he") == style
    assert odt.structure(style) == odt.structure(odt.set_language(style, "en"))


def test_the_title_of_a_text_is_translated_and_its_author_stays():
    dc = "http://purl.org/dc/elements/1.1/"
    meta = f'<m xmlns:dc="{dc}"><dc:title>{{}}</dc:title><dc:creator>Jane Roe</dc:creator></m>'
    members = {"content.xml": content_of("<text:p>the old house</text:p>"), "meta.xml": meta.format("This page")}
    data, report = translate_document(Turned(), zipped(members), "odt")
    assert report.untranslated == 0
    assert zipfile.ZipFile(io.BytesIO(data)).read("meta.xml").decode() == meta.format("PAGE THIS")
