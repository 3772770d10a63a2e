"""`sixfold report`: one page about a run, ended or not, or about several side by side."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from sixfold.cli.options import Command
from sixfold.evaluation.systems import require_sacrebleu
from sixfold.reports import page


def register(app: typer.Typer, name: str) -> None:
    app.command(name, cls=Command)(report)


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders that `sixfold train --output` made.")],
    out: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The page; left out: RUN/report.html, for several runs compare.html."),
    ] = None,
    png: Annotated[Path | None, typer.Option(help="A folder for the curves as PNG files.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as JSON on standard output.")] = False,
) -> None:
    """Write a page about training runs: curves, scores, sentences, data, settings and cost."""
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
