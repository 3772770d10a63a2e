"""Markup inside a sentence finds its place in the translation: through the words that it stood around."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from sixfold.translation.documents.units import Mark, Span, Unit
from sixfold.translation.result import Link

Words = Sequence[tuple[Span, float]]  # of a translation, each with the middle of the word that it comes from


@dataclass
class Node:
    """A pair of marks, or a single one, with what is inside it."""

    marks: tuple[int, ...]  # which marks of the unit
    source: Span
    inside: list[Node] = field(default_factory=list)
    target: Span = (0, 0)
    is_lost: bool = False  # no word of the translation comes from what it stands around


def place(unit: Unit, said: str, links: Sequence[Link]) -> tuple[list[tuple[int, int]], bool]:
    """Where each mark goes in the translation, in the order they are to be written, and whether all found their words.

    Pairs stay pairs, and what was inside one stays inside it.
    """
    roots = _tree(unit.marks)
    words = sorted((link.target, sum(link.source) / 2) for link in links)
    room = len(said) - len(said.lstrip()), len(said.rstrip())
    _settle(roots, (min(room), max(room)), unit, _Source(unit.text), words)
    return list(_written(roots)), not any(_is_any_lost(node) for node in roots)


class _Source:
    """The text of a unit, and where its words begin and end: white space around them is of no account."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.begin, self.end = len(text) - len(text.lstrip()), len(text.rstrip())

    def is_blank(self, start: int, end: int) -> bool:
        return not self.text[start:end].strip()


class _Words:
    """The words of a stretch of the translation, to be found by the place in the source that they come from."""

    def __init__(self, words: Words) -> None:
        self.spans = [span for span, _ in words]
        self._order = sorted((middle, span, number) for number, (span, middle) in enumerate(words))
        self._middles = [middle for middle, _, _ in self._order]

    def between(self, start: int, end: int) -> list[int]:
        """The numbers of the words that come from a stretch of the source, in the order of the translation."""
        first, last = (bisect_left(self._middles, at) for at in (start, end))
        return sorted(number for _, _, number in self._order[first:last])

    def before_and_behind(self, at: int) -> tuple[Span | None, Span | None]:
        """The word that comes from the last source word before a place, and from the first one behind it."""
        number = bisect_left(self._middles, at)
        before = self._order[number - 1][1] if number > 0 else None
        return before, self._order[number][1] if number < len(self._order) else None


def _tree(marks: Sequence[Mark]) -> list[Node]:
    roots: list[Node] = []
    open_nodes: list[Node] = []
    for place, mark in enumerate(marks):
        siblings = open_nodes[-1].inside if open_nodes else roots
        if mark.kind == "close":
            node = open_nodes.pop()
            node.marks, node.source = (*node.marks, place), (node.source[0], mark.at)
        else:
            siblings.append(Node((place,), (mark.at, mark.at)))
            if mark.kind == "open":
                open_nodes.append(siblings[-1])
    return roots


def _settle(nodes: Sequence[Node], room: Span, unit: Unit, source: _Source, words: Words) -> None:
    """Find places for nodes that are beside each other, within the room of what is around them.

    The time is proportional to the words in the room and to the nodes: siblings share neither, and pairs are at most
    `DEEPEST` inside of each other.
    """
    words = [word for word in words if room[0] <= word[0][0] and word[0][1] <= room[1]]
    inside = _Words(words)
    for node in nodes:
        node.target = _span_of(node, room, source, inside) if len(node.marks) == 2 else room
    pairs = sorted((node for node in nodes if len(node.marks) == 2), key=lambda node: node.target)
    for one, other in pairwise(pairs):
        if other.target[0] < one.target[1]:
            start = one.target[1]
            other.target = start, max(start, other.target[1])
            other.is_lost = other.is_lost or other.target[1] <= start
    if unit.covers and pairs:
        edges = [room[0], *(node.target[0] for node in pairs[1:]), room[1]]
        for node, edge in zip(pairs, pairwise(edges), strict=True):
            node.target = edge
    starts = [pair.target[0] for pair in pairs]
    for node in nodes:
        if len(node.marks) == 1:
            at = _place_of(node.source[0], room, source, inside)
            around = pairs[bisect_left(starts, at) - 1] if starts and starts[0] < at else None
            if around is not None and at < around.target[1]:
                at = around.target[0] if node.source[0] <= around.source[0] else around.target[1]
            node.target = at, at
        elif node.inside:
            first, last = (bisect_left(words, ((at, 0), 0.0)) for at in node.target)
            _settle(node.inside, node.target, unit, source, words[first:last])


def _span_of(node: Node, room: Span, source: _Source, words: _Words) -> Span:
    """From the first to the last word that comes from inside a pair; of several runs of such words, the longest.

    One other word does not end a run.
    """
    start, end = node.source
    if start <= source.begin and end >= source.end:
        return room
    runs: list[list[int]] = []
    for number in words.between(start, end):
        if runs and number - runs[-1][-1] <= 2:
            runs[-1].append(number)
        else:
            runs.append([number])
    is_blank = source.is_blank(start, end)
    if is_blank or not runs:
        at = _place_of(start, room, source, words)
        node.is_lost = not is_blank
        return at, at
    spans = [[words.spans[number] for number in run] for run in runs]
    best = max(spans, key=lambda run: sum(last - first for first, last in run))
    return best[0][0], best[-1][1]


def _place_of(at: int, room: Span, source: _Source, words: _Words) -> int:
    """Before the word that comes from the first source word behind a place; else behind what is before it."""
    if at <= source.begin:
        return room[0]
    if at >= source.end:
        return room[1]
    before, behind = words.before_and_behind(at)
    if behind is not None:
        return behind[0]
    return before[1] if before is not None else room[1]


def _written(nodes: Sequence[Node]) -> Iterator[tuple[int, int]]:
    """Marks and their places: from left to right, at one place in the order of the source, and well nested."""
    for node in sorted(nodes, key=lambda node: (node.target, node.marks[0])):
        yield node.target[0], node.marks[0]
        if len(node.marks) == 2:
            yield from _written(node.inside)
            yield node.target[1], node.marks[1]


def _is_any_lost(node: Node) -> bool:
    return node.is_lost or any(map(_is_any_lost, node.inside))
