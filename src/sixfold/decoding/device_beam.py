"""Beam search in tensors whose shapes never change, so that a GPU can be told of many steps before it has made one.

It finds what `search.beam_search` finds. There, ended sentences leave the batch at once and hypotheses are Python
lists; here, a sentence has a place on a board, a step writes down what it chose and from where, and the host reads
that when it likes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sixfold.decoding.options import SearchOptions
from sixfold.decoding.search import Hypothesis, Stepper

Likeliest = Callable[[Tensor, int], tuple[Tensor, Tensor]]


def likeliest(
    logits: Float[Tensor, "rows vocab"], count: int
) -> tuple[Float[Tensor, "rows count"], Int[Tensor, "rows count"]]:
    """The log-probabilities of the likeliest tokens of each row, and their ids, best first."""
    best = logits.log_softmax(dim=-1, dtype=torch.float32).topk(count, dim=-1)
    return best.values, best.indices


class Board:
    """Places for sentences that are being written, each with a beam of its own. A closed place is free.

    Every method but `read` only queues work on the device.
    """

    def __init__(
        self,
        places: int,
        room: int,
        eos: int,
        options: SearchOptions,
        device: torch.device,
        rank: Likeliest = likeliest,
    ) -> None:
        """`room` is one more than the longest target with its <eos>: a closed place still writes down what it does."""
        self.options, self.eos, self.room, self.rank = options, eos, room, rank
        beam = options.beam
        # A place needs twice the beam: enough to keep it full even if each live hypothesis ends. One path just ends.
        self.width = 1 if beam == 1 else 2 * beam

        def full(value: int | float, *shape: int, dtype: torch.dtype = torch.long) -> Tensor:
            return torch.full((places, *shape), value, dtype=dtype, device=device)

        self.open = full(0, dtype=torch.bool)
        self.tokens = full(0, beam)  # what each hypothesis ends in
        self.totals = full(0, beam, dtype=torch.float32)
        self.length = full(0)  # tokens written
        self.limit = full(1)
        # What each step chose: the token, its log-probability, and which choice of the step before it continues.
        self.chosen = full(0, room, self.width)
        self.logprobs = full(0, room, self.width, dtype=torch.float32)
        self.origin = full(0, room, self.width)
        self.survivors = full(0, beam)  # which of the last choices the live hypotheses are
        # The best finished hypotheses: their scores, and the step and the choice at which they ended.
        self.scores = full(-torch.inf, options.n_best, dtype=torch.float32)
        self.ends = full(0, options.n_best, 2)
        self.finished = full(0)
        self._places = torch.arange(places, device=device)
        self._ranks = torch.arange(self.width, device=device)
        self._first = torch.full((beam,), -torch.inf, device=device)
        self._first[0] = 0.0  # the first step spreads one row over the beam

    def put(self, places: Int[Tensor, "new"], start: int, limits: Int[Tensor, "new"]) -> None:
        """Begin new sentences at these places."""
        self.tokens[places] = start
        self.totals[places] = self._first
        self.limit[places] = limits
        self.scores[places] = -torch.inf
        for counter in (self.length, self.finished, self.survivors):
            counter[places] = 0
        self.open[places] = True

    def advance(self, stepper: Stepper) -> None:
        """One token more for every open place. What happens to closed ones does not matter."""
        logits = stepper.step(self.tokens.flatten())
        if self.options.min_length > 0:
            early = (self.length < self.options.min_length).repeat_interleave(self.options.beam)
            logits[:, self.eos].masked_fill_(early, -torch.inf)
        best, tokens = self.rank(logits, min(self.width, logits.size(1)))  # no row can have more of the best
        if self.options.beam == 1:
            self._follow(best, tokens)
        else:
            stepper.reorder(self._spread(best, tokens))

    def _follow(self, best: Float[Tensor, "rows 1"], tokens: Int[Tensor, "rows 1"]) -> None:
        self._write(tokens, best, None)
        self.tokens.copy_(tokens)
        self.length.add_(self.open)
        self.open.logical_and_((tokens[:, 0] != self.eos) & (self.length < self.limit))

    def _spread(self, best: Float[Tensor, "rows each"], tokens: Int[Tensor, "rows each"]) -> Int[Tensor, "rows"]:
        """Rank all continuations of each place, finish those that end, keep the best others; whose rows they are."""
        beam, places, each = self.options.beam, len(self.open), best.size(1)
        best, tokens = best.view(places, beam * each), tokens.view(places, beam * each)
        totals, flat = (self.totals.repeat_interleave(each, dim=1) + best).topk(self.width, dim=1)
        parents, tokens = flat // each, tokens.gather(1, flat)
        self._write(tokens, best.gather(1, flat), self.survivors.gather(1, parents))
        ends = tokens == self.eos
        last = self.length + 1 >= self.limit
        self._finish(totals, ends | last[:, None])
        alive = totals.masked_fill(ends, -torch.inf)
        going = ~(last | self._is_settled(alive.amax(dim=1)))
        # The first that did not end, in their order.
        kept = (self._ranks + self.width * ends).sort(dim=1).values[:, :beam] % self.width
        self.survivors.copy_(kept)
        self.tokens.copy_(tokens.gather(1, kept))
        self.totals.copy_(alive.gather(1, kept))
        self.length.add_(self.open)
        self.open.logical_and_(going)
        return (parents.gather(1, kept) + beam * self._places[:, None]).flatten()

    def _write(self, tokens: Tensor, logprobs: Tensor, origin: Tensor | None) -> None:
        self.chosen[self._places, self.length] = tokens
        self.logprobs[self._places, self.length] = logprobs
        if origin is not None:
            self.origin[self._places, self.length] = origin

    def _finish(self, totals: Tensor, ends: Tensor) -> None:
        """Let those among the first `beam` that end into the finished ones, if they are among the best."""
        beam = self.options.beam
        done = (ends & (totals > -torch.inf) & self.open[:, None])[:, :beam]
        score = totals[:, :beam] / ((self.length + 1)[:, None] ** self.options.length_penalty)
        score = score.masked_fill(~done, -torch.inf)
        self.finished.add_(done.sum(dim=1))
        here = torch.stack((self.length[:, None].expand(-1, beam), self._ranks[:beam].expand(len(totals), -1)), dim=2)
        scores, order = torch.cat((self.scores, score), dim=1).topk(self.options.n_best, dim=1)
        self.ends.copy_(torch.cat((self.ends, here), dim=1).gather(1, order[:, :, None].expand(-1, -1, 2)))
        self.scores.copy_(scores)

    def _is_settled(self, best_alive: Tensor) -> Tensor:
        """As `search.is_settled`."""
        nothing = best_alive == -torch.inf
        if self.options.patience:
            return nothing | (self.finished >= self.options.enough)
        penalty = self.options.length_penalty
        bound = best_alive / self.limit**penalty if penalty > 0 else best_alive
        return nothing | ((self.finished >= self.options.n_best) & (self.scores[:, -1] >= bound))

    def read(self, places: Sequence[int]) -> list[list[Hypothesis]]:
        """The hypotheses of closed places, best first. Waits for the device."""
        wanted = torch.tensor(places, device=self.open.device)
        chosen, logprobs, lengths = (each[wanted].cpu().numpy() for each in (self.chosen, self.logprobs, self.length))
        if self.options.beam == 1:
            paths, lasts = np.zeros((len(places), 1, self.room), np.int64), lengths[:, None] - 1
        else:
            origin, ends = (each[wanted].cpu().numpy() for each in (self.origin, self.ends))
            paths, lasts = _paths(origin, ends), ends[:, :, 0]
            lasts[self.scores[wanted].cpu().numpy() == -np.inf] = -1
        found: list[list[Hypothesis]] = []
        for place, (path, last) in enumerate(zip(paths, lasts, strict=True)):
            steps = [(np.arange(end + 1), one[: end + 1]) for one, end in zip(path, last, strict=True) if end >= 0]
            each = [self._hypothesis(chosen[place][taken], logprobs[place][taken]) for taken in steps]
            found.append(each or [Hypothesis([], [], -torch.inf)])
        return found

    def _hypothesis(self, tokens: np.ndarray, logprobs: np.ndarray) -> Hypothesis:
        ids, each = tokens.tolist(), logprobs.tolist()
        score = self.options.normalise(sum(each), len(each))
        return Hypothesis(ids[:-1] if ids[-1] == self.eos else ids, each, score)


def _paths(origin: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Which choice was taken at each step up to the end of each hypothesis; what stands behind that means nothing."""
    lasts, choices = ends[:, :, 0], ends[:, :, 1]
    paths = np.zeros((*choices.shape, origin.shape[1]), np.int64)
    for step in range(lasts.max(initial=-1), -1, -1):
        paths[:, :, step] = choices
        before = np.take_along_axis(origin[:, step], choices, axis=1)
        choices = np.where(step <= lasts, before, choices)
    return paths
