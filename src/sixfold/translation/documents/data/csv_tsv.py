"""CSV and TSV: the cells of all columns or of some; separators, quotes and line ends stay.

The first row is a header, which no rule could tell from a row of data. It stays, unless the user says otherwise.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from sixfold.configfile import did_you_mean
from sixfold.errors import RequestError
from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.documents.data.keys import is_data, text_item
from sixfold.translation.documents.options import NO_OPTIONS, DocumentOptions
from sixfold.translation.documents.structure import Structure, StructureBuilder
from sixfold.translation.documents.units import Piece, Span, Unit, UnreadableError, make_unit, text_pieces

MAX_FIRST_LINE = 100_000  # characters that are searched for what separates the cells

_CELL = r'"(?P<quoted>[^"]*+(?:""[^"]*+)*+)"(?=[{0}\r\n]|\Z)|(?P<plain>[^{0}\r\n]+)'
_CSV = {separator: re.compile(_CELL.format(re.escape(separator))) for separator in ",;\t|"}
_QUOTED = re.compile(r'"[^"]*+(?:""[^"]*+)*+"')
_FORMULA = re.compile(r"=[A-Z][A-Z.]*\(.*\)\s*", re.S)  # of a spreadsheet
_TABS = re.compile(r"(?P<plain>[^\t\r\n]+)")


class Cell(NamedTuple):
    """A cell that is not empty."""

    row: int  # from 0; rows without any cell that is not empty are not counted
    column: int  # from 1
    span: Span  # without its quotation marks
    quoted: bool


def parse_csv(text: str, options: DocumentOptions = NO_OPTIONS) -> list[Unit]:
    """Return the cells as units; `separator_of` says what separates them."""
    separator = separator_of(text)
    cells, widest = _cells(text, _CSV[separator], separator)
    chosen = _choose(text, cells, options, widest)
    # Programs do not agree about a cell with text after its closing quotation mark: "a" b.
    clear = [cell for cell in chosen if cell.quoted or text[cell.span[0]] != '"']
    return _units(text, clear, _quoter(separator))


def parse_tsv(text: str, options: DocumentOptions = NO_OPTIONS) -> list[Unit]:
    """Return the cells as units; they are separated by tabs, and quotation marks have no meaning."""
    cells, widest = _cells(text, _TABS, "\t")
    return _units(text, _choose(text, cells, options, widest), _replace_tabs)


def separator_of(text: str) -> str:
    """Return what separates the cells of CSV: a comma, or what the first line has more of outside quotation marks."""
    first = re.split(r"[\r\n]", _QUOTED.sub("", text[:MAX_FIRST_LINE]).lstrip("\r\n"), maxsplit=1)[0]
    return max(_CSV, key=first.count)


def csv_structure(text: str) -> Structure:
    """Return the rows of CSV with their cells, and the cells that have nothing to translate."""
    return _structure(text, delimiter=separator_of(text))


def tsv_structure(text: str) -> Structure:
    """Return the rows of TSV with their cells, and the cells that have nothing to translate."""
    return _structure(text, delimiter="\t", quoting=csv.QUOTE_NONE)


def _structure(text: str, **dialect: Any) -> Structure:
    if len(text) > csv.field_size_limit():
        csv.field_size_limit(len(text))  # a cell may be longer than Python's limit
    builder = StructureBuilder()
    for strict in (True, False):
        reader = csv.reader(io.StringIO(text, newline=""), strict=strict, **dialect)
        line = 1
        try:
            for row in reader:
                check_cancelled()
                line = reader.line_num + 1
                builder.block(f"a row of {len(row)} cells")
                for cell in row:
                    builder.block(text_item(cell))
            break
        except csv.Error as error:
            if not strict or "unexpected end of data" in str(error):
                raise UnreadableError(
                    f"expected a table; {error}", line, "a quotation mark that opens a cell in this row is not closed"
                ) from None
            builder = StructureBuilder()  # quotation marks inside a cell, which most programs read as they are
    return builder.build()


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


def _choose(text: str, cells: list[Cell], options: DocumentOptions, widest: int) -> list[Cell]:
    """Return the cells of the columns that were chosen, or of all, without the header unless it is to be translated."""
    first_row = 0 if options.header else 1
    if not options.columns or not cells:
        return [cell for cell in cells if cell.row >= first_row]
    names = [str(column).strip() for column in options.columns]
    header = {cell.column: " ".join(_cell_text(text, cell).split()) for cell in cells if cell.row == 0}
    numbers = {number for name in names for number in _column_numbers(name, header, widest)}
    return [cell for cell in cells if cell.column in numbers and cell.row >= first_row]


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
        if not _is_formula_or_data(_cell_text(text, cell))
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


def _quoter(separator: str) -> Callable[[str], str]:
    """Return the function that writes a cell without quotation marks, with them if it needs them now."""
    needs_quotes = re.compile(rf'[{re.escape(separator)},;"\r\n]')
    return lambda text: f'"{_quote(text)}"' if needs_quotes.search(text) else text


def _is_formula_or_data(text: str) -> bool:
    return is_data(text) or (text.startswith("=") and _FORMULA.fullmatch(text) is not None)
