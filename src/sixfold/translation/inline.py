"""Markup inside a sentence finds its place in the translation: through the words that it stood around."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from sixfold.translation.result import Link
from sixfold.translation.units import Mark, Span, Unit

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
    _settle(roots, (min(room), max(room)), unit, words)
    return list(_written(roots)), not any(_is_any_lost(node) for node in roots)


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


def _settle(nodes: Sequence[Node], room: Span, unit: Unit, words: Words) -> None:
    """Find places for nodes that are beside each other, within the room of what is around them."""
    inside = [word for word in words if room[0] <= word[0][0] and word[0][1] <= room[1]]
    for node in nodes:
        node.target = _span_of(node, room, unit.text, inside) if len(node.marks) == 2 else room
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
    for node in nodes:
        if len(node.marks) == 1:
            at = _place_of(node.source[0], room, unit.text, inside)
            around = next((pair for pair in pairs if pair.target[0] < at < pair.target[1]), None)
            if around is not None:
                at = around.target[0] if node.source[0] <= around.source[0] else around.target[1]
            node.target = at, at
        else:
            _settle(node.inside, node.target, unit, words)


def _span_of(node: Node, room: Span, text: str, words: Words) -> Span:
    """From the first to the last word that comes from inside a pair; of several runs of such words, the longest."""
    start, end = node.source
    if not text[:start].strip() and not text[end:].strip():
        return room
    runs: list[list[Span]] = []
    gap = 2
    for span, middle in words:
        if start <= middle < end:
            if gap > 1 or not runs:
                runs.append([])
            runs[-1].append(span)
            gap = 0
        else:
            gap += 1
    if not text[start:end].strip() or not runs:
        at = _place_of(start, room, text, words)
        node.is_lost = bool(text[start:end].strip())
        return at, at
    best = max(runs, key=lambda run: sum(last - first for first, last in run))
    return best[0][0], best[-1][1]


def _place_of(at: int, room: Span, text: str, words: Words) -> int:
    """Before the word that comes from the first source word behind a place; else behind what is before it."""
    if not text[:at].strip():
        return room[0]
    if not text[at:].strip():
        return room[1]
    behind = [(middle, span) for span, middle in words if middle >= at]
    if behind:
        return min(behind)[1][0]
    before = [(middle, span) for span, middle in words if middle < at]
    return max(before)[1][1] if before else room[1]


def _written(nodes: Sequence[Node]) -> Iterator[tuple[int, int]]:
    """Marks and their places: from left to right, at one place in the order of the source, and well nested."""
    for node in sorted(nodes, key=lambda node: (node.target, node.marks[0])):
        yield node.target[0], node.marks[0]
        if len(node.marks) == 2:
            yield from _written(node.inside)
            yield node.target[1], node.marks[1]


def _is_any_lost(node: Node) -> bool:
    return node.is_lost or any(map(_is_any_lost, node.inside))
