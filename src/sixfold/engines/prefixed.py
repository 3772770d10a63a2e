"""An engine whose targets all begin with the same tokens, such as the target language of M2M100."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sixfold.decoding.options import Hypothesis, SearchOptions
from sixfold.engines.engine import Engine, Ids


class PrefixedEngine:
    """An engine that puts a prefix before every target, and returns targets without it.

    The tokens of the prefix count towards the length that a search divides by, as in transformers and CTranslate2; the
    scores that are returned are those of the targets without it.
    """

    def __init__(self, engine: Engine, prefix: Ids) -> None:
        self.engine, self.prefix, self.config = engine, list(prefix), engine.config

    def decode(
        self, sources: Sequence[Ids], options: SearchOptions | None = None, prefixes: Sequence[Ids] | None = None
    ) -> list[list[Hypothesis]]:
        """Return the `n_best` best targets of each source, as `Engine.decode` describes."""
        options = self._longer(options or SearchOptions())
        all_prefixes = [[*self.prefix, *prefix] for prefix in prefixes or [()] * len(sources)]
        results = self.engine.decode(sources, options, all_prefixes)
        return [[self._without_prefix(each, options) for each in hypotheses] for hypotheses in results]

    def alternatives(self, source: Ids, prefix: Ids, options: SearchOptions) -> list[Hypothesis]:
        """Return a target for each of the likeliest next tokens, as `Engine.alternatives` describes."""
        options = self._longer(options)
        hypotheses = self.engine.alternatives(source, [*self.prefix, *prefix], options)
        return [self._without_prefix(each, options) for each in hypotheses]

    def score(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """Return the log-probabilities of the tokens of each target, as `Engine.score` describes."""
        logprobs = self.engine.score(sources, [[*self.prefix, *target] for target in targets])
        return [each[len(self.prefix) :] for each in logprobs]

    def align(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[np.ndarray]:
        """Return the weights of target tokens on source tokens, as `Engine.align` describes."""
        weights = self.engine.align(sources, [[*self.prefix, *target] for target in targets])
        return [each[len(self.prefix) :] for each in weights]

    def close(self) -> None:
        """Free the memory of the engine, which other directions may share."""
        self.engine.close()

    def _longer(self, options: SearchOptions) -> SearchOptions:
        """Return options that leave the same room for what follows the prefix."""
        count = len(self.prefix)
        return replace(options, max_length=options.max_length + count, min_length=options.min_length + count)

    def _without_prefix(self, hypothesis: Hypothesis, options: SearchOptions) -> Hypothesis:
        count = len(self.prefix)
        length = len(hypothesis.tokens) + 1
        factor = (length / max(1, length - count)) ** options.length_penalty
        return Hypothesis(hypothesis.tokens[count:], hypothesis.score * factor, hypothesis.logprobs[count:])
