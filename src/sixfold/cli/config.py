"""`sixfold config`: prints a preset or a recipe with every setting."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from sixfold import config as settings
from sixfold import presets, recipe
from sixfold.cli.options import Command, SetOption
from sixfold.config import Config


def register(app: typer.Typer, name: str) -> None:
    app.command(name, cls=Command)(show)


def show(
    name: Annotated[str, typer.Argument(metavar="PRESET|FILE.toml", help="Print this preset or recipe.")] = "base",
    changes: SetOption = [],  # noqa: B006 -- typer reads the default and never changes it
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of TOML.")] = False,
) -> None:
    """Print all settings of a preset or a recipe."""
    config = settings.override(load_config(name), changes)
    print(json.dumps(settings.to_dict(config), indent=2) if as_json else settings.to_toml(config).rstrip())


def load_config(name: str) -> Config:
    """Return the settings of a recipe if the name ends in .toml, otherwise those of a preset."""
    return recipe.load(Path(name)).config if name.endswith(".toml") else presets.preset(name)
