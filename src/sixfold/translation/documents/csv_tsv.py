"""CSV and TSV: the cells of all columns or of some; separators, quotes and line ends stay."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from sixfold.configfile import did_you_mean
from sixfold.errors import RequestError
from sixfold.translation.documents.options import NO_OPTIONS, DocumentOptions
from sixfold.translation.documents.units import Piece, Span, Unit, make_unit, text_pieces

_CELL = r'"(?P<quoted>[^"]*+(?:""[^"]*+)*+)"(?=[{0}\r\n]|\Z)|(?P<plain>[^{0}\r\n]+)'
_CSV = re.compile(_CELL.format(","))
_SEMICOLONS = re.compile(_CELL.format(";"))
_TABS = re.compile(r"(?P<plain>[^\t\r\n]+)")


class Cell(NamedTuple):
    """A cell that is not empty."""

    row: int  # from 0; rows without any cell that is not empty are not counted
    column: int  # from 1
    span: Span  # without its quotation marks
    quoted: bool


def parse_csv(text: str, options: DocumentOptions = NO_OPTIONS) -> list[Unit]:
    """Return the cells as units; they are separated by commas, or by semicolons if the first line has more of these."""
    first = text.lstrip("\r\n").partition("\n")[0]
    semicolons = first.count(";") > first.count(",")
    cells, widest = _cells(text, _SEMICOLONS, ";") if semicolons else _cells(text, _CSV, ",")
    return _units(text, _choose(text, cells, options.columns, widest), _quote_if_needed)


def parse_tsv(text: str, options: DocumentOptions = NO_OPTIONS) -> list[Unit]:
    """Return the cells as units; they are separated by tabs, and quotation marks have no meaning."""
    cells, widest = _cells(text, _TABS, "\t")
    return _units(text, _choose(text, cells, options.columns, widest), _replace_tabs)


def _cells(text: str, pattern: re.Pattern[str], separator: str) -> tuple[list[Cell], int]:
    """Return the cells, and the number of columns of the longest row."""
    cells: list[Cell] = []
    row, column, end, widest = 0, 1, 0, 1
    for match in (*pattern.finditer(text), None):
        # Between two cells there are only separators and line ends.
        first, *rest = re.split(r"[\r\n]", text[end : match.start() if match else len(text)])
        column += first.count(separator)
        widest = max(widest, column, *(line.count(separator) + 1 for line in rest))
        if rest:
            row, column = row + bool(cells), 1 + rest[-1].count(separator)
        if match:
            quoted = match.groupdict().get("quoted") is not None
            cells.append(Cell(row, column, match.span("quoted" if quoted else "plain"), quoted))
            end = match.end()
    return cells, widest


def _choose(text: str, cells: list[Cell], columns: Sequence[str | int], widest: int) -> list[Cell]:
    """Return the cells of some columns; if one of these is given by name, the first row is a header and left out."""
    if not columns or not cells:
        return cells
    names = [str(column).strip() for column in columns]
    header = {cell.column: " ".join(_cell_text(text, cell).split()) for cell in cells if cell.row == 0}
    numbers = {number for name in names for number in _column_numbers(name, header, widest)}
    skipped = 0 if all(map(_is_number, names)) else 1
    return [cell for cell in cells if cell.column in numbers and cell.row >= skipped]


def _is_number(name: str) -> bool:
    return re.fullmatch(r"[0-9]{1,9}", name) is not None


def _column_numbers(name: str, header: Mapping[int, str], widest: int) -> list[int]:
    """Return the numbers of the columns with a name or number; several columns may have one name."""
    if _is_number(name):
        if not 1 <= int(name) <= widest:
            raise RequestError(f"--columns: expected a number from 1 to {widest}; got {name}")
        return [int(name)]
    numbers = [number for number, title in header.items() if title == name]
    if not numbers:
        titles = [title for title in header.values() if title]
        raise RequestError(f"--columns: expected one of {', '.join(titles)}; got {name!r}", did_you_mean(name, titles))
    return numbers


def _units(text: str, cells: Sequence[Cell], escape: Callable[[str], str]) -> list[Unit]:
    units = (
        make_unit(text_pieces(text, cell.span, _unquote), _quote, collapses=False)
        if cell.quoted
        else make_unit([Piece(cell.span, text[slice(*cell.span)])], escape, collapses=False)
        for cell in cells
    )
    return [unit for unit in units if unit is not None]


def _cell_text(text: str, cell: Cell) -> str:
    raw = text[slice(*cell.span)]
    return _unquote(raw) if cell.quoted else raw


def _unquote(raw: str) -> str:
    return raw.replace('""', '"')


def _quote(text: str) -> str:
    return text.replace('"', '""')


def _replace_tabs(text: str) -> str:
    return re.sub(r"[\t\r\n]", " ", text)


def _quote_if_needed(text: str) -> str:
    """Return the text of a cell that had no quotation marks, with quotation marks if it needs them now."""
    return f'"{_quote(text)}"' if re.search(r'[,;"\r\n]', text) else text
