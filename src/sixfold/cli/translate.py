"""`sixfold translate`: a text, a file, a pipe, or whatever is typed at a prompt."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer

from sixfold import files, modelfile
from sixfold.cli.options import MODELS_HELP, Command
from sixfold.cli.translate_lines import Job, Partial, Reader, progress, size_of
from sixfold.config import Compute
from sixfold.errors import ConfigError, DataError, RequestError, SixfoldError
from sixfold.text.encodings import SAMPLE, check_utf8
from sixfold.text.languages import DENSE, letters
from sixfold.text.sentences import is_spaced
from sixfold.translation.documents.document import FORMATS, check_columns, format_of, translate_document
from sixfold.translation.glossary import Glossary
from sixfold.translation.line_translator import (
    LANGUAGE_NOTICES,
    LineTranslator,
    NoticeCount,
    add_notice_count,
    check_strict,
    strict_error,
)
from sixfold.translation.line_translator import warning_lines as warnings_of
from sixfold.translation.loading import Device, find_model, shipped_models
from sixfold.translation.memory import TranslationMemory
from sixfold.translation.options import TranslateOptions
from sixfold.translation.result import Translation
from sixfold.translation.translator import Translator

ALTERNATIVES = 5
BINARY_FORMAT = "docx"  # the one format of documents that is not text
STANDARD = Path("-")
# Endings of file names that a text of one word hardly has. Those of programs are left out: Node.js is a word.
OTHER_SUFFIXES = (
    ".txt .text .log .rst .tex .adoc .rtf .doc .odt .pdf .epub .xls .xlsx .ods .ppt .pptx .odp .xml .jsonl "
    ".ndjson .tmx .toml .ini .cfg .conf .properties .resx .strings .ass .sub .sbv .ttml .gz .xz .zst .bz2 .zip .7z "
    ".tar .tgz .rar .png .jpg .jpeg .gif .webp .mp3 .mp4 .wav .safetensors .zh .en .ja .ko .src .tgt"
)
# Endings of corpora and notes that domains have too: alone, amazon.de is a word; in a folder, data/train.de is a file.
DOMAIN_SUFFIXES = {".org", ".de", ".fr", ".es", ".ru", ".pt", ".cs", ".pl", ".ar"}
FILE_SUFFIXES = {*OTHER_SUFFIXES.split(), *(suffix for each in FORMATS.values() for suffix in each.suffixes)}
LIKE_A_FILE = re.compile(r"[\w./\\~-]+\.[A-Za-z]\w{0,4}")


@dataclass(frozen=True)
class Wish:
    """What was asked for, wherever the text comes from."""

    models: list[Path]
    source: str | None
    target: str | None
    options: TranslateOptions
    compute: Compute
    device: Device | None
    threads: int | None
    as_json: bool
    details: bool
    output: Path | None
    resume: bool
    form: str | None = None
    glossary: Glossary | None = None
    memory: TranslationMemory | None = None
    columns: tuple[str, ...] = ()
    strict: bool = False

    def said(self, translator: Translator, text: str) -> Translation:
        """Of a text that is not in a file."""
        return translator.translate(text, self.source, self.target, self.options, self.glossary, self.memory)

    def translator(self, device: Device) -> Translator:
        """Ready to work, and able to do what is asked."""
        translator = Translator(self.models, self.device or device, self.threads, self.compute)
        translator.check_languages(self.source, self.target)
        return translator


def register(app: typer.Typer, name: str) -> None:
    app.command(name, cls=Command)(translate)


def translate(
    texts: Annotated[list[str], typer.Argument(metavar="[TEXT|FILE|-]...", help="- or left out: standard input.")] = [],  # noqa: B006
    target: Annotated[
        str | None, typer.Option("--to", help="Language; left out: what the model translates to.")
    ] = None,
    source: Annotated[str | None, typer.Option("--from", help="Language; left out: told by the script.")] = None,
    models: Annotated[list[Path], typer.Option("--model", "-m", help=MODELS_HELP)] = [],  # noqa: B006
    beam: Annotated[
        int,
        typer.Option(
            min=1,
            help="Hypotheses that are followed at once, twice as many for short or doubtful sentences; 1 is fastest.",
        ),
    ] = 4,
    n_best: Annotated[int | None, typer.Option(min=1, help="So many ways to say it; of files, with --json.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="An object a line.")] = False,
    details: Annotated[bool, typer.Option("--details", help="Tokens and alignment in the JSON of files too.")] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file, or a folder for several.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an --output that was stopped.")] = False,
    alternatives: Annotated[bool, typer.Option("--alternatives", help="What may come next after --prefix.")] = False,
    prefix: Annotated[str, typer.Option(help="What the translation begins with.")] = "",
    split: Annotated[bool, typer.Option("--split/--no-split", help="Lines into sentences.")] = True,
    guard: Annotated[bool, typer.Option("--guard/--no-guard", help="Ask again for what is plainly wrong.")] = True,
    glossary: Annotated[
        Path | None, typer.Option(help="Terms and how they must be translated: two columns, a tab between.")
    ] = None,
    memory: Annotated[Path | None, typer.Option(help="Sentences and their translations: TMX, or two columns.")] = None,
    form: Annotated[
        str | None, typer.Option("--format", help=f"text, {', '.join(FORMATS)}; left out: by the name of the file.")
    ] = None,
    columns: Annotated[str | None, typer.Option(help="Of a table: names in its header or numbers, as id,3.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda; left out: cpu for a text, else auto.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Left out: as many as there are cores.")] = None,
    compute: Annotated[str, typer.Option(help=f"{', '.join(get_args(Compute))}.")] = "int8",
    strict: Annotated[
        bool, typer.Option("--strict", help="A text in a language that the model does not read is an error.")
    ] = False,
    as_text: Annotated[
        bool, typer.Option("--text", help="The argument is a text, also where it looks like the name of a file.")
    ] = False,
    workers: Annotated[str | None, typer.Option(help="ray: many processes, on this machine or a cluster.")] = None,
    field: Annotated[str | None, typer.Option(help="What to translate of .jsonl files; left out: text.")] = None,
) -> None:
    """Translate a text, a file or a pipe: one line in, one line out."""
    if compute not in get_args(Compute):
        raise ConfigError(f"--compute: expected one of {', '.join(get_args(Compute))}; got {compute!r}")
    inputs = [None if as_text else input_of(text) for text in texts]
    check_inputs(texts, inputs, workers is not None or field is not None)
    shards = [path for path in inputs if path is not None] if len(texts) > 1 or workers or field else []
    if shards and alternatives:
        raise RequestError("--alternatives: expected a text; got files", "give the text itself")
    options = TranslateOptions(beam, n_best or 1, split=split, prefix=prefix, guard=guard)
    wish = Wish(
        [find_model(model) for model in models] or shipped_models(), source, target, options,
        cast(Compute, compute), cast("Device | None", device), threads, as_json, details, output, resume, form,
        None if glossary is None else Glossary.read(glossary),
        None if memory is None else TranslationMemory.read(memory),
        () if columns is None else tuple(columns.split(",")), strict,
    )  # fmt: skip
    if shards:
        from sixfold.cli.translate_shards import translate_shards

        translate_shards(wish, shards, workers, field or "text")
    else:
        count = n_best or ALTERNATIVES if alternatives else None
        translate_one(wish, texts[0] if texts else None, inputs[0] if inputs else STANDARD, count)


def translate_one(wish: Wish, text: str | None, path: Path | None, alternatives: int | None) -> None:
    """Translate a text, where `path` is None, or a file, a pipe or what is typed; of a text also some ways to go on."""
    is_typed = text is None and sys.stdin is not None and sys.stdin.isatty()
    kind = None if path is None else format_of(path, wish.form)
    check(wish, is_lines=path is not None, is_typed=is_typed)
    check_columns(wish.columns, kind)
    if alternatives is not None:
        if path is not None:
            raise RequestError("--alternatives: expected a text; got a file or a pipe", "give the text itself")
        show_alternatives(wish, text or "", alternatives)
    elif is_typed:
        converse(wish)
    elif path is not None and kind is not None:
        translate_whole(wish, path, kind)
    elif path is not None:
        translate_file(wish, path)
    else:
        translate_text(wish, text or "")


def check_inputs(texts: Sequence[str], inputs: Sequence[Path | None], needs_files: bool) -> None:
    """Raise RequestError for several texts, or for texts among files."""
    if needs_files and not texts:
        raise RequestError("--workers, --field: expected files; got none", "name them")
    if len(texts) < 2 and not needs_files:
        return
    for text, path in zip(texts, inputs, strict=True):
        if path is not None and path != STANDARD:
            continue
        if any(each.split()[1:] for each in texts):
            hint = "translate one text at a time, or give one a line: printf '%s\\n' TEXT... | sixfold translate"
        else:
            hint = "put quotes around the text" if not needs_files else "name a file"
        raise RequestError(
            f"expected one text, or files; got {len(texts)} arguments, of which {text!r} is no file", hint
        )


def input_of(text: str) -> Path | None:
    """The file that an argument names, STANDARD for `-`, and None where the argument is the text itself."""
    path = Path(text)
    try:
        if not text or (path != STANDARD and not path.exists()):
            if is_missing_file(text):
                raise DataError(f"{text}: no such file", "to translate these words themselves, add --text")
            return None
    except (OSError, ValueError):  # too long for a name, or with a NUL
        return None
    if path.is_dir():
        raise ConfigError(f"{path}: expected a text or a file; got a folder", "name one of its files")
    return path


def is_missing_file(text: str) -> bool:
    """Whether an argument that names no file looks like a name all the same: by its ending, or as a path.

    Words such as `e.g.`, `Node.js`, `example.org`, `and/or` or a URL do not, nor does anything with a space. 笔记.md
    does, 请打开main.py does not.
    """
    if re.search(r"\s|://", text) or not text.isprintable():
        return False
    path = Path(text)
    if letters(*DENSE).search(text):
        is_name = re.fullmatch(r"[\w./\\-]+", text) and letters(*DENSE).search(path.stem[-1:])
        return bool(is_name) and path.suffix.lower() in FILE_SUFFIXES
    if path.stem and path.suffix.lower() in FILE_SUFFIXES:
        return True
    folder, separator, name = text.replace("\\", "/").rpartition("/")
    if not separator or not name:
        return False
    if path.stem and path.suffix.lower() in DOMAIN_SUFFIXES:
        return True
    return folder in ("", ".", "..", "~") or folder.startswith(("/", "./", "../", "~/")) or Path(folder).is_dir()


def check(wish: Wish, is_lines: bool, is_typed: bool) -> None:
    """Options that do not go together."""
    if wish.details and not wish.as_json:
        raise RequestError("--details: expected only with --json, which shows them", "add --json")
    if wish.resume and (wish.output is None or not is_lines):
        raise RequestError("--resume: expected a file or a pipe, and the --output to go on with", "name both")
    if wish.output is not None and is_typed:
        raise RequestError("--output: expected a text, a file or a pipe; got a terminal", "name the input")
    if is_lines and not is_typed and wish.options.n_best > 1 and not wish.as_json:
        raise RequestError("--n-best: expected --json with it, as every line becomes one line", "add --json")


def translate_text(wish: Wish, text: str) -> None:
    # A GPU takes seconds to start.
    with wish.translator("cpu") as translator:
        said = shown(wish, wish.said(translator, text))
    if wish.output is None:
        print(said)
    else:
        with files.atomic(wish.output) as file:
            file.write(f"{said}\n".encode())
    if LIKE_A_FILE.fullmatch(text):
        print(f"warning: there is no file {text}; its name was translated", file=sys.stderr)


def shown(wish: Wish, translation: Translation) -> str:
    """For a terminal or a program; what to be wary of goes to standard error."""
    for notice in translation.warnings:
        if wish.strict and notice.kind in LANGUAGE_NOTICES:
            raise strict_error(notice.message)
        print(f"warning: {notice.message}", file=sys.stderr)
    if wish.as_json:
        return json.dumps(translation.to_dict(details=True), ensure_ascii=False)
    for match in translation.matches:
        if match.score < 1 or wish.options.prefix:
            print(f"memory {match.score:.0%}: {match.source} → {match.target}", file=sys.stderr)
    if wish.options.n_best > 1:
        return "\n".join(f"{each.score:.3f}\t{each.text}" for each in translation.n_best)
    return translation.text


def show_alternatives(wish: Wish, text: str, count: int) -> None:
    prefix = wish.options.prefix
    with wish.translator("cpu") as translator:
        read = translator.direction(text, wish.source, wish.target).tokenizer.read(prefix)
        for each in translator.alternatives(text, prefix, count, wish.source, wish.target):
            word = next_word(each, read)
            if wish.as_json:
                print(json.dumps({"prefix": prefix, "next": word} | each.to_dict(), ensure_ascii=False))
            else:
                print(f"{each.score:.3f}\t{word}\t{each.text}")


def next_word(translation: Translation, prefix: str) -> str:
    """What follows the prefix; where words are not set apart, a character."""
    rest = translation.text.removeprefix(" ".join(prefix.split())).strip()
    if not is_spaced(translation.languages[1]):
        return rest[:1]
    return rest.split(maxsplit=1)[0] if rest else ""


def converse(wish: Wish) -> None:
    """A line in, its translation out, until the end of the input."""
    with suppress(ImportError):
        import readline  # noqa: F401 -- arrow keys and history
    cast(Any, sys.stdin).reconfigure(encoding="utf-8", errors="replace")
    with wish.translator("cpu") as translator:
        known = ", ".join(f"{one}→{other}" for one, other in translator.directions)
        print(f"sixfold {known}: a line and Enter; Ctrl-D ends", file=sys.stderr)
        while True:
            try:
                text = input("> " if sys.stdout.isatty() else "")
                print(shown(wish, wish.said(translator, text)), flush=True)
            except SixfoldError as error:
                print(f"error: {error}", file=sys.stderr)
            except (EOFError, KeyboardInterrupt):
                print(file=sys.stderr)
                return


def translate_file(wish: Wish, path: Path) -> None:
    """Line by line, to standard output or a file that can be gone on with."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with ExitStack() as stack:
        descriptor = open_input(path, stack)
        size = size_of(descriptor)
        partial = begun(wish, path, size) if wish.output is not None else None
        asked = LineTranslator(
            wish.translator("auto"), wish.source, wish.target, wish.options, wish.glossary, wish.memory
        )
        asked.name = name_of(path)
        job = Job(asked, wish.as_json, wish.details, wish.strict)
        is_shown = sys.stderr.isatty() and (partial is not None or not sys.stdout.isatty())
        opened = partial.writing() if partial else nullcontext(sys.stdout.buffer)
        try:
            with progress(size, is_shown) as advance, opened as out:
                job.lines = partial.lines if partial else 0
                job.run(Reader(descriptor, name_of(path), job.lines), out, advance)
        except KeyboardInterrupt:
            if partial is not None:
                print(f"stopped after {job.lines} lines; the same command with --resume goes on", file=sys.stderr)
            raise
    for line in asked.warning_lines():
        print(f"warning: {line}", file=sys.stderr)


def translate_whole(wish: Wish, path: Path, form: str) -> None:
    """A document, which is read at once, as any part of it may matter to another."""
    if wish.as_json or wish.resume or wish.options.n_best > 1 or wish.options.prefix:
        raise RequestError(
            f"{path}: a document of the format {form}: expected none of --json, --resume, --n-best and --prefix",
            "--format text translates its lines",
        )
    if wish.output is not None:
        files.check_target(wish.output)
    with ExitStack() as stack:
        data = read_all(open_input(path, stack, is_binary=form == BINARY_FORMAT))
        if form != BINARY_FORMAT:
            check_utf8(data[:SAMPLE], name_of(path))
        translator = stack.enter_context(wish.translator("auto"))
        said, report = translate_document(
            translator, data, form, wish.source, wish.target, wish.options,
            path.name if path != STANDARD else "input", wish.glossary, wish.memory, wish.columns,
        )  # fmt: skip
    found: dict[str, NoticeCount] = {}
    for line, notice in report.notices:
        add_notice_count(found, notice.kind, NoticeCount(1, f"{name_of(path)}:{line}", notice.message))
    if wish.strict:
        check_strict(found)
    if wish.output is None:
        sys.stdout.buffer.write(said)
        sys.stdout.buffer.flush()
    else:
        with files.atomic(wish.output) as file:
            file.write(said)
    for warning in warnings_of(0, "", found):
        print(f"warning: {warning}", file=sys.stderr)


def name_of(path: Path) -> str:
    """What messages call an input."""
    return str(path) if path != STANDARD else "standard input"


def read_all(descriptor: int) -> bytes:
    with os.fdopen(os.dup(descriptor), "rb") as file:
        return file.read()


def open_input(path: Path, stack: ExitStack, is_binary: bool = False) -> int:
    """The descriptor of a file that begins like text in UTF-8, or of standard input, which its reader checks."""
    if path == STANDARD:
        if sys.stdin is None:
            raise DataError("input: standard input is closed", "name a file")
        return sys.stdin.fileno()
    try:
        file = stack.enter_context(path.open("rb", buffering=0))
        if path.is_file() and not is_binary:
            check_utf8(os.pread(file.fileno(), SAMPLE, 0), str(path))
        return file.fileno()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from None


def begun(wish: Wish, path: Path, size: int | None) -> Partial:
    """The output, after a look at what an earlier start left of it."""
    assert wish.output is not None
    if path != STANDARD and wish.output.resolve() == path.resolve():
        raise ConfigError(f"--output: expected another file than the text; got {wish.output}")
    # Neither device nor threads: work may go on elsewhere.
    made_from = {
        "model": [modelfile.load(model, verify=False).checksum for model in wish.models],
        "input": path.name, "bytes": size, "from": wish.source, "to": wish.target, **asdict(wish.options),
        "compute": wish.compute, "json": wish.as_json, "details": wish.details,
        "glossary": [list(term) for term in wish.glossary.terms] if wish.glossary else None,
        "memory": wish.memory.digest() if wish.memory else None,
    }  # fmt: skip
    return Partial(wish.output, made_from, wish.resume)
