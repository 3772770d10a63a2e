"""The reference searches: greedy, sampling and beam search over anything that can step and reorder.

A search works with these collaborators:

- `Stepper` computes the logits of the next tokens. It owns the model and its cache.
- `SearchOptions` (options.py) says how wide and how long to search, and how a target is scored.
- `Constraint` (constraints.py) changes logits, so that some tokens are forbidden or forced.
- `ChooseTokens` takes one next token for each row: the likeliest, or a sampled one (sampling.py).
- `Beam` holds the live hypotheses of a beam search.
- `Hypothesis` (options.py) is a finished target with its score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sixfold.decoding.constraints import Constraint, Sentences, min_length
from sixfold.decoding.options import Hypothesis, SearchOptions


@runtime_checkable
class Stepper(Protocol):
    """All that decoding needs of a model. It owns the cache, so an ensemble or a lookup table can be one, too."""

    def step(self, tokens: Int[Tensor, "rows"]) -> Float[Tensor, "rows vocab"]:
        """Append one token to each row. Return the logits of the next."""
        ...

    def reorder(self, rows: Int[Tensor, "new_rows"]) -> None:
        """Make row i a copy of what row rows[i] was. Rows may be repeated or left out."""
        ...


# From log-probabilities, and the sentence of the batch that each row belongs to.
ChooseTokens = Callable[[Float[Tensor, "rows vocab"], Sentences], Int[Tensor, "rows"]]


def greedy(
    stepper: Stepper,
    start: Int[Tensor, "batch"],
    eos: int,
    options: SearchOptions | None = None,
    constraints: Sequence[Constraint] = (),
) -> list[Hypothesis]:
    """Return the target of each sentence that takes the likeliest token at every step."""
    return search_single_path(stepper, start, eos, lambda logprobs, _: logprobs.argmax(dim=-1), options, constraints)


@torch.inference_mode()
def search_single_path(
    stepper: Stepper,
    start: Int[Tensor, "batch"],
    eos: int,
    choose: ChooseTokens,
    options: SearchOptions | None = None,
    constraints: Sequence[Constraint] = (),
) -> list[Hypothesis]:
    """Return one target for each sentence, where `choose` takes every token. Finished rows leave the batch."""
    options = options or SearchOptions()
    constraints = (min_length(options.min_length, eos), *constraints)
    finished: list[Hypothesis | None] = [None] * len(start)
    sentences = torch.arange(len(start), device=start.device)
    tokens, history = start, start.new_empty((len(start), 0))
    logprobs = torch.empty((len(start), 0), device=start.device)
    for step in range(options.max_length):
        scores = log_probabilities(stepper.step(tokens), history, sentences, constraints)
        tokens = choose(scores, sentences)
        history = torch.cat((history, tokens[:, None]), dim=1)
        logprobs = torch.cat((logprobs, scores.gather(1, tokens[:, None])), dim=1)
        ends = (tokens == eos) | (step + 1 == options.max_length)
        for row in ends.nonzero().flatten().tolist():
            finished[int(sentences[row])] = make_hypothesis(history[row], logprobs[row], eos, options)
        live = (~ends).nonzero().flatten()
        if len(live) == 0:
            break
        if len(live) < len(tokens):
            stepper.reorder(live)
            tokens, history, logprobs, sentences = tokens[live], history[live], logprobs[live], sentences[live]
    return [hypothesis for hypothesis in finished if hypothesis is not None]


@torch.inference_mode()
def beam_search(
    stepper: Stepper,
    start: Int[Tensor, "batch"],
    eos: int,
    options: SearchOptions | None = None,
    constraints: Sequence[Constraint] = (),
) -> list[list[Hypothesis]]:
    """Return the `n_best` best hypotheses of each sentence, best first.

    Each step ranks the 2 × beam best continuations of a sentence: enough to keep `beam` of them alive even if every
    live hypothesis ends. Those among the first `beam` that end are finished.
    """
    options = options or SearchOptions()
    constraints = (min_length(options.min_length, eos), *constraints)
    finished: list[list[Hypothesis]] = [[] for _ in start]
    # Each sentence has one row at first. The first step expands it to the width of the beam.
    live = Beam.start(start)
    for step in range(options.max_length):
        is_last_step = step + 1 == options.max_length
        # 1. Score the next tokens of all rows: rows × vocab.
        sentence_of_row = live.sentences.repeat_interleave(live.totals.size(1))
        scores = log_probabilities(stepper.step(live.tokens), live.history, sentence_of_row, constraints)
        # 2. Take the best 2 × beam continuations of each open sentence: open × candidates.
        candidates, parents, ends = live.expand(scores, eos, options.beam)
        # 3. Finish those among the first `beam` that end here.
        for index, rank in (ends | is_last_step).nonzero().tolist():
            if rank < options.beam and candidates.totals[index, rank] > -torch.inf:
                row = index * candidates.totals.size(1) + rank
                hypothesis = make_hypothesis(candidates.history[row], candidates.logprobs[row], eos, options)
                finished[int(candidates.sentences[index])].append(hypothesis)
        # 4. Close the sentences whose n best cannot change any more.
        best_live = candidates.totals.masked_fill(ends, -torch.inf).amax(dim=1).tolist()
        still_open = [
            index
            for index, sentence in enumerate(candidates.sentences.tolist())
            if not is_complete(finished[sentence], best_live[index], options)
        ]
        if not still_open or is_last_step:
            break
        # 5. Keep the first `beam` candidates that did not end, and reorder the cache accordingly: open × beam.
        open_sentences = torch.tensor(still_open, device=start.device)
        survivors = candidates.surviving_rows(ends, open_sentences, options.beam)
        stepper.reorder(parents[survivors.flatten()])
        live = candidates.select(survivors, open_sentences, ends)
    nothing = [Hypothesis([], -torch.inf)]  # where constraints forbid every token
    return [sorted(each, key=lambda hypothesis: -hypothesis.score)[: options.n_best] or nothing for each in finished]


@dataclass(frozen=True)
class Beam:
    """The hypotheses of all open sentences, `width` for each, as rows of one batch: rows = open × width.

    Row s × width + k holds hypothesis k of open sentence s. `width` is 1 before the first step, 2 × beam for the
    candidates of a step, and `beam` for the hypotheses that live on.
    """

    tokens: Int[Tensor, "rows"]  # the last token
    history: Int[Tensor, "rows steps"]
    logprobs: Float[Tensor, "rows steps"]
    totals: Float[Tensor, "open width"]  # sums of log-probabilities
    sentences: Int[Tensor, "open"]  # indices into the batch

    @classmethod
    def start(cls, start: Int[Tensor, "batch"]) -> Beam:
        """Return a beam with one empty hypothesis for each sentence."""
        size, device = len(start), start.device
        history, logprobs = start.new_empty((size, 0)), torch.empty((size, 0), device=device)
        return cls(start, history, logprobs, torch.zeros((size, 1), device=device), torch.arange(size, device=device))

    def expand(
        self, scores: Float[Tensor, "rows vocab"], eos: int, beam: int
    ) -> tuple[Beam, Int[Tensor, "new_rows"], Bool[Tensor, "open candidates"]]:
        """Return the best 2 × beam continuations of each sentence, the row that each extends, and which of them end.

        1. Add the score of every token to the total of its hypothesis: open × width × vocab.
        2. Flatten that to open × (width · vocab) and take the best: `flat` has the indices, open × candidates.
        3. Split `flat`: its quotient by vocab is the hypothesis within the sentence, its remainder the token.
        4. Gather history and log-probabilities of the parents and append the new tokens: new_rows × (steps + 1).
        """
        (sentences, width), vocab = self.totals.shape, scores.size(1)
        totals = (self.totals[:, :, None] + scores.view(sentences, width, vocab)).flatten(1)
        best, flat = totals.topk(min(2 * beam, width * vocab), dim=1)
        parents = (flat // vocab + width * torch.arange(sentences, device=flat.device)[:, None]).flatten()
        tokens = (flat % vocab).flatten()
        history = torch.cat((self.history[parents], tokens[:, None]), dim=1)
        logprobs = torch.cat((self.logprobs[parents], scores[parents, tokens][:, None]), dim=1)
        candidates = Beam(tokens, history, logprobs, best, self.sentences)
        return candidates, parents, (tokens == eos).view(sentences, -1)

    def surviving_rows(
        self, ends: Bool[Tensor, "open width"], still_open: Int[Tensor, "still_open"], beam: int
    ) -> Int[Tensor, "still_open survivors"]:
        """Return the rows of the first `beam` candidates that did not end, for each sentence that stays open.

        A stable sort puts those that ended behind the others: ends 0 1 0 0 gives the order 0 2 3 1.
        """
        order = ends[still_open].int().argsort(dim=1, stable=True)[:, :beam]
        return order + ends.size(1) * still_open[:, None]

    def select(
        self,
        survivors: Int[Tensor, "still_open survivors"],
        still_open: Int[Tensor, "still_open"],
        ends: Bool[Tensor, "open width"],
    ) -> Beam:
        """Return a beam of these rows only."""
        rows = survivors.flatten()
        # With a vocabulary smaller than the beam, hypotheses that ended fill up the rows. They must not continue.
        totals = self.totals.masked_fill(ends, -torch.inf).flatten()[rows].view(survivors.shape)
        return Beam(self.tokens[rows], self.history[rows], self.logprobs[rows], totals, self.sentences[still_open])


def is_complete(finished: list[Hypothesis], best_live: float, options: SearchOptions) -> bool:
    """Return whether no live hypothesis can still enter the n best: more tokens only lower its sum."""
    if best_live == -torch.inf or (finished and options.beam == 1):  # a beam of 1 ends when its hypothesis ends
        return True
    if options.patience:
        return len(finished) >= options.finished_limit
    if len(finished) < options.n_best:
        return False
    longest = options.max_length if options.length_penalty > 0 else 1
    worst = sorted((hypothesis.score for hypothesis in finished), reverse=True)[options.n_best - 1]
    return worst >= options.normalised_score(best_live, longest)


def log_probabilities(
    logits: Float[Tensor, "rows vocab"], history: Tensor, sentences: Tensor, constraints: Sequence[Constraint]
) -> Float[Tensor, "rows vocab"]:
    """Apply the constraints and return log-probabilities. A row in which every token is forbidden is -inf."""
    logits = logits.float()
    for constraint in constraints:
        logits = constraint(logits, history, sentences)
    return logits.log_softmax(dim=-1).nan_to_num(nan=-torch.inf, neginf=-torch.inf)


def make_hypothesis(history: Tensor, logprobs: Tensor, eos: int, options: SearchOptions) -> Hypothesis:
    """Return the hypothesis of a row, without its <eos>."""
    tokens, values = history.tolist(), logprobs.tolist()
    if tokens[-1] == eos:
        tokens = tokens[:-1]
    return Hypothesis(tokens, options.normalised_score(sum(values), len(values)), values)
