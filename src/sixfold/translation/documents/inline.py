"""Where the markup inside a sentence goes in its translation: around the words that are aligned with its words."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from sixfold.translation.documents.units import Mark, Span, Unit
from sixfold.translation.result import Link

Words = Sequence[tuple[Span, float]]  # words of a translation, each with the middle of its source word


@dataclass
class Node:
    """A pair of marks, or a single mark, with the nodes inside it."""

    marks: tuple[int, ...]  # indices of the marks of the unit
    source: Span
    children: list[Node] = field(default_factory=list)
    target: Span = (0, 0)
    is_lost: bool = False  # no word of the translation is aligned with a word inside it


def place_marks(unit: Unit, translation: str, links: Sequence[Link]) -> tuple[list[tuple[int, int]], bool]:
    """Return the position of each mark in the translation and its index, in the order to write them.

    Also return whether every pair has words inside. Pairs stay pairs, and what was inside one stays inside it.
    """
    roots = _build_tree(unit.marks)
    words = sorted((link.target, sum(link.source) / 2) for link in links)
    bounds = len(translation) - len(translation.lstrip()), len(translation.rstrip())
    _place_nodes(roots, (min(bounds), max(bounds)), unit, _Source(unit.text), words)
    return list(_in_order(roots)), not any(_is_any_lost(node) for node in roots)


class _Source:
    """The text of a unit, and where its first word begins and its last word ends."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.begin, self.end = len(text) - len(text.lstrip()), len(text.rstrip())

    def is_blank(self, start: int, end: int) -> bool:
        return not self.text[start:end].strip()


class _AlignedWords:
    """The words of a part of the translation, indexed by the positions of their source words."""

    def __init__(self, words: Words) -> None:
        self.spans = [span for span, _ in words]
        self._order = sorted((middle, span, index) for index, (span, middle) in enumerate(words))
        self._middles = [middle for middle, _, _ in self._order]

    def between(self, start: int, end: int) -> list[int]:
        """Return the indices of the words aligned with a span of the source, in the order of the translation."""
        first, last = (bisect_left(self._middles, position) for position in (start, end))
        return sorted(index for _, _, index in self._order[first:last])

    def around(self, position: int) -> tuple[Span | None, Span | None]:
        """Return the words aligned with the last source word before a position, and with the first one after it."""
        number = bisect_left(self._middles, position)
        before = self._order[number - 1][1] if number > 0 else None
        return before, self._order[number][1] if number < len(self._order) else None


def _build_tree(marks: Sequence[Mark]) -> list[Node]:
    roots: list[Node] = []
    open_nodes: list[Node] = []
    for index, mark in enumerate(marks):
        siblings = open_nodes[-1].children if open_nodes else roots
        if mark.kind == "close":
            node = open_nodes.pop()
            node.marks, node.source = (*node.marks, index), (node.source[0], mark.position)
        else:
            siblings.append(Node((index,), (mark.position, mark.position)))
            if mark.kind == "open":
                open_nodes.append(siblings[-1])
    return roots


def _place_nodes(nodes: Sequence[Node], bounds: Span, unit: Unit, source: _Source, words: Words) -> None:
    """Set the targets of sibling nodes within the bounds of their parent, then those of their children.

    1. Each pair goes to the words aligned with the words inside it; pairs that overlap are moved apart.
    2. A single mark goes to its position, or to the edge of a pair that it would fall into.

    The time is proportional to the words within the bounds and to the nodes: siblings share neither, and pairs are
    nested at most `MAX_DEPTH` deep.
    """
    words = [word for word in words if bounds[0] <= word[0][0] and word[0][1] <= bounds[1]]
    aligned = _AlignedWords(words)
    for node in nodes:
        node.target = _pair_span(node, bounds, source, aligned) if len(node.marks) == 2 else bounds
    pairs = sorted((node for node in nodes if len(node.marks) == 2), key=lambda node: node.target)
    for left, right in pairwise(pairs):
        if right.target[0] < left.target[1]:
            start = left.target[1]
            right.target = start, max(start, right.target[1])
            right.is_lost = right.is_lost or right.target[1] <= start
    starts = [pair.target[0] for pair in pairs]
    for node in nodes:
        if len(node.marks) == 1:
            position = _target_position(node.source[0], bounds, source, aligned)
            pair = pairs[bisect_left(starts, position) - 1] if starts and starts[0] < position else None
            if pair is not None and position < pair.target[1]:
                position = pair.target[0] if node.source[0] <= pair.source[0] else pair.target[1]
            node.target = position, position
        elif node.children:
            first, last = (bisect_left(words, ((position, 0), 0.0)) for position in node.target)
            _place_nodes(node.children, node.target, unit, source, words[first:last])


def _pair_span(node: Node, bounds: Span, source: _Source, words: _AlignedWords) -> Span:
    """Return the span from the first to the last word that is aligned with a word inside a pair.

    If there are several runs of such words, the longest counts; one other word does not end a run.
    """
    start, end = node.source
    if start <= source.begin and end >= source.end:
        return bounds
    runs: list[list[int]] = []
    for index in words.between(start, end):
        if runs and index - runs[-1][-1] <= 2:
            runs[-1].append(index)
        else:
            runs.append([index])
    is_blank = source.is_blank(start, end)
    if is_blank or not runs:
        position = _target_position(start, bounds, source, words)
        node.is_lost = not is_blank
        return position, position
    spans = [[words.spans[index] for index in run] for run in runs]
    best = max(spans, key=lambda run: sum(last - first for first, last in run))
    return best[0][0], best[-1][1]


def _target_position(position: int, bounds: Span, source: _Source, words: _AlignedWords) -> int:
    """Return the target position for one of the source.

    It is before the word aligned with the first source word after the position; else after the word before it.
    """
    if position <= source.begin:
        return bounds[0]
    if position >= source.end:
        return bounds[1]
    before, after = words.around(position)
    if after is not None:
        return after[0]
    return before[1] if before is not None else bounds[1]


def _in_order(nodes: Sequence[Node]) -> Iterator[tuple[int, int]]:
    """Yield positions and indices of marks from left to right; at one position in source order, and well nested."""
    for node in sorted(nodes, key=lambda node: (node.target, node.marks[0])):
        yield node.target[0], node.marks[0]
        if len(node.marks) == 2:
            yield from _in_order(node.children)
            yield node.target[1], node.marks[1]


def _is_any_lost(node: Node) -> bool:
    return node.is_lost or any(map(_is_any_lost, node.children))
