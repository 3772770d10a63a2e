"""EPUB: pages, title and contents are translated, and the archive stays a book."""

import io
import re
import zipfile

from lxml import etree
from made_documents import Turned, made
from made_office import DC, zipped

from sixfold.translation.documents.document import Document
from sixfold.translation.documents.office import epub
from sixfold.translation.documents.steps import translate_document
from sixfold.translation.documents.xml_texts import METADATA

XHTML = '<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="en">{}</html>'


def translated(member, text):
    data, report = translate_document(
        Turned(), zipped({"META-INF/container.xml": "<container/>", member: text}), "epub"
    )
    assert report.untranslated == 0
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return file.read(member).decode()


def test_a_page_is_translated_and_stays_xml():
    head = '<head><title/><script src="a.js"/></head>'
    page = XHTML.format(f"{head}<body><p>one <b>two</b> &#233;t&#233;<br/></p></body>")
    output = translated("OPS/a.xhtml", page)
    etree.fromstring(output)
    assert "<p>ÉTÉ <b>TWO</b> ONE<br/></p>" in output
    assert 'lang="xx"' in output


def test_an_empty_tag_does_not_swallow_the_page():
    page = XHTML.format("<head><title/></head><body><script/><p/><br/><svg:path/><p>one day</p></body>")
    expanded = epub.expand_empty_tags(page)
    assert expanded == page.replace("<title/>", "<title></title>").replace("<script/>", "<script></script>").replace(
        "<p/>", "<p></p>"
    )
    assert "DAY ONE" in translated("a.xhtml", page.replace("<svg:path/>", ""))
    assert epub.expand_empty_tags("<p/>one day") == "<p/>one day"  # of HTML, where it is an opening tag


def test_the_title_and_the_description_of_a_book_and_its_language():
    text = (
        f'<package xmlns:dc="{DC}"><metadata><dc:title id="t">The old &amp; new house</dc:title><dc:creator>Jane Roe'
        "</dc:creator><dc:description>one day</dc:description><dc:language>en-GB</dc:language><dc:identifier>a b"
        '</dc:identifier><meta property="dcterms:modified">2020 or so</meta></metadata></package>'
    )
    expected = text.replace("The old &amp; new house", "HOUSE NEW &amp; OLD THE").replace("one day", "DAY ONE")
    assert translated("OPS/package.opf", text) == expected.replace("en-GB", "xx")


def test_the_contents_of_a_book_but_no_author():
    text = (
        '<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/" xml:lang="en"><docTitle><text>one book</text></docTitle>'
        "<docAuthor><text>Jane Roe</text></docAuthor><navPoint><navLabel><text>first part</text></navLabel>"
        '<content src="a.xhtml#one two"/></navPoint></ncx>'
    )
    output = translated("toc.ncx", text)
    assert output == text.replace("one book", "BOOK ONE").replace("first part", "PART FIRST")


def test_the_mimetype_is_first_and_stored_and_all_pages_have_the_language():
    for number in range(20):
        data, _ = translate_document(Turned(), made("epub", number), "epub")
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            first = file.infolist()[0]
            assert (first.filename, first.compress_type, first.extra) == ("mimetype", zipfile.ZIP_STORED, b"")
            assert file.read("mimetype") == b"application/epub+zip"
            assert file.read("OPS/a.js") == b"say('hello there')"
            assert re.search(rb"<dc:language>xx</dc:language>", file.read("OPS/package.opf"))
            for name in ("OPS/b.xhtml", "OPS/toc.ncx", "OPS/package.opf"):
                etree.fromstring(file.read(name))


def test_the_structure_of_metadata_has_all_texts_but_those_that_are_translated():
    def structure(title, creator):
        inside = f"<dc:title>{title}</dc:title><dc:creator>{creator}</dc:creator>"
        return METADATA.structure(f'<metadata xmlns:dc="{DC}">{inside}</metadata>')

    assert structure("a", "b") == structure("c", "b") != structure("a", "c")
    assert structure("<b>a</b>", "b") != structure("a", "b")
    assert Document.read(made("epub", 1), "epub").parts["OPS/toc.ncx"].units[0].text == "One book"
