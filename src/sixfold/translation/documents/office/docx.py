"""DOCX: the paragraphs of its parts, with their runs, which say how words look."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from sixfold.text.languages import EAST_ASIAN, is_right_to_left
from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.documents.attributes import attribute_units
from sixfold.translation.documents.office.office_structure import Attributes, OfficeRules, office_structure
from sixfold.translation.documents.office.runs import Part, RunTable, paragraph_units
from sixfold.translation.documents.structure import Structure
from sixfold.translation.documents.units import MAX_DEPTH, Run, Span, Unit
from sixfold.translation.documents.xml import escape_attribute
from sixfold.translation.documents.xml_tree import Element, Names, decoded, text_of, trees
from sixfold.translation.protection import Edit, apply_edits

MAIN_PART = "word/document*.xml"
MAX_GROWTH = 4  # how many times as long a part may be when its runs are split
MAX_FIELD_DEPTH = 3  # fields inside each other whose results are translated
MAX_ATOM = 100  # characters of a formula or field that a message may show
_MAIN = (
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://purl.oclc.org/ooxml/wordprocessingml/main",
)
_DRAWING = (
    "http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing",
    "http://purl.oclc.org/ooxml/drawingml/wordprocessingDrawing",
)
PREFIXES = {**dict.fromkeys(_MAIN, "w"), **dict.fromkeys(_DRAWING, "wp")}

NOISE = frozenset(["w:proofErr", "w:lastRenderedPageBreak", "w:softHyphen"])
CONTAINERS = frozenset(
    ["w:hyperlink", "w:ins", "w:moveTo", "w:smartTag", "w:customXml", "w:bdo", "w:dir", "w:sdt", "w:sdtContent"]
)
RANGES = {
    f"w:{name}End": f"w:{name}Start" for name in ("bookmark", "commentRange", "perm", "moveFromRange", "moveToRange")
} | {"w:permEnd": "w:permStart"}
# Fields whose results are prose. The results of others, such as a page number or a date, are computed again by Word.
TRANSLATED_FIELDS = frozenset(["HYPERLINK", "TOC", "INDEX", "BIBLIOGRAPHY", "FORMTEXT", "QUOTE"])
_CHARACTERS = {"w:noBreakHyphen": "\u2011"}
_ALT_TEXTS = {"wp:docPr": ("descr", "title")}
_DIRECTION = re.compile(r"<(?P<prefix>\w+):(?:bidi|rtl)(?: (?P=prefix):val=\"[^\"<>]*\")?/>")
_LANGUAGE = re.compile(r"<(?P<prefix>\w+):lang\b[^<>]*>")
_SPACES = re.compile(r"[\t\r\n]+")
_PLACEHOLDER = "\u25a1"  # stands for a symbol of a font, which has no character


def _ignores(element: str, attribute: str) -> bool:
    return (
        attribute.startswith("w:rsid")
        or (element == "w:rFonts" and attribute == "w:hint")
        or (attribute in _ALT_TEXTS.get(element, ()))
        or attribute == "xml:space"
    )


def _is_fixed(name: str, _attributes: Attributes) -> bool:
    return name in ("w:del", "w:moveFrom")


_RULES = OfficeRules(
    paragraphs=frozenset(["w:p"]),
    texts=frozenset(["w:t"]),
    runs=frozenset(["w:r"]),
    looks=frozenset(["w:rPr"]),
    characters=frozenset(_CHARACTERS),
    noise=NOISE | {"w:lang", "w:noProof", "w:bidi", "w:rtl"},
    noise_if_empty=frozenset(["w:rFonts"]),
    ranges=RANGES,
    range_id="w:id",
    ignores=_ignores,
    is_fixed=_is_fixed,
)


def structure(text: str) -> Structure:
    """Return what a translation of a part must keep."""
    return office_structure(text, _RULES, PREFIXES)


def set_language(text: str, code: str) -> str:
    """Write a language into the runs that name one; take right-to-left marks away if it is written left to right."""
    base = re.split("[-_]", code.lower())[0]
    value = "eastAsia" if base in EAST_ASIAN else "bidi" if is_right_to_left(code) else "val"

    def with_code(tag: re.Match[str]) -> str:
        name = f" {tag['prefix']}:{value}"
        return re.sub(rf"{name}=\"[^\"]*\"", lambda _: f'{name}="{escape_attribute(code)}"', tag[0])

    text = _LANGUAGE.sub(with_code, text)
    return text if is_right_to_left(code) else _DIRECTION.sub("", text)


def split_runs(text: str) -> str:
    """Split every run that has several things in it into runs with one thing each, and the same properties.

    `<w:r><w:t>a</w:t><w:br/></w:r>` becomes `<w:r><w:t>a</w:t></w:r><w:r><w:br/></w:r>`, which means the same.
    """
    names = Names(text, PREFIXES)
    edits: list[Edit] = []
    for root in trees(text, names, lambda name: name == "w:p"):
        check_cancelled()
        for run in (each for each in root.descendants() if each.name == "w:r"):
            properties = next((child for child in run.elements if child.name == "w:rPr"), None)
            content = [child for child in run.elements if child is not properties]
            if len(content) > 1:
                own = names.own("w:r")
                start = f"</{own}><{own}>{text[slice(*properties.span)] if properties else ''}"
                edits += [Edit((child.span[0],) * 2, start) for child in content[1:]]
    if sum(len(edit.text) for edit in edits) > MAX_GROWTH * len(text):
        return text
    return apply_edits(text, sorted(edits, key=lambda edit: edit.span))


def parse(text: str) -> list[Unit]:
    """Return the paragraphs of a part, and the descriptions of its pictures, as units."""
    names = Names(text, PREFIXES)
    units: list[Unit] = []
    for root in trees(text, names, lambda name: name == "w:p"):
        check_cancelled()
        reader = _Reader(text, names)
        for element in root.descendants():
            if element.name == "w:p":
                units += paragraph_units([_part(item) for item in reader.items(element, 0)])
            units += attribute_units(element, _ALT_TEXTS)
    return units


@dataclass
class _Item:
    """A part of a paragraph; `field` and `instruction` are set for the marks of a field."""

    span: Span
    kind: Literal["text", "atom", "break", "split", "start", "end", "open", "close", "single"]
    text: str = ""
    run: Run | None = None
    range_id: str = ""
    field: str = ""  # begin, separate or end
    instruction: str = ""


def _part(item: _Item) -> Part:
    return Part(item.span, item.kind, item.text, item.run, item.range_id)


class _Reader:
    """Reads the items of paragraphs."""

    def __init__(self, text: str, names: Names) -> None:
        self.text = text
        hint, language, no_proof, fonts = (names.own(f"w:{name}") for name in ("hint", "lang", "noProof", "rFonts"))
        noise = re.compile(rf' {hint}="[^"]*"'), re.compile(rf"<(?:{language}|{no_proof})\b[^<>]*/>|<{fonts}\s*/>")
        self.runs = RunTable(names.own("w:r"), names.own("w:t"), ' xml:space="preserve"', noise)

    def items(self, parent: Element, depth: int) -> list[_Item]:
        """Return the items in a paragraph, or in another container."""
        items: list[_Item] = []
        for child in parent.elements:
            if child.name == "w:r":
                items += self._run_items(child)
            elif child.name in CONTAINERS and depth < MAX_DEPTH and child.inner != (child.span[1],) * 2:
                items += self._container_items(child, depth)
            elif child.name == "w:fldSimple" and depth < MAX_DEPTH:
                items += self._simple_field_items(child, depth)
            elif child.name == "m:oMath":
                items.append(_Item(child.span, "atom", text_of(self.text, child)[:MAX_ATOM] or _PLACEHOLDER))
            elif child.name == "m:oMathPara":
                items.append(_Item(child.span, "split"))
            elif child.name in RANGES or child.name in RANGES.values():
                kind: Literal["start", "end"] = "end" if child.name in RANGES else "start"
                base = child.name.removesuffix("End").removesuffix("Start")
                items.append(_Item(child.span, kind, range_id=f"{base} {child.value('w:id')}"))
            elif child.name not in NOISE and not child.name.endswith("Pr"):
                items.append(_Item(child.span, "single"))
        return self._with_fields(items)

    def _container_items(self, element: Element, depth: int) -> list[_Item]:
        """Return a pair of marks with items inside it. Properties at its beginning belong to the opening mark."""
        content, start = element, element.inner[0]
        for child in element.elements:
            if child.name.endswith("Pr"):
                start = child.span[1]
            elif child.name == "w:sdtContent" and child.inner != (child.span[1],) * 2:
                content, start = child, child.inner[0]
                break
            else:
                break
        end = content.inner[1]
        if any(child.name.endswith("Pr") for child in element.elements if child.span[0] >= start):
            return [_Item(element.span, "single")]
        opening, closing = _Item((element.span[0], start), "open"), _Item((end, element.span[1]), "close")
        return [opening, *self.items(content, depth + 1), closing]

    def _simple_field_items(self, element: Element, depth: int) -> list[_Item]:
        if _is_translated(element.value("w:instr")):
            return self._container_items(element, depth)
        return [_Item(element.span, "atom", text_of(self.text, element)[:MAX_ATOM] or _PLACEHOLDER)]

    def _run_items(self, run: Element) -> list[_Item]:
        """Return the item that a run is, or none for what has no meaning."""
        content = [child for child in run.elements if child.name != "w:rPr" and child.name not in NOISE]
        if not content:
            return []
        if len(content) > 1:  # `split_runs` has left it, since the part would be too long
            return [_Item(run.span, "single")]
        (child,) = content
        text = self._text(child)
        if text:
            properties = run.child("w:rPr")
            look = self.text[slice(*properties.span)] if properties else ""
            return [_Item(run.span, "text", text, self.runs.run_of(look))]
        if child.name in ("w:br", "w:cr"):
            is_line = child.value("w:type", "textWrapping") == "textWrapping"
            return [_Item(run.span, "break" if is_line else "split")]
        if child.name in ("w:tab", "w:ptab"):
            return [_Item(run.span, "split")]
        if child.name in ("w:sym", "w:ruby"):
            return [_Item(run.span, "atom", _PLACEHOLDER)]
        if child.name == "w:fldChar":
            return [_Item(run.span, "single", field=child.value("w:fldCharType"))]
        if child.name == "w:instrText":
            return [_Item(run.span, "single", instruction=text_of(self.text, child))]
        return [_Item(run.span, "single")]

    def _text(self, element: Element) -> str:
        if element.name != "w:t":
            return _CHARACTERS.get(element.name, "")
        text = "".join(decoded(self.text, node) for node in element.children if not node.name)
        text = _SPACES.sub(" ", text)
        return text if element.value("xml:space") == "preserve" else text.strip(" ")

    def _with_fields(self, items: list[_Item]) -> list[_Item]:
        """Return items in which each whole field is an atom, or a pair of marks around a result that is translated.

        Runs: begin, instruction, separate, result, end.
        """
        found: list[_Item] = []
        begins: list[int] = []  # where the open fields begin in `found`
        for item in items:
            found.append(item)
            if item.field == "begin":
                begins.append(len(found) - 1)
            elif item.field == "end" and begins:
                begin = begins.pop()
                found[begin:] = self._field(found[begin:], len(begins))
        # The other half of a field is in another paragraph.
        return [replace(item, kind="split", field="") if item.field else item for item in found]

    def _field(self, items: list[_Item], depth: int) -> list[_Item]:
        span = items[0].span[0], items[-1].span[1]
        separators = [index for index, item in enumerate(items) if item.field == "separate"]
        if not separators:
            return [_Item(span, "single")]
        separator = separators[0]
        instruction = "".join(item.instruction for item in items[:separator])
        result = items[separator + 1 : -1]
        if depth >= MAX_FIELD_DEPTH or not _is_translated(instruction):
            return [_Item(span, "atom", "".join(item.text for item in result)[:MAX_ATOM] or _PLACEHOLDER)]
        opening = _Item((span[0], items[separator].span[1]), "open")
        return [opening, *result, _Item(items[-1].span, "close")]


def _is_translated(instruction: str) -> bool:
    return instruction.strip().partition(" ")[0].upper() in TRANSLATED_FIELDS
