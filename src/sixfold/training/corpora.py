"""The corpora of a translation run: their files and languages, and the dev sets that are named or split off."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from sixfold import files
from sixfold.config import Config
from sixfold.configfile import require
from sixfold.data.cleaned import CleanedCorpora, key_of
from sixfold.data.corpus import RECORDS, Corpus, detect_languages, languages_from_names, uncompressed_name
from sixfold.errors import DataError
from sixfold.recipe import CorpusConfig, Recipe, set_name
from sixfold.tasks.translation_validation import DevSet
from sixfold.training.preparation import Preparation


@dataclass(frozen=True)
class Sources:
    """The corpora of a recipe, found on disk, and the languages of their two sides."""

    train: tuple[Corpus, ...]
    dev: tuple[Corpus, ...]
    test: tuple[Corpus, ...]
    languages: tuple[str, str]


def find(recipe: Recipe, folder: Path, start_languages: tuple[str, str] = ("", "")) -> Sources:
    """Open the files that the recipe names; every file must exist before any work starts.

    `start_languages` are those of a model to start from, for files whose names do not say theirs.
    """
    if not recipe.corpus:
        raise DataError("corpus: expected files to learn from; got none", "name two files of lines or one of pairs")
    languages = complete_languages(detect_languages(recipe.config.data, recipe.corpus[0], folder), start_languages)
    for config in () if are_stated(recipe) else (*recipe.corpus, *recipe.dev, *recipe.test):
        refuse_reversed(config, languages)
    train, dev, test = (
        tuple(Corpus.from_config(config, folder, languages) for config in configs)
        for configs in (recipe.corpus, recipe.dev, recipe.test)
    )
    for corpus in chain(train, dev, test):
        corpus.stamp()  # raises if a file is missing
    names = [corpus.name for corpus in chain(dev, test)]
    require(len(set(names)) == len(names), "dev and test", "another name for each set", names)
    return Sources(train, dev, test, languages)


def are_stated(recipe: Recipe) -> bool:
    """Return whether the settings state both languages; they are then taken as stated and not guessed."""
    return bool(recipe.config.data.source and recipe.config.data.target)


def refuse_reversed(config: CorpusConfig, languages: tuple[str, str]) -> None:
    """Refuse files whose names say that their sides are in the opposite order to those of the run."""
    # Columns may be named in any order, and fields of JSON are found by their names.
    by_order = not config.columns and uncompressed_name(Path(config.files[0])).suffix.lower() not in RECORDS
    named = languages_from_names(config)
    if by_order and named == languages[::-1] and named[0] != named[1]:
        raise DataError(
            f"{', '.join(config.files)}: expected {languages[0]} and then {languages[1]}, as in the rest of the run; "
            f"by their names they are {named[0]} and {named[1]}",
            "name the files in the other order; for a file of pairs write in a recipe: columns = [2, 1]",
        )


def complete_languages(languages: tuple[str, str], start_languages: tuple[str, str]) -> tuple[str, str]:
    """Fill in a missing language from those of the model to start from, which are empty where it has several."""
    source, target = languages
    if not source and not target:
        return start_languages
    if source and target:
        return languages
    stated = source or target
    if stated not in start_languages:
        return (source or start_languages[0], target or start_languages[1]) if "" in start_languages else languages
    missing = start_languages[1] if stated == start_languages[0] else start_languages[0]
    return source or missing, target or missing


def read_set(corpus: Corpus, languages: tuple[str, str]) -> DevSet:
    """Read a dev or test set as it is: nothing that a user is measured by is cleaned away."""
    pairs = list(corpus.pairs())
    if not pairs:
        raise DataError(f"{corpus.files[0]}: expected sentences to translate; the file is empty")
    return DevSet(corpus.name, [pair.source for pair in pairs], [pair.target for pair in pairs], languages)


@dataclass(frozen=True)
class DevSplit:
    """Splits dev sets off the corpora where the user names none; each is kept in `folder`."""

    preparation: Preparation
    kept: CleanedCorpora
    config: Config
    languages: tuple[str, str]

    def sets(self, of_each_corpus: bool) -> tuple[DevSet, ...]:
        """Return one set of all corpora, or one of each."""
        kept = self.kept
        parts = [range(begin, end) for begin, end in zip([0, *kept.ends], kept.ends, strict=False)]
        if of_each_corpus:
            return tuple(self._split_off([part], corpus.name) for corpus, part in zip(kept.corpora, parts, strict=True))
        # Machine translations are no references.
        human = [
            part for corpus, part in zip(kept.corpora, parts, strict=True) if corpus.way == "both" and not corpus.tag
        ]
        return (self._split_off(human or parts, "dev"),)

    def _split_off(self, parts: Sequence[range], name: str) -> DevSet:
        pairs = hold_out(self.preparation, self.kept, parts, self.config)
        return DevSet(name, [source for source, _ in pairs], [target for _, target in pairs], self.languages)


def hold_out(
    preparation: Preparation, kept: CleanedCorpora, parts: Sequence[range], config: Config
) -> list[Sequence[str]]:
    """Return the texts of some records of these parts, which are the same at every start."""
    size = sum(map(len, parts))
    count = min(config.data.dev_pairs, size // 20)
    if count == 0:
        raise DataError(
            f"corpus: expected at least 20 {preparation.unit}, to split a dev set off; got {size}",
            "name a dev set with --dev",
        )
    first = next(part.start for part in parts if part)
    path = preparation.folder / f"dev-{key_of(kept.key, first, count, config.training.seed)}.json"
    if not path.exists():
        with preparation.display.reading("splitting a dev set off", preparation.size) as advance:
            records = kept.records_at(kept.smallest_hashes(parts, count), advance)
        with files.atomic_write(path) as file:
            file.write(json.dumps([record[1:] for record in records], ensure_ascii=False).encode())
    texts: list[Sequence[str]] = json.loads(path.read_text(encoding="utf-8"))
    return texts


def expectations(recipe: Recipe, sources: Sources, scores: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Say for each dev and test set whether it reached the score that the recipe expects."""
    source, target = sources.languages
    for expected, corpus in zip((*recipe.dev, *recipe.test), (*sources.dev, *sources.test), strict=True):
        forward, backward = set_name(corpus.name, source, target), set_name(corpus.name, target, source)
        bleu_of = {corpus.name: expected.bleu, forward: expected.bleu, backward: expected.bleu_back}
        for name, bleu in bleu_of.items():
            if bleu and name in scores:
                got = scores[name]["bleu"]
                verdict = "as expected" if got >= bleu - expected.tolerance else "NOT reached"
                yield f"{name}: expected BLEU {bleu:.1f} ± {expected.tolerance:.1f}; got {got:.1f}: {verdict}"
