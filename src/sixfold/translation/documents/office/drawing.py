"""DrawingML: the text of slides, charts, diagrams and the shapes of workbooks."""

from __future__ import annotations

import re

from sixfold.text.languages import is_right_to_left
from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.documents.attributes import attribute_units
from sixfold.translation.documents.office.office_structure import OfficeRules, office_structure
from sixfold.translation.documents.office.runs import Part, RunTable, paragraph_units
from sixfold.translation.documents.structure import Structure
from sixfold.translation.documents.units import Piece, Unit, make_unit
from sixfold.translation.documents.xml import escape_attribute, escape_text
from sixfold.translation.documents.xml_tree import Element, Names, text_of, trees

PREFIXES = {
    "http://schemas.openxmlformats.org/drawingml/2006/main": "a",
    "http://purl.oclc.org/ooxml/drawingml/main": "a",
    "http://schemas.openxmlformats.org/presentationml/2006/main": "p",
    "http://purl.oclc.org/ooxml/presentationml/main": "p",
    "http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing": "xdr",
    "http://schemas.openxmlformats.org/drawingml/2006/chart": "c",
}
_ALT_TEXTS = dict.fromkeys(("p:cNvPr", "xdr:cNvPr"), ("descr", "title"))
_LABELS = "c:strCache"  # the names of the series and categories of a chart, as its table has them
_PROPERTIES = frozenset(["a:rPr", "a:endParaRPr", "a:defRPr"])
# What PowerPoint notes about a text, and what does not change how it looks.
_NOTES = ("lang", "altLang", "dirty", "err", "smtClean", "smtId", "noProof", "bmk")
_NOISE = re.compile(rf' (?:{"|".join(_NOTES)})="[^"]*"')
_LANGUAGE = re.compile(r'(<a:(?:rPr|endParaRPr)\b[^<>]*? lang=")[^"<>]*(")')
_RIGHT_TO_LEFT = re.compile(r'(<a:pPr\b[^<>]*?) rtl="[^"<>]*"')
_SPACES = re.compile(r"[\t\r\n]+")


def _ignores(element: str, attribute: str) -> bool:
    is_note = (element in _PROPERTIES and attribute in _NOTES) or (element == "a:pPr" and attribute == "rtl")
    return is_note or attribute in _ALT_TEXTS.get(element, ())


_RULES = OfficeRules(
    paragraphs=frozenset(["a:p"]),
    texts=frozenset(["a:t", "c:v"]),
    runs=frozenset(["a:r"]),
    looks=frozenset(["a:rPr"]),
    ignores=_ignores,
    is_fixed=lambda name, _attributes: name in ("a:fld", "c:numCache"),
)


def structure(text: str) -> Structure:
    """Return what a translation of a part must keep."""
    return office_structure(text, _RULES, PREFIXES)


def set_language(text: str, code: str) -> str:
    """Write a language into the texts that name one; paragraphs are no longer right to left if it is not."""
    text = _LANGUAGE.sub(lambda match: match[1] + escape_attribute(code) + match[2], text)
    return text if is_right_to_left(code) else _RIGHT_TO_LEFT.sub(r"\1", text)


def parse(text: str) -> list[Unit]:
    """Return the paragraphs of a part, the labels of its charts, and the descriptions of its pictures, as units."""
    names = Names(text, PREFIXES)
    runs = RunTable(names.own("a:r"), names.own("a:t"), noise=(_NOISE,))
    units: list[Unit] = []
    for root in trees(text, names, lambda name: name in ("a:p", _LABELS) or name in _ALT_TEXTS):
        check_cancelled()
        for element in root.descendants():
            if element.name == "a:p":
                units += paragraph_units(_parts(text, element, runs))
            elif element.name == "c:v":
                label = make_unit([Piece(element.inner, text_of(text, element))], escape_text)
                units += [label] if label is not None else []
            units += attribute_units(element, _ALT_TEXTS)
    return units


def _parts(text: str, paragraph: Element, runs: RunTable) -> list[Part]:
    parts = []
    for child in paragraph.elements:
        content = child.child("a:t")
        if child.name == "a:r":
            own = _SPACES.sub(" ", text_of(text, content)) if content else ""
            properties = child.child("a:rPr")
            look = text[slice(*properties.span)] if properties else ""
            parts.append(Part(child.span, "text", own, runs.run_of(look)) if own else Part(child.span, "single"))
        elif child.name == "a:br":
            parts.append(Part(child.span, "break"))
        elif child.name == "a:fld":
            parts.append(Part(child.span, "atom", (text_of(text, content) if content else "") or " "))
        elif child.name not in ("a:pPr", "a:endParaRPr"):
            parts.append(Part(child.span, "single"))
    return parts
