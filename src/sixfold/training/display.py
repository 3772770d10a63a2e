"""What a person sees of a run: bars on a terminal, plain lines elsewhere, and files that programs read."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from sixfold import files
from sixfold.data.cleaned import Advance
from sixfold.reports.run_record import duration
from sixfold.training.interrupt import Interrupt
from sixfold.training.tensorboard import EventFile

PATIENCE = 30.0  # seconds between two plain lines


class Display:
    """Messages go to standard error. Of several processes all but one are quiet."""

    def __init__(self, interrupt: Interrupt, quiet: bool = False) -> None:
        self.console = Console(stderr=True, highlight=False, soft_wrap=True, quiet=quiet)
        self.interrupt = interrupt
        self.last_line = 0.0

    def say(self, text: str) -> None:
        self.console.print(text, markup=False)

    @contextmanager
    def reading(self, what: str, size: int) -> Iterator[Advance]:
        """A bar over bytes; an interrupt ends the reading."""
        columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
        with Progress(*columns, console=self.console, transient=True, disable=self._plain) as bar:
            task = bar.add_task(what, total=size)

            def advance(count: int) -> None:
                self.interrupt.check()
                bar.advance(task, count)

            started = time.monotonic()
            yield advance
        seconds = time.monotonic() - started
        if seconds > 1:
            self.say(f"{what}: {seconds:.0f} s")

    @contextmanager
    def training(self, steps: int, done: int) -> Iterator[Board]:
        text = "{task.description} [dim]{task.fields[text]}"
        columns = (
            TextColumn(text),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
        )
        with Progress(*columns, console=self.console, transient=True, disable=self._plain) as bar:
            yield Board(self, bar, bar.add_task("training", total=steps, completed=done, text=""))

    @property
    def _plain(self) -> bool:
        return not self.console.is_terminal


class Board:
    """The line under way while it trains."""

    def __init__(self, display: Display, bar: Progress, task: TaskID) -> None:
        self.display, self.bar, self.task = display, bar, task
        self.started, self.first = time.monotonic(), bar.tasks[0].completed

    def step(self, step: int, steps: int, values: Mapping[str, float]) -> None:
        text = f"loss {values['loss']:.3f} · {values['tokens_per_s']:,.0f} tok/s · {values['memory']:.1f} GB"
        self.bar.update(self.task, completed=step, text=text)
        now = time.monotonic()
        if not self.bar.disable or now - self.display.last_line < PATIENCE:
            return
        self.display.last_line = now
        pace = (now - self.started) / max(1, step - self.first)
        self.display.say(f"step {step:,} of {steps:,} · {text} · {duration((steps - step) * pace)} left")


class Log:
    """metrics.jsonl, samples.jsonl and TensorBoard's files; of several processes, only the first `writes`."""

    def __init__(self, folder: Path, step: int, writes: bool = True) -> None:
        self.writes = writes
        if not writes:
            return
        self.folder = folder
        self.events = EventFile(folder / "tensorboard")
        self._open(step)

    def _open(self, step: int) -> None:
        self.file, self.translations = (_open(self.folder / name, step) for name in ("metrics.jsonl", "samples.jsonl"))
        if step:
            self.events.restart(step + 1)

    def go_back(self, step: int) -> None:
        """Forget what was logged after `step`, which the run has gone back to: each step stands in the log once."""
        if self.writes:
            self.file.close()
            self.translations.close()
            self._open(step)

    def __enter__(self) -> Log:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.writes:
            self.file.close()
            self.translations.close()
            self.events.close()

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        if not self.writes:
            return
        finite = {name: value if math.isfinite(value) else None for name, value in values.items()}  # JSON has no NaN
        self.file.write(json.dumps({"step": step, **finite}) + "\n")
        self.file.flush()
        self.events.scalars(step, {name: float(value) for name, value in values.items()})
        self.events.flush()

    def samples(self, step: int, samples: Sequence[tuple[str, str, str]]) -> None:
        """Sources, what they became, and what they should have become."""
        if not self.writes:
            return
        named = [dict(zip(("source", "translation", "reference"), each, strict=True)) for each in samples]
        self.translations.write(json.dumps({"step": step, "samples": named}, ensure_ascii=False) + "\n")
        self.translations.flush()
        self.events.text(
            step, "samples", "\n\n".join(f"{source}\n→ {translation}" for source, translation, _ in samples)
        )


def _open(path: Path, step: int) -> TextIO:
    """To write on from `step`: what was logged after it, by a run that was killed or went back, is cut off."""
    if path.exists():
        with path.open(encoding="utf-8") as file:
            kept = [line for line in file if _step_of(line) <= step]
        with files.atomic(path) as whole:
            whole.write("".join(kept).encode())
    return path.open("a", encoding="utf-8")


def _step_of(line: str) -> float:
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):  # the last line of a killed run may be half a line
        return float("inf")


def memory() -> float:
    """GB at the most so far: of the GPU where there is one, else of this process."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return float(torch.cuda.max_memory_allocated()) / 1e9
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return 0.0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9
