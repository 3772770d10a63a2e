"""Lines as files bring them: some bytes are not UTF-8, some languages no model reads, and hours of work go on."""

from __future__ import annotations

import codecs
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sixfold.config import TranslateOptions
from sixfold.errors import RequestError
from sixfold.translation.glossary import Glossary
from sixfold.translation.memory import Memory
from sixfold.translation.result import Notice, Translation
from sixfold.translation.translator import Translator


@dataclass
class Lines:
    """What is asked for each line, and what is to be told at the end."""

    translator: Translator
    source: str | None
    target: str | None
    options: TranslateOptions
    glossary: Glossary | None = None
    memory: Memory | None = None
    notices: Counter[str] = field(default_factory=Counter)
    foreign_bytes: int = 0  # that are not UTF-8
    foreign_line: int = 0  # the first with any

    def decoded(self, raw: bytes, number: int) -> str:
        if number == 1:
            raw = raw.removeprefix(codecs.BOM_UTF8)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self.foreign_bytes += sum("\udc80" <= char <= "\udcff" for char in raw.decode(errors="surrogateescape"))
            self.foreign_line = self.foreign_line or number
            return raw.decode(errors="replace")

    def translate(self, texts: Iterable[str]) -> Iterator[Translation]:
        """A line in a language that no model reads stays as it is."""
        asked = [(text, self._is_told(text)) for text in texts]
        wanted = [text for text, is_told in asked if is_told]
        found = iter(
            self.translator.translate_batch(wanted, self.source, self.target, self.options, self.glossary, self.memory)
        )
        unread = (Notice("direction", "no model reads this language"),)
        for text, is_told in asked:
            said = next(found) if is_told else Translation(text, text, 0.0, ("", ""), warnings=unread)
            self.notices.update({notice.kind for notice in said.warnings})
            yield said

    def _is_told(self, text: str) -> bool:
        try:
            self.translator.direction(text, self.source, self.target)
        except RequestError:
            return False
        return True


def report(foreign_bytes: int, where: str, notices: Mapping[str, int]) -> Iterator[str]:
    """Of what a reader should be wary."""
    if foreign_bytes:
        yield f"{foreign_bytes} bytes are not UTF-8 and became U+FFFD, first in {where}"
    for kind, count in Counter(notices).most_common():
        yield f"{kind}: {count} lines"
