"""Lines of a file translated one by one, with counts of their notices and of the bytes that are not UTF-8.

A line that no model reads stays as it is, so that hours of work do not end with an error.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sixfold.errors import RequestError
from sixfold.translation.request import TranslationRequest
from sixfold.translation.result import Notice, Translation
from sixfold.translation.routing import Route
from sixfold.translation.translator import Translator

BOM = "\ufeff"
LANGUAGE_NOTICES = ("language", "same-language", "direction")  # kinds of notices that are errors with --strict


class NoticeCount(NamedTuple):
    """How many lines have a notice of one kind, and the place and message of the first."""

    lines: int
    where: str  # file:line
    message: str


@dataclass
class LineTranslator:
    """Translates the lines of one input, and counts their notices."""

    translator: Translator
    request: TranslationRequest
    name: str = "input"  # the name of the file in messages
    notices: dict[str, NoticeCount] = field(default_factory=dict)  # by kind
    invalid_bytes: int = 0  # bytes that are not UTF-8
    first_invalid_line: int = 0  # the number of the first line with such bytes, from 1

    def decode_line(self, raw: bytes, number: int) -> str:
        """Return a line as text, without byte order mark; bytes that are not UTF-8 are replaced and counted."""
        if number == 1:
            raw = raw.removeprefix(codecs.BOM_UTF8)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self.invalid_bytes += sum("\udc80" <= char <= "\udcff" for char in raw.decode(errors="surrogateescape"))
            self.first_invalid_line = self.first_invalid_line or number
            return raw.decode(errors="replace")

    def translate(self, texts: Iterable[str], first: int) -> Iterator[Translation]:
        """Yield the translation of every line; `first` is the number of the first line.

        A line in a language that no model reads stays as it is, with a notice.
        """
        lines = [(text, self._route(text)) for text in texts]
        to_translate = [(text, route) for text, route in lines if route is not None]
        routed_texts, routes = [text for text, _ in to_translate], [route for _, route in to_translate]
        translations = iter(self.translator.translate_routed(routed_texts, routes, self.request))
        no_direction = (Notice("direction", "no model reads this language; the line stays as it is"),)
        for number, (text, route) in enumerate(lines, start=first):
            if route is not None:
                translation = next(translations)
            else:
                translation = Translation(text, text, 0.0, ("", ""), warnings=no_direction)
            for kind, message in {notice.kind: notice.message for notice in translation.warnings}.items():
                add_notice_count(self.notices, kind, NoticeCount(1, f"{self.name}:{number}", message))
            yield translation

    def warning_lines(self) -> Iterator[str]:
        """Yield one line for people about each kind of notice, with the place of its first occurrence."""
        return warning_lines(self.invalid_bytes, f"{self.name}:{self.first_invalid_line}", self.notices)

    def _route(self, text: str) -> Route | None:
        """Return the route of a line, or None if no model reads its language."""
        try:
            return self.translator.route(text, self.request)
        except RequestError:
            return None


def byte_order_mark(raw: bytes, number: int) -> str:
    """Return the byte order mark of the first line of a file, or nothing.

    It is not translated, and is written in front of the translation.
    """
    return BOM if number == 1 and raw.startswith(codecs.BOM_UTF8) else ""


def add_notice_count(notices: dict[str, NoticeCount], kind: str, more: NoticeCount) -> None:
    """Add lines to the count of a kind of notice; the place and message of the first stay."""
    count = notices.get(kind)
    notices[kind] = more if count is None else count._replace(lines=count.lines + more.lines)


def warning_lines(invalid_bytes: int, where: str, notices: Mapping[str, NoticeCount]) -> Iterator[str]:
    """Yield one line for people about invalid bytes and about each kind of notice, the most frequent first."""
    if invalid_bytes:
        yield f"{where}: {invalid_bytes} bytes from here on are not UTF-8 and became U+FFFD"
    for count in sorted(notices.values(), key=lambda count: -count.lines):
        more = count.lines - 1
        yield f"{count.where}: {count.message}" + (
            f"; and {more} {'line' if more == 1 else 'lines'} more" if more else ""
        )


def check_strict(notices: Mapping[str, NoticeCount]) -> None:
    """Raise RequestError if a line is in a language that no model reads, or in the target language already."""
    for kind in LANGUAGE_NOTICES:
        if kind in notices:
            raise strict_error(f"{notices[kind].where}: {notices[kind].message}")


def strict_error(message: str) -> RequestError:
    """Return the error that stands for a notice about the language with --strict."""
    return RequestError(message, "without --strict this is a warning and no error")
