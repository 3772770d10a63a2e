"""`sixfold translate`: translates a text, a file, a pipe, or lines typed at a prompt."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, nullcontext, suppress
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer

from sixfold import files
from sixfold.cli.options import MODELS_HELP, Command
from sixfold.cli.translate_documents import translate_document_file
from sixfold.cli.translate_folder import translate_folder
from sixfold.cli.translate_input import (
    LIKE_A_FILE,
    STDIN,
    check_inputs,
    display_name,
    input_path,
    open_input,
)
from sixfold.cli.translate_lines import (
    MAX_WINDOW,
    LineReader,
    PartialOutput,
    TranslationJob,
    file_size,
    progress,
)
from sixfold.cli.translate_options import CommandOptions
from sixfold.config import Compute
from sixfold.errors import ConfigError, RequestError, SixfoldError
from sixfold.text.sentences import is_spaced
from sixfold.translation.documents.formats import FORMATS, check_options, format_of
from sixfold.translation.documents.options import DocumentOptions
from sixfold.translation.glossary import Glossary
from sixfold.translation.line_translator import LineTranslator, strict_error
from sixfold.translation.loading import Device, checksum_of, choose_device, find_model, shipped_models
from sixfold.translation.memory import TranslationMemory
from sixfold.translation.options import TranslateOptions
from sixfold.translation.request import TranslationRequest
from sixfold.translation.result import Translation, TranslationPart
from sixfold.translation.translator import Translator

DEFAULT_ALTERNATIVES = 5


def register(app: typer.Typer, name: str) -> None:
    app.command(name, cls=Command)(translate)


def translate(
    texts: Annotated[
        list[str],
        typer.Argument(
            metavar="[TEXT|FILE|FOLDER|-]...",
            help="Translate this text, these files, or the documents in this folder. Without it, or with -, read "
            "standard input.",
        ),
    ] = [],  # noqa: B006
    target: Annotated[
        str | None,
        typer.Option("--to", help="Translate into this language. Default: the target language of the model."),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--from", help="Translate from this language. Default: the language that the text is in."),
    ] = None,
    models: Annotated[list[Path], typer.Option("--model", "-m", help=MODELS_HELP)] = [],  # noqa: B006
    beam: Annotated[
        int,
        typer.Option(
            min=1,
            help="Keep this many hypotheses in the beam search. Short or doubtful sentences get twice as many.",
        ),
    ] = 4,
    n_best: Annotated[
        int | None, typer.Option(min=1, help="Print this many translations of each text. Files need --json too.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object for each text or line.")] = False,
    details: Annotated[
        bool, typer.Option("--details", help="With --json, also print tokens and alignment for the lines of files.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Write to this file, or to this folder if there are several files to translate."
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an --output that was interrupted.")] = False,
    alternatives: Annotated[
        bool, typer.Option("--alternatives", help="List words that may come next after --prefix.")
    ] = False,
    prefix: Annotated[str, typer.Option(help="Begin the translation with this text.")] = "",
    split: Annotated[
        bool, typer.Option("--split/--no-split", help="Split lines into sentences before translating.")
    ] = True,
    guard: Annotated[
        bool, typer.Option("--guard/--no-guard", help="Translate again where the result is clearly wrong.")
    ] = True,
    pivot: Annotated[
        bool,
        typer.Option("--pivot", help="Translate through a third language where no model has the direction."),
    ] = False,
    glossary: Annotated[
        Path | None,
        typer.Option(help="Translate terms as this file says: two columns, separated by a tab."),
    ] = None,
    memory: Annotated[
        Path | None, typer.Option(help="Reuse the translations in this file: TMX, or two columns separated by a tab.")
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format", help=f"Read the file in this format: text, {', '.join(FORMATS)}. Default: by its name."
        ),
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="Translate only these columns of a table, by name or number, for example id,3.")
    ] = None,
    keys: Annotated[
        str | None,
        typer.Option(
            help="Translate only these keys of JSON or YAML, for example title,page.*.text; !*.id: all others."
        ),
    ] = None,
    header: Annotated[bool, typer.Option("--header", help="Translate the header of a table too.")] = False,
    device: Annotated[
        str | None, typer.Option(help="Run on auto, cpu or cuda. Default: cpu for a text, auto for files.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Use this many threads. Default: the number of cores.")
    ] = None,
    compute: Annotated[
        str, typer.Option(help=f"Calculate with numbers of this type: {', '.join(get_args(Compute))}.")
    ] = "int8",
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail if a text is in a language that the model does not read.")
    ] = False,
    as_text: Annotated[
        bool, typer.Option("--text", help="Treat the argument as a text, even if it looks like a file name.")
    ] = False,
    workers: Annotated[
        str | None,
        typer.Option(help="Translate files with many processes. The choice is ray, on this machine or a cluster."),
    ] = None,
    field: Annotated[str | None, typer.Option(help="Translate this field of .jsonl files. Default: text.")] = None,
) -> None:
    """Translate a text, a file or a pipe.

    Each line of a file or a pipe becomes one line. Documents keep their format. Several files need --output. The exit
    status is 3 if a part of a document was not translated because its translation would have damaged the document.
    """
    if compute not in get_args(Compute):
        raise ConfigError(f"--compute: expected one of {', '.join(get_args(Compute))}; got {compute!r}")
    inputs = [None if as_text else input_path(text) for text in texts]
    check_inputs(texts, inputs, workers is not None or field is not None)
    is_many = len(texts) > 1 or workers or field or any(path is not None and path.is_dir() for path in inputs)
    shards = [path for path in inputs if path is not None] if is_many else []
    if shards and alternatives:
        raise RequestError("--alternatives: expected a text; got files", "give the text itself")
    request = TranslationRequest(
        source, target, TranslateOptions(beam, n_best or 1, split=split, prefix=prefix, guard=guard),
        None if glossary is None else Glossary.read(glossary),
        None if memory is None else TranslationMemory.read(memory), pivot=pivot,
    )  # fmt: skip
    options = CommandOptions(
        [find_model(model, as_is=True) for model in models] or shipped_models(), request, cast(Compute, compute),
        cast("Device | None", device), threads, as_json, details, output, resume, form,
        DocumentOptions(split_list(columns), split_list(keys), header), strict,
    )  # fmt: skip
    if is_for_documents(shards, workers, field, form):
        translate_folder(options, shards)
    elif shards:
        from sixfold.cli.translate_shards import translate_shards

        translate_shards(options, shards, workers, field or "text")
    else:
        count = n_best or DEFAULT_ALTERNATIVES if alternatives else None
        translate_one(options, texts[0] if texts else None, inputs[0] if inputs else STDIN, count)


def is_for_documents(paths: Sequence[Path], workers: str | None, field: str | None, form: str | None) -> bool:
    """Return whether several files are documents, or folders of them, rather than files of lines."""
    if workers or field:
        return False
    return any(path.is_dir() or format_of(path, form) is not None for path in paths)


def split_list(value: str | None) -> tuple[str, ...]:
    """Return the parts of an option that are separated by commas."""
    return () if value is None else tuple(value.split(","))


def translate_one(options: CommandOptions, text: str | None, path: Path | None, alternatives: int | None) -> None:
    """Translate a text if `path` is None, otherwise a file, a pipe or lines typed at a prompt.

    If `alternatives` is a number, list that many words that may come next in the translation of a text.
    """
    is_prompt = text is None and sys.stdin is not None and sys.stdin.isatty()
    kind = None if path is None else format_of(path, options.form)
    check_combination(options, is_lines=path is not None, is_prompt=is_prompt)
    check_options(options.document, kind)
    if alternatives is not None:
        if path is not None:
            raise RequestError("--alternatives: expected a text; got a file or a pipe", "give the text itself")
        show_alternatives(options, text or "", alternatives)
    elif is_prompt:
        run_prompt(options)
    elif path is not None and kind is not None:
        translate_document_file(options, path, kind)
    elif path is not None:
        translate_file(options, path)
    else:
        translate_text(options, text or "")


def check_combination(options: CommandOptions, is_lines: bool, is_prompt: bool) -> None:
    """Raise RequestError if options do not go together."""
    if options.details and not options.as_json:
        raise RequestError("--details: expected only together with --json", "add --json")
    if options.resume and (options.output is None or not is_lines):
        raise RequestError("--resume: expected a file or a pipe, and the --output to continue", "name both")
    if options.output is not None and is_prompt:
        raise RequestError("--output: expected a text, a file or a pipe; got a terminal", "name the input")
    if is_lines and not is_prompt and options.request.options.n_best > 1 and not options.as_json:
        raise RequestError("--n-best: expected --json with it, because every line becomes one line", "add --json")


def translate_text(options: CommandOptions, text: str) -> None:
    """Translate a text. On a terminal its sentences are printed as they are translated."""
    # On the CPU, because a GPU takes seconds to start.
    with options.load_translator("cpu") as translator:
        is_plain = not options.as_json and options.request.options.n_best == 1
        if options.strict:
            check_language(translator, text, options.request)
        if is_plain and options.output is None and sys.stdout.isatty():
            print_sentences(options, translator.stream_request(text, options.request))
        else:
            (translation,) = translator.translate_request([text], options.request)
            write_translation(options, format_translation(options, translation))
    if LIKE_A_FILE.fullmatch(text):
        print(f"warning: there is no file {text}; its name was translated", file=sys.stderr)


def check_language(translator: Translator, text: str, request: TranslationRequest) -> None:
    """Raise RequestError if a text is in a language that is not translated, before any of it is printed."""
    for notice in translator.route(text, request).notices(text):
        raise strict_error(notice.message)


def print_sentences(options: CommandOptions, parts: Iterable[TranslationPart]) -> None:
    """Print the parts of a translation as they come, and its warnings at the end."""
    for part in parts:
        if part.translation is None:
            print(part.text, end="", flush=True)
        else:
            print()
            format_translation(options, part.translation)


def write_translation(options: CommandOptions, output: str) -> None:
    """Print the translation of a text, or write it to the output file."""
    if options.output is None:
        print(output)
    else:
        with files.atomic_write(options.output) as file:
            file.write(f"{output}\n".encode())


def format_translation(options: CommandOptions, translation: Translation) -> str:
    """Return a translation as the options ask for it, and print its warnings to standard error."""
    for notice in translation.warnings:
        print(f"warning: {notice.message}", file=sys.stderr)
    if options.as_json:
        return json.dumps(translation.to_dict(details=True), ensure_ascii=False)
    for match in translation.matches:
        if match.score < 1 or options.request.options.prefix:
            print(f"memory {match.score:.0%}: {match.source} → {match.target}", file=sys.stderr)
    if options.request.options.n_best > 1:
        return "\n".join(f"{each.score:.3f}\t{each.text}" for each in translation.n_best)
    return translation.text


def show_alternatives(options: CommandOptions, text: str, count: int) -> None:
    """Print words that may come next after the prefix, each with its score and the whole translation."""
    prefix = options.request.options.prefix
    with options.load_translator("cpu") as translator:
        normalised = translator.direction(text, options.request.source, options.request.target).tokenizer.normalise(
            prefix
        )
        for each in translator.alternatives(text, prefix, count, options.request.source, options.request.target):
            word = next_word(each, normalised)
            if options.as_json:
                print(json.dumps({"prefix": prefix, "next": word} | each.to_dict(), ensure_ascii=False))
            else:
                print(f"{each.score:.3f}\t{word}\t{each.text}")


def next_word(translation: Translation, prefix: str) -> str:
    """Return the word after the prefix, or the character in a language without spaces between words."""
    rest = translation.text.removeprefix(" ".join(prefix.split())).strip()
    if not is_spaced(translation.languages[1]):
        return rest[:1]
    return rest.split(maxsplit=1)[0] if rest else ""


def run_prompt(options: CommandOptions) -> None:
    """Translate each line that is typed, until the end of the input."""
    with suppress(ImportError):
        import readline  # noqa: F401 -- arrow keys and history
    cast(Any, sys.stdin).reconfigure(encoding="utf-8", errors="replace")
    with options.load_translator("cpu") as translator:
        directions = ", ".join(f"{source}→{target}" for source, target in translator.directions)
        print(f"sixfold {directions}: type a line and press Enter; Ctrl-D ends", file=sys.stderr)
        while True:
            try:
                text = input("> " if sys.stdout.isatty() else "")
                if options.strict:
                    check_language(translator, text, options.request)
                (translation,) = translator.translate_request([text], options.request)
                print(format_translation(options, translation), flush=True)
            except SixfoldError as error:
                print(f"error: {error}", file=sys.stderr)
            except (EOFError, KeyboardInterrupt):
                print(file=sys.stderr)
                return


def translate_file(options: CommandOptions, path: Path) -> None:
    """Translate a file line by line, to standard output or to a file that can be continued after an interruption."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with ExitStack() as stack:
        descriptor = open_input(path, stack)
        size = file_size(descriptor)
        partial = partial_output(options, path, size) if options.output is not None else None
        translator = options.load_translator("auto")
        lines = LineTranslator(translator, options.request, display_name(path))
        job = TranslationJob(lines, options.as_json, options.details, options.strict)
        is_shown = sys.stderr.isatty() and (partial is not None or not sys.stdout.isatty())
        output = partial.writing() if partial else nullcontext(sys.stdout.buffer)
        try:
            with progress(size, is_shown) as advance, output as out:
                job.done = partial.lines if partial else 0
                max_window = MAX_WINDOW[choose_device(options.device or "auto").partition(":")[0]]
                job.run(LineReader(descriptor, display_name(path), job.done, max_window), out, advance)
        except KeyboardInterrupt:
            if partial is not None:
                print(
                    f"stopped after {job.done} lines; run the same command with --resume to continue", file=sys.stderr
                )
            raise
    for line in lines.warning_lines():
        print(f"warning: {line}", file=sys.stderr)


def partial_output(options: CommandOptions, path: Path, size: int | None) -> PartialOutput:
    """Return the output file, after checking what an earlier run has left of it."""
    assert options.output is not None
    if path != STDIN and options.output.resolve() == path.resolve():
        raise ConfigError(f"--output: expected a file other than the input; got {options.output}")
    # Without device and threads: the work may continue on another machine.
    origin = {
        "model": [checksum_of(model) for model in options.models],
        "input": path.name, "bytes": size, **options.request.settings(),
        "compute": options.compute, "json": options.as_json, "details": options.details,
    }  # fmt: skip
    return PartialOutput(options.output, origin, options.resume)
