"""`sixfold similar` and `sixfold neighbours`: what a model has learnt about words."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sixfold import modelfile
from sixfold.cli.options import Command, JsonOption, ModelOption
from sixfold.modelfile import ModelFile
from sixfold.translation.loading import find_model

BAR_WIDTH = 24  # characters


def register(app: typer.Typer, name: str) -> None:
    commands: dict[str, Callable[..., None]] = {"similar": similar, "neighbours": neighbours}
    app.command(name, cls=Command)(commands[name])


def similar(
    one: Annotated[str, typer.Argument(help="A word, or with --sentences a sentence.")],
    other: Annotated[str, typer.Argument(help="Another one, in any language of the model.")],
    sentences: Annotated[bool, typer.Option(help="Compare sentences by the output of the encoder.")] = False,
    model: ModelOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print how similar two words or sentences are to a model.

    The number is the cosine of their vectors: 1 if they are the same, about 0 if they have nothing in common.
    """
    from sixfold.explorer import embeddings

    compare = embeddings.similar_sentences if sentences else embeddings.similar
    cosine = compare(load_model(model), one, other)
    if as_json:
        print(json.dumps({"one": one, "other": other, "sentences": sentences, "cosine": cosine}, ensure_ascii=False))
    else:
        Console(emoji=False).print(bar_table([(f"{one} · {other}", cosine)]))


def neighbours(
    word: Annotated[str, typer.Argument(help="A word, or part of one.")],
    count: Annotated[int, typer.Option(help="Print this many tokens.")] = 10,
    model: ModelOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the tokens that are most similar to a word in a model's embeddings."""
    from sixfold.explorer import embeddings

    nearest = embeddings.neighbours(load_model(model), word, count)
    if as_json:
        print(json.dumps([each._asdict() for each in nearest], ensure_ascii=False))
    else:
        Console(emoji=False).print(bar_table([(each.text, each.cosine) for each in nearest]))


def load_model(model: Path | None) -> ModelFile:
    return modelfile.load(find_model(model))


def bar_table(rows: Sequence[tuple[str, float]]) -> Table:
    """Return a table of texts with their cosines as numbers and bars. A negative cosine has no bar."""
    table = Table(box=None, show_header=False)
    for text, cosine in rows:
        printable = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
        table.add_row(Text(printable), f"{cosine:.3f}", Text("█" * round(BAR_WIDTH * max(0.0, cosine)), style="cyan"))
    return table
