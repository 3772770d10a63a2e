"""Lines as files bring them: some bytes are not UTF-8, some languages no model reads, and hours of work go on."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sixfold.errors import RequestError
from sixfold.translation.glossary import Glossary
from sixfold.translation.memory import TranslationMemory
from sixfold.translation.options import TranslateOptions
from sixfold.translation.result import Notice, Translation
from sixfold.translation.translator import Translator

BOM = "\ufeff"
LANGUAGE_NOTICES = ("language", "same-language", "direction")  # kinds of notices that a strict caller takes for errors


class NoticeCount(NamedTuple):
    """How many lines have a notice of one kind, and where and what the first was."""

    lines: int
    where: str  # file:line
    message: str


@dataclass
class LineTranslator:
    """Translates the lines of one input, and collects what is to be told about them at the end."""

    translator: Translator
    source: str | None
    target: str | None
    options: TranslateOptions
    glossary: Glossary | None = None
    memory: TranslationMemory | None = None
    name: str = "input"  # of the file, for messages
    notices: dict[str, NoticeCount] = field(default_factory=dict)
    invalid_bytes: int = 0  # that are not UTF-8
    first_invalid_line: int = 0  # the first with any

    def decode_line(self, raw: bytes, number: int) -> str:
        """A line as text; bytes that are not UTF-8 are replaced and counted."""
        if number == 1:
            raw = raw.removeprefix(codecs.BOM_UTF8)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self.invalid_bytes += sum("\udc80" <= char <= "\udcff" for char in raw.decode(errors="surrogateescape"))
            self.first_invalid_line = self.first_invalid_line or number
            return raw.decode(errors="replace")

    def translate(self, texts: Iterable[str], first: int) -> Iterator[Translation]:
        """The translation of every line; `first` is the number of the first. What no model reads stays as it is."""
        asked = [(text, self._is_told(text)) for text in texts]
        wanted = [text for text, is_told in asked if is_told]
        found = iter(
            self.translator.translate_batch(wanted, self.source, self.target, self.options, self.glossary, self.memory)
        )
        unread = (Notice("direction", "no model reads this language; the line stays as it is"),)
        for number, (text, is_told) in enumerate(asked, start=first):
            said = next(found) if is_told else Translation(text, text, 0.0, ("", ""), warnings=unread)
            for kind, message in {notice.kind: notice.message for notice in said.warnings}.items():
                add_notice_count(self.notices, kind, NoticeCount(1, f"{self.name}:{number}", message))
            yield said

    def warning_lines(self) -> Iterator[str]:
        """What a reader of the translation should be wary of, each with the first place of its kind."""
        return warning_lines(self.invalid_bytes, f"{self.name}:{self.first_invalid_line}", self.notices)

    def _is_told(self, text: str) -> bool:
        try:
            self.translator.direction(text, self.source, self.target)
        except RequestError:
            return False
        return True


def byte_order_mark(raw: bytes, number: int) -> str:
    """The mark that the first line of a file may begin with: it is no part of the text, and stays in front of it."""
    return BOM if number == 1 and raw.startswith(codecs.BOM_UTF8) else ""


def add_notice_count(notices: dict[str, NoticeCount], kind: str, more: NoticeCount) -> None:
    """Count more lines with a notice; the first place stays."""
    known = notices.get(kind)
    notices[kind] = more if known is None else known._replace(lines=known.lines + more.lines)


def warning_lines(invalid_bytes: int, where: str, notices: Mapping[str, NoticeCount]) -> Iterator[str]:
    """What a reader of a translation should be wary of, the commonest first."""
    if invalid_bytes:
        yield f"{where}: {invalid_bytes} bytes from here on are not UTF-8 and became U+FFFD"
    for found in sorted(notices.values(), key=lambda found: -found.lines):
        more = found.lines - 1
        yield f"{found.where}: {found.message}" + (
            f"; and {more} {'line' if more == 1 else 'lines'} more" if more else ""
        )


def check_strict(notices: Mapping[str, NoticeCount]) -> None:
    """Raise RequestError where the language of a line is none that is read, or is the target's already."""
    for kind in LANGUAGE_NOTICES:
        if kind in notices:
            raise strict_error(f"{notices[kind].where}: {notices[kind].message}")


def strict_error(message: str) -> RequestError:
    """The error that a notice about the language becomes with --strict."""
    return RequestError(message, "without --strict it is translated all the same, with a warning")
