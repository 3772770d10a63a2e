"""`sixfold import`: turns a Hugging Face folder into one model file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from sixfold import files, modelfile
from sixfold.cli.options import Command
from sixfold.errors import ConfigError
from sixfold.interop.huggingface import load_folder


def register(app: typer.Typer, name: str) -> None:
    app.command(name, cls=Command)(convert)


def convert(
    folder: Annotated[Path, typer.Argument(help="Folder that save_pretrained wrote: Marian, BERT, GPT-2 or LLaMA.")],
    out: Annotated[Path, typer.Option("--output", "-o", help="Write this model file.")],
    storage: Annotated[str, typer.Option(help="Store the weights as float32, bfloat16 or int8.")] = "float32",
) -> None:
    """Convert a Hugging Face checkpoint into a model file."""
    target = files.check_output_path(out)
    if target.exists() and target.parent == folder.resolve():
        raise ConfigError(f"--output: expected a file outside the checkpoint; got {out}")
    model = load_folder(folder)
    tokenizer = model.tokenizer
    if tokenizer is None:
        print(f"note: {folder} has no tokenizer.json; the model reads and writes ids only", file=sys.stderr)
    modelfile.save(out, model.config, model.weights(), tokenizer, model.card, storage)  # type: ignore[arg-type]
    print(out)
