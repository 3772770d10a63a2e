"""The options of a translation, and the search options that follow from them."""

from __future__ import annotations

from dataclasses import dataclass

from sixfold.configfile import check_types, require
from sixfold.decoding.options import MAX_BEAM, SearchOptions


@dataclass(frozen=True)
class TranslateOptions:
    """How a text is translated."""

    beam: int = 4  # hypotheses in a beam, twice as many for short or doubtful sentences; 1: greedy search
    n_best: int = 1  # translations of each text
    length_penalty: float = 1.0
    split: bool = True  # split lines into sentences; otherwise each line is translated as one sentence
    prefix: str = ""  # the beginning of the translation
    guard: bool = True  # search again for translations with evident faults, and warn of the faults that remain

    def __post_init__(self) -> None:
        check_types(self, "options")
        require(1 <= self.beam <= MAX_BEAM // 2, "options.beam", f"1 to {MAX_BEAM // 2}", self.beam)
        self.search(1)

    def search(self, max_length: int) -> SearchOptions:
        """Return the search options for targets of at most `max_length` tokens.

        A target has at most twice as many tokens as its source, and ten more.
        """
        return SearchOptions(
            max(self.beam, self.n_best), self.n_best, self.length_penalty, max_length=max_length, max_ratio=2.0
        )
