"""Writing: texts that continue prompts, token by token, on any engine that runs decoder-only models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from sixfold.config import ModelConfig
from sixfold.decoding.options import GREEDY, SamplingOptions
from sixfold.engines.engine import Ids, check_sources
from sixfold.errors import RequestError
from sixfold.modelfile import ModelFile


@dataclass(frozen=True)
class WrittenToken:
    """A token that was written, or one that ended a text.

    Log-probabilities are those of the model, before the options of sampling change them.
    """

    prompt: int  # index of the prompt
    sample: int  # index of the text among those of its prompt
    id: int
    logprob: float
    likeliest: tuple[tuple[int, float], ...] = ()  # the likeliest tokens in this place, best first, and theirs


@dataclass(frozen=True)
class WritingOptions:
    """How many tokens are written after each prompt, how each is taken, and which of them end a text."""

    ends: tuple[int, ...]
    max_tokens: int
    samples: int = 1  # texts for each prompt
    likeliest: int = 0  # tokens that are reported for each place
    sampling: SamplingOptions = GREEDY

    def limit(self, config: ModelConfig, prompt: Ids) -> int:
        """Return the largest number of tokens after a prompt: it shares `model.max_length` with them."""
        return min(self.max_tokens, config.max_length - len(prompt))


# It receives each token as soon as it is written, those of one text in order, and returns whether the text ends there.
# Several threads may call it.
OnToken = Callable[[WrittenToken], bool]


def never_cancelled() -> bool:
    """Return False: what is written is needed to its end."""
    return False


class WritingEngine(Protocol):
    """A decoder-only model that is ready to write. Calls may come from several threads at once.

    What is written after a prompt does not depend on the other prompts of a call. A text ends with a token of
    `options.ends`, which is reported like the others, when `on_token` says so, or at its limit.
    """

    config: ModelConfig

    def write(
        self, prompts: Sequence[Ids], options: WritingOptions, on_token: OnToken,
        is_cancelled: Callable[[], bool] = never_cancelled,
    ) -> None:  # fmt: skip
        """Write `options.samples` texts after each prompt; return when all have ended.

        It returns early, some time after `is_cancelled` is true, which is asked even while texts wait for others.
        RequestError is raised, before any work is done, for an empty prompt, an id outside of the vocabulary, or a
        prompt that leaves no room in `model.max_length`.
        """
        ...

    def score(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """Return the log-probability of each token of each target and of the <eos> after it: length + 1 numbers."""
        ...

    def close(self) -> None:
        """Free the memory. The engine may not be used afterwards."""
        ...


def check_prompts(config: ModelConfig, prompts: Sequence[Ids]) -> None:
    """Raise RequestError for a model that does not write, or a prompt that it cannot continue."""
    if config.kind != "decoder":
        raise RequestError(
            f"write: expected a decoder-only model; got model.kind = {config.kind!r}", "name a model that writes texts"
        )
    for prompt in prompts:
        if len(prompt) >= config.max_length:
            raise RequestError(
                f"prompt: expected fewer than {config.max_length} tokens (model.max_length); got {len(prompt)}",
                "shorten the prompt",
            )
    check_sources(config, prompts, "prompt")


def check_draft(file: ModelFile, draft: ModelFile) -> None:
    """Raise RequestError unless a model can guess for another: both write texts with the same tokeniser."""
    if draft.config.model.kind != "decoder":
        raise RequestError(f"draft: expected a decoder-only model; got model.kind = {draft.config.model.kind!r}")
    sizes = (file.config.model.vocab, draft.config.model.vocab)
    tokenizers = [each.tokenizer.to_json() if each.tokenizer is not None else "" for each in (file, draft)]
    if sizes[0] != sizes[1] or tokenizers[0] != tokenizers[1]:
        raise RequestError(
            f"draft: expected a model with the tokeniser of {file.name}; that of {draft.name} is another",
            "take a smaller model of the same family",
        )
