"""`sixfold similar`: how alike a model has learnt two words to be, or finds two sentences."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sixfold import modelfile
from sixfold.cli.options import MODEL_HELP, Command
from sixfold.modelfile import ModelFile
from sixfold.translation.loading import find_model

Model = Annotated[Path | None, typer.Option("--model", "-m", help=MODEL_HELP)]
WIDTH = 24  # characters of a bar


def register(app: typer.Typer, name: str) -> None:
    app.command(name, cls=Command)(similar)


def similar(
    one: Annotated[str, typer.Argument(help="A word, or with --sentences a sentence.")],
    other: Annotated[str, typer.Argument(help="Another, in any language of the model.")],
    sentences: Annotated[bool, typer.Option(help="Compare what the encoder makes of them.")] = False,
    model: Model = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Print the cosine between two words or sentences: 1 of the same, about 0 of what has nothing in common."""
    from sixfold.explorer import embeddings

    compare = embeddings.similar_sentences if sentences else embeddings.similar
    cosine = compare(opened(model), one, other)
    if as_json:
        print(json.dumps({"one": one, "other": other, "sentences": sentences, "cosine": cosine}, ensure_ascii=False))
    else:
        Console(emoji=False).print(bar_table([(f"{one} · {other}", cosine)]))


def opened(model: Path | None) -> ModelFile:
    return modelfile.load(find_model(model))


def bar_table(rows: Sequence[tuple[str, float]]) -> Table:
    """Words, and cosines as numbers and bars. What is below 0 has no bar."""
    table = Table(box=None, show_header=False)
    for text, cosine in rows:
        shown = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
        table.add_row(Text(shown), f"{cosine:.3f}", Text("█" * round(WIDTH * max(0.0, cosine)), style="cyan"))
    return table
