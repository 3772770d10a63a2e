"""`sixfold see`: what a model does with a sentence, as a picture, a page, or a table in the terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.table import Table as Grid
from rich.text import Text

from sixfold import files
from sixfold.cli.options import Command, JsonOption, ModelOption
from sixfold.configfile import did_you_mean
from sixfold.errors import RequestError
from sixfold.explorer.drawing import colormap, lightness, png, svg, to_hex
from sixfold.explorer.explore import explore
from sixfold.explorer.heads import Head, Kind
from sixfold.explorer.trace import Trace
from sixfold.explorer.views import VIEW_NAMES, check_view_name, html_page, view
from sixfold.explorer.views_layout import Cell, Table, View, ViewOptions
from sixfold.reports.formatting import format_number
from sixfold.translation.loading import read_model

SUFFIXES = (".png", ".svg", ".html")


def register(app: typer.Typer, name: str) -> None:
    app.command(name, cls=Command)(see)


def see(
    texts: Annotated[
        list[str],
        typer.Argument(
            metavar="TEXT...|RUN...",
            help="A sentence. The view masks takes several, the view induction none, the view training run folders.",
        ),
    ] = [],  # noqa: B006
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
    if not texts and name != "induction":
        what = "the folder of a run" if name == "training" else "a sentence"
        raise RequestError(f"--view {name}: expected {what}; got none", "only the view induction takes none")
    page = None
    if name == "training":
        shown, facts, page = see_training(texts)
    elif name == "induction":
        shown, facts = see_induction(texts, model)
    else:
        check_texts(name, texts, translation)
        heads = [Head.parse(each) for each in off]
        file = read_model(model)
        traces = [explore(text, translation, file, source, target, heads) for text in texts]
        shown = view(name, traces, options)
        facts = {"sentences": [describe(trace) for trace in traces]}
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
    files.check_output_path(output)


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


def see_induction(texts: Sequence[str], model: Path | None) -> tuple[View, dict[str, Any]]:
    """Return the scores of a model's heads in the test of induction, and the same numbers as JSON."""
    from sixfold.explorer.induction import measure_induction
    from sixfold.explorer.views_induction import induction

    if texts:
        message = f"--view induction: expected no sentence; got {texts[0]!r:.40}"
        raise RequestError(message, "leave it out; the test has random sequences of its own")
    file = read_model(model)
    test = measure_induction(file)
    return induction(test), {"model": file.name, **test.to_dict()}


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
    with files.atomic_write(output) as file:
        file.write(data)
    print(f"wrote {output}", file=sys.stderr)


MAX_ROWS = 120  # of a table; of a longer one, only every n-th row is shown
MIN_TEXT_WIDTH = 12  # characters of a text column that is folded
GAP = 2  # characters between two columns


def show(view: View) -> None:
    """Print the title and the tables of a view."""
    console = Console(emoji=False, highlight=False)
    console.print(Text(printable(view.scene.title), "bold"))
    if view.scene.description:
        console.print(Text(printable(view.scene.description), "dim"))
    for table in view.tables:
        if len(view.tables) > 1:
            console.print(Text(f"\n{printable(table.title)}", "bold"))
        step = -(-len(table.rows) // MAX_ROWS) or 1
        for part in layout(table, table.rows[::step], console.width if console.width >= 40 else 80):
            console.print(part, soft_wrap=isinstance(part, Text))
        if step > 1:
            console.print(Text(f"every {step}th of {len(table.rows):,} rows; --json has them all", "dim"))


def layout(table: Table, rows: Sequence[Sequence[Cell]], width: int) -> Iterator[Grid | Text]:
    """Yield the parts of a table, each at most `width` characters wide."""
    if len(table.coloured_columns) == len(table.columns) - 1 and rows:
        yield from matrix(table, rows, width)
        return
    tints = set(table.coloured_columns)
    cells = [
        [tinted_cell(cell, table) if column in tints else plain_cell(cell) for column, cell in enumerate(row)]
        for row in rows
    ]
    heads = [Text(printable(name), "dim") for name in table.columns]
    full_widths = [max(cell_len(line[column].plain) for line in [heads, *cells]) for column in range(len(heads))]
    has_text = [any(isinstance(row[column], str) for row in rows) for column in range(len(heads))]
    min_widths = [
        min(size, MIN_TEXT_WIDTH) if is_text else size for size, is_text in zip(full_widths, has_text, strict=True)
    ]
    for block in blocks(min_widths, width):
        grid = Grid(box=None, pad_edge=False, show_edge=False)
        for column, size in zip(block, column_widths(block, min_widths, full_widths, width), strict=True):
            grid.add_column(heads[column], width=size, overflow="fold")
        for line in cells:
            grid.add_row(*(line[column] for column in block))
        yield grid
        if block[-1] < len(heads) - 1:
            yield Text("")


def blocks(min_widths: Sequence[int], width: int) -> Iterator[list[int]]:
    """Yield the numbers of the columns in blocks that fit the terminal; each block begins with the first column."""
    block, used = [0], min_widths[0]
    for column in range(1, len(min_widths)):
        if used + GAP + min_widths[column] > width and len(block) > 1:
            yield block
            block, used = [0], min_widths[0]
        block.append(column)
        used += GAP + min_widths[column]
    yield block


def column_widths(block: Sequence[int], min_widths: Sequence[int], full_widths: Sequence[int], width: int) -> list[int]:
    """Return the widths of a block's columns. Free space is shared evenly by the columns that would be folded."""
    widths = {column: min_widths[column] for column in block}
    spare = width - sum(widths.values()) - GAP * (len(block) - 1)
    by_need = sorted(block, key=lambda column: full_widths[column] - min_widths[column])
    for index, column in enumerate(by_need):
        extra = min(full_widths[column] - min_widths[column], max(0, spare) // (len(by_need) - index))
        widths[column] += extra
        spare -= extra
    return [widths[column] for column in block]


def matrix(table: Table, rows: Sequence[Sequence[Cell]], width: int) -> Iterator[Text]:
    """Yield the lines of a matrix, in blocks of columns that fit the terminal.

    If the names of the columns are too long, the columns have numbers, and a last line lists the names.
    """
    names = [printable(str(name)) for name in table.columns[1:]]
    labels = [printable(str(row[0])) for row in rows]
    label_width = min(width // 2, max(map(cell_len, labels))) + 1
    longest = max(map(cell_len, names))
    number_width = max(cell_len(tinted_cell(cell, table).plain) for row in rows for cell in row[1:])
    min_width = max(number_width, len(str(len(names))) + 1, 5)
    is_named = label_width + len(names) * max(longest + 1, min_width) <= width
    cell_width = max(longest + 1, min_width) if is_named else min_width
    columns_per_block = max(1, (width - label_width) // cell_width)
    for start in range(0, len(names), columns_per_block):
        columns = range(start, min(start + columns_per_block, len(names)))
        heads = [names[column] if is_named else str(column) for column in columns]
        yield Text(" " * label_width + "".join(padded(name, cell_width) for name in heads), "dim")
        for label, row in zip(labels, rows, strict=True):
            *first, last = folded(label, label_width - 1)
            yield from (Text(padded(part, label_width)) for part in first)
            line = Text(padded(last, label_width))
            for column in columns:
                line.append_text(tinted_cell(row[column + 1], table, cell_width))
            yield line
        yield Text("")
    if not is_named:
        yield Text("  ".join(f"{column} {name}" for column, name in enumerate(names)), "dim")


def tinted_cell(cell: Cell, table: Table, width: int = 0) -> Text:
    """Return a number on the background of its colour, in black or white, whichever is readable."""
    if not isinstance(cell, float):
        return Text(padded(str(cell), width))
    colour = colormap(cell, table.scale, table.largest)
    ink = "#000000" if lightness(colour) > 0.55 else "#ffffff"
    return Text(f"{cell:.2f} ".rjust(width), Style(color=ink, bgcolor=to_hex(colour)))


def plain_cell(cell: Cell) -> Text:
    text = format_number(cell) if isinstance(cell, float) else printable(str(cell))
    return Text(text, justify="left" if isinstance(cell, str) else "right")


def padded(text: str, width: int) -> str:
    """Return a text padded on the left to a width in terminal columns; an East Asian character takes two of them."""
    return " " * (width - 1 - cell_len(text)) + text + " "


def folded(text: str, width: int) -> list[str]:
    """Return a text in parts of at most `width` columns. There is at least one part, which may be empty."""
    parts = [""]
    for char in text:
        if parts[-1] and cell_len(parts[-1] + char) > width:
            parts.append("")
        parts[-1] += char
    return parts


def printable(text: str) -> str:
    """Replace control characters: tokens come from the model's author, and the terminal must not interpret them."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
