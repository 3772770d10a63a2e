"""The output of a run: progress bars on a terminal, plain lines elsewhere, and log files for programs."""

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
from sixfold.reports.formatting import format_duration
from sixfold.training.interrupt import Interrupt
from sixfold.training.tensorboard import EventFile

SECONDS_BETWEEN_LINES = 30.0  # where there is no terminal


class Display:
    """Prints messages and progress to standard error. Of several processes all but the leader are quiet."""

    def __init__(self, interrupt: Interrupt, quiet: bool = False) -> None:
        self.console = Console(stderr=True, highlight=False, soft_wrap=True, quiet=quiet)
        self.interrupt = interrupt
        self.last_line = 0.0

    def say(self, text: str) -> None:
        self.console.print(text, markup=False)

    @contextmanager
    def reading(self, title: str, size: int) -> Iterator[Advance]:
        """Show a bar while `size` bytes are read. The function that advances it raises Stopped after an interrupt."""
        columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
        with Progress(*columns, console=self.console, transient=True, disable=self._plain) as bar:
            task = bar.add_task(title, total=size)

            def advance(count: int) -> None:
                self.interrupt.check()
                bar.advance(task, count)

            started = time.monotonic()
            yield advance
        seconds = time.monotonic() - started
        if seconds > 1:
            self.say(f"{title}: {seconds:.0f} s")

    @contextmanager
    def training(self, steps: int, done: int) -> Iterator[StepLine]:
        """Show the progress of training."""
        text = "{task.description} [dim]{task.fields[text]}"
        columns = (
            TextColumn(text),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
        )
        with Progress(*columns, console=self.console, transient=True, disable=self._plain) as bar:
            yield StepLine(self, bar, bar.add_task("training", total=steps, completed=done, text=""))

    @property
    def _plain(self) -> bool:
        return not self.console.is_terminal


class StepLine:
    """The line that shows the current step, its loss and the time left."""

    def __init__(self, display: Display, bar: Progress, task: TaskID) -> None:
        self.display, self.bar, self.task = display, bar, task
        self.started, self.first = time.monotonic(), bar.tasks[0].completed

    def step(self, step: int, steps: int, values: Mapping[str, float]) -> None:
        text = f"loss {values['loss']:.3f} · {values['tokens_per_s']:,.0f} tok/s · {values['memory']:.1f} GB"
        self.bar.update(self.task, completed=step, text=text)
        now = time.monotonic()
        if not self.bar.disable or now - self.display.last_line < SECONDS_BETWEEN_LINES:
            return
        self.display.last_line = now
        pace = (now - self.started) / max(1, step - self.first)
        self.display.say(f"step {step:,} of {steps:,} · {text} · {format_duration((steps - step) * pace)} left")


class Log:
    """Writes metrics.jsonl, samples.jsonl and TensorBoard's files; of several processes, only the leader `writes`."""

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
        """Remove what was logged after `step`, which the run has gone back to, so that each step is logged once."""
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
        """Log some sources with their translations and references."""
        if not self.writes:
            return
        named = [dict(zip(("source", "translation", "reference"), each, strict=True)) for each in samples]
        self.translations.write(json.dumps({"step": step, "samples": named}, ensure_ascii=False) + "\n")
        self.translations.flush()
        self.events.text(
            step, "samples", "\n\n".join(f"{source}\n→ {translation}" for source, translation, _ in samples)
        )


def _open(path: Path, step: int) -> TextIO:
    """Open a log to append to it after `step`; later lines, of a run that was killed or went back, are removed."""
    if path.exists():
        with path.open(encoding="utf-8") as file:
            kept = [line for line in file if _step_of(line) <= step]
        with files.atomic_write(path) as copy:
            copy.write("".join(kept).encode())
    return path.open("a", encoding="utf-8")


def _step_of(line: str) -> float:
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):  # the last line of a killed run may be half a line
        return float("inf")


def memory() -> float:
    """Return the peak memory so far in GB: of the GPU where there is one, else of this process."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return float(torch.cuda.max_memory_allocated()) / 1e9
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return 0.0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9
