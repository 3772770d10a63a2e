"""Which source piece each target piece hangs on, by hiding them in turn, and which heads look where it hangs."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from sixfold.errors import RequestError
from sixfold.explorer.forward import Array, Forward, log_softmax
from sixfold.explorer.heads import Head
from sixfold.explorer.pieces import Pieces
from sixfold.explorer.trace import Trace

LONGEST = 96  # pieces of a source, each of which takes a pass
ROOM = 8_000_000  # logits at once


class Aligner(NamedTuple):
    """A head, and for what share of the pieces that were written it looks most at what they hang on most."""

    head: Head
    agreement: float


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
    """All heads between decoder and encoder, best first; `falls` is the influence, where it is known.

    <eos> and tags are left out on both sides: many a head looks at them when it has nothing to look for.
    """
    source, _, predicted = _sides(trace)
    columns, rows = (
        [place for place, index in enumerate(side.ids) if index not in trace.tokenizer.reserved]
        for side in (source, predicted)
    )
    known = influence(trace) if falls is None else falls
    gold = known[np.ix_(rows, columns)].argmax(axis=1)
    looked = trace.attention("cross")[:, :, rows][..., columns].argmax(axis=-1)
    agreement = (looked == gold).sum(axis=-1) / max(1, len(rows))
    found = [Aligner(Head("cross", *place), float(share)) for place, share in np.ndenumerate(agreement)]
    return sorted(found, key=lambda each: -each.agreement)


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
