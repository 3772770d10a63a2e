"""A shortlist: the target pieces that a source piece may become, so that a decoder scores hundreds of pieces, not all.

Each source piece calls for each target piece at a rate: how often it brings that piece into the target, for each pair
that it occurs in. Rates add up over the pieces of a source and are learnt by expectation and maximisation. In IBM model
1 the target pieces compete for the probability of a source piece; here they do not, so the most frequent ones, which
are on every list anyway, can be left out of the computation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sixfold.data.examples import ExampleSet
from sixfold.modelfile import Shortlist
from sixfold.text.sentences import is_spaced

CHUNK = 50_000  # pairs read at once
MIN_RATE = 1e-5  # lower rates are dropped between two rounds
MIN_EXPECTED = np.float32(1e-9)
Advance = Callable[[int], None]  # is called with the source pieces done; it may raise to stop
Strengths = tuple[np.ndarray, np.ndarray]  # target pieces, and how strongly each is linked to a source piece


@dataclass(frozen=True)
class Options:
    """How to learn a shortlist; the defaults are measured by benchmarks/shortlist.py."""

    pairs: int = 2_000_000  # looked at, at most
    links: int = 160_000_000  # of a source token to a target token; the shortest pairs first, until they are spent
    rounds: int = 4
    frequent: int = 100  # target pieces that are always candidates
    candidates: int = (
        400  # of a sentence of the corpus, on average; fewer where fewer were ever linked; see `options_for`
    )
    tried: int = 500  # sentences that this average is taken over


def options_for(vocab: int, target: str) -> Options:
    """Return options for a vocabulary and a target language.

    Lists are longer for a larger vocabulary, and for a language written without spaces, whose pieces vary more.
    """
    return Options(candidates=round(max(Options.candidates, vocab / 40) * (1 if is_spaced(target) else 1.6)))


def directions(pairs: ExampleSet) -> list[ExampleSet]:
    """Split pairs by direction: those that are read from source to target, and those that are read back."""
    roles = sorted({part.columns for part in pairs.parts})
    return [replace(pairs, parts=tuple(part for part in pairs.parts if part.columns == role)) for role in roles]


def steps(pairs: ExampleSet, vocab: int, options: Options | None = None) -> int:
    """Return the largest sum that `build` will report to `advance`."""
    return (options or Options()).rounds * vocab * len(directions(pairs))


def build(
    pairs: ExampleSet, vocab: int, eos: int, advance: Advance = lambda _: None, options: Sequence[Options] = ()
) -> Shortlist:
    """Learn from pairs with the columns `source` and `target`; the same pairs and options give the same lists.

    Each direction is learnt by itself. The tag that its sources begin with then lists the pieces that are always
    candidates in that direction.
    """
    parts = directions(pairs)
    each = zip(parts, options or [Options()] * len(parts), strict=True)
    built = [build_one(part, vocab, eos, advance, of_part, len(parts) == 1) for part, of_part in each]
    if len(built) == 1:
        return built[0]
    tagged = [_list_under_tag(lists, part.parts[0].prefixes[0][0]) for lists, part in zip(built, parts, strict=True)]
    always = np.intersect1d(built[0].always, built[1].always)
    return replace(merge(tagged[0], tagged[1]), always=always)


def _list_under_tag(lists: Shortlist, tag: int) -> Shortlist:
    """Move the pieces that are always candidates to the list of a tag, which is empty before."""
    begins = lists.begins.copy()
    begins[tag + 1 :] += len(lists.always)
    targets = np.insert(lists.targets, lists.begins[tag], lists.always)
    return Shortlist(lists.always[:0], begins, targets)


def build_one(
    pairs: ExampleSet, vocab: int, eos: int, advance: Advance, options: Options, is_only: bool = True
) -> Shortlist:
    """Learn the lists of one direction. Unless it is the only one, pieces that never occur in its sources have none."""
    count = min(len(pairs), options.pairs)
    drawn = np.arange(count) * len(pairs) // max(count, 1)  # evenly spread, so that every corpus has its share
    counts = np.zeros(vocab, np.int64)
    for rows in _chunks(drawn):
        counts += np.bincount(pairs.gather(rows)["target"].values, minlength=vocab)
    order = np.argsort(-counts, kind="stable")[: options.frequent]
    always = np.union1d(order[counts[order] > 0], [eos])
    chosen = _shortest(pairs, drawn, options.links)
    tags = np.array(sorted({tag for part in pairs.parts for tag in part.prefixes[0]}), np.int64)  # no part of the text
    cooccurrences = Cooccurrences.of(pairs, chosen, vocab, eos, always, tags)
    rates_of = learn(cooccurrences, vocab, options.rounds, advance)
    rates_of[eos] = always[:0], np.empty(0, np.float32)
    # Times linked, over the root of the times seen: chance explains a few links of a frequent piece, not of a rare one.
    seen = np.diff(cooccurrences.begins)
    roots = np.sqrt(seen).astype(np.float32)
    strong = [(targets, rates * root) for (targets, rates), root in zip(rates_of, roots, strict=True)]
    tried = drawn[:: max(1, len(drawn) // options.tried)]
    threshold = _threshold(pairs, tried, strong, (options.candidates - len(always)) * len(tried))
    lists = []
    for piece, (targets, strength) in enumerate(strong):
        # Names, numbers and code are copied; a Han character that no target has ever held is not.
        itself = [piece] if counts[piece] and (is_only or seen[piece]) and piece not in always else []
        lists.append(np.union1d(targets[strength >= threshold], itself))
    begins = np.cumsum([0, *map(len, lists)])
    return Shortlist(always.astype(np.int32), begins.astype(np.int32), np.concatenate(lists).astype(np.int32))


def merge(first: Shortlist, second: Shortlist) -> Shortlist:
    """Return the union of two shortlists, list by list."""
    both = [
        np.union1d(*(lists.targets[lists.begins[piece] : lists.begins[piece + 1]] for lists in (first, second)))
        for piece in range(len(first.begins) - 1)
    ]
    begins = np.cumsum([0, *map(len, both)])
    return Shortlist(np.union1d(first.always, second.always), begins, np.concatenate(both))


def _threshold(pairs: ExampleSet, rows: np.ndarray, strong: Sequence[Strengths], candidates: int) -> float:
    """Return how strong a link must be, so that the sources of these pairs have `candidates` candidates together."""
    strengths = [np.empty(0, np.float32)]
    best = np.zeros(len(strong), np.float32)
    for row in rows:
        best[:] = 0
        for piece in set(pairs.gather(np.array([row]))["source"].values.tolist()):
            targets, strength = strong[piece]
            best[targets] = np.maximum(best[targets], strength)
        strengths.append(best[best > 0])
    ordered = np.sort(np.concatenate(strengths))
    if candidates <= 0:
        return float("inf")
    return float(ordered[-candidates]) if candidates <= len(ordered) else 0.0


def _shortest(pairs: ExampleSet, rows: np.ndarray, links: int) -> np.ndarray:
    """Return as many of the shortest pairs as have `links` links: a long pair has more of them, and each tells less."""
    source, target = (lengths[rows].astype(np.int64) for lengths in pairs.lengths().values())
    order = np.argsort(source * target, kind="stable")
    return np.sort(rows[order[: np.searchsorted(np.cumsum((source * target)[order]), links, side="right")]])


def _chunks(rows: np.ndarray) -> Iterator[np.ndarray]:
    for begin in range(0, len(rows), CHUNK):
        yield rows[begin : begin + CHUNK]


@dataclass(frozen=True)
class Cooccurrences:
    """Which target pieces occur in pairs with each source piece; a piece counts once in a text."""

    rows: np.ndarray  # the pairs of every source piece, piece after piece
    begins: np.ndarray  # where the pairs of each piece begin, and where the last end
    targets: np.ndarray  # the pieces of every target, pair after pair
    bounds: np.ndarray  # where the targets of each pair begin, and where the last end

    @classmethod
    def of(
        cls, pairs: ExampleSet, rows: np.ndarray, vocab: int, eos: int, without: np.ndarray, tags: np.ndarray
    ) -> Cooccurrences:
        """Collect the pieces of these rows, except the target pieces `without` and the source pieces `tags`.

        <eos> is added to every source: it calls for the target pieces that no other source piece explains.
        """
        count, is_counted = len(rows), np.ones(vocab, bool)
        is_counted[without] = False
        sources, targets = [np.empty(0, np.int64)], [np.empty(0, np.int32)]
        sizes = [np.zeros(1, np.int64)]
        for begin, some in zip(range(0, count, CHUNK), _chunks(rows), strict=True):
            columns = pairs.gather(some)
            (source, source_lengths), (target, target_lengths) = columns["source"], columns["target"]
            numbers = np.arange(len(some))
            is_text = ~np.isin(source, tags)
            keys = np.concatenate([source[is_text], np.full(len(some), eos)]) * count + begin
            keys += np.concatenate([np.repeat(numbers, source_lengths)[is_text], numbers])
            sources.append(_distinct(keys))
            keys = np.repeat(numbers, target_lengths) * vocab + target
            keys = _distinct(keys[is_counted[target]])
            targets.append((keys % vocab).astype(np.int32))
            sizes.append(np.bincount(keys // vocab, minlength=len(some)))
        keys = np.sort(np.concatenate(sources))
        begins = np.searchsorted(keys, np.arange(vocab + 1) * max(count, 1))
        keys %= max(count, 1)
        return cls(keys.astype(np.int32), begins, np.concatenate(targets), np.cumsum(np.concatenate(sizes)))

    def target_indices(self, piece: int) -> np.ndarray:
        """Return the indices, in `targets`, of all target pieces that occur in a pair with this source piece."""
        rows = self.rows[self.begins[piece] : self.begins[piece + 1]]
        sizes = self.bounds[rows + 1] - self.bounds[rows]
        ends = np.cumsum(sizes)
        indices = np.arange(sizes.sum())
        indices += np.repeat(self.bounds[rows] - ends + sizes, sizes)
        return indices


def _distinct(keys: np.ndarray) -> np.ndarray:
    """Return the distinct keys in order; np.unique hashes whole numbers, which is slower here."""
    keys = np.sort(keys)
    return keys[np.append(True, keys[1:] != keys[:-1])[: len(keys)]]


def learn(cooccurrences: Cooccurrences, vocab: int, rounds: int, advance: Advance) -> list[Strengths]:
    """Return the targets of each source piece and their rates, learnt by expectation and maximisation."""
    # At the start every piece of a source calls for each piece of the target at the same rate.
    pieces = np.bincount(cooccurrences.rows, minlength=len(cooccurrences.bounds) - 1)
    expected = np.repeat(pieces, np.diff(cooccurrences.bounds)).astype(np.float32)
    seen = np.diff(cooccurrences.begins)
    dense_rates = np.empty(vocab, np.float32)
    rates_of = [(np.arange(vocab), np.ones(vocab, np.float32))] * vocab
    for _ in range(rounds):
        weight = 1 / np.maximum(expected, MIN_EXPECTED)
        expected[:] = 0
        for piece in range(vocab):
            indices, (targets, rates) = cooccurrences.target_indices(piece), rates_of[piece]
            words = cooccurrences.targets[indices]
            dense_rates[:] = 0
            dense_rates[targets] = rates
            linked = np.bincount(words, weight[indices] * dense_rates[words], vocab) / max(1, seen[piece])
            targets = np.flatnonzero(linked > MIN_RATE)
            rates_of[piece] = targets, linked[targets].astype(np.float32)
            dense_rates[:] = 0
            dense_rates[targets] = rates_of[piece][1]
            expected[indices] += dense_rates[words]
            advance(1)
    return rates_of
