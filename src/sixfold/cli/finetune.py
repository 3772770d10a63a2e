"""`sixfold finetune`: teach a model that can translate another kind of text, and see what it gains and forgets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sixfold.cli.config import Set
from sixfold.cli.options import Command
from sixfold.cli.train import tell


def register(app: typer.Typer, name: str) -> None:
    app.command(name, cls=Command)(finetune)


def finetune(
    model: Annotated[
        Path, typer.Argument(help="The model file, or the folder of a run, to start from; it stays as it is.")
    ],
    files: Annotated[list[Path], typer.Argument(metavar="SOURCE TARGET | PAIRS", help="The new text.")],
    out: Annotated[Path, typer.Option("--output", "-o", help="The folder of the run.")] = Path("finetuned"),
    old: Annotated[
        list[Path], typer.Option("--old", help="Old pairs to mix in, against forgetting: one file, or given twice.")
    ] = [],  # noqa: B006 -- typer reads the default and never changes it
    mix: Annotated[float, typer.Option(help="The share of the old in what it learns from.")] = 0.5,
    dev: Annotated[list[Path], typer.Option("--dev", help="A dev set of the new text; left out: split off.")] = [],  # noqa: B006
    old_dev: Annotated[list[Path], typer.Option("--old-dev", help="A dev set of the old text; likewise.")] = [],  # noqa: B006
    lora: Annotated[int, typer.Option(help="Learn matrices of this rank beside the weights; 0: the weights.")] = 0,
    changes: Set = [],  # noqa: B006
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores, before and after, as JSON.")] = False,
) -> None:
    """Fine-tune a model on more text. The vocabulary is kept; scores of old and new text are shown before and after."""
    from sixfold.modelfile import load
    from sixfold.training.run import finetune as begin
    from sixfold.translation.loading import find_model

    chosen = [f"training.lora={lora}", *changes] if lora else changes
    outcome = begin(find_model(model), files, out, old, mix, dev, old_dev, chosen, device)
    before = {} if outcome.model is None else load(outcome.model).card.get("scores_before", {})
    tell(outcome, {"scores_before": before} if as_json else None)
