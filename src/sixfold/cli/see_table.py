"""The numbers of a view in a terminal: coloured where it has colours, plain digits where it has none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.table import Table as Rows
from rich.text import Text

from sixfold.explorer.drawing import colormap, lightness, to_hex
from sixfold.explorer.views_layout import Cell, Table, View
from sixfold.reports.formatting import format_number

MOST = 120  # rows that are shown
NARROW = 12  # columns of the terminal that a column of words keeps when it is folded
GAP = 2  # columns between those of a table


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
    if len(table.coloured_columns) == len(table.columns) - 1 and rows:
        yield from matrix(table, rows, width)
        return
    tints = set(table.coloured_columns)
    cells = [[said(cell, table) if column in tints else plain(cell) for column, cell in enumerate(row)] for row in rows]
    heads = [Text(printable(name), "dim") for name in table.columns]
    whole = [max(cell_len(line[column].plain) for line in [heads, *cells]) for column in range(len(heads))]
    is_words = [any(isinstance(row[column], str) for row in rows) for column in range(len(heads))]
    least = [min(size, NARROW) if words else size for size, words in zip(whole, is_words, strict=True)]
    for block in blocks(least, width):
        grid = Rows(box=None, pad_edge=False, show_edge=False)
        for column, size in zip(block, shared(block, least, whole, width), strict=True):
            grid.add_column(heads[column], width=size, overflow="fold")
        for line in cells:
            grid.add_row(*(line[column] for column in block))
        yield grid
        if block[-1] < len(heads) - 1:
            yield Text("")


def blocks(least: Sequence[int], width: int) -> Iterator[list[int]]:
    """The columns in as many blocks as the terminal is too narrow by, each begun with the first column."""
    block, used = [0], least[0]
    for column in range(1, len(least)):
        if used + GAP + least[column] > width and len(block) > 1:
            yield block
            block, used = [0], least[0]
        block.append(column)
        used += GAP + least[column]
    yield block


def shared(block: Sequence[int], least: Sequence[int], whole: Sequence[int], width: int) -> list[int]:
    """The widths of columns: what is left over goes to those that are to be folded, as evenly as they can use it."""
    sizes = {column: least[column] for column in block}
    spare = width - sum(sizes.values()) - GAP * (len(block) - 1)
    waiting = sorted(block, key=lambda column: whole[column] - least[column])
    for place, column in enumerate(waiting):
        more = min(whole[column] - least[column], max(0, spare) // (len(waiting) - place))
        sizes[column] += more
        spare -= more
    return [sizes[column] for column in block]


def matrix(table: Table, rows: Sequence[Sequence[Cell]], width: int) -> Iterator[Text]:
    """In as many blocks as the terminal is too narrow by; columns have numbers where their names have no room."""
    names = [printable(str(name)) for name in table.columns[1:]]
    labels = [printable(str(row[0])) for row in rows]
    left = min(width // 2, max(map(cell_len, labels))) + 1
    longest = max(map(cell_len, names))
    figures = max(cell_len(said(cell, table).plain) for row in rows for cell in row[1:])
    narrow = max(figures, len(str(len(names))) + 1, 5)
    is_named = left + len(names) * max(longest + 1, narrow) <= width
    wide = max(longest + 1, narrow) if is_named else narrow
    fit = max(1, (width - left) // wide)
    for start in range(0, len(names), fit):
        shown = range(start, min(start + fit, len(names)))
        heads = [names[column] if is_named else str(column) for column in shown]
        yield Text(" " * left + "".join(padded(name, wide) for name in heads), "dim")
        for label, row in zip(labels, rows, strict=True):
            *above, last = folded(label, left - 1)
            yield from (Text(padded(part, left)) for part in above)
            line = Text(padded(last, left))
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
    colour = colormap(cell, table.scale, table.largest)
    ink = "#000000" if lightness(colour) > 0.55 else "#ffffff"
    return Text(f"{cell:.2f} ".rjust(wide), Style(color=ink, bgcolor=to_hex(colour)))


def plain(cell: Cell) -> Text:
    text = format_number(cell) if isinstance(cell, float) else printable(str(cell))
    return Text(text, justify="left" if isinstance(cell, str) else "right")


def padded(text: str, wide: int) -> str:
    """Characters of East Asia take two columns."""
    return " " * (wide - 1 - cell_len(text)) + text + " "


def folded(text: str, wide: int) -> list[str]:
    """A text in parts that are at most so many columns wide; one part, perhaps empty, at least."""
    parts = [""]
    for char in text:
        if parts[-1] and cell_len(parts[-1] + char) > wide:
            parts.append("")
        parts[-1] += char
    return parts


def printable(text: str) -> str:
    """Pieces come from whoever made the model; a terminal must not obey them."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
