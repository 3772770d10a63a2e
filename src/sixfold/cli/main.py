"""The `sixfold` command: imports only the verb that runs, and prints a mistake as one line and a hint."""

from __future__ import annotations

import importlib
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from sixfold import __version__
from sixfold.errors import SixfoldError

# The module of each verb; its `register` adds the verb to the application.
VERBS = {
    "clean": "sixfold.cli.clean",
    "config": "sixfold.cli.config",
    "doctor": "sixfold.cli.doctor",
    "evaluate": "sixfold.cli.evaluate",
    "export": "sixfold.cli.export",
    "finetune": "sixfold.cli.train",
    "generate": "sixfold.cli.generate",
    "import": "sixfold.cli.import_",
    "neighbours": "sixfold.cli.embeddings",
    "pack": "sixfold.cli.pack",
    "report": "sixfold.cli.report",
    "see": "sixfold.cli.see",
    "serve": "sixfold.cli.serve",
    "similar": "sixfold.cli.embeddings",
    "summary": "sixfold.cli.summary",
    "tokenizer": "sixfold.cli.tokenizer",
    "train": "sixfold.cli.train",
    "translate": "sixfold.cli.translate",
}

EXTRAS = {"sacrebleu": "evaluate", "torch": "torch"}  # optional packages, and the smallest extra that installs each

PROGRAM = "sixfold"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit. Exit status: 0 for success, 2 for a mistake of the user, 130 for an interrupt."""
    arguments = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    try:
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is None:  # it was closed before the start (`>&-`): what is written to it is dropped
                setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(encoding="utf-8")  # text is always UTF-8, whatever the locale
        status = make_app(arguments)(arguments, prog_name=PROGRAM, standalone_mode=False)
        status = status if isinstance(status, int) else 0
        sys.stdout.flush()
        if int(os.environ.get("WORLD_SIZE", 1)) > 1:
            # Threads of torch's process groups may still wait for the interpreter, and abort while it is shut down.
            sys.stderr.flush()
            os._exit(status)
        sys.exit(status)
    except SixfoldError as error:
        exit_with_error(str(error), error.hint)
    except BrokenPipeError:
        # The reader closed the pipe (`| head`). Without this, Python prints an error when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        exit_with_error(f"{error.filename or 'output'}: {error.strerror}", None)
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        exit_with_error(
            f"this command needs {error.name}, which is not installed", f"pip install 'sixfold[{EXTRAS[error.name]}]'"
        )
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        # A mistake that typer found. Its class depends on the version of typer.
        if not hasattr(error, "format_message"):
            raise
        exit_with_error(
            str(error.format_message()),
            "sixfold --help lists the commands, sixfold COMMAND --help lists the options of a command",
        )


def make_app(arguments: Sequence[str]) -> typer.Typer:
    """Return the application with the verb that is called, or with all verbs if none is, as for --help."""
    words = words_to_complete()
    verb = next((word for word in (arguments if words is None else words) if not word.startswith("-")), None)
    # The options that install completion belong to `sixfold` itself; verbs start faster without them.
    app = typer.Typer(add_completion=words is not None or verb not in VERBS, pretty_exceptions_enable=False)
    app.callback()(_sixfold)
    for name, module in VERBS.items():
        if name == verb or (verb not in VERBS and words is None):
            importlib.import_module(module).register(app, name)
        elif words is not None:
            app.command(name)(lambda: None)  # to complete a verb, a shell needs its name only
    return app


def words_to_complete() -> list[str] | None:
    """Return the complete words after `sixfold` on a line that a shell wants to complete, or None if no shell does."""
    if not os.environ.get(f"_{PROGRAM.upper()}_COMPLETE"):
        return None
    line = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")
    words = line.split()[1:]
    if "COMP_CWORD" in os.environ:
        return words[: max(0, int(os.environ["COMP_CWORD"]) - 1)]
    return words if line[-1:].isspace() else words[:-1]


def _print_version(is_requested: bool) -> None:
    if is_requested:
        print(f"sixfold {__version__}")
        raise typer.Exit


def _sixfold(
    version: bool = typer.Option(
        False, "--version", help="Print the version and exit.", is_eager=True, callback=_print_version
    ),
) -> None:
    """Train Transformers, translate and write with them, and see how they work."""


def exit_with_error(message: str, hint: str | None) -> None:
    """Print an error and a hint, and exit with status 2."""
    print(f"error: {' '.join(message.split())}", file=sys.stderr)  # one line, even if a file name contains line feeds
    if hint:
        print(f"hint: {hint}", file=sys.stderr)
    sys.exit(2)
