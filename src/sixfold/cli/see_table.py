"""The numbers of a view in a terminal: coloured where it has colours, plain digits where it has none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.table import Table as Rows
from rich.text import Text

from sixfold.charts import number
from sixfold.explorer.colours import hexadecimal, lightness, shade
from sixfold.explorer.layout import Cell, Table, View

MOST = 120  # rows that are shown
LABEL = 24  # columns for the name of a row


def show(seen: View) -> None:
    """The heading, then every table."""
    console = Console(emoji=False, highlight=False)
    console.print(Text(printable(seen.scene.title), "bold"))
    if seen.scene.description:
        console.print(Text(printable(seen.scene.description), "dim"))
    for table in seen.tables:
        if len(seen.tables) > 1:
            console.print(Text(f"\n{printable(table.title)}", "bold"))
        every = -(-len(table.rows) // MOST) or 1
        for part in drawn(table, table.rows[::every], console.width if console.width >= 40 else 80):
            console.print(part, soft_wrap=isinstance(part, Text))
        if every > 1:
            console.print(Text(f"every {every}th of {len(table.rows):,} rows; --json has them all", "dim"))


def drawn(table: Table, rows: Sequence[Sequence[Cell]], width: int) -> Iterator[Rows | Text]:
    if len(table.tinted) == len(table.head) - 1 and rows:
        yield from matrix(table, rows, width)
        return
    grid = Rows(box=None, pad_edge=False, show_edge=False)
    for name in table.head:
        grid.add_column(Text(printable(name), "dim"), no_wrap=True, overflow="ellipsis")
    for row in rows:
        cells = [said(cell, table) if column in table.tinted else plain(cell) for column, cell in enumerate(row)]
        grid.add_row(*cells)
    yield grid


def matrix(table: Table, rows: Sequence[Sequence[Cell]], width: int) -> Iterator[Text]:
    """In as many blocks as the terminal is too narrow by; columns have numbers where their names have no room."""
    names = [printable(str(name)) for name in table.head[1:]]
    labels = [printable(str(row[0])) for row in rows]
    left = min(LABEL, max(map(cell_len, labels))) + 1
    longest = max(map(cell_len, names))
    is_named = left + len(names) * (max(longest, 5) + 1) <= width
    wide = max(longest, 5) + 1 if is_named else 5
    fit = max(1, (width - left) // wide)
    for start in range(0, len(names), fit):
        shown = range(start, min(start + fit, len(names)))
        heads = [names[column] if is_named else str(column) for column in shown]
        yield Text(" " * left + "".join(padded(name, wide) for name in heads), "dim")
        for label, row in zip(labels, rows, strict=True):
            line = Text(padded(cut(label, left - 1), left - 1) + " ")
            for column in shown:
                line.append_text(said(row[column + 1], table, wide))
            yield line
        yield Text("")
    if not is_named:
        yield Text("  ".join(f"{column} {name}" for column, name in enumerate(names)), "dim")


def said(cell: Cell, table: Table, wide: int = 0) -> Text:
    """A number on its colour, in black or white, whichever can be read."""
    if not isinstance(cell, float):
        return Text(padded(str(cell), wide))
    colour = shade(cell, table.scale, table.largest)
    ink = "#000000" if lightness(colour) > 0.55 else "#ffffff"
    return Text(f"{cell:.2f} ".rjust(wide), Style(color=ink, bgcolor=hexadecimal(colour)))


def plain(cell: Cell) -> Text:
    text = number(cell) if isinstance(cell, float) else printable(str(cell))
    return Text(text, justify="left" if isinstance(cell, str) else "right")


def padded(text: str, wide: int) -> str:
    """Characters of East Asia take two columns."""
    return " " * (wide - 1 - cell_len(text)) + text + " "


def cut(text: str, wide: int) -> str:
    while cell_len(text) > wide - 1:
        text = text[:-1]
    return text


def printable(text: str) -> str:
    """Pieces come from whoever made the model; a terminal must not obey them."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
