"""From raw corpora to a token store: cleaned, a tokeniser learnt, tokens stored; each stage is kept and resumed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from sixfold import files
from sixfold.config import TokenizerConfig
from sixfold.data import cleaned, store
from sixfold.data.cleaned import CleanedCorpora, Record, RecordReader, key_of
from sixfold.data.cleaning import how_to_disable
from sixfold.data.corpus import Corpus
from sixfold.data.store import Tokenizers, TokenStore
from sixfold.errors import DataError
from sixfold.text.language_profiles import LanguageProfile, ProfileLearner, profiles_from_json, profiles_to_json
from sixfold.text.learn import train_tokenizer
from sixfold.text.tokenizer import Tokenizer
from sixfold.training.display import Display

Profiles = Mapping[str, LanguageProfile]


@dataclass(frozen=True)
class Preparation:
    """The stages on the way to a token store; the result of each lies in `folder` and is not made again."""

    corpora: Sequence[Corpus]
    task: RecordReader
    folder: Path
    display: Display
    unit: str = "pairs"  # what the records are called

    @property
    def size(self) -> int:
        """Return the bytes of all corpora."""
        return sum(corpus.size for corpus in self.corpora)

    def clean(self, sample_size: int) -> CleanedCorpora:
        """Decide which records to learn from, and report on the others."""
        with self.display.reading("cleaning", self.size) as advance:
            kept = cleaned.clean(self.corpora, self.task, sample_size, self.folder, advance)
        for line in kept.report.lines(self.unit):
            self.display.say(line)
        if len(kept) == 0:
            raise kept.report.nothing_left(self.unit)
        if kept.report.is_a_copy:
            raise DataError(
                f"corpus: expected translations; most of {kept.report.read:,} pairs have the same text on both sides",
                f"name the file of the other language second; if the text is right, {how_to_disable('copied')}",
            )
        return kept

    def learn_tokenizer(
        self, kept: CleanedCorpora, excluded: set[str], config: TokenizerConfig, languages: Sequence[str]
    ) -> tuple[Tokenizer, Profiles]:
        """Learn a tokeniser and the profiles of the languages from all columns of the records, in one pass.

        Records with a text of a dev or test set are left out. `languages` are those of the columns.
        """
        key = key_of(kept.key, repr(config), sorted(excluded))
        path, profiles_path = self.folder / f"tokenizer-{key}.json", self.folder / f"profiles-{key}.json"
        if not path.exists() or not profiles_path.exists():
            learner = ProfileLearner(languages)
            with self.display.reading("learning a tokeniser", self.size) as advance:
                unseen = (record for record in kept.records(advance) if excluded.isdisjoint(record[1:]))
                records = learner.watch(unseen)
                if path.exists():  # a run that an older version began has no profiles
                    deque(records, maxlen=0)
                else:
                    self._write_tokenizer(path, records, config)
                profiles = learner.profiles()
            with files.atomic_write(profiles_path) as file:
                file.write(profiles_to_json(profiles).encode())
        return Tokenizer.load(path), profiles_from_json(profiles_path.read_text(encoding="utf-8"))

    def _write_tokenizer(self, path: Path, records: Iterator[Record], config: TokenizerConfig) -> None:
        """Learn a tokeniser from all columns of records, and write it to a file."""
        # Line by line, so that a sample of lines bounds the memory also where a record is a long document.
        texts = (line for record in records for text in record[1:] for line in text.split("\n"))
        first = next(texts, None)
        if first is None:
            raise DataError(f"corpus: all {self.unit} are in the dev or test sets", "name other sets with --dev")
        learned = train_tokenizer(chain([first], texts), config)
        if learned.character_map:
            self.display.say(f"{len(learned.character_map):,} characters are read as their simplified or plain forms")
        with files.atomic_write(path) as file:
            file.write(learned.to_json().encode())

    def tokenize(
        self,
        kept: CleanedCorpora,
        tokenizers: Tokenizers,
        excluded: set[str],
        excluded_columns: Sequence[str],
        max_tokens: int,
        has_dev_files: bool,
    ) -> TokenStore:
        """Tokenise the records, except those with a text of a dev or test set and those that are too long."""
        with self.display.reading("tokenising", self.size) as advance:
            tokens = store.tokenize(kept, tokenizers, excluded, excluded_columns, max_tokens, self.folder, advance)
        if tokens.too_long:
            self.display.say(
                f"{tokens.too_long:,} {self.unit} are longer than data.max_tokens = {max_tokens}: left out"
            )
        in_sets = len(kept) - len(tokens) - tokens.too_long
        if in_sets:
            why = "their text is in the dev or test sets" if has_dev_files else "split off as the dev set"
            self.display.say(f"{in_sets:,} {self.unit} left out: {why}")
        if len(tokens) == 0:
            raise DataError(
                f"corpus: none of {len(kept):,} {self.unit} is left to learn from",
                "raise data.max_tokens, or name other sets",
            )
        return tokens
