"""The options of a translation, and the search that follows from them."""

from __future__ import annotations

from dataclasses import dataclass

from sixfold.configfile import check_types, require
from sixfold.decoding.options import MAX_BEAM, SearchOptions


@dataclass(frozen=True)
class TranslateOptions:
    """How a text is translated."""

    beam: int = 4  # hypotheses that are followed at once, twice as many for short or doubtful sentences; 1: greedy
    n_best: int = 1
    length_penalty: float = 1.0
    split: bool = True  # a line into its sentences; otherwise it is translated whole
    prefix: str = ""  # what the translation begins with
    guard: bool = True  # what is plainly wrong is asked for once more, and else told

    def __post_init__(self) -> None:
        check_types(self, "options")
        require(1 <= self.beam <= MAX_BEAM // 2, "options.beam", f"1 to {MAX_BEAM // 2}", self.beam)
        self.search(1)

    def search(self, longest: int) -> SearchOptions:
        """No target is more than twice as long as its source, in tokens, and ten more."""
        return SearchOptions(
            max(self.beam, self.n_best), self.n_best, self.length_penalty, max_length=longest, max_ratio=2.0
        )
