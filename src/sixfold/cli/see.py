"""`sixfold see`: a sentence's way through a model as a picture, a page, or a table in the terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer

from sixfold import files, modelfile
from sixfold.cli.options import MODEL_HELP, Command
from sixfold.cli.see_table import show
from sixfold.configfile import did_you_mean
from sixfold.errors import RequestError
from sixfold.explorer.drawing import svg
from sixfold.explorer.explore import explore
from sixfold.explorer.heads import Head, Kind
from sixfold.explorer.painting import png
from sixfold.explorer.trace import Trace
from sixfold.explorer.views import VIEW_NAMES, check_view_name, html_page, view
from sixfold.explorer.views_layout import View, ViewOptions
from sixfold.translation.loading import find_model

SUFFIXES = (".png", ".svg", ".html")


def register(app: typer.Typer, name: str) -> None:
    app.command(name, cls=Command)(see)


def see(
    texts: Annotated[list[str], typer.Argument(metavar="TEXT...|RUN...", help="A sentence; for masks, several.")],
    name: Annotated[str, typer.Option("--view", "-v", help=f"{', '.join(VIEW_NAMES)}.")] = "attention",
    kind: Annotated[
        str | None, typer.Option(help="cross, encoder or decoder; left out: cross, where there is.")
    ] = None,
    layer: Annotated[int | None, typer.Option(min=0, help="From 0; left out: the last.")] = None,
    head: Annotated[int | None, typer.Option(min=0, help="From 0; left out: the mean of all; of a walk, 0.")] = None,
    token: Annotated[str | None, typer.Option(help="Of token and walk: its number, or what it says.")] = None,
    words: Annotated[bool, typer.Option("--words", help="Of attention: pieces joined into words.")] = False,
    top: Annotated[int, typer.Option(min=1, max=50, help="Of steps and walk: so many likeliest pieces.")] = 5,
    beam: Annotated[int, typer.Option(min=1, max=16, help="Of beam: hypotheses that are followed at once.")] = 4,
    translation: Annotated[str | None, typer.Option(help="Look at this one; left out: the model's own.")] = None,
    source: Annotated[str | None, typer.Option("--from", help="Language; left out: by the script.")] = None,
    target: Annotated[str | None, typer.Option("--to", help="Language; left out: the model's.")] = None,
    model: Annotated[Path | None, typer.Option("--model", "-m", help=MODEL_HELP)] = None,
    off: Annotated[list[str], typer.Option(help="A head to switch off, as cross.1.3; repeatable.")] = [],  # noqa: B006
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A .png, .svg or .html file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The numbers as JSON on standard output.")] = False,
) -> None:
    """Show what a model does with a sentence: real numbers of one pass, as a picture, a page or a table."""
    check_view_name(name)
    if kind is not None and kind not in get_args(Kind):
        near = did_you_mean(kind, get_args(Kind))
        raise RequestError(f"--kind: expected cross, encoder or decoder; got {kind!r:.40}", near)
    check_output(output)
    wish = ViewOptions(cast("Kind | None", kind), layer, head, token, words, top, beam)
    if name == "training":
        seen, facts, page = see_training(texts)
    else:
        check_texts(name, texts, translation)
        heads = [Head.parse(each) for each in off]
        file = modelfile.load(find_model(model))
        traces = [explore(text, translation, file, source, target, heads) for text in texts]
        seen = view(name, traces, wish)
        facts, page = {"sentences": [described(trace) for trace in traces]}, None
    if output is not None:
        write(output, seen, page)
    if as_json:
        facts |= {"title": seen.scene.title, "tables": [table.to_dict() for table in seen.tables]}
        print(json.dumps({"view": name, **facts}, ensure_ascii=False))
    elif output is None:
        show(seen)


def check_output(output: Path | None) -> None:
    """Before any work is done."""
    if output is None:
        return
    if output.suffix.lower() not in SUFFIXES:
        raise RequestError(f"--output: expected a name that ends in {', '.join(SUFFIXES)}; got {str(output)!r}")
    files.check_target(output)


def check_texts(name: str, texts: Sequence[str], translation: str | None) -> None:
    if len(texts) > 1 and name != "masks":
        hint = "put it in quotes; only masks are of several"
        raise RequestError(f"--view {name}: expected one sentence; got {len(texts)}", hint)
    if len(texts) > 1 and translation is not None:
        raise RequestError("--translation: expected only with one sentence", "leave it out")
    for text in texts:
        if not text.strip():
            raise RequestError("text: expected a sentence; got an empty text", "put a sentence in quotes")
        if is_folder(text):
            raise RequestError(f"{text}: expected a sentence; got a folder", "--view training shows that of a run")


def is_folder(text: str) -> bool:
    with suppress(OSError, ValueError):  # too long for a name, or with a NUL
        return Path(text).is_dir()
    return False


def described(trace: Trace) -> dict[str, Any]:
    languages = {"from": trace.languages[0], "to": trace.languages[1]}
    return {"text": trace.text, "translation": trace.translation, **languages, "off": [str(head) for head in trace.off]}


def see_training(folders: Sequence[str]) -> tuple[View, dict[str, Any], str]:
    """The curves of runs; their page is that of `sixfold report`."""
    from sixfold.evaluation.systems import require_sacrebleu

    require_sacrebleu()
    from sixfold.explorer.views_curves import curves
    from sixfold.reports.run_record import read_runs
    from sixfold.reports.training import FROM_ZERO, logged_curves, training_page

    records = read_runs([Path(folder) for folder in folders])
    logged = logged_curves(records)
    plots = {title: [record.series(metric) for record in records] for metric, title in logged.items()}
    from_zero = [title for metric, title in logged.items() if metric in FROM_ZERO]
    title = f"Training of {', '.join(record.name for record in records)}"
    return curves(title, plots, from_zero), {"runs": [record.name for record in records]}, training_page(records)


def write(output: Path, seen: View, page: str | None) -> None:
    suffix = output.suffix.lower()
    if suffix == ".png":
        data = png(seen.scene)
    else:
        data = (svg(seen.scene) if suffix == ".svg" else page or html_page(seen)).encode()
    with files.atomic(output) as file:
        file.write(data)
    print(f"wrote {output}", file=sys.stderr)
