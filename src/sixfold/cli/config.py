"""`sixfold config`: print a preset or a recipe with every value written out, after any changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from sixfold import config as settings
from sixfold import presets, recipe
from sixfold.cli.options import Command
from sixfold.config import Config

Set = Annotated[list[str], typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Change a setting; repeatable.")]


def register(app: typer.Typer, name: str) -> None:
    app.command(name, cls=Command)(show)


def show(
    start: Annotated[str, typer.Argument(metavar="PRESET|FILE.toml")] = "base",
    changes: Set = [],  # noqa: B006 -- typer reads the default and never changes it
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of TOML.")] = False,
) -> None:
    """Print the full configuration that a preset or a recipe stands for."""
    config = settings.override(resolve(start), changes)
    print(json.dumps(settings.to_dict(config), indent=2) if as_json else settings.to_toml(config).rstrip())


def resolve(start: str) -> Config:
    """A TOML file where the name ends in .toml, a preset otherwise."""
    return recipe.load(Path(start)).config if start.endswith(".toml") else presets.preset(start)
