"""Fine-tuning: the recipe of new and old pairs, checks that they fit the model, and the table of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sixfold import modelfile
from sixfold.configfile import require
from sixfold.data.corpus import Corpus, Pair
from sixfold.data.documents import ANSWERS, TextCorpus, has_answers
from sixfold.errors import ConfigError, DataError
from sixfold.modelfile import ModelFile
from sixfold.recipe import CorpusConfig, Recipe
from sixfold.tasks.translation_validation import DevSet, TranslationValidator

SAMPLE_PAIRS = 64  # of each corpus, that show whether its sides are swapped
SWAPPED_LOSS = 1.0  # nats a token by which swapped sides are worse; sides in the right order never are
HOW_TO_STATE = "if their order is right, state it: --set data.source=… --set data.target=…"


def recipe_of(
    model: Path,
    files: Sequence[Path],
    old: Sequence[Path] = (),
    mix: float = 0.5,
    dev: Sequence[Path] = (),
    old_dev: Sequence[Path] = (),
) -> Recipe:
    """Return a recipe of new pairs and of old ones, weighted so that the share of old pairs in an epoch is `mix`."""
    require(0 < mix < 1, "--mix", "a share between 0 and 1", mix)
    if bool(dev) != bool(old_dev) and old:
        raise ConfigError("--dev and --old-dev: expected both or neither; got one", "name the other, or leave both out")
    new = _corpus(files, "new")
    corpora = [new]
    if old:
        earlier = _corpus(old, "old")
        is_decoder = modelfile.load(model, verify=False).config.model.kind == "decoder"
        amounts = [amount_of(each, is_decoder) for each in (new, earlier)]
        weight = mix / (1 - mix) * amounts[0] / max(1, amounts[1])
        corpora.append(replace(earlier, weight=min(max(weight, 1e-6), 1000.0)))
    sets = [_corpus(some, name) for some, name in ((dev, "new"), (old_dev, "old")) if some]
    return Recipe(corpus=tuple(corpora), dev=tuple(sets), start=str(model.absolute()))


def amount_of(config: CorpusConfig, is_decoder: bool) -> int:
    """Return how much there is to learn from: pairs, prompts with answers, or bytes of text."""
    files = tuple(map(Path, config.files))
    if not is_decoder:
        return sum(1 for _ in Corpus.from_config(config, Path(), ("", "")).pairs())
    if has_answers(files):
        return sum(1 for _ in TextCorpus(config.name, files, contents=ANSWERS).records())
    return TextCorpus(config.name, files).size


def _corpus(files: Sequence[Path], name: str) -> CorpusConfig:
    require(1 <= len(files) <= 2, f"{name} pairs", "one file of pairs or two files of lines", len(files))
    return CorpusConfig(tuple(str(file.absolute()) for file in files), name=name)


def refuse_other_direction(start: ModelFile, languages: tuple[str, str]) -> None:
    """Refuse files whose languages are those of the model in the other order."""
    source, target = languages_of(start)
    if source != target and languages == (target, source):
        raise DataError(
            f"files: expected {source} and then {target}, as the model to start from translates; "
            f"got {languages[0]} and then {languages[1]}",
            f"name the files in the other order; {HOW_TO_STATE}",
        )


def refuse_swapped(
    validator: TranslationValidator, corpus: Corpus, pairs: Sequence[Pair], languages: tuple[str, str]
) -> None:
    """Refuse a corpus if the model predicts its sources from its targets far better than its targets from its sources.

    A model has learnt to write one language only, so that the opposite direction costs several nats a token more,
    whatever the text is about. This finds swapped sides also where both languages share a script and the file names
    say nothing.
    """
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    forward = validator.loss(DevSet(corpus.name, sources, targets, languages))
    backward = validator.loss(DevSet(corpus.name, targets, sources, languages))
    if forward > backward + SWAPPED_LOSS:
        raise DataError(
            f"{', '.join(map(str, corpus.files))}: the two sides seem to be swapped: the model to start from "
            f"has a loss of {forward:.1f} nats a token from source to target and of {backward:.1f} back",
            f"name the files in the other order, or of a file of pairs its columns; {HOW_TO_STATE}",
        )


def languages_of(start: ModelFile | None) -> tuple[str, str]:
    """Return the two languages on the card of a model; they are empty where it names none, or several."""
    named = start.card.get("languages") if start else None
    if not isinstance(named, Mapping):
        return "", ""

    def only(language: object) -> str:
        codes = language if isinstance(language, list) else [language]
        return str(codes[0]) if len(codes) == 1 and codes[0] else ""

    return only(named.get("source")), only(named.get("target"))


def score_table(before: dict[str, dict[str, Any]], after: dict[str, dict[str, Any]]) -> list[str]:
    """Return a table of each set's scores before and after."""
    width = max(12, *map(len, after))
    is_text = all("bits_per_byte" in scores for scores in after.values())
    first, second = ("bits_per_byte", "perplexity") if is_text else ("bleu", "chrf")
    heads = "bits per byte, perplexity" if is_text else "BLEU, chrF"
    lines = [f"{'':{width}} {'before':>15} {'after':>15}   ({heads})"]
    for name, scores in after.items():
        old = before[name]
        cells = [f"{each[first]:7.2f} {each[second]:7.2f}" for each in (old, scores)]
        lines.append(f"{name:{width}} {cells[0]} {cells[1]}   {scores[first] - old[first]:+.2f} {heads.split(',')[0]}")
    return lines
