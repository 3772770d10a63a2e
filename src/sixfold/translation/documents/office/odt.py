"""OpenDocument: the paragraphs of texts, slides and sheets, with the spans that say how words look."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from sixfold.text.languages import EAST_ASIAN, is_right_to_left
from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.documents.office.office_structure import Attributes, OfficeRules, office_structure
from sixfold.translation.documents.office.runs import Part, paragraph_units
from sixfold.translation.documents.structure import Structure
from sixfold.translation.documents.units import MAX_DEPTH, Unit, text_pieces, unescape_references
from sixfold.translation.documents.xml import escape_attribute
from sixfold.translation.documents.xml_tree import Element, Names, decoded, text_of, trees

MAIN_PART = "content.xml"
_NAMESPACE = "urn:oasis:names:tc:opendocument:xmlns:{}:1.0"
PREFIXES = {
    _NAMESPACE.format(name): prefix
    for name, prefix in {
        "text": "text",
        "table": "table",
        "office": "office",
        "drawing": "draw",
        "form": "form",
    }.items()
} | {_NAMESPACE.format("svg-compatible"): "svg"}
_PARAGRAPHS = frozenset(["text:p", "text:h", "svg:title", "svg:desc"])
_CONTAINERS = frozenset(["text:span", "text:a", "text:meta"])
_BREAK, _TAB, _SPACES = "text:line-break", "text:tab", "text:s"
_RANGES = {
    f"text:{name}-end": f"text:{name}-start"
    for name in ("bookmark", "reference-mark", "toc-mark", "user-index-mark", "alphabetical-index-mark", "change")
}
_SINGLE = frozenset(
    [*_RANGES, *_RANGES.values(), "text:note", "office:annotation", "text:soft-page-break", "text:change"]
)
_FIXED = frozenset(["text:tracked-changes", "table:tracked-changes", "office:scripts", "form:form"])
_CELLS = frozenset(["table:table-cell", "table:covered-table-cell"])
_LANGUAGES = {"fo:language": "fo:country", "style:language-asian": "style:country-asian"}
_PROPERTIES = re.compile(r"<style:text-properties\b[^<>]*>")
_RIGHT_TO_LEFT = re.compile(r'(<style:[\w-]+-properties\b[^<>]*? style:writing-mode=")(?:rl-tb|rl)(?=")')
_FORMULA = re.compile(r' (?:table:(?:formula|condition|value)|style:condition)="(?P<formula>[^"<>]*)"')
_STRING = re.compile(r'"((?:[^"]|"")*+)"')
_MAX_ATOM = 100  # characters of a field that a message may show


def _is_fixed_cell(name: str, attribute: Callable[[str, str], str]) -> bool:
    """Return whether an element is a cell with a value that is no text, or that is computed or in an attribute."""
    return name in _CELLS and (
        attribute("office:value-type", "string") != "string"
        or attribute("table:formula", "") != ""
        or attribute("office:string-value", "") != ""
    )


def _is_fixed(name: str, attributes: Attributes) -> bool:
    return name in _FIXED or _is_fixed_cell(name, attributes.get)


def _is_skipped(element: Element) -> bool:
    if element.name in _FIXED:
        return True
    return _is_fixed_cell(element.name, element.value)


_RULES = OfficeRules(
    paragraphs=_PARAGRAPHS,
    texts=_PARAGRAPHS | _CONTAINERS,
    noise=frozenset([_SPACES]),
    ranges=_RANGES,
    range_id="text:name",
    ignores=lambda element, attribute: (
        (element == "style:text-properties" and (attribute in _LANGUAGES or attribute in _LANGUAGES.values()))
        or attribute == "style:writing-mode"
    ),
    is_fixed=_is_fixed,
)


def structure(text: str) -> Structure:
    """Return what a translation of a part must keep."""
    return office_structure(text, _RULES, PREFIXES)


def set_language(text: str, code: str) -> str:
    """Write a language into the styles that name one, for the script that it is written in.

    What is written from right to left is written from left to right in another language.
    """
    base = re.split("[-_]", code.lower())[0]
    name = "style:language-asian" if base in EAST_ASIAN else "fo:language"

    def with_code(tag: re.Match[str]) -> str:
        language = re.search(rf' {name}="(?P<code>[^"]*)"', tag[0])
        if language is None or language["code"] in (base, "zxx", "none"):
            return tag[0]
        changed = tag[0].replace(language[0], f' {name}="{escape_attribute(base)}"')
        return re.sub(rf' {_LANGUAGES[name]}="[^"]*"', f' {_LANGUAGES[name]}="none"', changed)

    text = _PROPERTIES.sub(with_code, text)
    return text if is_right_to_left(code) else _RIGHT_TO_LEFT.sub(r"\1lr-tb", text)


def named_texts(members: Mapping[str, str]) -> set[str]:
    """Return the texts of cells that must stay, since formulas, filters or conditions compare cells with them."""
    formulas = (match["formula"] for text in members.values() for match in _FORMULA.finditer(text))
    decoded_formulas = (unescape_references(formula) for formula in formulas)
    return {
        name for formula in decoded_formulas for name in (formula, *_STRING.findall(formula)) if name
    }  # fmt: skip


def parse(text: str) -> list[Unit]:
    """Return the paragraphs of a part, and the descriptions of its pictures, as units."""
    names = Names(text, PREFIXES)
    units: list[Unit] = []
    for root in trees(text, names, _PARAGRAPHS.__contains__, _is_skipped):
        check_cancelled()
        pending = [root]
        while pending:
            element = pending.pop()
            if element.name in _PARAGRAPHS:
                units += paragraph_units(_parts(text, element, 0), collapses=True)
            pending += [] if _is_skipped(element) else element.elements
    return units


def _parts(text: str, parent: Element, depth: int) -> list[Part]:
    parts: list[Part] = []
    for child in parent.children:
        if not child.name:
            if child.inner == child.span:
                pieces = text_pieces(text, child.span, unescape_references)
                parts += [Part(piece.span, "text", piece.text) for piece in pieces]
            else:  # a CDATA section
                parts.append(Part(child.span, "text", decoded(text, child)))
        elif child.name == _SPACES:
            parts.append(Part(child.span, "text", " "))
        elif child.name == _BREAK:
            parts.append(Part(child.span, "break"))
        elif child.name == _TAB:
            parts.append(Part(child.span, "split"))
        elif child.name in _CONTAINERS and depth < MAX_DEPTH and child.children:
            opening, closing = (child.span[0], child.inner[0]), (child.inner[1], child.span[1])
            parts += [Part(opening, "open"), *_parts(text, child, depth + 1), Part(closing, "close")]
        elif child.name in _RANGES or child.name in _RANGES.values():
            base = re.sub("-(?:start|end)$", "", child.name)
            parts.append(Part(child.span, "end" if child.name in _RANGES else "start", range_id=f"{base} {_id(child)}"))
        elif child.name in _SINGLE or child.name.startswith("draw:") or not text_of(text, child).strip():
            parts.append(Part(child.span, "single"))
        else:  # a field, such as a page number, or a text with its pronunciation
            parts.append(Part(child.span, "atom", text_of(text, child)[:_MAX_ATOM]))
    return parts


def _id(element: Element) -> str:
    return element.value("text:name") or element.value("text:id") or element.value("text:change-id")
