"""Beam search written down as a tree: every continuation that was weighed, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from sixfold.errors import RequestError
from sixfold.explorer.forward import Array, log_softmax
from sixfold.explorer.pieces import piece_text, pieces_of_ids
from sixfold.explorer.stepwise import Stepwise
from sixfold.explorer.trace import Step, Trace, step_of
from sixfold.modelfile import ModelFile
from sixfold.translation.direction import one_line
from sixfold.translation.options import TranslateOptions

WIDEST = 16
STEEPEST = 10.0
Fate = Literal["kept", "pruned", "ended"]


class Node(NamedTuple):
    """A token that was weighed. Node 0 is what the search begins with, <bos> or the last piece of a prompt."""

    id: int
    parent: int  # -1 of node 0
    step: int  # how many tokens are written with it; 0 of node 0
    token: int
    text: str
    logprob: float
    total: float  # of the log-probabilities on the way here
    score: float  # total / step ** length_penalty
    fate: Fate
    is_best: bool  # on the way of the winner


class Finished(NamedTuple):
    """A hypothesis that was written to its end."""

    node: int  # its last
    tokens: list[int]  # without <eos>
    text: str
    score: float


@dataclass(frozen=True)
class Tree:
    """A whole search. "kept" grew on, "ended" was finished, "pruned" neither: others were better, or it was over.

    `weighed` is how many pieces were candidates at each step: the model's shortlist for this source, or all.
    """

    nodes: list[Node]
    hypotheses: list[Finished]  # best first
    beam: int
    length_penalty: float
    weighed: int

    @property
    def best(self) -> list[int]:
        """The tokens of the winner, without <eos>."""
        return self.hypotheses[0].tokens

    def to_dict(self) -> dict[str, Any]:
        return {
            "beam": self.beam, "length_penalty": self.length_penalty, "weighed": self.weighed, "best": self.best,
            "hypotheses": [each._asdict() for each in self.hypotheses],
            "nodes": [each._asdict() for each in self.nodes],
        }  # fmt: skip


def search_tree(trace: Trace, beam: int = 4, length_penalty: float = 1.0) -> Tree:
    """Search for the translation of the trace's source anew, or for how its text goes on in a decoder-only model.

    It is the search of `sixfold.decoding.search`: the 2 × beam best continuations are ranked, those among the first
    `beam` that end are finished, and it is over when nothing alive can still win. As CTranslate2 does with a
    shortlist, probabilities are shared out among its pieces alone. An engine may still find something else: it computes
    in int8, and gives up after 2 × beam finished hypotheses.
    """
    if not 1 <= beam <= WIDEST:
        raise RequestError(f"beam: expected 1 to {WIDEST}; got {beam}")
    if not 0 <= length_penalty <= STEEPEST:
        raise RequestError(f"length_penalty: expected 0 to {STEEPEST:g}; got {length_penalty}")
    search = Search(trace, TranslateOptions(beam=beam, length_penalty=length_penalty))
    while not search.is_over:
        search.grow()
    return search.tree()


def free_run(trace: Trace, count: int = 10) -> list[Step]:
    """What the model writes by itself, always the likeliest piece: as `trace.steps()`, but it reads what it wrote.

    It is a search of beam 1. Probabilities are those that the search sees, where pieces off the shortlist have none.
    """
    search = Search(trace, TranslateOptions(beam=1))
    seen = []
    while not search.is_over:
        search.grow()
        seen.append(search.logits[0])
    tokenizer, first = trace.tokenizer, search.nodes[0].token
    written = [node.token for node in search.path(search.finished[0])]
    begun = written[:-1] if written[-1] == trace.config.eos else written
    text = one_line(tokenizer.decode(begun))
    wrote = pieces_of_ids(tokenizer, begun, text, (), written[len(begun) :])
    texts = [pieces_of_ids(tokenizer, [first], "").texts[0], *wrote.texts]
    return [
        step_of(tokenizer, read, text, token, logits, count)
        for read, text, token, logits in zip(texts[:-1], wrote.texts, written, seen, strict=True)
    ]


class Search:
    """A search that grows by a token at a time until it is over."""

    def __init__(self, trace: Trace, options: TranslateOptions) -> None:
        config = trace.config
        if trace.target is None or trace.predicted is None:
            raise RequestError(f"search: expected a model that writes; got one of the kind {config.kind!r}")
        if trace.source is None:
            prompt, memory = [*trace.target.ids, trace.predicted.ids[-1]], None
            read, room = prompt, config.max_length - len(prompt)
        else:
            prompt, memory = [config.bos], trace["encoder.output"][None]
            read, room = trace.source.ids, config.max_length - 1
        search = options.search(max(1, room))
        self.options = replace(search, max_length=search.max_target_length(len(read)))
        self.tokenizer, self.eos = trace.tokenizer, config.eos
        self.stepper = Stepwise(trace.model, memory, candidates=weighed(trace.model, read))
        for token in prompt[:-1]:
            self.stepper.step(np.array([token]))
        self.nodes = [Node(0, -1, 0, prompt[-1], piece_text(self.tokenizer, prompt[-1]), 0.0, 0.0, 0.0, "kept", False)]
        self.live = [self.nodes[0]]
        self.finished: list[Node] = []
        self.is_over = False
        self.logits: Float[Array, "rows vocab"] = np.empty((0, config.vocab), np.float32)

    def grow(self) -> None:
        """Rank the continuations of all that is alive, and say what becomes of each."""
        options, step = self.options, self.live[0].step + 1
        self.logits = self.stepper.step(np.array([node.token for node in self.live]))
        if step <= options.min_length:
            self.logits[:, self.eos] = -np.inf
        is_last = step == options.max_length
        rows: list[int] = []
        alive: list[Node] = []
        for rank, (row, token, logprob) in enumerate(self._ranked()):
            ends = token == self.eos
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
                alive.append(node)
        self.is_over = is_last or not alive or self._is_settled(alive[0].total)
        if self.is_over:
            for node in alive:
                self.nodes[node.id] = node._replace(fate="pruned")
            return
        self.live = alive
        self.stepper.reorder(np.array(rows))

    def _ranked(self) -> list[tuple[int, int, float]]:
        """The row, the token and the log-probability of the 2 × beam best, as far as there are so many."""
        logprobs = log_softmax(self.logits)
        totals = (logprobs + np.array([[node.total] for node in self.live])).ravel()
        count = min(2 * self.options.beam, len(totals))
        best = np.argpartition(-totals, count - 1)[:count]
        best = best[np.lexsort((best, -totals[best]))]
        rows, tokens = np.divmod(best[totals[best] > -np.inf], logprobs.shape[1])
        return [(int(row), int(token), float(logprobs[row, token])) for row, token in zip(rows, tokens, strict=True)]

    def _is_settled(self, best_alive: float) -> bool:
        """Whether nothing alive can still win: more tokens only lower its total. A beam of one just ends."""
        if not self.finished or self.options.beam == 1:
            return bool(self.finished)
        longest = self.options.max_length if self.options.length_penalty > 0 else 1
        return max(node.score for node in self.finished) >= self.options.normalised_score(best_alive, longest)

    def path(self, node: Node) -> list[Node]:
        """From the first token to this one."""
        found = []
        while node.parent >= 0:
            found.append(node)
            node = self.nodes[node.parent]
        return found[::-1]

    def tree(self) -> Tree:
        finished = sorted(self.finished, key=lambda node: -node.score)
        on_the_way = {0, *(node.id for node in self.path(finished[0]))}
        nodes = [node._replace(is_best=node.id in on_the_way) for node in self.nodes]
        hypotheses = [Finished(node.id, *self._said(node), node.score) for node in finished]
        return Tree(nodes, hypotheses, self.options.beam, self.options.length_penalty, len(self.stepper.candidates))

    def _said(self, node: Node) -> tuple[list[int], str]:
        tokens = [each.token for each in self.path(node) if each.token != self.eos]
        return tokens, one_line(self.tokenizer.decode(tokens))


def weighed(model: ModelFile, source: Sequence[int]) -> Int[Array, "some"] | None:
    """The pieces that CTranslate2 takes for candidates, where not all are."""
    if model.shortlist is None:
        return None
    config = model.config.model
    return np.union1d(model.shortlist.candidates(source), [config.unk, config.bos, config.eos])
