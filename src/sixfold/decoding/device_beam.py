"""Beam search in tensors whose shapes never change, so that a GPU can be given many steps before it has done one.

It returns what `search.beam_search` returns. There, finished sentences leave the batch at once, and hypotheses are
rows of growing tensors. Here, a sentence has a slot; a step records the tokens that it chose and which choice of the
step before each of them continues; and the host reads these records when a sentence has ended.

Its collaborators: a `Stepper` (search.py) computes logits, a `TopTokens` function ranks them, and `SearchOptions`
(options.py) has the rules. An engine fills the slots and reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sixfold.decoding.options import Hypothesis, SearchOptions
from sixfold.decoding.search import Stepper

TopTokens = Callable[[Tensor, int], tuple[Tensor, Tensor]]


def top_tokens(
    logits: Float[Tensor, "rows vocab"], count: int
) -> tuple[Float[Tensor, "rows count"], Int[Tensor, "rows count"]]:
    """Return the log-probabilities of the likeliest tokens of each row, and their ids, best first."""
    best = logits.log_softmax(dim=-1, dtype=torch.float32).topk(count, dim=-1)
    return best.values, best.indices


class DeviceBeam:
    """Slots for sentences, each with a beam of its own. A slot is open while its sentence is being decoded.

    Every method except `read` only queues work on the device. Closed slots are computed along with the open ones;
    their results mean nothing.
    """

    def __init__(
        self,
        slots: int,
        capacity: int,
        eos: int,
        options: SearchOptions,
        device: torch.device,
        rank: TopTokens = top_tokens,
    ) -> None:
        """`capacity` is one more than the longest target with its <eos>: a closed slot writes one more record."""
        self.options, self.eos, self.capacity, self.rank = options, eos, capacity, rank
        beam = options.beam
        # A sentence ranks 2 × beam candidates: enough to keep `beam` alive even if every live hypothesis ends. With
        # a beam of 1 there is one candidate, and the search ends with it.
        self.candidates = 1 if beam == 1 else 2 * beam

        def full(value: int | float, *shape: int, dtype: torch.dtype = torch.long) -> Tensor:
            return torch.full((slots, *shape), value, dtype=dtype, device=device)

        self.open = full(0, dtype=torch.bool)
        self.tokens = full(0, beam)  # the last token of each hypothesis
        self.totals = full(0, beam, dtype=torch.float32)  # sums of log-probabilities
        self.length = full(0)  # tokens written
        self.limit = full(1)  # tokens that may be written
        # The records of each step: the tokens chosen, their log-probabilities, and which candidate of the step before
        # each of them continues.
        self.chosen = full(0, capacity, self.candidates)
        self.logprobs = full(0, capacity, self.candidates, dtype=torch.float32)
        self.origin = full(0, capacity, self.candidates)
        self.survivors = full(0, beam)  # which candidates of the last step the live hypotheses are
        # The best finished hypotheses: their scores, and the step and the candidate at which each ended.
        self.scores = full(-torch.inf, options.n_best, dtype=torch.float32)
        self.ends = full(0, options.n_best, 2)
        self.finished = full(0)  # number of finished hypotheses
        self._slots = torch.arange(slots, device=device)
        self._ranks = torch.arange(self.candidates, device=device)
        self._first_totals = torch.full((beam,), -torch.inf, device=device)
        self._first_totals[0] = 0.0  # the first step expands one hypothesis to the width of the beam

    def put(self, slots: Int[Tensor, "new"], start: int, limits: Int[Tensor, "new"]) -> None:
        """Start new sentences in these slots, each with a limit on its target tokens."""
        self.tokens[slots] = start
        self.totals[slots] = self._first_totals
        self.limit[slots] = limits
        self.scores[slots] = -torch.inf
        for counter in (self.length, self.finished, self.survivors):
            counter[slots] = 0
        self.open[slots] = True

    def step(self, stepper: Stepper) -> None:
        """Extend the hypotheses of every open slot by one token."""
        logits = stepper.step(self.tokens.flatten())
        if self.options.min_length > 0:
            too_short = (self.length < self.options.min_length).repeat_interleave(self.options.beam)
            logits[:, self.eos].masked_fill_(too_short, -torch.inf)
        # More than the whole vocabulary cannot be ranked.
        best, tokens = self.rank(logits, min(self.candidates, logits.size(1)))
        if self.options.beam == 1:
            self._extend_single(best, tokens)
        else:
            stepper.reorder(self._extend_beam(best, tokens))

    def _extend_single(self, best: Float[Tensor, "rows 1"], tokens: Int[Tensor, "rows 1"]) -> None:
        self._record(tokens, best, None)
        self.tokens.copy_(tokens)
        self.length.add_(self.open)
        self.open.logical_and_((tokens[:, 0] != self.eos) & (self.length < self.limit))

    def _extend_beam(self, best: Float[Tensor, "rows top"], tokens: Int[Tensor, "rows top"]) -> Int[Tensor, "rows"]:
        """Replace the live hypotheses by their best continuations. Return the row that each of these extends.

        1. Put the `top` tokens of all hypotheses of a slot beside each other: slots × (beam · top).
        2. Take the best candidates: slots × candidates. `flat` // top is the hypothesis that a candidate extends.
        3. Record the tokens, their log-probabilities and their origins.
        4. Finish those among the first `beam` that end, and close the slots that cannot improve.
        5. Keep the first `beam` candidates that did not end: `survivors`, slots × beam.
        6. Return the rows of their parents, slots · beam, for the stepper to reorder its cache.
        """
        beam, slots, top = self.options.beam, len(self.open), best.size(1)
        best, tokens = best.view(slots, beam * top), tokens.view(slots, beam * top)
        totals, flat = (self.totals.repeat_interleave(top, dim=1) + best).topk(self.candidates, dim=1)
        parents, tokens = flat // top, tokens.gather(1, flat)
        self._record(tokens, best.gather(1, flat), self.survivors.gather(1, parents))
        ends = tokens == self.eos
        is_last = self.length + 1 >= self.limit
        self._finish(totals, ends | is_last[:, None])
        live = totals.masked_fill(ends, -torch.inf)
        stays_open = ~(is_last | self._is_complete(live.amax(dim=1)))
        # Sorting rank + candidates × (1 if ended) puts the ended ones last and leaves the others in their order.
        survivors = (self._ranks + self.candidates * ends).sort(dim=1).values[:, :beam] % self.candidates
        self.survivors.copy_(survivors)
        self.tokens.copy_(tokens.gather(1, survivors))
        self.totals.copy_(live.gather(1, survivors))
        self.length.add_(self.open)
        self.open.logical_and_(stays_open)
        return (parents.gather(1, survivors) + beam * self._slots[:, None]).flatten()

    def _record(self, tokens: Tensor, logprobs: Tensor, origin: Tensor | None) -> None:
        self.chosen[self._slots, self.length] = tokens
        self.logprobs[self._slots, self.length] = logprobs
        if origin is not None:
            self.origin[self._slots, self.length] = origin

    def _finish(self, totals: Tensor, ends: Tensor) -> None:
        """Merge those among the first `beam` candidates that end into the n best finished hypotheses.

        1. Score the candidates, -inf for those that go on: slots × beam.
        2. Append them to the finished ones: slots × (n_best + beam), and take the best n_best.
        3. Gather where these ended, a step and a candidate each: slots × n_best × 2.
        """
        beam = self.options.beam
        is_finished = (ends & (totals > -torch.inf) & self.open[:, None])[:, :beam]
        score = totals[:, :beam] / ((self.length + 1)[:, None] ** self.options.length_penalty)
        score = score.masked_fill(~is_finished, -torch.inf)
        self.finished.add_(is_finished.sum(dim=1))
        steps, ranks = self.length[:, None].expand(-1, beam), self._ranks[:beam].expand(len(totals), -1)
        scores, order = torch.cat((self.scores, score), dim=1).topk(self.options.n_best, dim=1)
        ends_here = torch.stack((steps, ranks), dim=2)
        self.ends.copy_(torch.cat((self.ends, ends_here), dim=1).gather(1, order[:, :, None].expand(-1, -1, 2)))
        self.scores.copy_(scores)

    def _is_complete(self, best_live: Tensor) -> Tensor:
        """Return for each slot what `search.is_complete` returns for a sentence."""
        nothing_lives = best_live == -torch.inf
        if self.options.patience:
            return nothing_lives | (self.finished >= self.options.finished_limit)
        penalty = self.options.length_penalty
        bound = best_live / self.limit**penalty if penalty > 0 else best_live
        return nothing_lives | ((self.finished >= self.options.n_best) & (self.scores[:, -1] >= bound))

    def read(self, slots: Sequence[int]) -> list[list[Hypothesis]]:
        """Return the hypotheses of closed slots, best first. This waits for the device.

        1. Copy the records of these slots to the host: slots × capacity × candidates.
        2. Follow the origins back from the end of each hypothesis: `paths`, slots × n_best × capacity, has the
           candidate that was taken at each step.
        3. Gather tokens and log-probabilities along each path, up to the step where it ended.
        """
        indices = torch.tensor(slots, device=self.open.device)
        chosen, logprobs, lengths = (x[indices].cpu().numpy() for x in (self.chosen, self.logprobs, self.length))
        if self.options.beam == 1:
            paths, last_steps = np.zeros((len(slots), 1, self.capacity), np.int64), lengths[:, None] - 1
        else:
            origin, ends = (x[indices].cpu().numpy() for x in (self.origin, self.ends))
            paths, last_steps = _trace_back(origin, ends), ends[:, :, 0]
            last_steps[self.scores[indices].cpu().numpy() == -np.inf] = -1
        results: list[list[Hypothesis]] = []
        for index in range(len(slots)):
            hypotheses = []
            for path, last in zip(paths[index], last_steps[index], strict=True):
                if last >= 0:
                    taken = np.arange(last + 1), path[: last + 1]
                    hypotheses.append(self._hypothesis(chosen[index][taken], logprobs[index][taken]))
            results.append(hypotheses or [Hypothesis([], -torch.inf)])
        return results

    def _hypothesis(self, tokens: np.ndarray, logprobs: np.ndarray) -> Hypothesis:
        ids, values = tokens.tolist(), logprobs.tolist()
        score = self.options.normalised_score(sum(values), len(values))
        return Hypothesis(ids[:-1] if ids[-1] == self.eos else ids, score, values)


def _trace_back(origin: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return the candidate that each hypothesis took at each step: slots × n_best × capacity.

    `origin` (slots × capacity × candidates) says which candidate of the step before each one continues; `ends`
    (slots × n_best × 2) has the last step and the last candidate. Entries after the last step mean nothing.
    """
    last_steps, candidates = ends[:, :, 0], ends[:, :, 1]
    paths = np.zeros((*candidates.shape, origin.shape[1]), np.int64)
    for step in range(last_steps.max(initial=-1), -1, -1):
        paths[:, :, step] = candidates
        before = np.take_along_axis(origin[:, step], candidates, axis=1)
        candidates = np.where(step <= last_steps, before, candidates)
    return paths
