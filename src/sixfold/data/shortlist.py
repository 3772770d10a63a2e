"""Which target pieces a source piece may become, so that a decoder scores some hundreds of pieces, not all of them.

Each source piece calls for each target piece at a rate: so often does it bring that piece into the target, per pair it
stands in. Rates add up over the pieces of a source, and are found by expectation and maximisation. Where IBM model 1
has each source piece share out one word, here no target piece competes with another; so the most frequent ones, which
are on every list anyway, can be left out of the work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sixfold.data.tokens import Store
from sixfold.modelfile import Shortlist
from sixfold.text.sentences import is_spaced

CHUNK = 50_000  # pairs that are read at once
FAINT = 1e-5  # a rate not worth remembering from round to round
TINY = np.float32(1e-9)
Advance = Callable[[int], None]  # told the source pieces done; it may raise to stop
Strengths = tuple[np.ndarray, np.ndarray]  # target pieces, and how strongly each is linked to a source piece


@dataclass(frozen=True)
class Options:
    """How to learn a shortlist; the defaults are measured by benchmarks/shortlist.py."""

    pairs: int = 2_000_000  # looked at, at most
    links: int = 160_000_000  # of a source token to a target token; the shortest pairs first, until they are spent
    rounds: int = 4
    frequent: int = 100  # target pieces that are always candidates
    candidates: int = 400  # of a sentence of the corpus, on average; fewer where fewer were ever linked; see `suited`
    tried: int = 500  # sentences that this average is taken over


def suited(vocab: int, target: str) -> Options:
    """Longer lists for a larger vocabulary, and for a target that is written without spaces, whose pieces vary more."""
    return Options(candidates=round(max(Options.candidates, vocab / 40) * (1 if is_spaced(target) else 1.6)))


def directions(store: Store) -> list[Store]:
    """The pairs of each direction that a store is read in."""
    parts = [tuple(part for part in store.parts if part.back == back) for back in (False, True)]
    return [replace(store, readings=some) for some in parts if some] if all(parts) else [store]


def steps(store: Store, vocab: int, options: Options | None = None) -> int:
    """What `build` will report to `advance` all told, at most."""
    return (options or Options()).rounds * vocab * len(directions(store))


def build(
    store: Store, vocab: int, eos: int, advance: Advance = lambda _: None, options: Sequence[Options] = ()
) -> Shortlist:
    """Learn from the pairs of a store; the same store and options, of each direction, give the same lists.

    Each direction by itself: the tag that its sources begin with then calls for what is always a candidate there.
    """
    parts = directions(store)
    wishes = zip(parts, options or [Options()] * len(parts), strict=True)
    built = [build_one(each, vocab, eos, advance, its, len(parts) == 1) for each, its in wishes]
    if len(built) == 1:
        return built[0]
    told = [_tell(lists, each.parts[0].tags[0]) for lists, each in zip(built, parts, strict=True)]
    always = np.intersect1d(built[0].always, built[1].always)
    return replace(merge(told[0], told[1]), always=always)


def _tell(lists: Shortlist, tag: int) -> Shortlist:
    """What is always a candidate, on the list of a tag instead, whose own is empty."""
    begins = lists.begins.copy()
    begins[tag + 1 :] += len(lists.always)
    targets = np.insert(lists.targets, lists.begins[tag], lists.always)
    return Shortlist(lists.always[:0], begins, targets)


def build_one(store: Store, vocab: int, eos: int, advance: Advance, options: Options, alone: bool = True) -> Shortlist:
    """Of one direction; where there is another, a piece that is no source of this one has its list from there."""
    count = min(len(store), options.pairs)
    drawn = np.arange(count) * len(store) // max(count, 1)  # evenly spread, so that every corpus has its share
    counts = np.zeros(vocab, np.int64)
    for rows in _chunks(drawn):
        counts += np.bincount(store.gather(rows)[1], minlength=vocab)
    order = np.argsort(-counts, kind="stable")[: options.frequent]
    always = np.union1d(order[counts[order] > 0], [eos])
    chosen = _shortest(store, drawn, options.links)
    tags = np.array(
        sorted({tag for part in store.parts for tag in part.tags}), np.int64
    )  # they say nothing of the text
    meetings = Meetings.of(store, chosen, vocab, eos, always, tags)
    found = learn(meetings, vocab, options.rounds, advance)
    found[eos] = always[:0], np.empty(0, np.float32)
    # Times linked, over the root of the times seen: chance explains a few links of a frequent piece, not of a rare one.
    seen = np.diff(meetings.begins)
    roots = np.sqrt(seen).astype(np.float32)
    strong = [(targets, rates * root) for (targets, rates), root in zip(found, roots, strict=True)]
    tried = drawn[:: max(1, len(drawn) // options.tried)]
    threshold = _threshold(store, tried, strong, (options.candidates - len(always)) * len(tried))
    lists = []
    for piece, (targets, strength) in enumerate(strong):
        # Names, numbers and code are copied; a Han character that no target has ever held is not.
        itself = [piece] if counts[piece] and (alone or seen[piece]) and piece not in always else []
        lists.append(np.union1d(targets[strength >= threshold], itself))
    begins = np.cumsum([0, *map(len, lists)])
    return Shortlist(always.astype(np.int32), begins.astype(np.int32), np.concatenate(lists).astype(np.int32))


def merge(one: Shortlist, other: Shortlist) -> Shortlist:
    """All that either lists."""
    both = [
        np.union1d(*(each.targets[each.begins[piece] : each.begins[piece + 1]] for each in (one, other)))
        for piece in range(len(one.begins) - 1)
    ]
    begins = np.cumsum([0, *map(len, both)])
    return Shortlist(np.union1d(one.always, other.always), begins, np.concatenate(both))


def _threshold(store: Store, rows: np.ndarray, strong: Sequence[Strengths], wanted: int) -> float:
    """How strong a link must be, so that the sources of these pairs have `wanted` candidates together."""
    strengths = [np.empty(0, np.float32)]
    best = np.zeros(len(strong), np.float32)
    for row in rows:
        best[:] = 0
        for piece in set(store.gather(np.array([row]))[0].tolist()):
            targets, strength = strong[piece]
            best[targets] = np.maximum(best[targets], strength)
        strengths.append(best[best > 0])
    together = np.sort(np.concatenate(strengths))
    if wanted <= 0:
        return float("inf")
    return float(together[-wanted]) if wanted <= len(together) else 0.0


def _shortest(store: Store, rows: np.ndarray, links: int) -> np.ndarray:
    """As many pairs as the links suffice for: those of a long pair cost as its square and each tell less."""
    source, target = (lengths[rows].astype(np.int64) for lengths in store.lengths())
    order = np.argsort(source * target, kind="stable")
    return np.sort(rows[order[: np.searchsorted(np.cumsum((source * target)[order]), links, side="right")]])


def _chunks(rows: np.ndarray) -> Iterator[np.ndarray]:
    for begin in range(0, len(rows), CHUNK):
        yield rows[begin : begin + CHUNK]


@dataclass(frozen=True)
class Meetings:
    """Which target pieces stand in pairs with each source piece; a piece counts once in a text."""

    rows: np.ndarray  # the pairs of every source piece, piece after piece
    begins: np.ndarray  # where the pairs of each piece begin, and where the last end
    targets: np.ndarray  # the pieces of every target, pair after pair
    bounds: np.ndarray  # where the targets of each pair begin, and where the last end

    @classmethod
    def of(
        cls, store: Store, rows: np.ndarray, vocab: int, eos: int, without: np.ndarray, tags: np.ndarray
    ) -> Meetings:
        """Without some target pieces. <eos> is in every source: it stands for what no other piece calls for."""
        count, wanted = len(rows), np.ones(vocab, bool)
        wanted[without] = False
        sources, targets = [np.empty(0, np.int64)], [np.empty(0, np.int32)]
        sizes = [np.zeros(1, np.int64)]
        for begin, some in zip(range(0, count, CHUNK), _chunks(rows), strict=True):
            source, target, source_lengths, target_lengths = store.gather(some)
            here = np.arange(len(some))
            says = ~np.isin(source, tags)
            keys = np.concatenate([source[says], np.full(len(some), eos)]) * count + begin
            keys += np.concatenate([np.repeat(here, source_lengths)[says], here])
            sources.append(_distinct(keys))
            keys = np.repeat(here, target_lengths) * vocab + target
            keys = _distinct(keys[wanted[target]])
            targets.append((keys % vocab).astype(np.int32))
            sizes.append(np.bincount(keys // vocab, minlength=len(some)))
        keys = np.sort(np.concatenate(sources))
        begins = np.searchsorted(keys, np.arange(vocab + 1) * max(count, 1))
        keys %= max(count, 1)
        return cls(keys.astype(np.int32), begins, np.concatenate(targets), np.cumsum(np.concatenate(sizes)))

    def places(self, piece: int) -> np.ndarray:
        """Where, among all targets, those stand that this source piece meets."""
        rows = self.rows[self.begins[piece] : self.begins[piece + 1]]
        sizes = self.bounds[rows + 1] - self.bounds[rows]
        ends = np.cumsum(sizes)
        places = np.arange(sizes.sum())
        places += np.repeat(self.bounds[rows] - ends + sizes, sizes)
        return places


def _distinct(keys: np.ndarray) -> np.ndarray:
    """In order, each once; np.unique hashes whole numbers, which is slower here."""
    keys = np.sort(keys)
    return keys[np.append(True, keys[1:] != keys[:-1])[: len(keys)]]


def learn(meetings: Meetings, vocab: int, rounds: int, advance: Advance) -> list[Strengths]:
    """The targets of each source piece and their rates, by expectation and maximisation."""
    # To begin with, every piece of a source calls for each piece of the target alike.
    pieces = np.bincount(meetings.rows, minlength=len(meetings.bounds) - 1)
    called = np.repeat(pieces, np.diff(meetings.bounds)).astype(np.float32)
    seen = np.diff(meetings.begins)
    rate_of = np.empty(vocab, np.float32)
    found = [(np.arange(vocab), np.ones(vocab, np.float32))] * vocab
    for _ in range(rounds):
        weight = 1 / np.maximum(called, TINY)
        called[:] = 0
        for piece in range(vocab):
            places, (targets, rates) = meetings.places(piece), found[piece]
            words = meetings.targets[places]
            rate_of[:] = 0
            rate_of[targets] = rates
            linked = np.bincount(words, weight[places] * rate_of[words], vocab) / max(1, seen[piece])
            targets = np.flatnonzero(linked > FAINT)
            found[piece] = targets, linked[targets].astype(np.float32)
            rate_of[:] = 0
            rate_of[targets] = found[piece][1]
            called[places] += rate_of[words]
            advance(1)
    return found
