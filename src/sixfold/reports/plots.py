"""The curves of runs as PNG files, for slides and papers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sixfold.errors import RequestError
from sixfold.reports.run_record import Record
from sixfold.reports.training import logged_curves


def write_plots(records: Sequence[Record], folder: Path) -> list[Path]:
    """One file for each curve that has points."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise RequestError("--png needs matplotlib, which is not installed", "pip install 'sixfold[plots]'") from None
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for metric, title in logged_curves(records).items():
        # No pyplot: it keeps every figure and asks for a display.
        figure = Figure(figsize=(6, 4), layout="constrained")
        axes = figure.add_subplot(title=title, xlabel="step")
        for record in records:
            series = record.series(metric)
            heights = [float("nan") if value is None else value for value in series.y]
            axes.plot(list(series.x), heights, label=series.name)
        axes.grid(alpha=0.3)
        if len(records) > 1:
            axes.legend()
        written.append(folder / f"{metric}.png")
        figure.savefig(written[-1], dpi=150)
    return written
