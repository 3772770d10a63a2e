"""Prints the tables of a view in a terminal, with colours where the terminal has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.table import Table as Grid
from rich.text import Text

from sixfold.explorer.drawing import colormap, lightness, to_hex
from sixfold.explorer.views_layout import Cell, Table, View
from sixfold.reports.formatting import format_number

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
