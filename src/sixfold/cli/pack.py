"""`sixfold pack`: the same model in fewer bytes, with a card that says what people should know of it."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from sixfold import files, modelfile
from sixfold.cli.options import Command
from sixfold.configfile import did_you_mean, merge, read_toml
from sixfold.errors import ConfigError
from sixfold.modelfile import STORAGES, ModelFile, Storage
from sixfold.translation.loading import find_model

ALIGNED_PAIRS = 50  # sentence pairs that the aligning heads are measured on


def register(app: typer.Typer, name: str) -> None:
    app.command(name, cls=Command)(pack)


def pack(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file, or the folder of a run.")],
    out: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")],
    storage: Annotated[str, typer.Option(help="How weights are kept: int8, bfloat16 or float32.")] = "int8",
    card: Annotated[Path | None, typer.Option(help="A TOML file; what it says is added to the card.")] = None,
    align: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            metavar="SOURCE TARGET",
            help="Two files of sentence pairs; measures on the first 50 which attention heads align words.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace MODEL itself, where it is also the file to write.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Sizes as JSON.")] = False,
) -> None:
    """Write a model with int8 weights, a quarter of its size, and more on its card. Tokeniser and shortlist stay."""
    if storage not in STORAGES:
        known = ", ".join(STORAGES)
        raise ConfigError(f"--storage: expected one of {known}; got {storage!r}", did_you_mean(storage, STORAGES))
    model = find_model(model)
    target = files.check_target(out)
    if not force and target.exists() and model.exists() and target.samefile(model):
        raise ConfigError(
            f"--output: {out} is the model itself, whose weights would be replaced by {storage} ones for good",
            "give another name, or --force to replace it",
        )
    file, before = modelfile.load(model), model.stat().st_size
    told = merge(file.card, {} if card is None else read_card(card))
    if file.config.data.both_ways and told.get("languages") != file.card.get("languages"):
        raise ConfigError(f"{card}: languages: expected those of the model, which are its tags", "leave them out")
    if align is not None:
        told |= measured_alignment(file, align)
    kind, others = cast(Storage, storage), file.other_settings
    modelfile.save(out, file.config, file.weights(), file.tokenizer, told, kind, file.shortlist, others)
    sizes = {"before": before, "after": out.stat().st_size}
    if as_json:
        print(json.dumps({"model": str(out), "storage": storage, "bytes": sizes}))
    else:
        print(f"{out}: {storage}, {sizes['after'] / 2**20:.1f} MiB (was {sizes['before'] / 2**20:.1f})")


def measured_alignment(file: ModelFile, files: tuple[Path, Path]) -> dict[str, Any]:
    """The entry of the card that names the heads which align words."""
    from sixfold.data.corpus import Corpus
    from sixfold.explorer.influence import measure_aligning_heads

    pairs = islice(Corpus("align", files).pairs(), ALIGNED_PAIRS)
    return measure_aligning_heads(file, ((pair.source, pair.target) for pair in pairs)).to_card()


def read_card(path: Path) -> dict[str, Any]:
    card = read_toml(path)
    try:
        json.dumps(card)
    except TypeError as error:
        raise ConfigError(f"{path}: expected text, numbers, lists and tables; {error}", "put dates in quotes") from None
    return card
