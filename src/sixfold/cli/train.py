"""`sixfold train` and `sixfold finetune`: a model file from text. The same command again continues a stopped run."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sixfold.cli.options import Command, SetOption
from sixfold.config import Kind

if TYPE_CHECKING:
    from sixfold.training.run import Outcome

DEV_HELP = (
    "one file of pairs, or the option twice, for source and target. Default: pairs that are held out from the text."
)
DeviceOption = Annotated[str, typer.Option(help="Train on this device: auto, cpu or cuda.")]


def register(app: typer.Typer, name: str) -> None:
    commands: dict[str, Callable[..., None]] = {"train": train, "finetune": finetune}
    app.command(name, cls=Command)(commands[name])


def train(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="SOURCE TARGET | PAIRS | RECIPE.toml | TEXT...",
            help="Two text files, one file of pairs (.tsv, .jsonl), or a recipe. "
            "With --kind decoder: any number of text files.",
        ),
    ],
    kind: Annotated[
        Kind,
        typer.Option(
            help="Train a model of this kind: encoder-decoder for translation, or decoder for a language model of text."
        ),
    ] = "encoder-decoder",
    out: Annotated[Path, typer.Option("--output", "-o", help="Keep the run in this folder.")] = Path("run"),
    preset: Annotated[
        str,
        typer.Option(
            help="Train a model of this preset size. Default: chosen by the size of the corpus and the device."
        ),
    ] = "",
    changes: SetOption = [],  # noqa: B006 -- typer reads the default and never changes it
    dev: Annotated[list[Path], typer.Option("--dev", help=f"Validate on this dev set: {DEV_HELP}")] = [],  # noqa: B006
    both_ways: Annotated[
        bool, typer.Option("--both-ways", help="Train one model that translates in both directions.")
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(help="Look for the corpora of a recipe in this folder. Default: the folder of the recipe."),
    ] = None,
    device: DeviceOption = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
) -> None:
    """Train a translation model from parallel text, or a language model from any text.

    You can stop it at any time. Run the same command again to continue.
    """
    from sixfold.training import run

    changes = [*(["data.both_ways=true"] if both_ways else []), *changes]
    outcome = run.train(files, out, preset, changes, dev, data, device, kind)
    print_outcome(outcome, {} if as_json else None)


def finetune(
    model: Annotated[Path, typer.Argument(help="Model file or run folder to start from. It is not changed.")],
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="SOURCE TARGET | PAIRS | TEXT",
            help="New text: two text files, or one file of pairs (.tsv, .jsonl). "
            "For a decoder-only model: prompts with answers in the same forms, or one file of text.",
        ),
    ],
    out: Annotated[Path, typer.Option("--output", "-o", help="Keep the run in this folder.")] = Path("finetuned"),
    old: Annotated[
        list[Path],
        typer.Option(
            "--old",
            help="Mix in these old pairs, so that the model does not forget them: "
            "one file of pairs, or the option twice, for source and target.",
        ),
    ] = [],  # noqa: B006 -- typer reads the default and never changes it
    mix: Annotated[float, typer.Option(help="Use this share of old pairs in the training data, from 0 to 1.")] = 0.5,
    dev: Annotated[
        list[Path], typer.Option("--dev", help=f"Validate on this dev set of the new text: {DEV_HELP}")
    ] = [],  # noqa: B006
    old_dev: Annotated[
        list[Path], typer.Option("--old-dev", help=f"Validate on this dev set of the old text: {DEV_HELP}")
    ] = [],  # noqa: B006
    lora: Annotated[int, typer.Option(help="Train LoRA matrices of this rank. 0 trains all weights instead.")] = 0,
    changes: SetOption = [],  # noqa: B006
    device: DeviceOption = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores before and after as JSON.")] = False,
) -> None:
    """Fine-tune a model on new text, and show its scores on old and new text before and after.

    The vocabulary stays the same.
    """
    from sixfold.modelfile import load
    from sixfold.training import run
    from sixfold.translation.loading import find_model

    all_changes = [f"training.lora={lora}", *changes] if lora else changes
    outcome = run.finetune(find_model(model), files, out, old, mix, dev, old_dev, all_changes, device)
    before = {}
    if as_json and outcome.is_leader and outcome.model is not None:  # for other processes it may not be there yet
        before = load(outcome.model).card.get("scores_before", {})
    print_outcome(outcome, {"scores_before": before} if as_json else None)


def print_outcome(outcome: Outcome, extra: dict[str, Any] | None) -> None:
    """Print the last line of a run, and unless `extra` is None, the outcome as JSON with these fields added.

    Of several processes, only the leader prints.
    """
    if not outcome.is_leader:
        return
    if extra is not None:
        model = None if outcome.model is None else str(outcome.model)
        facts = {"finished": model is not None, "model": model, "step": outcome.step, "scores": outcome.scores}
        print(json.dumps(facts | extra))
    if outcome.model is not None:
        print(f"{outcome.model}: done; look at it with: sixfold summary {quote(str(outcome.model))}", file=sys.stderr)
