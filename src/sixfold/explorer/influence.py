"""Which source piece each target piece depends on, measured by masking each in turn, and which heads attend to it."""

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
from sixfold.translation.translator import Translator

MAX_SOURCE_PIECES = 96  # each takes a forward pass
MAX_LOGITS = 8_000_000  # of the passes that are computed at once


class Aligner(NamedTuple):
    """A head, and for what share of the target pieces it attends most to the source piece with the most influence.

    `reads_token`: it does so at the step that reads the target piece; otherwise at the step that writes it.
    """

    head: Head
    agreement: float
    reads_token: bool


def influence(trace: Trace) -> Float[Array, "target source"]:
    """Return by how much the log-probability of each target piece falls when a source piece is masked.

    Rows are those of `trace.predicted`, columns those of `trace.source`, tag and <eos> included. Nothing may look at
    a masked piece, neither in the encoder nor from the decoder.
    """
    source, target, predicted = _require_both_sides(trace)
    if len(source) > MAX_SOURCE_PIECES:
        message = f"source: expected at most {MAX_SOURCE_PIECES} pieces; got {len(source)}"
        raise RequestError(message, "use a shorter sentence")
    forward = ForwardLogits(trace.model)
    forward.weight = cache(trace.model.weight)
    unmasked = _token_logprobs(trace["logits"][None], predicted.ids)
    rows = max(1, MAX_LOGITS // (len(target) * trace.config.vocab))
    decreases = []
    for start in range(0, len(source), rows):
        masked = np.arange(start, min(start + rows, len(source)))  # row i masks source piece masked[i]
        padding = np.arange(len(source))[None] != masked[:, None]
        sources, targets = (np.tile(pieces.ids, (len(masked), 1)) for pieces in (source, target))
        logits = forward.run(sources, targets, padding, None)["logits"]
        decreases.append(unmasked - _token_logprobs(logits, predicted.ids))
    return np.concatenate(decreases).T


def aligners(trace: Trace, influences: Float[Array, "target source"] | None = None) -> list[Aligner]:
    """Return all heads of the cross-attention, best first, each at the better of its two steps.

    `influences` is the result of `influence`, where it has been computed already. <eos> and tags are left out on both
    sides, because many heads attend to them when nothing else fits.
    """
    evidence = _evidence(trace, influences)
    ranked = []
    for layer, head in np.ndindex(trace.kinds["cross"], trace.config.heads):
        steps = [AligningHeads(layer, (head,), reads_token) for reads_token in (False, True)]
        agreements = [evidence.agreement(step, by_shares=False) for step in steps]
        ranked.append(Aligner(Head("cross", layer, head), max(agreements), agreements[1] > agreements[0]))
    return sorted(ranked, key=lambda aligner: -aligner.agreement)


def measure_aligning_heads(file: ModelFile, pairs: Iterable[tuple[str, str]]) -> AligningHeads:
    """Return the heads whose alignment agrees best with the influence of source pieces, over pairs of sentences.

    A model of two directions is measured in both. Pairs that are too long for `influence` are left out. In each layer
    and for each of the two steps, heads are added as long as the agreement grows; the best set of all is returned.
    """
    with Translator(file, "cpu", threads=1) as translator:
        evidence = [
            _evidence(trace_pair(direction, *texts))
            for pair in pairs
            for languages, texts in zip(translator.directions, (pair, pair[::-1]), strict=False)
            for direction in (translator.direction(texts[0], *languages),)
            if all(texts) and max(map(len, direction.tokenizer.encode_batch(texts))) + 2 <= MAX_SOURCE_PIECES
        ]
    if not evidence:
        message = f"pairs: expected sentences of at most {MAX_SOURCE_PIECES} pieces; got none"
        raise RequestError(message, "use shorter sentences")
    total = sum(len(pair.origins) for pair in evidence)

    def mean_agreement(heads: AligningHeads) -> float:
        return sum(pair.agreement(heads) * len(pair.origins) for pair in evidence) / total

    config = file.config.model
    best = aligning_heads({}, config)
    best_agreement = mean_agreement(best)
    for layer, reads_token in product(range(config.decoder_layers), (False, True)):
        heads: tuple[int, ...] = ()
        highest = -1.0
        while True:
            larger = [AligningHeads(layer, (*heads, head), reads_token) for head in range(config.heads)]
            agreements = {aligning: mean_agreement(aligning) for aligning in larger if fits(aligning, config)}
            if not agreements or max(agreements.values()) <= highest:
                break
            winner = max(agreements, key=lambda aligning: agreements[aligning])
            heads, highest = winner.heads, agreements[winner]
            if highest > best_agreement:
                best, best_agreement = winner, highest
    return best


class Evidence(NamedTuple):
    """The cross-attention of a pair without tags and <eos>, and the most influential source piece of each target."""

    attention: Float[Array, "layers heads steps source"]
    origins: Int[Array, "target"]
    is_text: list[bool]  # of each source piece; false for a mere space

    def agreement(self, heads: AligningHeads, by_shares: bool = True) -> float:
        """Return the share of the target pieces for which these heads point at the most influential source piece.

        They point at the largest share that `align` computes, or with `by_shares=False` at the largest weight.
        """
        weights = heads.token_weights(self.attention[heads.layer, list(heads.heads)].mean(axis=0))
        indices = (align(weights, self.is_text) if by_shares else weights * self.is_text).argmax(axis=1)
        return float((indices == self.origins).mean()) if len(indices) else 0.0


def _evidence(trace: Trace, influences: Float[Array, "target source"] | None = None) -> Evidence:
    source, _, _ = _require_both_sides(trace)
    rows, columns = trace.text_rows, trace.text_columns
    matrix = influence(trace) if influences is None else influences
    is_text = [start < end for start, end in source.part(columns.start, columns.stop).spans]
    origins = np.where(is_text, matrix[rows.start : -1, columns], -np.inf).argmax(axis=1)
    return Evidence(trace.attention("cross")[..., rows, columns], origins, is_text)


class ForwardLogits(Forward):
    """A forward pass that records only the logits, to save memory."""

    def record(self, name: str, array: Array) -> Array:
        return super().record(name, array) if name == "logits" else array


def _require_both_sides(trace: Trace) -> tuple[Pieces, Pieces, Pieces]:
    if trace.source is None or trace.target is None or trace.predicted is None:
        raise RequestError(f"influence: expected a model that translates; got one of the kind {trace.config.kind!r}")
    return trace.source, trace.target, trace.predicted


def _token_logprobs(logits: Float[Array, "rows target vocab"], ids: list[int]) -> Float[Array, "rows target"]:
    """Return the log-probability of one piece at each position."""
    return log_softmax(logits)[:, np.arange(len(ids)), ids]
