"""`sixfold train`: raw pairs in, one model file out; the same command again goes on where it was stopped."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sixfold.cli.config import Set
from sixfold.cli.options import Command

if TYPE_CHECKING:
    from sixfold.training.run import Outcome


def register(app: typer.Typer, name: str) -> None:
    app.command(name, cls=Command)(train)


def train(
    files: Annotated[
        list[Path], typer.Argument(metavar="SOURCE TARGET | PAIRS | RECIPE.toml", help="Raw text, or a recipe.")
    ],
    out: Annotated[Path, typer.Option("--output", "-o", help="The folder of the run.")] = Path("run"),
    preset: Annotated[str, typer.Option(help="Size of the model; left out: chosen for corpus and device.")] = "",
    changes: Set = [],  # noqa: B006 -- typer reads the default and never changes it
    dev: Annotated[
        list[Path], typer.Option("--dev", help="A dev set: one file of pairs, or given twice, source and target.")
    ] = [],  # noqa: B006
    both_ways: Annotated[
        bool, typer.Option("--both-ways", help="One model that translates in both directions.")
    ] = False,
    data: Annotated[Path | None, typer.Option(help="Where a recipe's corpora are; left out: beside it.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
) -> None:
    """Train a translator from raw parallel text. Stop it at any moment; the same command goes on."""
    from sixfold.training.run import train as begin

    changes = [*(["data.both_ways=true"] if both_ways else []), *changes]
    outcome = begin(files, out, preset, changes, dev, data, device)
    tell(outcome, {} if as_json else None)


def tell(outcome: Outcome, more: dict[str, Any] | None) -> None:
    """The last line, and where `more` is not None, the facts as JSON with those added. One process speaks for all."""
    if not outcome.is_leader:
        return
    if more is not None:
        model = None if outcome.model is None else str(outcome.model)
        facts = {"finished": model is not None, "model": model, "step": outcome.step, "scores": outcome.scores}
        print(json.dumps(facts | more))
    if outcome.model is not None:
        print(f"{outcome.model}: done; look at it with: sixfold summary {quote(str(outcome.model))}", file=sys.stderr)
