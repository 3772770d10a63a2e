"""Translates with whatever tree is on PYTHONPATH, as another benchmark asks on standard input.

    PYTHONPATH=TREE/src python benchmarks/tree_worker.py translate [--no-shortlist] [--one-by-one] [--model MODEL]
    PYTHONPATH=TREE/src python benchmarks/tree_worker.py serve [--no-shortlist] [--one-by-one] [OPTIONS of it]

Each line of the input is a JSON object with the fields of `Job`, and the answer to it is one line of JSON: the texts or
the document, and the seconds that they took. Even without a shortlist, the last digits of a probability depend on what
else is in a batch, and so may a translation if two are almost equally likely. With --one-by-one each is a batch.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

NO_SHORTLIST = "--no-shortlist"
ONE_BY_ONE = "--one-by-one"


@dataclass(frozen=True)
class Job:
    """Lines, or a document in base64 with its format, to translate from one language into another."""

    source: str
    target: str
    lines: tuple[str, ...] = ()
    document: str = ""
    form: str = ""
    beam: int = 4


@dataclass(frozen=True)
class Outcome:
    """The translations of lines and their scores, or a document in base64; `error` is what went wrong."""

    texts: tuple[str, ...] = ()
    scores: tuple[float, ...] = ()
    document: str = ""
    seconds: float = 0.0
    error: str = ""


class TreeWorker:
    """A process of this file that runs until the end of the context."""

    def __init__(self, root: Path, switches: Sequence[str] = (), model: Path | None = None) -> None:
        """Use the sources in `root`/src; without `model`, the model that this tree ships."""
        switches = [*switches, *(["--model", str(model)] if model else [])]
        self._process = subprocess.Popen(
            [sys.executable, __file__, "translate", *switches],
            env=tree_environment(root), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8",
        )  # fmt: skip

    def translate(self, job: Job) -> Outcome:
        """Return the outcome of a job."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(job)) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            return Outcome(error=f"the process ended with status {self._process.wait()}")
        fields = json.loads(line)
        return Outcome(**fields | {name: tuple(fields[name]) for name in ("texts", "scores")})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def tree_environment(root: Path) -> dict[str, str]:
    """Return the environment in which Python imports the package of a tree; settings of Sixfold are left out."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SIXFOLD_")}
    return environment | {"PYTHONPATH": str(root.resolve() / "src"), "PYTHONDONTWRITEBYTECODE": "1"}


class OneByOne:
    """An engine that decodes every source in a batch of its own, as many at a time as there are cores."""

    def __init__(self, engine: Any) -> None:
        self._engine, self._pool = engine, ThreadPoolExecutor(os.cpu_count())

    def decode(self, sources: Sequence[Any], options: Any = None, prefixes: Sequence[Any] | None = None) -> list[Any]:
        """Return what the engine returns for each source alone."""
        own_prefixes = [None] * len(sources) if prefixes is None else [[prefix] for prefix in prefixes]
        alone = self._pool.map(
            lambda pair: self._engine.decode([pair[0]], options, pair[1]), zip(sources, own_prefixes, strict=True)
        )
        return [hypotheses for (hypotheses,) in alone]

    def __getattr__(self, name: str) -> Any:
        """Return everything else that the engine has."""
        return getattr(self._engine, name)


def apply_switches(arguments: list[str]) -> None:
    """Change the translator as the switches say, which are removed from the arguments."""
    import sixfold
    from sixfold.translation import translator

    if NO_SHORTLIST in arguments:
        arguments.remove(NO_SHORTLIST)
        defaults = sixfold.Translator.__init__.__defaults__
        assert defaults is not None
        sixfold.Translator.__init__.__defaults__ = (*defaults[:-1], False)  # type: ignore[misc]
    if ONE_BY_ONE in arguments:
        arguments.remove(ONE_BY_ONE)
        open_engine: Any = translator.open_engine
        translator.open_engine = lambda *values: OneByOne(open_engine(*values))  # type: ignore[assignment]


def run(translator: Any, job: Job) -> Outcome:
    """Carry out a job with a translator."""
    import sixfold

    options = sixfold.TranslateOptions(beam=job.beam)
    start = time.perf_counter()
    if job.form:
        data = base64.b64decode(job.document)
        written, _ = sixfold.translate_document(translator, data, job.form, job.source, job.target, options)
        return Outcome(document=base64.b64encode(written).decode(), seconds=time.perf_counter() - start)
    translations = translator.translate_batch(job.lines, job.source, job.target, options)
    seconds = time.perf_counter() - start
    texts, scores = tuple(each.text for each in translations), tuple(each.score for each in translations)
    return Outcome(texts, scores, seconds=seconds)


def main() -> None:
    command, arguments = sys.argv[1], sys.argv[2:]
    import sixfold

    apply_switches(arguments)
    if command == "serve":
        from sixfold.cli.main import main as run_command

        sys.argv = ["sixfold", "serve", *arguments]
        run_command()
        return
    model = arguments[1] if arguments[:1] == ["--model"] else None
    with sixfold.Translator(model, "cpu") as translator:
        for line in sys.stdin:
            fields = json.loads(line)
            try:
                outcome = run(translator, Job(**fields | {"lines": tuple(fields["lines"])}))
            except Exception as error:  # the other benchmark shows it
                outcome = Outcome(error=f"{type(error).__name__}: {error}")
            print(json.dumps(asdict(outcome)), flush=True)


if __name__ == "__main__":
    main()
