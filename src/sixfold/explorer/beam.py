"""Beam search recorded as a tree: every continuation that was ranked, and whether it was kept, pruned or finished."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from sixfold.errors import RequestError
from sixfold.explorer.forward import Array, log_softmax
from sixfold.explorer.incremental import IncrementalDecoder
from sixfold.explorer.pieces import piece_text, pieces_of_ids
from sixfold.explorer.trace import Step, Trace, make_step
from sixfold.modelfile import ModelFile
from sixfold.translation.direction import collapse_whitespace
from sixfold.translation.options import TranslateOptions

MAX_BEAM = 16
MAX_LENGTH_PENALTY = 10.0
Fate = Literal["kept", "pruned", "ended"]


class Node(NamedTuple):
    """A token that was ranked. Node 0 is the root: <bos>, or the last piece of a prompt."""

    id: int
    parent: int  # -1 for the root
    step: int  # the number of tokens from the root to this one; 0 for the root
    token: int
    text: str
    logprob: float
    total: float  # sum of the log-probabilities on the path from the root
    score: float  # total / step ** length_penalty
    fate: Fate
    is_best: bool  # on the path of the best hypothesis


class FinishedHypothesis(NamedTuple):
    """A hypothesis that ended with <eos> or at the largest length."""

    node: int  # the last node of its path
    tokens: list[int]  # without <eos>
    text: str
    score: float


@dataclass(frozen=True)
class SearchTree:
    """A complete beam search.

    A node that is "kept" was continued, "ended" was finished, and "pruned" was neither: other nodes were better, or
    the search was over. `candidates` is the number of pieces that could be chosen at each step: the model's shortlist
    for this source, or the whole vocabulary.
    """

    nodes: list[Node]
    hypotheses: list[FinishedHypothesis]  # best first
    beam: int
    length_penalty: float
    candidates: int

    @property
    def best(self) -> list[int]:
        """The tokens of the best hypothesis, without <eos>."""
        return self.hypotheses[0].tokens

    def to_dict(self) -> dict[str, Any]:
        """Return what the HTTP interface sends."""
        return {
            "beam": self.beam, "length_penalty": self.length_penalty, "weighed": self.candidates, "best": self.best,
            "hypotheses": [hypothesis._asdict() for hypothesis in self.hypotheses],
            "nodes": [node._asdict() for node in self.nodes],
        }  # fmt: skip


def search_tree(trace: Trace, beam: int = 4, length_penalty: float = 1.0) -> SearchTree:
    """Search again for a translation of the trace's source, or for a continuation of the text of a decoder-only model.

    This is the search of `sixfold.decoding.search`. At each step:

    1. The 2 × beam best continuations of all live hypotheses are ranked.
    2. Those among the first `beam` that end with <eos> are finished.
    3. The best `beam` of the others live on.
    4. The search is over when no live hypothesis can still win.

    With a shortlist, the softmax runs over its pieces only, as in CTranslate2. An engine may still find another
    translation: it computes in int8, and stops after 2 × beam finished hypotheses.
    """
    if not 1 <= beam <= MAX_BEAM:
        raise RequestError(f"beam: expected 1 to {MAX_BEAM}; got {beam}")
    if not 0 <= length_penalty <= MAX_LENGTH_PENALTY:
        raise RequestError(f"length_penalty: expected 0 to {MAX_LENGTH_PENALTY:g}; got {length_penalty}")
    search = BeamSearch(trace, TranslateOptions(beam=beam, length_penalty=length_penalty))
    while not search.is_over:
        search.grow()
    return search.tree()


def free_run(trace: Trace, count: int = 10) -> list[Step]:
    """Return the steps of greedy decoding, in which the decoder reads its own output.

    `trace.steps()` is the same with teacher forcing. Probabilities are those of a beam search with beam 1: pieces that
    are not on the shortlist have none.
    """
    search = BeamSearch(trace, TranslateOptions(beam=1))
    step_logits = []
    while not search.is_over:
        search.grow()
        step_logits.append(search.logits[0])
    tokenizer, root = trace.target_tokenizer, search.nodes[0].token
    tokens = [node.token for node in search.path(search.finished[0])]
    text_tokens = tokens[:-1] if tokens[-1] in search.ends else tokens
    text = collapse_whitespace(tokenizer.decode(text_tokens))
    pieces = pieces_of_ids(tokenizer, text_tokens, text, (), tokens[len(text_tokens) :])
    read_texts = [pieces_of_ids(tokenizer, [root], "").texts[0], *pieces.texts[:-1]]
    return [
        make_step(tokenizer, read, wrote, token, logits, count)
        for read, wrote, token, logits in zip(read_texts, pieces.texts, tokens, step_logits, strict=True)
    ]


class BeamSearch:
    """A beam search that grows by one token at a time and records every node."""

    def __init__(self, trace: Trace, options: TranslateOptions) -> None:
        config = trace.config
        if trace.target is None or trace.predicted is None:
            raise RequestError(f"search: expected a model with a decoder; got one of the kind {config.kind!r}")
        if trace.source is None:
            prompt, memory, least = trace.target.ids, None, 0  # a text may be over; a translation has some text
            read, capacity = prompt, config.max_length - len(prompt)
        else:
            prompt, memory = [config.bos, *trace.special.before_target], trace["encoder.output"][None]
            read, capacity, least = trace.source.ids, config.max_length - 1, 1
        search = options.search(max(1, capacity))
        self.options = replace(search, min_length=least, max_length=search.max_target_length(len(read)))
        self.tokenizer = trace.target_tokenizer
        self.ends = [config.eos] if trace.source is not None else [*trace.model.prompts.ends]
        self.decoder = IncrementalDecoder(trace.model, memory, candidates=shortlist_candidates(trace.model, read))
        for token in prompt[:-1]:
            self.decoder.step(np.array([token]))
        self.nodes = [Node(0, -1, 0, prompt[-1], piece_text(self.tokenizer, prompt[-1]), 0.0, 0.0, 0.0, "kept", False)]
        self.live = [self.nodes[0]]
        self.finished: list[Node] = []
        self.is_over = False
        self.logits: Float[Array, "rows vocab"] = np.empty((0, config.vocab), np.float32)

    def grow(self) -> None:
        """Rank the continuations of all live hypotheses, and keep, prune or finish each."""
        options, step = self.options, self.live[0].step + 1
        self.logits = self.decoder.step(np.array([node.token for node in self.live]))
        if step <= options.min_length:
            self.logits[:, self.ends] = -np.inf
        is_last = step == options.max_length
        rows: list[int] = []
        live: list[Node] = []
        for rank, (row, token, logprob) in enumerate(self._best_continuations()):
            ends = token in self.ends
            is_finished = rank < options.beam and (ends or is_last)
            fate: Fate = "ended" if is_finished else "pruned" if ends or len(rows) == options.beam else "kept"
            total = self.live[row].total + logprob
            node = Node(
                len(self.nodes), self.live[row].id, step, token, piece_text(self.tokenizer, token), logprob, total,
                options.normalised_score(total, step), fate, False,
            )  # fmt: skip
            self.nodes.append(node)
            if fate == "ended":
                self.finished.append(node)
            if fate == "kept":
                rows.append(row)
                live.append(node)
        self.is_over = is_last or not live or self._is_decided(live[0].total)
        if self.is_over:
            for node in live:
                self.nodes[node.id] = node._replace(fate="pruned")
            return
        self.live = live
        self.decoder.reorder(np.array(rows))

    def _best_continuations(self) -> list[tuple[int, int, float]]:
        """Return row, token and log-probability of the 2 × beam best continuations, or fewer where there are fewer."""
        logprobs = log_softmax(self.logits)
        totals = (logprobs + np.array([[node.total] for node in self.live])).ravel()
        count = min(2 * self.options.beam, len(totals))
        best = np.argpartition(-totals, count - 1)[:count]
        best = best[np.lexsort((best, -totals[best]))]
        rows, tokens = np.divmod(best[totals[best] > -np.inf], logprobs.shape[1])
        return [(int(row), int(token), float(logprobs[row, token])) for row, token in zip(rows, tokens, strict=True)]

    def _is_decided(self, best_live_total: float) -> bool:
        """Return whether no live hypothesis can still win: more tokens only lower its total.

        A beam of one ends with its first finished hypothesis.
        """
        if not self.finished or self.options.beam == 1:
            return bool(self.finished)
        longest = self.options.max_length if self.options.length_penalty > 0 else 1
        return max(node.score for node in self.finished) >= self.options.normalised_score(best_live_total, longest)

    def path(self, node: Node) -> list[Node]:
        """Return the nodes from the first token to this one, without the root."""
        nodes = []
        while node.parent >= 0:
            nodes.append(node)
            node = self.nodes[node.parent]
        return nodes[::-1]

    def tree(self) -> SearchTree:
        """Return the finished search, with the path of the best hypothesis marked."""
        finished = sorted(self.finished, key=lambda node: -node.score)
        best_path = {0, *(node.id for node in self.path(finished[0]))}
        nodes = [node._replace(is_best=node.id in best_path) for node in self.nodes]
        hypotheses = [FinishedHypothesis(node.id, *self._tokens_and_text(node), node.score) for node in finished]
        options, candidates = self.options, len(self.decoder.candidates)
        return SearchTree(nodes, hypotheses, options.beam, options.length_penalty, candidates)

    def _tokens_and_text(self, node: Node) -> tuple[list[int], str]:
        tokens = [step.token for step in self.path(node) if step.token not in self.ends]
        return tokens, collapse_whitespace(self.tokenizer.decode(tokens))


def shortlist_candidates(model: ModelFile, source: Sequence[int]) -> Int[Array, "candidates"] | None:
    """Return the pieces that CTranslate2 considers with the model's shortlist; None without one: all are considered."""
    if model.shortlist is None:
        return None
    config = model.config.model
    return np.union1d(model.shortlist.candidates(source), [config.unk, config.bos, config.eos])
