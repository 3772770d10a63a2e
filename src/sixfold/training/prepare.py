"""From raw corpora to all that training reads: cleaned, a dev set split off, a tokeniser learned, tokens stored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from sixfold import tensorfile
from sixfold.config import Config, DataConfig, TokenizerConfig
from sixfold.data import store
from sixfold.data.corpus import Corpus, languages_in
from sixfold.data.store import Kept, Store, key_of
from sixfold.errors import DataError
from sixfold.recipe import Recipe
from sixfold.settings import require
from sixfold.text.learn import train_tokenizer
from sixfold.text.tokenizer import Tokenizer
from sixfold.training.display import Display
from sixfold.training.evaluate import TextSet


@dataclass(frozen=True)
class Sources:
    """The corpora of a recipe, found on disk, and the languages of their two sides."""

    train: tuple[Corpus, ...]
    dev: tuple[Corpus, ...]
    test: tuple[Corpus, ...]
    languages: tuple[str, str]

    @property
    def size(self) -> int:
        return sum(corpus.size for corpus in self.train)


def find(recipe: Recipe, folder: Path) -> Sources:
    """Open what the recipe names; every file must be there before anything is begun."""
    if not recipe.corpus:
        raise DataError("corpus: expected files to learn from; got none", "name two files of lines or one of pairs")
    languages = languages_in(recipe.config.data, recipe.corpus[0], folder)
    sides = [
        tuple(Corpus.from_config(config, folder, languages) for config in configs)
        for configs in (recipe.corpus, recipe.dev, recipe.test)
    ]
    for corpus in chain(*sides):
        corpus.stamp()
    names = [corpus.name for corpus in chain(*sides[1:])]
    require(len(set(names)) == len(names), "dev and test", "another name for each set", names)
    return Sources(sides[0], sides[1], sides[2], languages)


def read_set(corpus: Corpus) -> TextSet:
    """A dev or test set as it is: nothing is cleaned away that a user would be measured by."""
    pairs = list(corpus.pairs())
    if not pairs:
        raise DataError(f"{corpus.files[0]}: expected sentences to translate; the file is empty")
    return TextSet(corpus.name, [pair.source for pair in pairs], [pair.target for pair in pairs])


@dataclass(frozen=True)
class Preparation:
    """The stages on the way to a token store; each is kept in `folder` and not made again."""

    sources: Sources
    folder: Path
    display: Display

    def clean(self, config: DataConfig) -> Kept:
        """Which pairs to learn from, with a report on the rest."""
        with self.display.reading("cleaning", self.sources.size) as advance:
            kept = store.clean(self.sources.train, self.sources.languages, config, self.folder, advance)
        for line in kept.report.lines():
            self.display.say(line)
        if len(kept) == 0:
            raise kept.report.nothing_left()
        return kept

    def dev_sets(self, kept: Kept, config: Config, of_each: bool = False) -> tuple[TextSet, ...]:
        """The sets that the user named, or one split off all corpora, or one off each."""
        if self.sources.dev:
            return tuple(map(read_set, self.sources.dev))
        if not of_each:
            return (self._split_off(kept, range(len(kept)), "dev", config),)
        bounds = [0, *kept.ends]
        return tuple(
            self._split_off(kept, range(begin, end), corpus.name, config)
            for begin, end, corpus in zip(bounds[:-1], bounds[1:], kept.corpora, strict=True)
        )

    def _split_off(self, kept: Kept, pairs_of: range, name: str, config: Config) -> TextSet:
        count = min(config.data.dev_pairs, len(pairs_of) // 20)
        if count == 0:
            raise DataError(
                f"corpus: expected at least 20 pairs, to split a dev set off; got {len(pairs_of)}",
                "name a dev set with --dev",
            )
        path = self.folder / f"dev-{key_of(kept.key, pairs_of.start, count, config.training.seed)}.json"
        if not path.exists():
            random = np.random.default_rng(config.training.seed)
            wanted = {pairs_of[place] for place in random.choice(len(pairs_of), count, replace=False).tolist()}
            with self.display.reading("splitting a dev set off", self.sources.size) as advance:
                pairs = [pair[1:] for number, pair in enumerate(kept.pairs(advance)) if number in wanted]
            with tensorfile.atomic(path) as file:
                file.write(json.dumps(pairs, ensure_ascii=False).encode())
        pairs = json.loads(path.read_text(encoding="utf-8"))
        return TextSet(name, [source for source, _ in pairs], [target for _, target in pairs])

    def learn_tokenizer(self, kept: Kept, left_out: set[str], config: TokenizerConfig) -> Tokenizer:
        """From both sides of what was kept."""
        path = self.folder / f"tokenizer-{key_of(kept.key, repr(config), sorted(left_out))}.json"
        if not path.exists():
            with self.display.reading("learning a tokeniser", self.sources.size) as advance:
                pairs = (pair for pair in kept.pairs(advance) if pair.source not in left_out)
                texts: Iterator[str] = (text for pair in pairs for text in pair[1:])
                first = next(texts, None)
                if first is None:
                    raise DataError("corpus: every pair is in the dev or test sets", "name other sets with --dev")
                learned = train_tokenizer(chain([first], texts), config)
            with tensorfile.atomic(path) as file:
                file.write(learned.to_json().encode())
        return Tokenizer.load(path)

    def tokenize(self, kept: Kept, tokenizer: Tokenizer, left_out: set[str], config: DataConfig) -> Store:
        """The tokens of all that was kept, but for sources of the dev and test sets."""
        with self.display.reading("tokenising", self.sources.size) as advance:
            tokens = store.tokenize(kept, tokenizer, left_out, config, self.folder, advance)
        if tokens.too_long:
            self.display.say(
                f"{tokens.too_long:,} pairs are longer than data.max_tokens = {config.max_tokens}: left out"
            )
        measured = len(kept) - len(tokens) - tokens.too_long
        if measured:
            why = "their source is in the dev or test sets" if self.sources.dev else "split off as the dev set"
            self.display.say(f"{measured:,} pairs left out: {why}")
        if len(tokens) == 0:
            raise DataError(
                f"corpus: none of {len(kept):,} pairs is left to learn from",
                "raise data.max_tokens, or name other sets",
            )
        return tokens
