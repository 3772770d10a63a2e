"""Induction heads, named by a measured test: which heads find the last time that a token came, and what followed it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from sixfold.errors import RequestError
from sixfold.explorer.forward import Array, Forward, causal_mask, log_softmax
from sixfold.explorer.heads import Head, ablate_heads
from sixfold.modelfile import ModelFile

MIN_EXCESS = 0.3  # of the attention: what a head must give beyond the control to be called an induction head
MIN_PREVIOUS = 0.5  # of the attention, to the token before: such a head is a previous-token head
ROWS, HALF = 8, 25  # sequences, and tokens that each of them repeats
MIN_HALF = 4
RANDOM_SETS = 5  # of heads, switched off for comparison

Tokens = Int[Array, "rows length"]
Half = Int[Array, "rows half"]
Scores = Float[Array, "layers heads"]


class HeadScore(NamedTuple):
    """The mean attention of a head from a token of the second half to the token after its first occurrence.

    `control` is the attention between the same positions where the second half repeats nothing: a head that only looks
    a fixed distance back has it too. `previous` is the mean attention to the token before.
    """

    head: Head
    score: float
    control: float
    previous: float

    @property
    def excess(self) -> float:
        """The score beyond the control."""
        return self.score - self.control

    @property
    def is_induction(self) -> bool:
        """Return whether the head is called an induction head."""
        return self.excess >= MIN_EXCESS

    @property
    def is_previous_token(self) -> bool:
        """Return whether the head mostly copies the token before, which is what induction heads search for."""
        return self.previous >= MIN_PREVIOUS


class Ablation(NamedTuple):
    """By how many nats the losses of both halves rise without the induction heads, and without random other heads.

    There are as many other heads in a set, or all that there are, if they are fewer. Previous-token heads are not among
    them, because induction heads do not work without them.
    """

    heads: tuple[Head, ...]
    first: float
    second: float
    others_count: int  # heads in each set of other heads
    others: tuple[tuple[float, float], ...]  # of each set: the rises of the first and second half


@dataclass(frozen=True)
class InductionTest:
    """The result of `measure_induction`. Losses are in nats a token, over the same tokens in both halves."""

    heads: list[HeadScore]  # by their excess, largest first
    first_loss: float
    second_loss: float
    ablation: Ablation | None  # None if no head is an induction head
    rows: int
    half: int
    seed: int

    @property
    def induction_heads(self) -> list[HeadScore]:
        """The heads above the threshold."""
        return [each for each in self.heads if each.is_induction]

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON has it."""
        ablation = self.ablation
        return {
            "sequences": self.rows, "repeated_tokens": self.half, "seed": self.seed, "threshold": MIN_EXCESS,
            "induction_heads": [str(each.head) for each in self.induction_heads],
            "heads": [{**each._asdict(), "head": str(each.head)} for each in self.heads],
            "loss": {"first_half": self.first_loss, "second_half": self.second_loss},
            "ablation": None if ablation is None else {
                "off": [str(head) for head in ablation.heads], "first_half": ablation.first,
                "second_half": ablation.second, "others_count": ablation.others_count,
                "others": [list(rises) for rises in ablation.others],
            },
        }  # fmt: skip


def measure_induction(model: ModelFile, seed: int = 1) -> InductionTest:
    """Test every head of a decoder-only model on random tokens that come twice. The same seed gives the same result.

    1. Each of 8 sequences has 25 different random tokens, and the same again: a b c … a b c …
    2. An induction head attends from the second b to the first c, so that the model can predict c.
    3. In the control the second half is other tokens, so that only the distances are the same.
    4. The heads above the threshold are switched off, and for comparison random sets of as many others.
    """
    config = model.config.model
    if config.kind != "decoder":
        raise RequestError(
            f"induction: expected a decoder-only model; got one of the kind {config.kind!r}",
            "the view alignment shows the measured heads of a model that translates",
        )
    random = np.random.default_rng(seed)
    before = list(model.prompts.before)
    firsts, unrelated = random_halves(model, len(before), random)
    half = firsts.shape[1]
    tokens = joined(before, firsts, firsts)
    repeated = AttentionForward(model)
    weights = repeated.attend(tokens)
    control = AttentionForward(model).attend(joined(before, firsts, unrelated))
    begin = max(1, len(before))
    losses = half_losses(repeated.arrays["logits"], tokens, half)
    scores = zip(
        *(induction_scores(each, len(before), half).ravel().tolist() for each in (weights, control)),
        previous_scores(weights, begin, len(before) + half).ravel().tolist(), strict=True,
    )  # fmt: skip
    names = [Head("decoder", layer, head) for layer, head in np.ndindex(config.decoder_layers, config.heads)]
    heads = [HeadScore(name, *values) for name, values in zip(names, scores, strict=True)]
    heads.sort(key=lambda each: -each.excess)
    best = [each.head for each in heads if each.is_induction]
    others = sorted(each.head for each in heads if not each.is_induction and not each.is_previous_token)
    ablation = measure_ablation(model, tokens, (best, others), losses, random) if best else None
    return InductionTest(heads, *losses, ablation, len(firsts), half, seed)


def random_halves(model: ModelFile, before: int, random: np.random.Generator) -> tuple[Half, Half]:
    """Return two halves of random tokens for each sequence; no token comes twice, and none is a special token."""
    config, tokenizer = model.config.model, model.tokenizer
    reserved = {config.pad, config.bos, config.eos} | set(tokenizer.reserved if tokenizer else ())
    known = min(config.vocab, tokenizer.vocab) if tokenizer else config.vocab
    candidates = np.array([token for token in range(known) if token not in reserved])
    half = min(HALF, (config.max_length - before) // 2, len(candidates) // 2)
    if half < MIN_HALF:
        raise RequestError(
            f"induction: expected a model with {2 * MIN_HALF} positions and as many tokens that are not special; got "
            f"{config.max_length - before} and {len(candidates)}",
            "use a model for longer texts",
        )
    drawn = np.stack([random.choice(candidates, 2 * half, replace=False) for _ in range(ROWS)])
    return drawn[:, :half], drawn[:, half:]


def joined(before: Sequence[int], first: Half, second: Half) -> Tokens:
    """Return sequences of both halves, after the tokens that the model reads before every prompt."""
    return np.concatenate([np.tile(np.array(before, int), (len(first), 1)), first, second], axis=1)


def induction_scores(weights: Float[Array, "layers heads length length"], before: int, half: int) -> Scores:
    """Return the mean attention of each head from token i of the second half to token i + 1 of the first half."""
    index = np.arange(half - 1)
    return np.asarray(weights[:, :, before + half + index, before + index + 1].mean(-1))


def previous_scores(weights: Float[Array, "layers heads length length"], begin: int, end: int) -> Scores:
    """Return the mean attention of each head from the positions `begin` to `end` to the position before."""
    index = np.arange(begin, end)
    return np.asarray(weights[:, :, index, index - 1].mean(-1))


def half_losses(logits: Float[Array, "rows length vocab"], tokens: Tokens, half: int) -> tuple[float, float]:
    """Return the mean loss of both halves, without their first tokens, which nothing predicts."""
    means = []
    for start in (tokens.shape[1] - 2 * half, tokens.shape[1] - half):
        rows = slice(start, start + half - 1)
        following = tokens[:, start + 1 : start + half, None]
        means.append(-float(np.take_along_axis(log_softmax(logits[:, rows]), following, -1).mean()))
    return means[0], means[1]


def measure_ablation(
    model: ModelFile,
    tokens: Tokens,
    heads: tuple[Sequence[Head], Sequence[Head]],
    losses: tuple[float, float],
    random: np.random.Generator,
) -> Ablation:
    """Switch off the best heads, then random sets of as many others, and return by how much both losses rise.

    `heads` are the best and the others; `losses` are those of both halves with all heads.
    """
    best, others = heads
    half = (tokens.shape[1] - len(model.prompts.before)) // 2
    count = min(len(best), len(others))

    def rises(off: Sequence[Head]) -> tuple[float, float]:
        forward = AttentionForward(ablate_heads(model, off))
        forward.attend(tokens)
        first, second = half_losses(forward.arrays["logits"], tokens, half)
        return first - losses[0], second - losses[1]

    drawn = {tuple(sorted(random.permutation(len(others))[:count])) for _ in range(RANDOM_SETS if others else 0)}
    sets = [[others[index] for index in indices] for indices in sorted(drawn)]
    return Ablation(tuple(best), *rises(best), count, tuple(rises(each) for each in sets))


class AttentionForward(Forward):
    """A forward pass that keeps only the logits and, as means over the rows, the weights of attention."""

    def record(self, name: str, array: Array) -> Array:
        if name == "logits":
            self.arrays[name] = array
        elif name.endswith(".weights"):
            self.arrays[name] = array.mean(axis=0)
        return array

    def attend(self, tokens: Tokens) -> Float[Array, "layers heads length length"]:
        """Run the decoder over all tokens and return the mean weights of every head."""
        self.output(self.stack("decoder", tokens, causal_mask(tokens.shape[1])))
        layers = range(self.config.decoder_layers)
        return np.stack([self.arrays[f"{Head('decoder', layer, 0).module_path}.weights"] for layer in layers])
