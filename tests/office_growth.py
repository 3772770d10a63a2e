"""Inputs that grow for the members of office documents; see growth.py."""

import io
import zipfile

from growth import nested, numbered, repeated

# The member that an input becomes, what is around it there, and other members that there must be.
MEMBERS = {
    "docx": ("word/document.xml", "<w:document>", "</w:document>", ()),
    "pptx": ("ppt/slides/slide1.xml", "<p:sld>", "</p:sld>", ("ppt/presentation.xml",)),
    "xlsx": ("xl/sharedStrings.xml", "<sst>", "</sst>", ("xl/workbook.xml",)),
    "odt": ("content.xml", "<office:text>", "</office:text>", ()),
    "odp": ("content.xml", "<office:presentation>", "</office:presentation>", ()),
    "ods": ("content.xml", "<office:spreadsheet>", "</office:spreadsheet>", ()),
    "epub": ("a.xhtml", '<html xmlns="http://www.w3.org/1999/xhtml">', "</html>", ("META-INF/container.xml",)),
}
BEGIN = '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>HYPERLINK x</w:instrText></w:r>'
SEPARATE = '<w:r><w:fldChar w:fldCharType="separate"/></w:r>'
END = '<w:r><w:fldChar w:fldCharType="end"/></w:r>'
RUN = "<w:r><w:t>a b</w:t></w:r>"
ODT = {
    "spans": repeated("<text:span>a</text:span> ", "<text:p>", "</text:p>"),
    "nested spans": lambda size: f"<text:p>{nested('<text:span>a ', '</text:span>')(min(size, 20_000))}</text:p>",
    "paragraphs": repeated("<text:p>a b</text:p>"),
    "tabs": repeated("a b<text:tab/>", "<text:p>", "</text:p>"),
    "line breaks": repeated("a b<text:line-break/>", "<text:p>", "</text:p>"),
    "spaces": repeated("a <text:s/>", "<text:p>", "</text:p>"),
    "notes": repeated("a<text:note><text:p>b c</text:p></text:note>", "<text:p>", "</text:p>"),
    "fields": repeated("a <text:date>b</text:date> ", "<text:p>", "</text:p>"),
    "starts": numbered('<text:bookmark-start text:name="{}"/>a ', ""),
    "cells": repeated('<table:table-cell office:value-type="float"><text:p>4</text:p></table:table-cell>'),
    "open spans": repeated("<text:span>", "<text:p>"),
}
OFFICE_INPUTS = {
    "docx": {
        "runs": repeated("<w:r><w:t>a </w:t></w:r>", "<w:p>", "</w:p>"),
        "runs that differ": repeated(
            "<w:r><w:rPr><w:b/></w:rPr><w:t>a </w:t></w:r><w:r><w:t>b </w:t></w:r>", "<w:p>", "</w:p>"
        ),
        "paragraphs of Word": repeated(f"<w:p>{RUN}</w:p>"),
        "open runs": repeated("<w:r>", "<w:p>"),
        "texts of a run": repeated("<w:t>a </w:t>", "<w:p><w:r>", "</w:r></w:p>"),
        "texts of a run with a long look": lambda size: (
            f"<w:p><w:r><w:rPr>{'<w:b/>' * (size // 16)}</w:rPr>{'<w:t>a </w:t>' * (size // 24)}</w:r></w:p>"
        ),
        "tabs of a run": repeated("<w:t>a </w:t><w:tab/>", "<w:p><w:r>", "</w:r></w:p>"),
        "breaks of a run": repeated("<w:t>a </w:t><w:br/>", "<w:p><w:r>", "</w:r></w:p>"),
        "hyperlinks": repeated("<w:hyperlink><w:r><w:t>a </w:t></w:r></w:hyperlink>", "<w:p>", "</w:p>"),
        "nested hyperlinks": lambda size: (
            f"<w:p>{nested('<w:hyperlink>', '</w:hyperlink>', RUN)(min(size, 20_000))}</w:p>"
        ),
        "bookmarks": repeated(f"<w:bookmarkStart/>{RUN}", "<w:p>", "</w:p>"),
        "bookmarks that end": numbered(f'<w:bookmarkStart w:id="{{0}}"/>{RUN}<w:bookmarkEnd w:id="{{0}}"/>', ""),
        "fields": repeated(f"{BEGIN}{SEPARATE}{RUN}{END}", "<w:p>", "</w:p>"),
        "nested fields": lambda size: f"<w:p>{nested(BEGIN + SEPARATE + RUN, END)(size)}</w:p>",
        "open fields": repeated(BEGIN, "<w:p>", "</w:p>"),
        "text boxes": repeated(f"<w:r><w:pict><w:p>{RUN}</w:p></w:pict></w:r>{RUN}", "<w:p>", "</w:p>"),
        "nested text boxes": lambda size: nested(f"<w:p>{RUN}<w:r><w:pict>", "</w:pict></w:r></w:p>")(
            min(size, 20_000)
        ),
        "tags in a text": repeated("<a", "<w:p><w:r><w:t>"),
        "a long text": repeated("a b. ", "<w:p><w:r><w:t>", "</w:t></w:r></w:p>"),
    },
    "pptx": {
        "runs of a slide": repeated("<a:r><a:t>a </a:t></a:r>", "<a:p>", "</a:p>"),
        "runs of a slide that differ": repeated(
            '<a:r><a:rPr b="1"/><a:t>a </a:t></a:r><a:r><a:t>b </a:t></a:r>', "<a:p>", "</a:p>"
        ),
        "breaks of a slide": repeated("<a:r><a:t>a b</a:t></a:r><a:br/>", "<a:p>", "</a:p>"),
        "paragraphs of a slide": repeated("<a:p><a:r><a:t>a b</a:t></a:r></a:p>"),
        "pictures of a slide": repeated('<p:cNvPr descr="a b"/>'),
    },
    "xlsx": {
        "strings of a workbook": repeated("<si><t>a b</t></si>"),
        "runs of a string": repeated("<r><t>a b</t></r>", "<si>", "</si>"),
        "formulas": repeated('<f>A1="b"</f><si><t>a b</t></si>'),
        "quotation marks of a formula": repeated('"', "<f>", "</f>"),
        "columns of a table": repeated('<tableColumn name="b"/>'),
    },
    "odt": ODT,
    "odp": ODT,
    "ods": ODT | {"formulas of a sheet": repeated('<table:table-cell table:formula="a&quot;b&quot;"/>')},
    "epub": {
        "paragraphs of a book": repeated("<p>a b</p>"),
        "empty tags of a book": repeated("<p/>"),
        "pairs of a book": repeated("<b>a</b> ", "<p>", "</p>"),
    },
}
OFFICE_QUICK = {
    "docx": ["runs that differ", "texts of a run with a long look", "tabs of a run", "hyperlinks", "bookmarks",
             "nested fields", "open fields", "nested text boxes", "tags in a text"],
    "pptx": ["runs of a slide that differ", "breaks of a slide"],
    "xlsx": ["strings of a workbook", "formulas", "quotation marks of a formula"],
    "odt": ["spans", "nested spans", "notes", "starts"],
    "ods": ["cells"],
    "epub": ["empty tags of a book", "pairs of a book"],
}  # fmt: skip


def packed(form, text):
    """Return a document whose only text is an input."""
    member, before, after, others = MEMBERS[form]
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(member, f"{before}{text}{after}")
        for other in others:
            file.writestr(other, "<a/>")
    return data.getvalue()
