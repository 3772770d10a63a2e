"""EPUB: the pages of a book and its table of contents."""

from __future__ import annotations

from sixfold.translation.documents.markup import html_structure
from sixfold.translation.documents.markup.html import VOID_TAGS
from sixfold.translation.documents.structure import Structure
from sixfold.translation.documents.xml import tokens
from sixfold.translation.documents.xml_texts import XmlTexts
from sixfold.translation.protection import Edit, apply_edits

MAIN_PART = "META-INF/container.xml"
CONTENTS = XmlTexts(
    frozenset(["text"]),
    inside=frozenset(["navLabel", "docTitle"]),
    prefixes=(("http://www.daisy.org/z3986/2005/ncx/", ""),),
)


def page_structure(text: str) -> Structure:
    """Return what a translation of a page must keep."""
    return html_structure.structure(expand_empty_tags(text))


def expand_empty_tags(text: str) -> str:
    """Write each empty tag of a page in XHTML as two tags, if HTML would read it as an opening tag.

    `<script src="a.js"/>` becomes `<script src="a.js"></script>`, which means the same in both.
    """
    if not html_structure.is_xml(text):
        return text
    edits = []
    for token in tokens(text):
        if token.kind == "empty" and token.name.lower() not in VOID_TAGS and ":" not in token.name:
            end = token.span[1]
            edits.append(Edit((token.attributes[1], end), f"></{token.name}>"))
    return apply_edits(text, edits)
