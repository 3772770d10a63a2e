"""`sixfold tokenizer train|encode|decode`: learns a tokeniser, and shows what it does to text."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, cast, get_args

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from sixfold import modelfile
from sixfold.cli.options import Command
from sixfold.config import Algorithm, TokenizerConfig
from sixfold.errors import ConfigError, DataError, ModelFileError
from sixfold.files import atomic_write, check_output_path
from sixfold.text.encodings import check_utf8, decode_line, read_lines
from sixfold.text.tokenizer import Tokenizer
from sixfold.translation.loading import find_model

TokenizerOption = Annotated[
    Path | None,
    typer.Option(
        "--model", "-m", help="Use this tokeniser: a tokeniser file, a tokenizer.json, or a model. Default: zh-en."
    ),
]
Texts = Annotated[list[str] | None, typer.Argument(help="Encode these texts. Default: the lines of standard input.")]
Ids = Annotated[list[str] | None, typer.Argument(help="Decode these ids. Default: the lines of standard input.")]


def register(app: typer.Typer, name: str) -> None:
    verb = typer.Typer(help="Learn a tokeniser, or see what one does to text.")
    verb.command(cls=Command)(train)
    verb.command(cls=Command)(encode)
    verb.command(cls=Command)(decode)
    app.add_typer(verb, name=name)


def train(
    files: Annotated[list[Path], typer.Argument(help="Text files in UTF-8, one sentence per line.")],
    out: Annotated[Path, typer.Option("--output", "-o", help="Write this tokeniser file.")],
    vocab: Annotated[int, typer.Option(help="Learn this many tokens, including the reserved ones.")] = 32000,
    algorithm: Annotated[str, typer.Option(help="Learn with this algorithm: bpe, wordpiece or unigram.")] = "bpe",
    tag: Annotated[list[str], typer.Option(help="Reserve this tag, for example zh. Can be repeated.")] = [],  # noqa: B006
) -> None:
    """Learn a tokeniser from text files."""
    from sixfold.text.learn import train_tokenizer

    if algorithm not in get_args(Algorithm):
        raise ConfigError(f"--algorithm: expected one of {', '.join(get_args(Algorithm))}; got {algorithm!r}")
    config = TokenizerConfig(algorithm=algorithm, vocab=vocab, tags=tuple(tag))  # type: ignore[arg-type]
    if check_output_path(out) in [file.resolve() for file in files]:
        raise ConfigError(f"--output: expected a file other than the input; got {out}")
    tokenizer = train_tokenizer(_read_lines(files), config, progress=sys.stderr.isatty())
    with atomic_write(out) as file:
        file.write(tokenizer.to_json().encode())
    shortfall = f" instead of {vocab}, because the text has no more" if tokenizer.vocab < vocab else ""
    print(f"{out}: {tokenizer.vocab} tokens{shortfall} ({algorithm})", file=sys.stderr)


def encode(
    texts: Texts = None,
    model: TokenizerOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object for each text.")] = False,
) -> None:
    """Print the ids of each text. With --json, print its tokens and their offsets too."""
    tokenizer = load(model)
    for line in texts if texts is not None else _read_stdin():
        encoding = tokenizer.encode_with_offsets(line)
        if as_json:
            fields = {"ids": encoding.ids, "tokens": encoding.tokens, "offsets": encoding.offsets}
            print(json.dumps(fields, ensure_ascii=False))
        else:
            print(" ".join(map(str, encoding.ids)))


def decode(ids: Ids = None, model: TokenizerOption = None) -> None:
    """Print the text of some ids. From standard input, each line of ids becomes a line of text."""
    tokenizer = load(model)
    for line in [" ".join(ids)] if ids is not None else _read_stdin():
        try:
            numbers = [int(word) for word in line.split()]
        except ValueError:
            raise DataError(f"ids: expected whole numbers; got {line.strip()[:60]!r}") from None
        print(tokenizer.decode(numbers))


def load(model: Path | None) -> Tokenizer:
    """Return the tokeniser of a model file, by default of the shipped model, or of a JSON file."""
    path = find_model(model)
    if path.suffix != ".safetensors":
        return Tokenizer.load(path)
    tokenizer = modelfile.load(path, verify=False).tokenizer
    if tokenizer is None:
        raise ModelFileError(f"{path}: this model file holds no tokeniser")
    return tokenizer


def _read_lines(files: list[Path]) -> Iterator[str]:
    """Yield the lines of all files while a progress bar is shown."""
    for file in files:
        if not file.is_file():
            problem = "got a folder or a device" if file.exists() else "no such file"
            raise DataError(f"{file}: expected a text file; {problem}")
    columns = (TextColumn("reading"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("read", total=sum(file.stat().st_size for file in files))
        for file in files:
            yield from read_lines(file, lambda size: bar.advance(task, size))


def _read_stdin() -> Iterator[str]:
    if sys.stdin is None:
        raise DataError("standard input: expected lines of text; it is closed")
    check_utf8(cast(io.BufferedReader, sys.stdin.buffer).peek(), "standard input")
    for number, raw in enumerate(sys.stdin.buffer, start=1):
        yield decode_line(raw, f"standard input:{number}").rstrip("\r\n")
