"""One spelling of options for every command; the spellings of before still work, but are not shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from typer.core import TyperCommand

# Old spelling → the one that is shown in its place.
OLD_SPELLINGS = {
    "--out": "--output",
    "--source-language": "--from",
    "--target-language": "--to",
    "--source": "--from",
    "--target": "--to",
    "--tokenizer": "--model",
    "-t": "--model",
}


MODEL_HELP = "A model file, the folder of a run, or the name of a model that ships; left out: zh-en, which ships."
MODELS_HELP = f"{MODEL_HELP} Repeatable."


class Command(TyperCommand):
    """A command of typer that reads old spellings of its options as the new ones."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        shown = {name for parameter in self.params for name in parameter.opts}
        return super().parse_args(ctx, list(respelt(args, shown)))


def respelt(arguments: Iterable[str], shown: set[str]) -> Iterator[str]:
    """Arguments with old spellings replaced, where the command has the new option and not the old; `--` ends them."""
    is_ended = False
    for argument in arguments:
        is_ended = is_ended or argument == "--"
        name, equals, value = argument.partition("=")
        new = OLD_SPELLINGS.get(name)
        if is_ended or new is None or new not in shown or name in shown:
            yield argument
        else:
            yield f"{new}{equals}{value}"
