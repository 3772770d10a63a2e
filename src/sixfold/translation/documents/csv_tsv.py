"""CSV and TSV: the cells, of all columns or of some; separators, quotes and the ends of lines stay."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from sixfold.configfile import did_you_mean
from sixfold.errors import RequestError
from sixfold.translation.documents.units import Piece, Span, Unit, text_pieces, unit_of

_CELL = r'"(?P<quoted>[^"]*+(?:""[^"]*+)*+)"(?=[{0}\r\n]|\Z)|(?P<plain>[^{0}\r\n]+)'
_CSV = re.compile(_CELL.format(","))
_SEMICOLONS = re.compile(_CELL.format(";"))
_TABS = re.compile(r"(?P<plain>[^\t\r\n]+)")


class Cell(NamedTuple):
    """One that is not empty. Rows count from 0, those without any such cell not at all; columns count from 1."""

    row: int
    column: int
    span: Span  # without its quotation marks
    quoted: bool


def parse_csv(text: str, columns: Sequence[str | int] = ()) -> list[Unit]:
    """Separated by commas, or by semicolons where the first line has more of these."""
    first = text.lstrip("\r\n").partition("\n")[0]
    semicolons = first.count(";") > first.count(",")
    cells, widest = _cells(text, _SEMICOLONS, ";") if semicolons else _cells(text, _CSV, ",")
    return _units(text, _chosen(text, cells, columns, widest), _plain)


def parse_tsv(text: str, columns: Sequence[str | int] = ()) -> list[Unit]:
    """Nothing is quoted: a tab ends a cell."""
    cells, widest = _cells(text, _TABS, "\t")
    return _units(text, _chosen(text, cells, columns, widest), _tabless)


def _cells(text: str, pattern: re.Pattern[str], mark: str) -> tuple[list[Cell], int]:
    """The cells, and how many columns the longest row has."""
    cells: list[Cell] = []
    row, column, end, widest = 0, 1, 0, 1
    for found in (*pattern.finditer(text), None):
        # Between two cells there is nothing but separators and ends of lines.
        first, *others = re.split(r"[\r\n]", text[end : found.start() if found else len(text)])
        column += first.count(mark)
        widest = max(widest, column, *(each.count(mark) + 1 for each in others))
        if others:
            row, column = row + bool(cells), 1 + others[-1].count(mark)
        if found:
            quoted = found.groupdict().get("quoted") is not None
            cells.append(Cell(row, column, found.span("quoted" if quoted else "plain"), quoted))
            end = found.end()
    return cells, widest


def _chosen(text: str, cells: list[Cell], columns: Sequence[str | int], widest: int) -> list[Cell]:
    """The cells of some columns; where one of these has a name, the first row is a header and none of them."""
    if not columns or not cells:
        return cells
    asked = [str(column).strip() for column in columns]
    header = {cell.column: " ".join(_said(text, cell).split()) for cell in cells if cell.row == 0}
    numbers = {number for name in asked for number in _numbers(name, header, widest)}
    skipped = 0 if all(map(_is_number, asked)) else 1
    return [cell for cell in cells if cell.column in numbers and cell.row >= skipped]


def _is_number(name: str) -> bool:
    return re.fullmatch(r"[0-9]{1,9}", name) is not None


def _numbers(name: str, header: Mapping[int, str], widest: int) -> list[int]:
    """Of the columns that are meant; several may have one name."""
    if _is_number(name):
        if not 1 <= int(name) <= widest:
            raise RequestError(f"--columns: expected a number from 1 to {widest}; got {name}")
        return [int(name)]
    found = [number for number, its in header.items() if its == name]
    if not found:
        known = [each for each in header.values() if each]
        raise RequestError(f"--columns: expected one of {', '.join(known)}; got {name!r}", did_you_mean(name, known))
    return found


def _units(text: str, cells: Sequence[Cell], escape: Callable[[str], str]) -> list[Unit]:
    found = (
        unit_of(text_pieces(text, cell.span, _unquoted), _quoted, folds=False)
        if cell.quoted
        else unit_of([Piece(cell.span, text[slice(*cell.span)])], escape, folds=False)
        for cell in cells
    )
    return [unit for unit in found if unit is not None]


def _said(text: str, cell: Cell) -> str:
    raw = text[slice(*cell.span)]
    return _unquoted(raw) if cell.quoted else raw


def _unquoted(raw: str) -> str:
    return raw.replace('""', '"')


def _quoted(text: str) -> str:
    return text.replace('"', '""')


def _tabless(text: str) -> str:
    return re.sub(r"[\t\r\n]", " ", text)


def _plain(text: str) -> str:
    """A cell that has to be quoted now was not before: its quotation marks are part of what takes its place."""
    return f'"{_quoted(text)}"' if re.search(r'[,;"\r\n]', text) else text
