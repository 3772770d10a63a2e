"""The `sixfold` command: finds the verb, imports only that one, and turns mistakes into one line and a hint."""

from __future__ import annotations

import importlib
import io
import os
import sys
from collections.abc import Sequence

import typer

from sixfold import __version__
from sixfold.errors import SixfoldError

VERBS = {
    "clean": "sixfold.cli.clean",
    "config": "sixfold.cli.config",
    "doctor": "sixfold.cli.doctor",
    "evaluate": "sixfold.cli.evaluate",
    "finetune": "sixfold.cli.finetune",
    "import": "sixfold.cli.import_",
    "neighbours": "sixfold.cli.neighbours",
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

EXTRAS = {"sacrebleu": "evaluate", "torch": "torch"}  # optional packages, and the smallest extra that brings each


PROGRAM = "sixfold"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command. Exit status: 0 done, 2 the user's mistake, 130 interrupted."""
    arguments = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    try:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(encoding="utf-8")  # text is UTF-8 everywhere, whatever the locale
        status = make_app(arguments)(arguments, prog_name=PROGRAM, standalone_mode=False)
        sys.stdout.flush()
        sys.exit(status if isinstance(status, int) else 0)
    except SixfoldError as error:
        complain(str(error), error.hint)
    except BrokenPipeError:
        # The reader has gone (`| head`); without this Python complains again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        complain(f"{error.filename or 'output'}: {error.strerror}", None)
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        complain(
            f"this command needs {error.name}, which is not installed", f"pip install 'sixfold[{EXTRAS[error.name]}]'"
        )
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        # The mistakes that typer finds itself; which class they have depends on its version.
        if not hasattr(error, "format_message"):
            raise
        complain(str(error.format_message()), "sixfold --help lists the commands, sixfold COMMAND --help its options")


def make_app(arguments: Sequence[str]) -> typer.Typer:
    """The command with the verb that is called, or all verbs where none is, as for --help."""
    words = words_to_complete()
    verb = next((each for each in (arguments if words is None else words) if not each.startswith("-")), None)
    # Options that install completion are of the command itself; no verb has to wait for them.
    app = typer.Typer(add_completion=words is not None or verb not in VERBS, pretty_exceptions_enable=False)
    app.callback()(_root)
    for name, module in VERBS.items():
        if name == verb or (verb not in VERBS and words is None):
            importlib.import_module(module).register(app, name)
        elif words is not None:
            app.command(name)(lambda: None)  # a shell that completes the verb needs its name, not its options
    return app


def words_to_complete() -> list[str] | None:
    """The finished words after `sixfold` on a command line that a shell completes; None: no shell does."""
    if not os.environ.get(f"_{PROGRAM.upper()}_COMPLETE"):
        return None
    line = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")
    words = line.split()[1:]
    if "COMP_CWORD" in os.environ:
        return words[: max(0, int(os.environ["COMP_CWORD"]) - 1)]
    return words if line[-1:].isspace() else words[:-1]


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"sixfold {__version__}")
        raise typer.Exit


def _root(
    version: bool = typer.Option(
        False, "--version", help="Print the version and stop.", is_eager=True, callback=_print_version
    ),
) -> None:
    """Train, translate with, and look inside Transformers."""


def complain(message: str, hint: str | None) -> None:
    print(f"error: {' '.join(message.split())}", file=sys.stderr)  # one line, even where a file name has two
    if hint:
        print(f"hint: {hint}", file=sys.stderr)
    sys.exit(2)
