"""The protocol of all engines: token ids in, hypotheses out. Translation uses nothing else of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from sixfold.config import ModelConfig
from sixfold.decoding.options import Hypothesis, SearchOptions
from sixfold.errors import RequestError

Ids = Sequence[int]


class Engine(Protocol):
    """A model that is ready to decode. Calls may come from several threads at once.

    All engines return the same results up to rounding (`tests/engines/test_contract.py`). A source holds everything
    the encoder reads, tag and <eos> included. Targets and prefixes have neither <bos> nor <eos>, and may be empty.
    All calls raise RequestError, before any work is done, if

    - a source is empty or longer than `model.max_length`,
    - an id is outside of the vocabulary,
    - a target or prefix is longer than `model.max_length` - 1 (<bos> takes one position), or
    - the number of targets or prefixes is not that of the sources.

    A decoder-only model takes a prompt for a source, and `decode` and `score` work on what follows it. Together they
    must fit into `model.max_length`. It has no `prefixes`, `alternatives` or `align`: those raise RequestError.
    """

    config: ModelConfig

    def decode(
        self, sources: Sequence[Ids], options: SearchOptions | None = None, prefixes: Sequence[Ids] | None = None
    ) -> list[list[Hypothesis]]:
        """Return the `n_best` best targets of each source, best first.

        Each has at most `options.max_target_length` tokens. With prefixes, the targets begin with these; a limit
        below the length of a prefix cuts it. The tokens of a prefix count towards the length, but their probability
        does not count in the score. `banned` and `no_repeat` hold for what follows the prefix, and for `no_repeat` the
        n-grams of the prefix count as written.
        """
        ...

    def alternatives(self, source: Ids, prefix: Ids, options: SearchOptions) -> list[Hypothesis]:
        """Return a target for each of the `n_best` likeliest next tokens after the prefix, the likeliest token first.

        Each target is the prefix, this token, and the best continuation. <eos>, <pad>, <bos>, <unk> and `banned`
        tokens are no alternatives. The score is that of `decode` for this prefix, from the probabilities that `score`
        returns.
        """
        ...

    def score(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """Return the log-probability of each token of each target and of the <eos> after it: length + 1 numbers."""
        ...

    def align(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[np.ndarray]:
        """Return how much each token of a target (rows) attends to each token of its source (columns).

        Rows sum up to 1. It is the mean of the heads that the model's card names (`aligning_heads`), or of all heads
        of the last layer.
        """
        ...

    def close(self) -> None:
        """Free the memory. The engine may not be used afterwards."""
        ...


def check_sources(config: ModelConfig, sources: Sequence[Ids], name: str = "source") -> None:
    """Raise RequestError for a source that the model cannot read; `name` is what the caller calls it."""
    for source in sources:
        _check_ids(name, source, config.vocab_read)
        if len(source) == 0:
            hint = "end every source in <eos>" if name == "source" else None
            raise RequestError(f"{name}: expected at least one token; got none", hint)
        if len(source) > config.max_length:
            raise RequestError(
                f"source: expected at most {config.max_length} tokens (model.max_length); got {len(source)}",
                "split the text into sentences",
            )


def check_search(
    config: ModelConfig, sources: Sequence[Ids], options: SearchOptions, prefixes: Sequence[Ids] | None
) -> None:
    """Raise RequestError for arguments that `decode` cannot take."""
    check_sources(config, sources)
    _check_ids("decoding.banned", options.banned, config.vocab)
    if prefixes is not None:
        check_kind(config, "prefixes", "put the prefix at the end of the prompt")
        check_targets(config, sources, prefixes, "prefix")


def check_targets(config: ModelConfig, sources: Sequence[Ids], targets: Sequence[Ids], name: str = "target") -> None:
    """Raise RequestError for targets that do not belong to these sources or that the model cannot read."""
    if len(targets) != len(sources):
        raise RequestError(
            f"{name}: expected one for each of {len(sources)} sources; got {len(targets)}",
            "the first belongs to the first source, and so on",
        )
    for source, target in zip(sources, targets, strict=True):
        _check_ids(name, target, config.vocab)
        limit = config.max_length - (len(source) if config.kind == "decoder" else 1)
        if len(target) > limit:
            raise RequestError(
                f"{name}: expected at most {limit} tokens (model.max_length = {config.max_length}); got {len(target)}",
                "split the text into sentences",
            )


def check_kind(config: ModelConfig, call: str, hint: str = "name a model that translates") -> None:
    """Raise RequestError if a call needs an encoder-decoder and the model is none. `call` names it in the error."""
    if config.kind != "encoder-decoder":
        raise RequestError(f"{call}: expected an encoder-decoder; got model.kind = {config.kind!r}", hint)


def _check_ids(name: str, ids: Ids, vocab: int) -> None:
    try:
        array = np.asarray(ids)
    except ValueError:  # lists of different lengths inside
        array = np.empty((0, 0))
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise RequestError(f"{name}: expected a list of token ids; got {ids!r:.60}", "a tokeniser's encode() gives one")
    if array.size and (array.min() < 0 or array.max() >= vocab):
        raise RequestError(f"{name}: expected ids from 0 to {vocab - 1}; got {array.min()} to {array.max()}")


def rescore(
    engine: Engine, source: Ids, prefix: Ids, targets: Sequence[list[int]], options: SearchOptions, limit: int
) -> list[Hypothesis]:
    """Return targets that begin with a prefix as hypotheses, with the scores that `Engine.alternatives` describes."""
    hypotheses = []
    for target, logprobs in zip(targets, engine.score([source] * len(targets), targets), strict=True):
        # A target as long as the limit was cut there and has no <eos>.
        length = len(target) if len(target) >= limit else len(target) + 1
        hypotheses.append(Hypothesis(target, options.normalised_score(sum(logprobs[len(prefix) : length]), length)))
    return hypotheses


def batch_by_length(lengths: Sequence[int], max_tokens: int, mix: bool = True) -> list[list[int]]:
    """Return batches of indices into `lengths`, the longest first, of at most `max_tokens` tokens with padding.

    A single length above `max_tokens` is a batch of its own. With `mix` False, all lengths of a batch are equal.
    """
    batches: list[list[int]] = []
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        is_full = bool(batch) and (len(batch) + 1) * lengths[batch[0]] > max_tokens
        if is_full or (batch and not mix and lengths[index] != lengths[batch[0]]):
            batches.append(batch)
            batch = []
        batch.append(index)
    return [*batches, batch] if batch else batches
