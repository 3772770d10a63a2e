"""What a translation of an office document must keep, as expat reads it.

Everything outside of paragraphs keeps its place. Inside a paragraph, markup may change its place, and texts may be
divided into runs in other ways, since DOCX and PPTX begin a new run wherever an author paused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from sixfold.translation.documents.structure import Structure, StructureBuilder
from sixfold.translation.documents.xml import parse_events
from sixfold.translation.documents.xml_tree import Names

MAX_ITEM = 300  # characters; a longer item is told by its hash
_OUTSIDE = ""  # stands for what is around the outermost paragraph

Attributes = dict[str, str]


class OfficeRules(NamedTuple):
    """What the structure of a format consists of. Names have the prefixes that the format usually has."""

    paragraphs: frozenset[str]
    texts: frozenset[str]  # elements whose text is translated
    runs: frozenset[str] = frozenset()  # elements that divide the text of a paragraph, and have no other meaning
    looks: frozenset[str] = frozenset()  # elements in a run that say how its text looks
    characters: frozenset[str] = frozenset()  # elements in a run that stand for characters
    noise: frozenset[str] = frozenset()  # elements that are left out with all that is in them
    noise_if_empty: frozenset[str] = frozenset()  # elements that are left out if no attribute counts
    ranges: Mapping[str, str] = MappingProxyType({})  # elements that end a range, by those that start it
    range_id: str = ""  # the attribute that they have in common
    ignores: Callable[[str, str], bool] = lambda _element, _attribute: False  # attributes that are left out
    is_fixed: Callable[[str, Attributes], bool] = lambda _name, _attributes: False  # elements whose text stays


@dataclass
class _Paragraph:
    """The items of a paragraph, or of what is around the outermost one."""

    name: str
    items: StructureBuilder = field(default_factory=StructureBuilder)
    looks: dict[str, None] = field(default_factory=dict)  # of its texts, each once
    paths: list[str] = field(default_factory=list)  # of the elements around the position, from the paragraph on
    names: list[str] = field(default_factory=list)
    look: list[str] = field(default_factory=list)  # the properties of the current run
    _shown_look: str | None = None

    def shown_look(self) -> str:
        """Return the properties of the current run as one short text, which is made once for all its texts."""
        if self._shown_look is None:
            self._shown_look = _short("".join(self.look))
        return self._shown_look

    def add_to_look(self, tag: str) -> None:
        self.look.append(tag)
        self._shown_look = None

    def end_run(self) -> None:
        self.look, self._shown_look = [], None


def office_structure(text: str, rules: OfficeRules, prefixes: dict[str, str] | None = None) -> Structure:
    """Return the elements of a part of an office document and the texts that must stay.

    `prefixes`: the usual prefixes of the format by namespace.
    """
    reader = _Reader(rules, Names(text, prefixes or {}))
    parse_events(text, reader.start, reader.end, reader.characters)
    return reader.paragraphs[0].items.build()


class _Reader:
    def __init__(self, rules: OfficeRules, names: Names) -> None:
        self.rules, self.names = rules, names
        self.paragraphs = [_Paragraph(_OUTSIDE)]
        self.skipped = 0  # open elements, from the one that is left out
        self.fixed = 0  # open elements, from the one whose text stays
        self.look_depth = 0  # open elements of properties
        self.started: set[tuple[str, str]] = set()  # the ranges that have begun

    def start(self, own_name: str, values: Attributes) -> None:
        name = self.names.usual(own_name)
        rules = self.rules
        shown = self._attributes(name, values)
        if self.skipped or name in rules.noise or (name in rules.noise_if_empty and not shown):
            self.skipped += 1
            return
        if self.fixed or rules.is_fixed(name, values):
            self.fixed += 1
        tag = f"<{name}{shown}>"
        paragraph = self.paragraphs[-1]
        if name in rules.paragraphs:
            paragraph = _Paragraph(tag)
            self.paragraphs.append(paragraph)
        elif paragraph.name == _OUTSIDE:
            paragraph.items.block(tag)
        elif self.look_depth or (name in rules.looks and paragraph.names[-1] in rules.runs):
            self.look_depth += 1
            if self.look_depth > 1 or shown:
                paragraph.add_to_look(tag)
            return
        elif name in rules.runs:
            if not rules.runs.isdisjoint(paragraph.names):
                paragraph.items.inside("a run in a run")
        elif name in rules.characters or (name in rules.texts and rules.runs):
            self._add_look(paragraph)
        else:
            look = f" {paragraph.shown_look()}" if paragraph.names[-1] in rules.runs else ""
            paragraph.items.inside(_short(f"{paragraph.paths[-1]}{tag}{look}{self._order(name, values)}"))
        outer = paragraph.paths[-1] if paragraph.paths else ""
        is_part_of_path = paragraph.paths and name not in rules.runs
        paragraph.paths.append(_short(outer + tag) if is_part_of_path else outer)
        paragraph.names.append(name)

    def _attributes(self, name: str, values: Attributes) -> str:
        shown = {self.names.usual(key): value for key, value in values.items() if not key.startswith("xmlns")}
        return "".join(f' {key}="{value}"' for key, value in sorted(shown.items()) if not self.rules.ignores(name, key))

    def _order(self, name: str, values: Attributes) -> str:
        """Return a remark if an element ends a range that has not begun."""
        range_id = values.get(self.names.own(self.rules.range_id), "")
        if name in self.rules.ranges.values():
            self.started.add((name, range_id))
        opens = self.rules.ranges.get(name)
        return " before its start" if opens is not None and (opens, range_id) not in self.started else ""

    def _add_look(self, paragraph: _Paragraph) -> None:
        inside = next((name for name in reversed(paragraph.names) if name not in self.rules.texts), "")
        paragraph.looks[_short(f"text in <{inside}> {paragraph.shown_look()}")] = None

    def end(self, own_name: str) -> None:
        if self.skipped:
            self.skipped -= 1
            return
        self.fixed -= bool(self.fixed)
        if self.look_depth:
            self.look_depth -= 1
            return
        name = self.names.usual(own_name)
        paragraph = self.paragraphs[-1]
        paragraph.names.pop()
        paragraph.paths.pop()
        if name in self.rules.runs:
            paragraph.end_run()
        if name in self.rules.paragraphs:
            self.paragraphs.pop()
            for look in paragraph.looks:
                paragraph.items.inside(look)
            items = [paragraph.name, *paragraph.items.build(), f"</{name}>"]
            around = self.paragraphs[-1]
            if around.name != _OUTSIDE:
                around.items.inside(_short("".join(items)))
                return
            for item in items:
                around.items.block(item)
        elif paragraph.name == _OUTSIDE:
            paragraph.items.block(f"</{name}>")

    def characters(self, text: str) -> None:
        paragraph = self.paragraphs[-1]
        if self.skipped or not text or not (paragraph.names or self.fixed):
            return
        name = paragraph.names[-1]
        if self.look_depth or (name in self.rules.texts and not self.fixed):
            return
        if text.strip() and paragraph.name == _OUTSIDE:
            paragraph.items.block(f"the text {text!r}")
        elif text.strip():
            paragraph.items.inside(_short(f"{paragraph.paths[-1]} the text {text!r}"))


def _short(item: str) -> str:
    if len(item) <= MAX_ITEM:
        return item
    digest = hashlib.sha256(item.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{item[: MAX_ITEM // 2]}… {digest}"
