"""CSV and TSV: the cells; separators, quotes and the ends of lines stay."""

from __future__ import annotations

import re

from sixfold.translation.units import Piece, Unit, text_pieces, unit_of

_CELL = r'"(?P<quoted>(?:[^"]|"")*)"(?=[{0}\r\n]|\Z)|(?P<plain>[^{0}\r\n]+)'
_CSV = re.compile(_CELL.format(","))
_SEMICOLONS = re.compile(_CELL.format(";"))
_TABS = re.compile(r"(?P<plain>[^\t\r\n]+)")


def parse_csv(text: str) -> list[Unit]:
    """Separated by commas, or by semicolons where the first line has more of these."""
    first = text.partition("\n")[0]
    return _cells(text, _SEMICOLONS if first.count(";") > first.count(",") else _CSV)


def parse_tsv(text: str) -> list[Unit]:
    """Nothing is quoted: a tab ends a cell."""
    return _cells(text, _TABS)


def _cells(text: str, pattern: re.Pattern[str]) -> list[Unit]:
    units = []
    for found in pattern.finditer(text):
        quoted = found.groupdict().get("quoted") is not None
        span = found.span("quoted" if quoted else "plain")
        if quoted:
            unit = unit_of(text_pieces(text, span, _unquoted), _quoted, folds=False)
        else:
            unit = unit_of([Piece(span, text[slice(*span)])], _tabless if pattern is _TABS else _plain, folds=False)
        if unit is not None:
            units.append(unit)
    return units


def _unquoted(raw: str) -> str:
    return raw.replace('""', '"')


def _quoted(text: str) -> str:
    return text.replace('"', '""')


def _tabless(text: str) -> str:
    return re.sub(r"[\t\r\n]", " ", text)


def _plain(text: str) -> str:
    """A cell that has to be quoted now was not before: its quotation marks are part of what takes its place."""
    return f'"{_quoted(text)}"' if re.search(r'[,;"\r\n]', text) else text
