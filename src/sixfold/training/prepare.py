"""From raw corpora to all that training reads: cleaned, a dev set split off, a tokeniser learned, tokens stored."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from sixfold import files
from sixfold.config import Config, DataConfig, TokenizerConfig
from sixfold.configfile import require
from sixfold.data import store
from sixfold.data.cleaning import how_to_leave_off
from sixfold.data.corpus import RECORDS, Corpus, languages_in, languages_named, uncompressed
from sixfold.data.store import Kept, key_of
from sixfold.data.tokens import Store, both_ways, one_way
from sixfold.errors import ConfigError, DataError
from sixfold.recipe import CorpusConfig, Recipe
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


def find(recipe: Recipe, folder: Path, known: tuple[str, str] = ("", "")) -> Sources:
    """Open what the recipe names; every file must be there before anything is begun.

    `known` are the languages of a model to start from, for files that do not say theirs.
    """
    if not recipe.corpus:
        raise DataError("corpus: expected files to learn from; got none", "name two files of lines or one of pairs")
    languages = completed(languages_in(recipe.config.data, recipe.corpus[0], folder), known)
    for config in () if are_stated(recipe) else (*recipe.corpus, *recipe.dev, *recipe.test):
        refuse_reversed(config, languages)
    sides = [
        tuple(Corpus.from_config(config, folder, languages) for config in configs)
        for configs in (recipe.corpus, recipe.dev, recipe.test)
    ]
    for corpus in chain(*sides):
        corpus.stamp()
    names = [corpus.name for corpus in chain(*sides[1:])]
    require(len(set(names)) == len(names), "dev and test", "another name for each set", names)
    return Sources(sides[0], sides[1], sides[2], languages)


def are_stated(recipe: Recipe) -> bool:
    """Whether the user says in the settings which two languages the sides are in: then that holds, not a guess."""
    return bool(recipe.config.data.source and recipe.config.data.target)


def refuse_reversed(config: CorpusConfig, languages: tuple[str, str]) -> None:
    """Refuse files whose names say that their sides are in the other order than those of the run."""
    # Columns may be named in any order, and fields of JSON are found by their names.
    by_order = not config.columns and uncompressed(Path(config.files[0])).suffix.lower() not in RECORDS
    named = languages_named(config)
    if by_order and named == languages[::-1] and named[0] != named[1]:
        raise DataError(
            f"{', '.join(config.files)}: expected {languages[0]} and then {languages[1]}, as in the rest of the run; "
            f"by their names they are {named[0]} and {named[1]}",
            "name the files in the other order; of a file of pairs say in a recipe: columns = [2, 1]",
        )


def completed(languages: tuple[str, str], known: tuple[str, str]) -> tuple[str, str]:
    """With what is not said taken from two languages that are known."""
    one, other = languages
    if not one and not other:
        return known
    if one and other:
        return languages
    missing = known[1] if (one or other) == known[0] else known[0]
    return (one or missing, other or missing) if (one or other) in known else languages


def read_set(corpus: Corpus, languages: tuple[str, str]) -> TextSet:
    """A dev or test set as it is: nothing is cleaned away that a user would be measured by."""
    pairs = list(corpus.pairs())
    if not pairs:
        raise DataError(f"{corpus.files[0]}: expected sentences to translate; the file is empty")
    return TextSet(corpus.name, [pair.source for pair in pairs], [pair.target for pair in pairs], languages)


def with_tags(config: TokenizerConfig, sources: Sources, both: bool) -> TokenizerConfig:
    """Those that the user wants, and those that the corpora need: languages where a model learns both ways, origins."""
    if both and len(set(filter(None, sources.languages))) < 2:
        raise ConfigError(
            f"data.both_ways: expected two languages; got {' and '.join(map(repr, sources.languages))}",
            "--set data.source=zh --set data.target=en",
        )
    needed = (*(sources.languages if both else ()), *(corpus.tag for corpus in sources.train if corpus.tag))
    return replace(config, tags=tuple(dict.fromkeys((*config.tags, *needed))))


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
        if kept.report.is_a_copy:
            raise DataError(
                f"corpus: expected translations; most of {kept.report.read:,} pairs have the same text on both sides",
                f"name the file of the other language second; if the text is right, {how_to_leave_off('copied')}",
            )
        return kept

    def dev_sets(self, kept: Kept, config: Config, of_each: bool = False) -> tuple[TextSet, ...]:
        """The sets that the user named, or one split off all corpora, or one off each."""
        if self.sources.dev:
            return tuple(read_set(corpus, self.sources.languages) for corpus in self.sources.dev)
        parts = [range(begin, end) for begin, end in zip([0, *kept.ends], kept.ends, strict=False)]
        if of_each:
            named = zip(kept.corpora, parts, strict=True)
            return tuple(self._split_off(kept, [part], corpus.name, config) for corpus, part in named)
        # What a machine has translated is nothing to be measured by.
        real = [
            part for corpus, part in zip(kept.corpora, parts, strict=True) if corpus.way == "both" and not corpus.tag
        ]
        return (self._split_off(kept, real or parts, "dev", config),)

    def _split_off(self, kept: Kept, parts: Sequence[range], name: str, config: Config) -> TextSet:
        size = sum(map(len, parts))
        count = min(config.data.dev_pairs, size // 20)
        if count == 0:
            raise DataError(
                f"corpus: expected at least 20 pairs, to split a dev set off; got {size}",
                "name a dev set with --dev",
            )
        key = key_of(kept.key, next(part.start for part in parts if part), count, config.training.seed)
        path = self.folder / f"dev-{key}.json"
        if not path.exists():
            with self.display.reading("splitting a dev set off", self.sources.size) as advance:
                pairs = [pair[1:] for pair in kept.some(kept.smallest(parts, count), advance)]
            with files.atomic(path) as file:
                file.write(json.dumps(pairs, ensure_ascii=False).encode())
        pairs = json.loads(path.read_text(encoding="utf-8"))
        sides = [source for source, _ in pairs], [target for _, target in pairs]
        return TextSet(name, *sides, self.sources.languages)

    def learn_tokenizer(self, kept: Kept, left_out: set[str], config: TokenizerConfig) -> Tokenizer:
        """From both sides of what was kept."""
        path = self.folder / f"tokenizer-{key_of(kept.key, repr(config), sorted(left_out))}.json"
        if not path.exists():
            with self.display.reading("learning a tokeniser", self.sources.size) as advance:
                pairs = (pair for pair in kept.pairs(advance) if left_out.isdisjoint(pair[1:]))
                texts: Iterator[str] = (text for pair in pairs for text in pair[1:])
                first = next(texts, None)
                if first is None:
                    raise DataError("corpus: every pair is in the dev or test sets", "name other sets with --dev")
                learned = train_tokenizer(chain([first], texts), config)
            if learned.fold:
                self.display.say(f"{len(learned.fold):,} characters are read as their simplified or plain forms")
            with files.atomic(path) as file:
                file.write(learned.to_json().encode())
        return Tokenizer.load(path)

    def tokenize(self, kept: Kept, tokenizer: Tokenizer, left_out: set[str], config: DataConfig) -> Store:
        """All that was kept, but for sources of the dev and test sets, to be read the ways that are asked for."""
        with self.display.reading("tokenising", self.sources.size) as advance:
            tokens = store.tokenize(kept, tokenizer, left_out, config, self.folder, advance)
        if tokens.too_long:
            self.display.say(
                f"{tokens.too_long:,} pairs are longer than data.max_tokens = {config.max_tokens}: left out"
            )
        measured = len(kept) - len(tokens) - tokens.too_long
        if measured:
            why = "what they say is in the dev or test sets" if self.sources.dev else "split off as the dev set"
            self.display.say(f"{measured:,} pairs left out: {why}")
        if len(tokens) == 0:
            raise DataError(
                f"corpus: none of {len(kept):,} pairs is left to learn from",
                "raise data.max_tokens, or name other sets",
            )
        return (both_ways if config.both_ways else one_way)(tokens, tokenizer, self.sources.languages)
