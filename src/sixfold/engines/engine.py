"""What every engine can do: token ids in, candidates out. Translation talks to nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sixfold.config import ModelConfig
from sixfold.decoding.options import SearchOptions
from sixfold.errors import RequestError

Ids = Sequence[int]


@dataclass(frozen=True)
class Candidate:
    """One hypothesis: its tokens without <eos>, and its length-normalised score."""

    tokens: list[int]
    score: float


class Engine(Protocol):
    """A model that is ready to decode. Calls may come from several threads at once.

    Every engine gives the same answers up to rounding (`tests/engines/test_contract.py`). All calls raise RequestError,
    before any work is done, for a source that is empty or longer than `model.max_length`, for ids outside of the
    vocabulary, for a target or prefix longer than `model.max_length` - 1 (one place is for <bos>), and where the number
    of targets or prefixes is not that of the sources. A source holds everything the encoder reads, tag and <eos>
    included; targets and prefixes have neither <bos> nor <eos>, and may be empty.

    A decoder-only model takes a prompt for a source, and `decode` and `score` work on what follows it; together they
    must fit into `model.max_length`. It has no `prefixes`, `alternatives` or `align`: those raise RequestError.
    """

    config: ModelConfig

    def decode(
        self, sources: Sequence[Ids], options: SearchOptions | None = None, prefixes: Sequence[Ids] | None = None
    ) -> list[list[Candidate]]:
        """The `n_best` best targets of each source, best first, each at most `options.longest` tokens long.

        With prefixes, the targets begin with these; a limit below the length of a prefix cuts it. The tokens of a
        prefix count towards the length, but their probability is left out of the score. `banned` and `no_repeat` hold
        for what follows the prefix, and `no_repeat` counts the runs of tokens in the prefix as written.
        """
        ...

    def alternatives(self, source: Ids, prefix: Ids, options: SearchOptions) -> list[Candidate]:
        """One target for each of the `n_best` likeliest next tokens after the prefix, the likeliest token first.

        Each target is the prefix, this token, and the best continuation. Ending at once is no alternative, and <pad>,
        <bos>, <unk> and `banned` tokens are none. The score is that of `decode` for this prefix, by the probabilities
        that `score` gives.
        """
        ...

    def score(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """The log-probability of each token of each target and of the <eos> behind it: one more than it has tokens."""
        ...

    def align(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[np.ndarray]:
        """How much each token of a target (rows) attends to each token of its source (columns); rows add up to 1.

        It is the mean of the heads that the model's card names (`aligning_heads`), or of all heads of the last layer.
        """
        ...

    def close(self) -> None:
        """Give the memory back. Nothing may be asked of it afterwards."""
        ...


def check_sources(config: ModelConfig, sources: Sequence[Ids]) -> None:
    """Raise RequestError for a source that the model cannot read."""
    for source in sources:
        _check_ids(config, "source", source)
        if len(source) == 0:
            raise RequestError("source: expected at least one token; got none", "end every source in <eos>")
        if len(source) > config.max_length:
            raise RequestError(
                f"source: expected at most {config.max_length} tokens (model.max_length); got {len(source)}",
                "split the text into sentences",
            )


def check_search(
    config: ModelConfig, sources: Sequence[Ids], options: SearchOptions, prefixes: Sequence[Ids] | None
) -> None:
    """Raise RequestError for what `decode` cannot be asked."""
    check_sources(config, sources)
    _check_ids(config, "decoding.banned", options.banned)
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
        _check_ids(config, name, target)
        limit = config.max_length - (len(source) if config.kind == "decoder" else 1)
        if len(target) > limit:
            raise RequestError(
                f"{name}: expected at most {limit} tokens (model.max_length = {config.max_length}); got {len(target)}",
                "split the text into sentences",
            )


def check_kind(config: ModelConfig, call: str, hint: str = "name a model that translates") -> None:
    """Raise RequestError where a call makes no sense for a model that does not read a source and write a target."""
    if config.kind != "encoder-decoder":
        raise RequestError(f"{call}: expected an encoder-decoder; got model.kind = {config.kind!r}", hint)


def _check_ids(config: ModelConfig, name: str, ids: Ids) -> None:
    try:
        array = np.asarray(ids)
    except ValueError:  # lists of different lengths inside
        array = np.empty((0, 0))
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise RequestError(f"{name}: expected a list of token ids; got {ids!r:.60}", "a tokeniser's encode() gives one")
    if array.size and (array.min() < 0 or array.max() >= config.vocab):
        raise RequestError(f"{name}: expected ids from 0 to {config.vocab - 1}; got {array.min()} to {array.max()}")


def rescored(
    engine: Engine, source: Ids, prefix: Ids, targets: Sequence[list[int]], options: SearchOptions, limit: int
) -> list[Candidate]:
    """Targets that begin with a prefix, with the scores that `Engine.alternatives` describes."""
    found = []
    for target, logprobs in zip(targets, engine.score([source] * len(targets), targets), strict=True):
        # A target that is as long as it may be was cut there and has no <eos>.
        length = len(target) if len(target) >= limit else len(target) + 1
        found.append(Candidate(target, options.normalise(sum(logprobs[len(prefix) : length]), length)))
    return found


def batches(lengths: Sequence[int], room: int) -> list[list[int]]:
    """Places of `lengths`, the longest first, so many together as make `room` tokens with their padding."""
    found: list[list[int]] = []
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > room:
            found.append(batch)
            batch = []
        batch.append(place)
    return [*found, batch] if batch else found
