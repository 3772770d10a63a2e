"""`sixfold report`: one page about a training run, finished or not, or about several runs side by side."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from sixfold.cli.options import Command, JsonOption
from sixfold.evaluation.systems import require_sacrebleu
from sixfold.reports import page


def register(app: typer.Typer, name: str) -> None:
    app.command(name, cls=Command)(report)


def report(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Run folders, as `sixfold train --output` makes them.")
    ],
    out: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write this page. Default: RUN/report.html, or compare.html for several."),
    ] = None,
    png: Annotated[Path | None, typer.Option(help="Also write the curves to this folder, as PNG files.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Write a page about training runs: curves, scores, sample translations, data, settings and cost."""
    require_sacrebleu()
    from sixfold.reports.run_record import read_runs
    from sixfold.reports.training import training_dict, training_page

    records = read_runs(runs)
    target = out or (runs[0] / "report.html" if len(runs) == 1 else Path("compare.html"))
    page.write(target, training_page(records))
    print(f"wrote {target}", file=sys.stderr)
    if png is not None:
        from sixfold.reports.training import write_plots

        print(f"wrote {len(write_plots(records, png))} plots to {png}", file=sys.stderr)
    if as_json:
        print(json.dumps(training_dict(records), ensure_ascii=False))
