"""`sixfold import`: turns a model of another toolkit into one model file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, cast

import typer

from sixfold import files, modelfile
from sixfold.cli.options import Command
from sixfold.configfile import did_you_mean
from sixfold.errors import ConfigError
from sixfold.modelfile import STORAGES, Storage
from sixfold.translation.loading import MODEL_SUFFIX


def register(app: typer.Typer, name: str) -> None:
    app.command(name, cls=Command)(convert)


def convert(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A Hugging Face folder or OWNER/NAME on its Hub, an Argos package, a CTranslate2 folder, a Marian "
            ".npz, a fairseq checkpoint, a GGUF file or a model of llama2.c.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write this model file. Default: a new file in the current folder, with the name of SOURCE.",
        ),
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(
            help="Store the weights as float32, bfloat16 or int8. Default: as they are in the source, else float32."
        ),
    ] = None,
    source_languages: Annotated[
        list[str] | None,
        typer.Option(
            "--from", help="Translate from this language. Needed if the source does not say. Can be repeated."
        ),
    ] = None,
    target_languages: Annotated[
        list[str] | None,
        typer.Option("--to", help="Translate into this language. Needed if the source does not say. Can be repeated."),
    ] = None,
) -> None:
    """Convert a model of another toolkit into a model file, with its tokenisers and languages.

    What the source is, is found out by looking. Of a model of many languages, --from and --to choose which are kept.
    """
    from sixfold.interop.huggingface_tokenizers import ChosenLanguages
    from sixfold.interop.sources import read_source

    if storage is not None and storage not in STORAGES:
        names = ", ".join(STORAGES)
        raise ConfigError(f"--storage: expected one of {names}; got {storage!r}", did_you_mean(storage, STORAGES))
    if out is None:
        out = default_output(source)
    target = files.check_output_path(out)
    if target.exists() and target.parent == Path(source).resolve():
        raise ConfigError(f"--output: expected a file outside the checkpoint; got {out}")
    model = read_source(source, ChosenLanguages(tuple(source_languages or ()), tuple(target_languages or ())))
    if model.tokenizer is None:
        print(
            f"note: {source} has no tokeniser that is supported; the model reads and writes ids only", file=sys.stderr
        )
    chosen_storage = cast(Storage | None, storage or ("int8" if model.storage == "int8" else None))
    modelfile.save(
        out, model.config, model.stored_weights(), model.tokenizer, model.card, chosen_storage, model.shortlist,
        None, None, model.target_tokenizer, model.sequence_format, model.prompt_format,
    )  # fmt: skip
    print(out)


def default_output(source: str) -> Path:
    """Return the file that a source is written to if none is named: opus-mt-en-fr.safetensors for OWNER/opus-mt-en-fr.

    It is in the current folder, and must not exist yet.
    """
    path = Path(source)
    if path.exists():  # otherwise it is a name on the Hub
        path = path.resolve()
    name = path.stem if path.is_file() else path.name
    if not name:
        raise ConfigError(f"--output: expected a file, because {source} has no name", "name a file with --output")
    out = Path(f"{name}{MODEL_SUFFIX}")
    if out.exists():
        raise ConfigError(
            f"{out}: expected no such file, because a source is written to a new one",
            "name another file with --output" if out.resolve() == path else f"--output {out} replaces it",
        )
    return out
