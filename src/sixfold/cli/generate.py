"""`sixfold generate`: continues a text, or answers in a conversation, with a decoder-only model."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TextIO, cast, get_args

import typer

from sixfold.cli.options import Command
from sixfold.config import Compute
from sixfold.decoding.options import SamplingOptions
from sixfold.errors import ConfigError, RequestError, SixfoldError
from sixfold.generation.generator import Generator, Prompt
from sixfold.generation.options import GenerateOptions, TextChunk
from sixfold.text.encodings import decode_line

SEPARATOR = "---"  # a line between several texts


def register(app: typer.Typer, name: str) -> None:
    app.command(name, cls=Command)(generate)


@dataclass(frozen=True)
class Output:
    """How texts are printed, and whether prompts are messages of a conversation."""

    as_json: bool
    stream: bool
    chat: bool
    system: str | None

    def prompt(self, text: str, earlier: list[dict[str, str]]) -> Prompt:
        """Return what the model is given for a text; `earlier` are the messages before it."""
        if not self.chat:
            return text
        system = [] if self.system is None else [{"role": "system", "content": self.system}]
        return [*system, *earlier, {"role": "user", "content": text}]


def generate(
    prompt: Annotated[
        str | None,
        typer.Argument(
            metavar="[PROMPT|-]",
            help="Continue this text. With -, or without it where nobody types, read the text from standard input.",
        ),
    ] = None,
    model: Annotated[
        Path | None, typer.Option("--model", "-m", help="Use this model: a model file or a run folder.")
    ] = None,
    max_tokens: Annotated[int, typer.Option(help="Write at most this many tokens.")] = 256,
    temperature: Annotated[
        float | None,
        typer.Option(
            help="Draw tokens; below 1, likely ones more often. 0 takes the likeliest each time. "
            "Default: 1 if --top-k, --top-p, --min-p, --seed or --n is given, else 0."
        ),
    ] = None,
    top_k: Annotated[int | None, typer.Option(help="Draw from this many likeliest tokens only.")] = None,
    top_p: Annotated[
        float | None, typer.Option(help="Draw from the fewest tokens whose probabilities sum up to this.")
    ] = None,
    min_p: Annotated[
        float | None, typer.Option(help="Draw from tokens with at least this share of the likeliest's probability.")
    ] = None,
    repetition_penalty: Annotated[
        float, typer.Option(help="Above 1: make tokens that are in the text already less likely.")
    ] = 1.0,
    seed: Annotated[int | None, typer.Option(help="Draw the tokens of this seed. Default: 1.")] = None,
    stop: Annotated[list[str], typer.Option(help="End the text before this string. Can be repeated.")] = [],  # noqa: B006
    n: Annotated[int | None, typer.Option("--n", "-n", help="Write this many texts. Default: 1.")] = None,
    chat: Annotated[
        bool, typer.Option("--chat", help="Answer the prompt in a conversation, with the model's chat template.")
    ] = False,
    system: Annotated[str | None, typer.Option(help="With --chat, begin the conversation with this message.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, with the log-probability of each token.")
    ] = False,
    logprobs: Annotated[int, typer.Option(help="With --json, also list this many likeliest tokens in each place.")] = 0,
    stream: Annotated[bool, typer.Option("--stream", help="Print the text while it is written.")] = False,
    draft: Annotated[
        Path | None,
        typer.Option(
            help="Let this smaller model guess tokens, so that several are read at once. It needs the same tokeniser. "
            "The text stays the same. Needs torch."
        ),
    ] = None,
    device: Annotated[
        str, typer.Option(help="Run on auto, cpu or cuda. auto: on a GPU if there is one that torch can use.")
    ] = "auto",
    compute: Annotated[
        str | None,
        typer.Option(
            help="Compute with numbers of this type: on a CPU int8 or float32, for the likeliest tokens; on a GPU "
            "float32, float16 or bfloat16. Default: the type that the model is stored in, if it is one of these."
        ),
    ] = None,
) -> None:
    """Continue a text with a decoder-only model.

    Without a prompt, on a terminal, each line that is typed is a prompt; with --chat, the lines are one conversation.
    Only the continuation is printed. The same seed gives the same text on the same CPU. To draw tokens needs torch.
    """
    if model is None:
        raise ConfigError(
            "--model: expected a decoder-only model, because none comes with Sixfold", "name a model file"
        )
    if compute is not None and compute not in get_args(Compute):
        raise ConfigError(f"--compute: expected one of {', '.join(get_args(Compute))}; got {compute!r}")
    if system is not None and not chat:
        raise RequestError("--system: expected only together with --chat", "add --chat")
    if logprobs and not as_json:
        raise RequestError("--logprobs: expected only together with --json", "add --json")
    if stream and not as_json and (n or 1) > 1:
        raise RequestError("--stream: expected one text, or --json; got --n above 1", "add --json")
    draws = any(option is not None for option in (top_k, top_p, min_p, seed, n))
    sampling = SamplingOptions(
        float(repetition_penalty), (1.0 if draws else 0.0) if temperature is None else temperature, top_k or 0,
        1.0 if top_p is None else top_p, min_p or 0.0, 1 if seed is None else seed,
    )  # fmt: skip
    options = GenerateOptions(max_tokens, tuple(stop), 1 if n is None else n, logprobs, sampling)
    is_typed = prompt is None and is_terminal(sys.stdin)
    shows = stream or (not as_json and options.n == 1 and (is_typed or is_terminal(sys.stdout)))
    output = Output(as_json, shows, chat, system)
    with Generator(model, device, compute=cast("Compute | None", compute), draft=draft) as generator:
        if is_typed:
            run_prompt(generator, options, output)
        else:
            text = read_input() if prompt in (None, "-") else str(prompt)
            write(generator, output.prompt(text, []), options, output)


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether somebody sits at a stream, which is None where it was closed before the start."""
    return stream is not None and stream.isatty()


def read_input() -> str:
    """Return standard input, without the line feed at its end that `echo` adds."""
    return decode_line(sys.stdin.buffer.read(), "standard input").removesuffix("\n")


def write(generator: Generator, prompt: Prompt, options: GenerateOptions, output: Output) -> str:
    """Print the texts for a prompt. Return the first of them."""
    if output.stream:
        return print_stream(generator, prompt, options, print_chunk if output.as_json else print_text)
    (texts,) = generator.generate([prompt], options)
    if output.as_json:
        content = {"prompt": prompt, "texts": [text.to_dict() for text in texts]}
        print(json.dumps(content, ensure_ascii=False), flush=True)
    else:
        print(f"\n{SEPARATOR}\n".join(text.text for text in texts), flush=True)
    return texts[0].text


def print_stream(
    generator: Generator, prompt: Prompt, options: GenerateOptions, show: Callable[[TextChunk], None]
) -> str:
    """Print the texts for a prompt while they are written. Return the first of them."""
    first = ""
    for chunk in generator.stream(prompt, options):
        first += chunk.text if chunk.sample == 0 else ""
        show(chunk)
    return first


def print_text(chunk: TextChunk) -> None:
    """Print a part of a text, and a line feed after the last."""
    print(chunk.text, end="\n" if chunk.finish else "", flush=True)


def print_chunk(chunk: TextChunk) -> None:
    """Print a part of a text as a line of JSON."""
    content = {
        "sample": chunk.sample, "text": chunk.text, "tokens": [token.to_dict() for token in chunk.tokens],
        "finish": chunk.finish, "stop": chunk.stop,
    }  # fmt: skip
    print(json.dumps(content, ensure_ascii=False), flush=True)


def run_prompt(generator: Generator, options: GenerateOptions, output: Output) -> None:
    """Continue each line that is typed, until the end of the input; in a conversation, answer it."""
    with suppress(ImportError):
        import readline  # noqa: F401 -- arrow keys and history
    cast(Any, sys.stdin).reconfigure(encoding="utf-8", errors="replace")
    ends = "an empty line begins a new conversation, Ctrl-C ends a text, Ctrl-D ends" if output.chat else (
        "Ctrl-C ends a text, Ctrl-D ends"
    )  # fmt: skip
    print(f"sixfold {generator.file.name}: type a line and press Enter; {ends}", file=sys.stderr)
    earlier: list[dict[str, str]] = []
    while True:
        try:
            text = input("> " if is_terminal(sys.stdout) else "")
        except (EOFError, KeyboardInterrupt):
            print(file=sys.stderr)
            return
        if output.chat and not text:
            earlier = []
            continue
        try:
            answer = write(generator, output.prompt(text, earlier), options, output)
            earlier += [{"role": "user", "content": text}, {"role": "assistant", "content": answer}]
        except KeyboardInterrupt:
            print()
        except SixfoldError as error:
            print(f"error: {error}", file=sys.stderr)
