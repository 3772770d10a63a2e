"""`sixfold export`: writes a model for another toolkit, and reads it back to compare."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from sixfold import modelfile
from sixfold.cli.options import Command
from sixfold.configfile import did_you_mean
from sixfold.errors import ConfigError, RequestError
from sixfold.modelfile import ModelFile
from sixfold.text.language_codes import matching_codes

if TYPE_CHECKING:
    from sixfold.interop.onnx import OnnxModel


def register(app: typer.Typer, name: str) -> None:
    app.command(name, cls=Command)(export)


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file or run folder.")],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Write into this folder, which must be new or empty.")],
    form: Annotated[str, typer.Option("--to", help="Write for huggingface, ctranslate2, argos or onnx.")],
    direction: Annotated[
        str | None,
        typer.Option(metavar="FROM-TO", help="Of a model of several directions, export this one, such as zh-en."),
    ] = None,
) -> None:
    """Export a model for another toolkit, and read it back to compare.

    huggingface writes a folder that transformers loads, also of a model that writes texts; ctranslate2 a folder with
    source.spm and target.spm; argos a package that LibreTranslate installs; onnx the encoder and a step of the decoder.
    """
    from sixfold.interop.exporting import FORMATS, Export
    from sixfold.interop.exporting import export as write
    from sixfold.translation.direction import languages_of, special_tokens
    from sixfold.translation.loading import find_model

    if form not in FORMATS:
        raise ConfigError(f"--to: expected one of {', '.join(FORMATS)}; got {form!r}", did_you_mean(form, FORMATS))
    file = modelfile.load(find_model(model))
    if file.config.model.kind == "decoder" and form == "huggingface":
        what = Export(file)
    elif file.config.model.kind != "encoder-decoder" or file.tokenizer is None:
        raise RequestError(
            f"{model}: expected a model that translates texts, for --to {form}",
            "a model that writes texts is exported with --to huggingface",
        )
    else:
        pair = choose_pair(languages_of(file), direction)
        what = Export(file, pair, special_tokens(file, file.tokenizer, pair))
    for note in write(what, form, folder, difference):
        print(f"note: {note}", file=sys.stderr)
    print(folder)


def choose_pair(pairs: list[tuple[str, str]], direction: str | None) -> tuple[str, str]:
    """Return the languages that an option FROM-TO names, or the first that the model has."""
    if direction is None:
        return pairs[0]
    for cut in (index for index, char in enumerate(direction) if char == "-"):
        sides = direction[:cut], direction[cut + 1 :]
        for pair in pairs:
            if all(matching_codes(code, [own]) for code, own in zip(sides, pair, strict=True)):
                return pair
    names = ", ".join(f"{source}-{target}" for source, target in pairs[:20])
    raise ConfigError(f"--direction: expected one of {names}; got {direction!r}")


def difference(first: ModelFile, second: ModelFile | OnnxModel) -> float:
    """Return the largest difference between the logits of two models for random tokens."""
    from sixfold.explorer.forward import forward

    random, config = np.random.default_rng(1), first.config.model
    source = random.integers(0, config.vocab_read, (2, min(9, config.max_length)))
    target = random.integers(0, config.vocab, (2, min(7, config.max_length)))
    read = source if config.kind != "decoder" else None
    expected = forward(first, read, target)["logits"]
    if isinstance(second, ModelFile):
        got = forward(second, read, target)["logits"]
    else:  # that of the last position
        got = second.logits(source, target)[:, None]
        expected = expected[:, -1:]
    return float(np.abs(expected - got).max()) if expected.shape == got.shape else float("inf")
