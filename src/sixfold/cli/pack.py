"""`sixfold pack`: writes a model in fewer bytes, with a card that says what users should know about it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from sixfold import files, modelfile
from sixfold.cli.options import Command
from sixfold.configfile import did_you_mean, merge, read_toml
from sixfold.errors import ConfigError, DataError
from sixfold.modelfile import STORAGES, ModelFile, Storage
from sixfold.text.language_codes import matching_codes, normalise_code
from sixfold.text.language_profiles import MIN_LETTERS, LanguageProfile, ProfileLearner
from sixfold.text.languages import language_of
from sixfold.translation.loading import find_model

ALIGNMENT_PAIRS = 50  # sentence pairs on which the aligning heads are measured


def register(app: typer.Typer, name: str) -> None:
    app.command(name, cls=Command)(pack)


def pack(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file or run folder.")],
    out: Annotated[Path, typer.Option("--output", "-o", help="Write this model file.")],
    storage: Annotated[str, typer.Option(help="Store the weights as int8, bfloat16 or float32.")] = "int8",
    card: Annotated[
        Path | None, typer.Option(help="Add the entries of this TOML file to the card of the model.")
    ] = None,
    align: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            metavar="SOURCE TARGET",
            help="Measure which attention heads align words, on the first 50 sentence pairs of these files.",
        ),
    ] = None,
    profile: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LANGUAGE=FILE",
            help="Learn from the lines of this file how to detect a language of the model, as in zh=news.txt. "
            "LANGUAGE= may be left out of a name such as news.zh. Repeat the option for each language.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace MODEL itself, if it is also the file to write.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the sizes as JSON.")] = False,
) -> None:
    """Write a smaller copy of a model, with int8 weights, and add to its card.

    With int8 a file has about a quarter of its size. Tokeniser, shortlist and profiles stay the same.
    """
    if storage not in STORAGES:
        names = ", ".join(STORAGES)
        raise ConfigError(f"--storage: expected one of {names}; got {storage!r}", did_you_mean(storage, STORAGES))
    model = find_model(model)
    target = files.check_output_path(out)
    if not force and target.exists() and model.exists() and target.samefile(model):
        raise ConfigError(
            f"--output: {out} is the model itself; its weights would be replaced by {storage} weights",
            "give another name, or --force to replace it",
        )
    file, before = modelfile.load(model), model.stat().st_size
    new_card = merge(file.card, {} if card is None else read_card(card))
    if file.config.data.both_ways and new_card.get("languages") != file.card.get("languages"):
        raise ConfigError(
            f"{card}: languages: expected those of the model, because they are its tags", "leave them out"
        )
    if align is not None:
        new_card |= measure_alignment(file, align)
    profiles = {**file.profiles, **learn_profiles(profile or (), languages_on(new_card))}
    modelfile.save(
        out, file.config, file.weights(), file.tokenizer, new_card, cast(Storage, storage), file.shortlist,
        file.other_settings, profiles, file.target_tokenizer, file.sequence_format,
        file.prompt_format,
    )  # fmt: skip
    sizes = {"before": before, "after": out.stat().st_size}
    if as_json:
        print(json.dumps({"model": str(out), "storage": storage, "bytes": sizes}))
    else:
        print(f"{out}: {storage}, {sizes['after'] / 2**20:.1f} MiB (was {sizes['before'] / 2**20:.1f})")


def measure_alignment(file: ModelFile, files: tuple[Path, Path]) -> dict[str, Any]:
    """Return the entry of the card that names the attention heads which align words."""
    from sixfold.data.corpus import Corpus
    from sixfold.explorer.influence import measure_aligning_heads

    pairs = islice(Corpus("align", files).pairs(), ALIGNMENT_PAIRS)
    return measure_aligning_heads(file, ((pair.source, pair.target) for pair in pairs)).to_card()


def languages_on(card: Mapping[str, Any]) -> list[str]:
    """Return the codes of the languages that a card names."""
    languages = card.get("languages")
    sides = list(languages.values()) if isinstance(languages, Mapping) else []
    return [str(code) for side in sides for code in (side if isinstance(side, list) else [side]) if code]


def learn_profiles(options: Sequence[str], languages: Sequence[str]) -> dict[str, LanguageProfile]:
    """Learn the profile of each language that an option LANGUAGE=FILE names, and that the model has."""
    from sixfold.data.corpus import read_corpus_lines

    files: dict[str, list[Path]] = {}
    for option in options:
        code, path = _language_and_file(option)
        matching = matching_codes(code, languages) if languages else [code]
        if not matching:
            raise ConfigError(
                f"--profile: expected a language of the model ({', '.join(languages)}); got {code!r} for {path}"
            )
        files.setdefault(matching[0], []).append(path)
    profiles: dict[str, LanguageProfile] = {}
    for language, paths in files.items():
        learner = ProfileLearner([language])
        for path in paths:
            for line in read_corpus_lines(path):
                learner.add([line])
        profiles |= learner.profiles()
        if language not in profiles:
            raise DataError(
                f"{', '.join(map(str, paths))}: expected at least {MIN_LETTERS:,} letters in {language} to learn from"
            )
    return profiles


def _language_and_file(option: str) -> tuple[str, Path]:
    """Return the language and the file of LANGUAGE=FILE, or of a file whose name ends in a language."""
    code, separator, name = option.partition("=")
    path = Path(name if separator else option)
    language = normalise_code(code) if separator else language_of(path)
    if not language or (not name and separator):
        raise ConfigError(
            f"--profile: expected LANGUAGE=FILE; got {option!r}", "for example --profile zh=news.txt --profile en=b.txt"
        )
    return language, path


def read_card(path: Path) -> dict[str, Any]:
    card = read_toml(path)
    try:
        json.dumps(card)
    except TypeError as error:
        raise ConfigError(f"{path}: expected text, numbers, lists and tables; {error}", "put dates in quotes") from None
    return card
