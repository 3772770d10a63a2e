"""`sixfold see`: what a model does with a sentence, as a picture, a page, or a table in the terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer

from sixfold import files, modelfile
from sixfold.cli.options import Command, JsonOption, ModelOption
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
    texts: Annotated[
        list[str],
        typer.Argument(
            metavar="TEXT...|RUN...",
            help="A sentence. The view masks takes several; the view training takes run folders.",
        ),
    ],
    name: Annotated[str, typer.Option("--view", "-v", help=f"Show this view: {', '.join(VIEW_NAMES)}.")] = "attention",
    kind: Annotated[
        str | None,
        typer.Option(help="Show this attention: cross, encoder or decoder. Default: cross, if the model has it."),
    ] = None,
    layer: Annotated[
        int | None, typer.Option(min=0, help="Show this layer, counted from 0. Default: the last.")
    ] = None,
    head: Annotated[
        int | None,
        typer.Option(
            min=0, help="Show this head, counted from 0. Default: the mean of all heads, or head 0 in the view walk."
        ),
    ] = None,
    token: Annotated[
        str | None, typer.Option(help="In the views token and walk, follow this token, by number or text.")
    ] = None,
    words: Annotated[bool, typer.Option("--words", help="In the view attention, join tokens into words.")] = False,
    top: Annotated[
        int, typer.Option(min=1, max=50, help="In the views steps and walk, show this many of the most likely tokens.")
    ] = 5,
    beam: Annotated[int, typer.Option(min=1, max=16, help="In the view beam, keep this many hypotheses.")] = 4,
    translation: Annotated[str | None, typer.Option(help="Look at this translation. Default: the model's own.")] = None,
    source: Annotated[
        str | None, typer.Option("--from", help="Language of the sentence. Default: detected by its script.")
    ] = None,
    target: Annotated[
        str | None, typer.Option("--to", help="Language of the translation. Default: the target language of the model.")
    ] = None,
    model: ModelOption = None,
    off: Annotated[
        list[str], typer.Option(help="Switch off this attention head, for example cross.1.3. Can be repeated.")
    ] = [],  # noqa: B006
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write this .png, .svg or .html file. Default: print a table."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a model does with a sentence: the numbers of a forward pass as a picture, a page or a table."""
    check_view_name(name)
    if kind is not None and kind not in get_args(Kind):
        hint = did_you_mean(kind, get_args(Kind))
        raise RequestError(f"--kind: expected cross, encoder or decoder; got {kind!r:.40}", hint)
    check_output(output)
    options = ViewOptions(cast("Kind | None", kind), layer, head, token, words, top, beam)
    if name == "training":
        shown, facts, page = see_training(texts)
    else:
        check_texts(name, texts, translation)
        heads = [Head.parse(each) for each in off]
        file = modelfile.load(find_model(model))
        traces = [explore(text, translation, file, source, target, heads) for text in texts]
        shown = view(name, traces, options)
        facts, page = {"sentences": [describe(trace) for trace in traces]}, None
    if output is not None:
        write(output, shown, page)
    if as_json:
        facts |= {"title": shown.scene.title, "tables": [table.to_dict() for table in shown.tables]}
        print(json.dumps({"view": name, **facts}, ensure_ascii=False))
    elif output is None:
        show(shown)


def check_output(output: Path | None) -> None:
    """Raise RequestError if the output file cannot be written, before any work is done."""
    if output is None:
        return
    if output.suffix.lower() not in SUFFIXES:
        raise RequestError(f"--output: expected a name that ends in {', '.join(SUFFIXES)}; got {str(output)!r}")
    files.check_target(output)


def check_texts(name: str, texts: Sequence[str], translation: str | None) -> None:
    """Raise RequestError if the texts are not what a view needs."""
    if len(texts) > 1 and name != "masks":
        hint = "put it in quotes; only the view masks takes several"
        raise RequestError(f"--view {name}: expected one sentence; got {len(texts)}", hint)
    if len(texts) > 1 and translation is not None:
        raise RequestError("--translation: expected only together with one sentence", "leave it out")
    for text in texts:
        if not text.strip():
            raise RequestError("text: expected a sentence; got an empty text", "put a sentence in quotes")
        if is_folder(text):
            raise RequestError(
                f"{text}: expected a sentence; got a folder", "--view training shows the folder of a run"
            )


def is_folder(text: str) -> bool:
    with suppress(OSError, ValueError):  # too long for a file name, or with a NUL character
        return Path(text).is_dir()
    return False


def describe(trace: Trace) -> dict[str, Any]:
    languages = {"from": trace.languages[0], "to": trace.languages[1]}
    return {"text": trace.text, "translation": trace.translation, **languages, "off": [str(head) for head in trace.off]}


def see_training(folders: Sequence[str]) -> tuple[View, dict[str, Any], str]:
    """Return the curves of runs, their names, and their page, which is that of `sixfold report`."""
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


def write(output: Path, shown: View, page: str | None) -> None:
    """Write a view in the format of the file name; `page` replaces its HTML page."""
    suffix = output.suffix.lower()
    if suffix == ".png":
        data = png(shown.scene)
    else:
        data = (svg(shown.scene) if suffix == ".svg" else page or html_page(shown)).encode()
    with files.atomic(output) as file:
        file.write(data)
    print(f"wrote {output}", file=sys.stderr)
