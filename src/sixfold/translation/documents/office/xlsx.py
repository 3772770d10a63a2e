"""XLSX: the texts of cells and comments; formulas, numbers and the names that formulas use stay as they are."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sixfold.text.languages import is_right_to_left
from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.documents.office.office_structure import OfficeRules, office_structure
from sixfold.translation.documents.office.runs import Part, RunTable, paragraph_units
from sixfold.translation.documents.structure import Structure
from sixfold.translation.documents.units import Run, Unit, unescape_references
from sixfold.translation.documents.xml_texts import XmlTexts
from sixfold.translation.documents.xml_tree import Element, Names, text_of, trees

MAIN_PART = "xl/workbook.xml"
PREFIXES = {
    "http://schemas.openxmlformats.org/spreadsheetml/2006/main": "",
    "http://purl.oclc.org/ooxml/spreadsheetml/main": "",
}
_THREADED = "http://schemas.microsoft.com/office/spreadsheetml/2018/threadedcomments"
THREADED_COMMENTS = XmlTexts(frozenset(["text"]), prefixes=((_THREADED, ""),))
_TEXTS = frozenset(["si", "is", "text"])  # of the shared strings, of a cell, of a comment
_RULES = OfficeRules(
    paragraphs=_TEXTS,
    texts=frozenset(["t"]),
    runs=frozenset(["r"]),
    looks=frozenset(["rPr"]),
    ignores=lambda element, attribute: attribute == "xml:space" or (element, attribute) == ("sheetView", "rightToLeft"),
    is_fixed=lambda name, _attributes: name == "rPh",  # how a Japanese text is pronounced
)
# Texts that other parts of a workbook name, or compare with the texts of cells.
_NAMING_TAG = re.compile(r'<(?:\w+:)?(?:tableColumn|cacheField|filter|s)\b[^<>]*? (?:name|val|v)="(?P<name>[^"<>]*)"')
_FORMULA = re.compile(
    r"<(?P<tag>(?:\w+:)?(?:f|formula[12]?|definedName|calculatedColumnFormula))\b[^<>]*+>(?P<formula>[^<>]*+)</"
)
_RIGHT_TO_LEFT = re.compile(r'(<(?:\w+:)?sheetView\b[^<>]*?) rightToLeft="[^"<>]*"')
_STRING = re.compile(r'"((?:[^"]|"")*+)"')


def named_texts(members: Mapping[str, str]) -> set[str]:
    """Return the texts of cells that must stay, since tables, filters, pivot tables or formulas of a workbook use them.

    A formula such as `=COUNTIF(B:B,"Done")` counts the cells with the text "Done".
    """
    named: set[str] = set()
    for text in members.values():
        check_cancelled()
        named |= {unescape_references(match["name"]) for match in _NAMING_TAG.finditer(text)}
        for match in _FORMULA.finditer(text):
            for string in _STRING.findall(unescape_references(match["formula"])):
                named |= {string.replace('""', '"'), *(each.strip() for each in string.split(","))}
    return {name for name in named if name}


def structure(text: str) -> Structure:
    """Return what a translation of a part must keep."""
    return office_structure(text, _RULES, PREFIXES) if _has_texts(text) else []


def set_direction(text: str, code: str) -> str:
    """Return a sheet whose columns begin on the left, unless the language is written from right to left."""
    return text if is_right_to_left(code) else _RIGHT_TO_LEFT.sub(r"\1", text)


def parse(text: str) -> list[Unit]:
    """Return the shared strings of a workbook, or the strings in the cells of a sheet, or comments, as units."""
    if not _has_texts(text):
        return []
    names = Names(text, PREFIXES)
    runs = RunTable(names.own("r"), names.own("t"), ' xml:space="preserve"')
    bare = Run(f'<{names.own("t")} xml:space="preserve">', f"</{names.own('t')}>")
    units: list[Unit] = []
    for root in trees(text, names, lambda name: name in _TEXTS):
        check_cancelled()
        if any(child.name in ("r", "t") for child in root.elements):
            units += paragraph_units([_part(text, child, runs, bare) for child in root.elements])
    return units


def _part(text: str, element: Element, runs: RunTable, bare: Run) -> Part:
    content = element if element.name == "t" else element.child("t") if element.name == "r" else None
    own = text_of(text, content) if content else ""
    if not own:
        return Part(element.span, "single")
    properties = element.child("rPr")
    look = text[slice(*properties.span)] if properties else ""
    return Part(element.span, "text", own, bare if element.name == "t" else runs.run_of(look))


def _has_texts(text: str) -> bool:
    """Return whether a part may have texts of its own; a sheet, which may be long, seldom has."""
    return "<worksheet" not in text[:2000] or "inlineStr" in text
