"""Which source piece each target piece depends on, by hiding them in turn, and which heads attend to that piece."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from sixfold.alignment_heads import AligningHeads, align, aligning_heads, fits
from sixfold.errors import RequestError
from sixfold.explorer.forward import Array, Forward, log_softmax
from sixfold.explorer.heads import Head
from sixfold.explorer.pieces import Pieces
from sixfold.explorer.trace import Trace, trace_pair
from sixfold.modelfile import ModelFile
from sixfold.translation.direction import tag_of
from sixfold.translation.translator import Translator

LONGEST = 96  # pieces of a source, each of which takes a pass
ROOM = 8_000_000  # logits at once


class Aligner(NamedTuple):
    """A head, and for what share of the target pieces it attends most to the source piece with the most influence.

    `reads_token`: it does so at the step that reads the target piece; otherwise at the step that writes it.
    """

    head: Head
    agreement: float
    reads_token: bool


def influence(trace: Trace) -> Float[Array, "target source"]:
    """By how much the log-probability of each piece that was written falls when a source piece is hidden.

    Rows are those of `trace.predicted`, columns those of `trace.source`, tag and <eos> included. What is hidden is
    looked at by nothing, neither in the encoder nor from the decoder.
    """
    source, target, predicted = _sides(trace)
    if len(source) > LONGEST:
        raise RequestError(f"source: expected at most {LONGEST} pieces; got {len(source)}", "take a shorter sentence")
    run = Lean(trace.model)
    run.weight = cache(trace.model.weight)
    whole = _logprobs(trace["logits"][None], predicted.ids)
    size = max(1, ROOM // (len(target) * trace.config.vocab))
    falls = []
    for begin in range(0, len(source), size):
        hidden = np.arange(begin, min(begin + size, len(source)))
        seen = np.arange(len(source))[None] != hidden[:, None]
        sources, targets = (np.tile(side.ids, (len(hidden), 1)) for side in (source, target))
        logits = run.run(sources, targets, seen, None)["logits"]
        falls.append(whole - _logprobs(logits, predicted.ids))
    return np.concatenate(falls).T


def aligners(trace: Trace, falls: Float[Array, "target source"] | None = None) -> list[Aligner]:
    """All heads between decoder and encoder, best first, each at the better of its two steps.

    `falls` is the influence, where it is known. <eos> and tags are left out on both sides, as many heads attend to
    them when nothing else fits.
    """
    evidence = _evidence(trace, falls)
    found = []
    for layer, head in np.ndindex(trace.kinds["cross"], trace.config.heads):
        steps = [AligningHeads(layer, (head,), reads_token) for reads_token in (False, True)]
        shares = [evidence.agreement(each, by_shares=False) for each in steps]
        found.append(Aligner(Head("cross", layer, head), max(shares), shares[1] > shares[0]))
    return sorted(found, key=lambda each: -each.agreement)


def measure_aligning_heads(file: ModelFile, pairs: Iterable[tuple[str, str]]) -> AligningHeads:
    """The heads whose alignment agrees best with the influence of the source pieces, over pairs of sentences.

    A model of two directions is measured in both. Pairs that are too long for `influence` are left out. In each layer
    and for each of the two steps, heads are added as long as the agreement grows; the best of all is returned.
    """
    with Translator(file, "cpu", threads=1) as translator:
        evidence = [
            _evidence(trace_pair(direction, *texts))
            for pair in pairs
            for languages, texts in zip(translator.directions, (pair, pair[::-1]), strict=False)
            for direction in (translator.direction(texts[0], *languages),)
            if all(texts) and max(map(len, direction.tokenizer.encode_batch(texts))) + 2 <= LONGEST
        ]
    if not evidence:
        raise RequestError(f"pairs: expected sentences of at most {LONGEST} pieces; got none", "take shorter sentences")
    total = sum(len(each.origins) for each in evidence)

    def agreement(chosen: AligningHeads) -> float:
        return sum(each.agreement(chosen) * len(each.origins) for each in evidence) / total

    config = file.config.model
    best = aligning_heads({}, config)
    best_agreement = agreement(best)
    for layer, reads_token in product(range(config.decoder_layers), (False, True)):
        heads: tuple[int, ...] = ()
        highest = -1.0
        while True:
            larger = [AligningHeads(layer, (*heads, head), reads_token) for head in range(config.heads)]
            shares = {each: agreement(each) for each in larger if fits(each, config)}
            if not shares or max(shares.values()) <= highest:
                break
            winner = max(shares, key=lambda each: shares[each])
            heads, highest = winner.heads, shares[winner]
            if highest > best_agreement:
                best, best_agreement = winner, highest
    return best


class Evidence(NamedTuple):
    """The cross-attention of a pair without tags and <eos>, and the most influential source of each target piece."""

    attention: Float[Array, "layers heads steps source"]
    origins: Int[Array, "target"]
    is_text: list[bool]  # of each source piece; a mere space is none

    def agreement(self, chosen: AligningHeads, by_shares: bool = True) -> float:
        """The share of the target pieces for which these heads point at the most influential source piece.

        They point at the largest share (`align`), or else at the largest weight.
        """
        weights = chosen.token_weights(self.attention[chosen.layer, list(chosen.heads)].mean(axis=0))
        places = (align(weights, self.is_text) if by_shares else weights * self.is_text).argmax(axis=1)
        return float((places == self.origins).mean()) if len(places) else 0.0


def _evidence(trace: Trace, falls: Float[Array, "target source"] | None = None) -> Evidence:
    _sides(trace)
    first = len(tag_of(trace.model, trace.tokenizer, trace.languages))
    known = influence(trace) if falls is None else falls
    assert trace.source is not None
    is_text = [start < end for start, end in trace.source.part(first, -1).spans]
    origins = np.where(is_text, known[:-1, first:-1], -np.inf).argmax(axis=1)
    return Evidence(trace.attention("cross")[..., first:-1], origins, is_text)


class Lean(Forward):
    """A pass of which only the logits are kept."""

    def keep(self, name: str, array: Array) -> Array:
        return super().keep(name, array) if name == "logits" else array


def _sides(trace: Trace) -> tuple[Pieces, Pieces, Pieces]:
    if trace.source is None or trace.target is None or trace.predicted is None:
        raise RequestError(f"influence: expected a model that translates; got one of the kind {trace.config.kind!r}")
    return trace.source, trace.target, trace.predicted


def _logprobs(logits: Float[Array, "rows target vocab"], ids: list[int]) -> Float[Array, "rows target"]:
    """Of these pieces, one a place."""
    return log_softmax(logits)[:, np.arange(len(ids)), ids]
