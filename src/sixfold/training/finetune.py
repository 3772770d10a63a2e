"""Fine-tuning: a model that can translate learns another kind of text, and forgets as little as it is asked to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sixfold.data.corpus import Corpus
from sixfold.errors import ConfigError
from sixfold.recipe import CorpusConfig, Recipe
from sixfold.settings import require


def recipe_of(
    model: Path,
    files: Sequence[Path],
    old: Sequence[Path] = (),
    mix: float = 0.5,
    dev: Sequence[Path] = (),
    old_dev: Sequence[Path] = (),
) -> Recipe:
    """New pairs, and where old ones are given, so many of them that their share of what is learnt from is `mix`."""
    require(0 < mix < 1, "--mix", "a share between 0 and 1", mix)
    if bool(dev) != bool(old_dev) and old:
        raise ConfigError("--dev and --old-dev: expected both or neither; got one", "name the other, or leave both out")
    new = _corpus(files, "new")
    corpora = [new]
    if old:
        kept = _corpus(old, "old")
        counts = [sum(1 for _ in Corpus.from_config(each, Path(), ("", "")).pairs()) for each in (new, kept)]
        weight = mix / (1 - mix) * counts[0] / max(1, counts[1])
        corpora.append(replace(kept, weight=min(max(weight, 1e-6), 1000.0)))
    sets = [_corpus(some, name) for some, name in ((dev, "new"), (old_dev, "old")) if some]
    return Recipe(corpus=tuple(corpora), dev=tuple(sets), start=str(model.absolute()))


def _corpus(files: Sequence[Path], name: str) -> CorpusConfig:
    require(1 <= len(files) <= 2, f"{name} pairs", "one file of pairs or two files of lines", len(files))
    return CorpusConfig(tuple(str(file.absolute()) for file in files), name=name)


def table(before: dict[str, dict[str, Any]], after: dict[str, dict[str, Any]]) -> list[str]:
    """What became of each set."""
    width = max(12, *map(len, after))
    lines = [f"{'':{width}} {'before':>15} {'after':>15}   (BLEU, chrF)"]
    for name, scores in after.items():
        was = before[name]
        cells = [f"{each['bleu']:7.2f} {each['chrf']:7.2f}" for each in (was, scores)]
        lines.append(f"{name:{width}} {cells[0]} {cells[1]}   {scores['bleu'] - was['bleu']:+.2f} BLEU")
    return lines
