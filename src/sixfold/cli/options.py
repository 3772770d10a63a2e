"""Options that several commands share. Old spellings of options still work, but help does not show them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

# Old spelling → the spelling that replaces it.
OLD_SPELLINGS = {
    "--out": "--output",
    "--source-language": "--from",
    "--target-language": "--to",
    "--source": "--from",
    "--target": "--to",
    "--tokenizer": "--model",
    "-t": "--model",
}

MODEL_HELP = (
    "Use this model: a model file, a run folder, or the name of a model that comes with Sixfold. Default: zh-en."
)
MODELS_HELP = (
    "Use this model: a model file, a run folder, an Argos package, a CTranslate2 folder, or the name of a model that "
    "comes with Sixfold. Default: zh-en. Can be repeated."
)
PAIR_FILES_HELP = "Two text files with one sentence per line, or one file of pairs (.tsv, .jsonl)."

JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
ModelOption = Annotated[Path | None, typer.Option("--model", "-m", help=MODEL_HELP)]
SetOption = Annotated[
    list[str], typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Change a setting. Can be repeated.")
]


class Command(TyperCommand):
    """A typer command that also accepts old spellings of its options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        names = {name for parameter in self.params for name in parameter.opts}
        return super().parse_args(ctx, list(replace_old_spellings(args, names)))


def replace_old_spellings(arguments: Iterable[str], names: set[str]) -> Iterator[str]:
    """Yield arguments with old spellings replaced, where the command has the new option and not the old one.

    Arguments after `--` are left alone.
    """
    is_ended = False
    for argument in arguments:
        is_ended = is_ended or argument == "--"
        name, equals, value = argument.partition("=")
        new = OLD_SPELLINGS.get(name)
        if is_ended or new is None or new not in names or name in names:
            yield argument
        else:
            yield f"{new}{equals}{value}"
