"""Finding a good target: greedy, sampled or beam search over anything that can step and reorder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sixfold.decoding.constraints import Constraint, min_length
from sixfold.decoding.options import SearchOptions


@runtime_checkable
class Stepper(Protocol):
    """All that decoding asks of a model. It owns the cache, so an ensemble or a lookup table can be one too."""

    def step(self, tokens: Int[Tensor, "rows"]) -> Float[Tensor, "rows vocab"]:
        """Take one token a row; return the logits of the next."""
        ...

    def reorder(self, rows: Int[Tensor, "new_rows"]) -> None:
        """Row i goes on from what row rows[i] was; rows may be repeated or left out."""
        ...


@dataclass(frozen=True)
class Hypothesis:
    """A finished target without its <eos>; `logprobs` has one entry more when it ended in one."""

    tokens: list[int]
    logprobs: list[float]
    score: float


Pick = Callable[[Float[Tensor, "rows vocab"]], Int[Tensor, "rows"]]


def greedy(
    stepper: Stepper,
    start: Int[Tensor, "batch"],
    eos: int,
    options: SearchOptions | None = None,
    constraints: Sequence[Constraint] = (),
) -> list[Hypothesis]:
    """Always the likeliest token."""
    return follow(stepper, start, eos, lambda logprobs: logprobs.argmax(dim=-1), options, constraints)


@torch.inference_mode()
def follow(
    stepper: Stepper,
    start: Int[Tensor, "batch"],
    eos: int,
    pick: Pick,
    options: SearchOptions | None = None,
    constraints: Sequence[Constraint] = (),
) -> list[Hypothesis]:
    """One path a sentence, each next token chosen by `pick` from the log-probabilities; ended rows leave the batch."""
    options = options or SearchOptions()
    constraints = (min_length(options.min_length, eos), *constraints)
    found: list[Hypothesis | None] = [None] * len(start)
    sentences = torch.arange(len(start), device=start.device)
    tokens, history = start, start.new_empty((len(start), 0))
    logprobs = torch.empty((len(start), 0), device=start.device)
    for step in range(options.max_length):
        scores = log_probabilities(stepper.step(tokens), history, sentences, constraints)
        tokens = pick(scores)
        history = torch.cat((history, tokens[:, None]), dim=1)
        logprobs = torch.cat((logprobs, scores.gather(1, tokens[:, None])), dim=1)
        ended = (tokens == eos) | (step + 1 == options.max_length)
        for row in ended.nonzero().flatten().tolist():
            found[int(sentences[row])] = finish(history[row], logprobs[row], eos, options)
        going = (~ended).nonzero().flatten()
        if len(going) == 0:
            break
        if len(going) < len(tokens):
            stepper.reorder(going)
            tokens, history, logprobs, sentences = tokens[going], history[going], logprobs[going], sentences[going]
    return [hypothesis for hypothesis in found if hypothesis is not None]


@torch.inference_mode()
def beam_search(
    stepper: Stepper,
    start: Int[Tensor, "batch"],
    eos: int,
    options: SearchOptions | None = None,
    constraints: Sequence[Constraint] = (),
) -> list[list[Hypothesis]]:
    """The `n_best` best hypotheses of each sentence, best first.

    Each step ranks the 2 × beam best continuations of a sentence: enough to keep `beam` of them alive even if each
    live hypothesis ends. Those among the first `beam` that end are finished.
    """
    options = options or SearchOptions()
    constraints = (min_length(options.min_length, eos), *constraints)
    found: list[list[Hypothesis]] = [[] for _ in start]
    # Only one row a sentence at first; the first step spreads it over the beam.
    live = Live.begin(start)
    for step in range(options.max_length):
        width = live.totals.size(1)
        sentence_of_row = live.sentences.repeat_interleave(width)
        scores = log_probabilities(stepper.step(live.tokens), live.history, sentence_of_row, constraints)
        live, rows, ends = live.expand(scores, eos, options.beam)
        for place, rank in (ends | (step + 1 == options.max_length)).nonzero().tolist():
            if rank < options.beam and live.totals[place, rank] > -torch.inf:
                row = place * live.totals.size(1) + rank
                found[int(live.sentences[place])].append(finish(live.history[row], live.logprobs[row], eos, options))
        best_alive = live.totals.masked_fill(ends, -torch.inf).amax(dim=1).tolist()
        open_places = [
            place
            for place, sentence in enumerate(live.sentences.tolist())
            if not is_settled(found[sentence], best_alive[place], options)
        ]
        if not open_places or step + 1 == options.max_length:
            break
        keep = live.survivors(ends, torch.tensor(open_places, device=start.device), options.beam)
        stepper.reorder(rows[keep.flatten()])
        live = live.select(keep, torch.tensor(open_places, device=start.device), ends)
    nothing = [Hypothesis([], [], -torch.inf)]  # where constraints forbid every token
    return [sorted(each, key=lambda hypothesis: -hypothesis.score)[: options.n_best] or nothing for each in found]


@dataclass(frozen=True)
class Live:
    """The hypotheses that may still grow, `width` for each open sentence, as rows of one batch."""

    tokens: Int[Tensor, "rows"]
    history: Int[Tensor, "rows steps"]
    logprobs: Float[Tensor, "rows steps"]
    totals: Float[Tensor, "open width"]
    sentences: Int[Tensor, "open"]

    @classmethod
    def begin(cls, start: Int[Tensor, "batch"]) -> Live:
        size, device = len(start), start.device
        nothing_yet = start.new_empty((size, 0))
        no_scores = torch.empty((size, 0), device=device)
        return cls(
            start, nothing_yet, no_scores, torch.zeros((size, 1), device=device), torch.arange(size, device=device)
        )

    def expand(self, scores: Float[Tensor, "rows vocab"], eos: int, beam: int) -> tuple[Live, Tensor, Tensor]:
        """All continuations ranked: the best 2 × beam a sentence, the row each came from, and which of them end."""
        (places, width), vocab = self.totals.shape, scores.size(1)
        totals = (self.totals[:, :, None] + scores.view(places, width, vocab)).flatten(1)
        best, flat = totals.topk(min(2 * beam, width * vocab), dim=1)
        rows = (flat // vocab + width * torch.arange(places, device=flat.device)[:, None]).flatten()
        tokens = (flat % vocab).flatten()
        history = torch.cat((self.history[rows], tokens[:, None]), dim=1)
        logprobs = torch.cat((self.logprobs[rows], scores[rows, tokens][:, None]), dim=1)
        expanded = Live(tokens, history, logprobs, best, self.sentences)
        return expanded, rows, (tokens == eos).view(places, -1)

    def survivors(self, ends: Tensor, places: Tensor, beam: int) -> Tensor:
        """The rows of the first `beam` candidates that did not end, for each place that stays open."""
        order = ends[places].int().argsort(dim=1, stable=True)[:, :beam]
        return order + ends.size(1) * places[:, None]

    def select(self, keep: Tensor, places: Tensor, ends: Tensor) -> Live:
        rows = keep.flatten()
        # With a vocabulary smaller than the beam an ended hypothesis fills up the rows; it must not grow.
        totals = self.totals.masked_fill(ends, -torch.inf).flatten()[rows].view(keep.shape)
        return Live(self.tokens[rows], self.history[rows], self.logprobs[rows], totals, self.sentences[places])


def is_settled(found: list[Hypothesis], best_alive: float, options: SearchOptions) -> bool:
    """Whether no live hypothesis can still enter the n best: more tokens only lower its sum of log-probabilities."""
    if best_alive == -torch.inf or (found and options.beam == 1):  # a beam of one is followed to its end, as greedy is
        return True
    if options.patience:
        return len(found) >= options.enough
    if len(found) < options.n_best:
        return False
    longest = options.max_length if options.length_penalty > 0 else 1
    worst_kept = sorted((hypothesis.score for hypothesis in found), reverse=True)[options.n_best - 1]
    return worst_kept >= options.normalise(best_alive, longest)


def log_probabilities(
    logits: Float[Tensor, "rows vocab"], history: Tensor, sentences: Tensor, constraints: Sequence[Constraint]
) -> Float[Tensor, "rows vocab"]:
    logits = logits.float()
    for constraint in constraints:
        logits = constraint(logits, history, sentences)
    # A row where everything is forbidden has no distribution: nothing is possible in it.
    return logits.log_softmax(dim=-1).nan_to_num(nan=-torch.inf, neginf=-torch.inf)


def finish(history: Tensor, logprobs: Tensor, eos: int, options: SearchOptions) -> Hypothesis:
    tokens = history.tolist()
    if tokens[-1] == eos:
        tokens = tokens[:-1]
    each = logprobs.tolist()
    return Hypothesis(tokens, each, options.normalise(sum(each), len(each)))
