"""DOCX: words keep their look, and breaks, fields, bookmarks, notes and tracked changes stay whole."""

import io
import re
import zipfile

import docx
import pytest
from lxml import etree
from made_documents import Turned
from made_office import RELATIONS, W, field_run, package

from sixfold.errors import DataError
from sixfold.translation.documents.document import Document
from sixfold.translation.documents.office import docx as docx_format
from sixfold.translation.documents.steps import translate_document

NAMESPACES = (
    f'xmlns:w="{W}" xmlns:r="{RELATIONS}" xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math" '
    'xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing"'
)


def document_of(body, namespaces=NAMESPACES, tag="w"):
    text = f"<{tag}:document {namespaces}><{tag}:body>{body}</{tag}:body></{tag}:document>"
    return package("word/document.xml", "wordprocessingml.document.main+xml", {"word/document.xml": text})


def units_of(body):
    (part,) = Document.read(document_of(f"<w:p>{body}</w:p>"), "docx").parts.values()
    return [unit.text for unit in part.units]


def translated(body, **other):
    """Return the body of a translated document; python-docx and lxml can read it."""
    data, report = translate_document(Turned(), document_of(body, **other), "docx")
    assert report.untranslated == 0
    docx.Document(io.BytesIO(data))
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        text = file.read("word/document.xml").decode()
    etree.fromstring(text)
    return re.search(r"body>(.*)</\w+:body>", text, re.S)[1]


def run(text, look=""):
    return f'<w:r>{f"<w:rPr>{look}</w:rPr>" if look else ""}<w:t xml:space="preserve">{text}</w:t></w:r>'


def test_runs_of_one_look_are_one_text_whatever_an_author_or_a_spell_checker_divided():
    pieces = [
        '<w:r w:rsidR="001A"><w:t xml:space="preserve">the old </w:t></w:r><w:proofErr w:type="spellStart"/>',
        '<w:r w:rsidR="002B"><w:rPr><w:lang w:val="en-US"/></w:rPr><w:t>light</w:t></w:r><w:proofErr/>',
        '<w:r><w:rPr><w:rFonts w:hint="eastAsia"/></w:rPr><w:lastRenderedPageBreak/><w:t>house</w:t></w:r>',
    ]
    assert units_of("".join(pieces)) == ["the old lighthouse"]
    assert translated(f"<w:p>{''.join(pieces)}</w:p>") == f"<w:p>{run('LIGHTHOUSE OLD THE')}</w:p>"


def test_words_take_their_look_along():
    body = f"<w:p>{run('the ')}{run('old', '<w:b/>')}{run(' house &amp; garden')}</w:p>"
    expected = f"<w:p>{run('GARDEN &amp; HOUSE ')}{run('OLD', '<w:b/>')}{run(' THE')}</w:p>"
    assert translated(body) == expected


@pytest.mark.parametrize(
    ("between", "count"),
    [
        ("<w:r><w:br w:type='page'/></w:r>", 2), ("<w:r><w:tab/></w:r>", 2), ("<w:r><w:br/></w:r>", 2),
        ('<w:bookmarkStart w:id="1" w:name="a"/><w:bookmarkEnd w:id="1"/>', 1),
        ('<w:r><w:footnoteReference w:id="2"/></w:r>', 1), ('<w:commentRangeStart w:id="1"/>', 1),
        ('<w:del w:id="1"><w:r><w:delText>gone</w:delText></w:r></w:del>', 1),
        ("<w:moveFrom w:id='1'><w:r><w:t>gone</w:t></w:r></w:moveFrom>", 1),
    ],
)  # fmt: skip
def test_what_stands_between_two_runs_of_one_look_stays_whole(between, count):
    body = f"{run('one day. ')}{between}{run('Two nights')}"
    assert len(units_of(body)) == count
    output = translated(f"<w:p>{body}</w:p>")
    assert between in output
    assert ("NIGHTS TWO DAY." in re.sub(r"<[^>]*>", "", output.replace(between, "")).replace("  ", " ")) == (count == 1)
    assert "gone" not in "".join(units_of(body))


def test_a_run_with_several_things_is_split_and_the_text_around_them_is_translated():
    inside = "<w:t>first one.</w:t><w:br/><w:t>Second one</w:t><w:tab/><w:t>5 more</w:t>"
    output = translated(f"<w:p><w:r><w:rPr><w:b/></w:rPr>{inside}</w:r></w:p>")
    assert re.findall(r"<w:t [^>]*>([^<]*)|(<w:br/>|<w:tab/>)", output) == [
        ("ONE. FIRST", ""), ("", "<w:br/>"), ("ONE SECOND", ""), ("", "<w:tab/>"), ("MORE 5", "")
    ]  # fmt: skip
    assert output.count("<w:rPr><w:b/></w:rPr>") == output.count("<w:r>") == 5


def test_a_line_break_inside_a_sentence_does_not_divide_it():
    assert units_of(f"{run('one day')}<w:r><w:br/></w:r>{run('and one night')}") == ["one day and one night"]
    assert units_of(f"{run('one day')}<w:r><w:br/></w:r>{run('One night')}") == ["one day", "One night"]
    assert units_of(f"{run('one day.')}<w:r><w:br/></w:r>{run('and a night')}") == ["one day.", "and a night"]


def field(instruction, result):
    code = f"{field_run('begin')}<w:r><w:instrText> {instruction} </w:instrText></w:r>{field_run('separate')}"
    return f"{code}{result}{field_run('end')}"


def test_the_result_of_a_field_stays_and_the_text_of_a_link_is_translated():
    page = field("PAGE", run("seven"))
    output = translated(f"<w:p>{run('on page ')}{page}{run(' we rest')}</w:p>")
    assert output == f"<w:p>{run('REST WE ')}{page}{run(' PAGE ON')}</w:p>"
    link = field('HYPERLINK "http://a.b/"', run("this page", "<w:u/>"))
    output = translated(f"<w:p>{run('see ')}{link}</w:p>")
    assert run("PAGE THIS", "<w:u/>") in output
    simple = f'<w:fldSimple w:instr=" DATE ">{run("the third day")}</w:fldSimple>'
    assert simple in translated(f"<w:p>{run('on ')}{simple}{run(' we rest')}</w:p>")
    half = f"{field_run('begin')}<w:r><w:instrText> TOC </w:instrText></w:r>{field_run('separate')}"
    assert units_of(half + run("one day")) == ["one day"]


def test_pairs_keep_what_is_inside_them():
    for name in ("hyperlink", "ins", "smartTag"):
        body = f'<w:p>{run("see ")}<w:{name} w:x="1">{run("this page")}</w:{name}>{run(" now")}</w:p>'
        assert f'<w:{name} w:x="1">{run("PAGE THIS")}</w:{name}>' in translated(body)
    control = '<w:sdt><w:sdtPr><w:alias w:val="a b"/></w:sdtPr><w:sdtContent>{}</w:sdtContent></w:sdt>'
    assert control.format(run("PAGE THIS")) in translated(
        f"<w:p>{run('see ')}{control.format(run('this page'))}{run(' now')}</w:p>"
    )
    inside = f"{run('2')}<w:r><w:tab/></w:r>{run('the page')}"
    assert units_of(f"{run('see ')}<w:hyperlink>{inside}</w:hyperlink>{run('now')}") == ["see ", "2", "the page", "now"]


def test_a_blank_with_a_look_of_its_own_is_no_damage():
    body = f"<w:p>{run('the')}{run(' ', '<w:u/>')}{run('house stands')}</w:p>"
    assert units_of(body) == ["the house stands"]
    assert re.sub("<[^>]*>", "", translated(body)) == "STANDS HOUSE THE"
    assert "<w:u/>" in translated(body)


def test_a_bookmark_stays_around_its_words_and_never_ends_before_it_starts():
    start, end = '<w:bookmarkStart w:id="7" w:name="n"/>', '<w:bookmarkEnd w:id="7"/>'
    output = translated(f"<w:p>{run('we see ')}{start}{run('this page')}{end}{run(' now')}</w:p>")
    assert f"{start}{run('PAGE THIS')}{end}" in output
    crossing = f"{start}{run('one two ')}<w:hyperlink>{run('three')}{end}{run(' four')}</w:hyperlink>{run(' five')}"
    output = translated(f"<w:p>{crossing}</w:p>")
    assert output.index(start) < output.index(end)
    source = docx_format.structure(f"<w:p {NAMESPACES}>{start}{run('a')}{end}</w:p>")
    assert docx_format.structure(f"<w:p {NAMESPACES}>{end}{run('a')}{start}</w:p>") != source


def test_text_boxes_formulas_and_descriptions():
    box = f"<w:txbxContent><w:p>{run('in a box')}</w:p></w:txbxContent>"
    fallback = f"<mc:Fallback><w:pict>{box}</w:pict></mc:Fallback>"
    both = f"<mc:AlternateContent><mc:Choice Requires='wps'>{box}</mc:Choice>{fallback}"
    picture = (
        '<w:drawing><wp:docPr id="1" name="Picture 1" descr="a &quot;grey&quot; cat" title="the cat"/></w:drawing>'
    )
    formula = "<m:oMath><m:r><m:t>x+y</m:t></m:r></m:oMath>"
    body = (
        f"<w:p>{run('we see ')}<w:r>{both}</mc:AlternateContent></w:r>{run('that ')}{formula}{run(' holds ')}"
        f"<w:r>{picture}</w:r></w:p>"
    )
    output = translated(body)
    assert output.count("BOX A IN") == 2
    assert formula in output
    assert 'name="Picture 1" descr="CAT &quot;GREY&quot; A" title="CAT THE"' in output
    assert re.sub("<[^>]*>", "", output.replace("BOX A IN", "")).split() == ["HOLDS", "x+y", "THAT", "SEE", "WE"]


def test_spaces_count_only_where_the_document_says_so():
    assert units_of("<w:r><w:t> a b </w:t></w:r><w:r><w:t xml:space='preserve'> c\n d </w:t></w:r>") == ["a b c  d "]
    assert units_of("<w:r><w:t>e</w:t></w:r><w:r><w:noBreakHyphen/></w:r><w:r><w:t>mail</w:t></w:r>") == ["e\u2011mail"]


def test_other_prefixes_of_the_namespace_are_read_too():
    for own in (W, "http://purl.oclc.org/ooxml/wordprocessingml/main"):
        body = "<ns0:p><ns0:r><ns0:rPr><ns0:b/></ns0:rPr><ns0:t>this page</ns0:t></ns0:r></ns0:p>"
        text = f'<ns0:document xmlns:ns0="{own}"><ns0:body>{body}</ns0:body></ns0:document>'
        data = package("word/document.xml", "wordprocessingml.document.main+xml", {"word/document.xml": text})
        output, _ = translate_document(Turned(), data, "docx")
        with zipfile.ZipFile(io.BytesIO(output)) as file:
            expected = '<ns0:rPr><ns0:b/></ns0:rPr><ns0:t xml:space="preserve">PAGE THIS</ns0:t>'
            assert expected in file.read("word/document.xml").decode()


def test_the_language_is_written_where_the_document_has_one_and_right_to_left_marks_go():
    runs = '<w:rPr><w:rtl/><w:lang w:val="ar-SA" w:eastAsia="ja-JP"/></w:rPr>'
    assert docx_format.set_language(runs, "en") == '<w:rPr><w:lang w:val="en" w:eastAsia="ja-JP"/></w:rPr>'
    assert docx_format.set_language(runs, "zh") == '<w:rPr><w:lang w:val="ar-SA" w:eastAsia="zh"/></w:rPr>'
    assert "<w:rtl/>" in docx_format.set_language(runs, "he")
    styles = f'<w:styles xmlns:w="{W}"><w:lang w:val="fr-FR"/></w:styles>'
    text = f"<w:document {NAMESPACES}><w:body><w:p>{run('a page')}</w:p></w:body></w:document>"
    members = {"word/document.xml": text, "word/styles.xml": styles}
    output, _ = translate_document(
        Turned(), package("word/document.xml", "wordprocessingml.document.main+xml", members), "docx"
    )
    with zipfile.ZipFile(io.BytesIO(output)) as file:
        assert file.read("word/styles.xml").decode() == styles.replace("fr-FR", "xx")


def test_the_structure_sees_what_would_damage_a_document():
    def structure(inside):
        return docx_format.structure(f"<w:document {NAMESPACES}><w:p>{inside}</w:p></w:document>")

    link = f'<w:hyperlink r:id="1">{run("b")}</w:hyperlink>'
    source = structure(f"{run('a', '<w:i/>')}{link}<w:r><w:br/></w:r>")
    assert structure(f"<w:r><w:br/></w:r>{link}{run('x', '<w:i/>')}{run('y', '<w:i/>')}{run('z')}") == source
    for damaged in (
        f"{run('a', '<w:i/>')}{link}",  # a break is lost
        f"{run('a', '<w:b/>')}{link}<w:r><w:br/></w:r>",  # another look
        f"{run('a', '<w:i/>')}{run('b')}<w:r><w:br/></w:r>",  # a link is lost
        f"a{run('a', '<w:i/>')}{link}<w:r><w:br/></w:r>",  # text outside of a run
        f"<w:r>{run('a', '<w:i/>')}</w:r>{link}<w:r><w:br/></w:r>",  # a run in a run
        f"<w:t>a</w:t>{run('a', '<w:i/>')}{link}<w:r><w:br/></w:r>",
    ):
        assert structure(damaged) != source, damaged


def test_a_damaged_part_is_an_error_with_its_place():
    with pytest.raises(DataError, match=r"^a.docx: word/document.xml:1: expected XML; column \d+: mismatched tag$"):
        Document.read(document_of("<w:p>"), "docx", "a.docx")
