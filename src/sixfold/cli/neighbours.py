"""`sixfold neighbours`: the pieces that a model has learnt to be nearest to a word."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console

from sixfold.cli.embeddings import Model, bar_table, opened
from sixfold.cli.options import Command


def register(app: typer.Typer, name: str) -> None:
    app.command(name, cls=Command)(neighbours)


def neighbours(
    word: Annotated[str, typer.Argument(help="A word, or several characters of one.")],
    count: Annotated[int, typer.Option(help="How many.")] = 10,
    model: Model = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Print what lies nearest to a word among a model's learnt vectors."""
    from sixfold.explorer import embeddings

    found = embeddings.neighbours(opened(model), word, count)
    if as_json:
        print(json.dumps([each._asdict() for each in found], ensure_ascii=False))
    else:
        Console(emoji=False).print(bar_table([(each.text, each.cosine) for each in found]))
