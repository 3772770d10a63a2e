"""The structure of PO: comments and messages without their new translations, read line by line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.documents.catalogues.po import DIRECTIVE, has_directives
from sixfold.translation.documents.structure import Structure, StructureBuilder
from sixfold.translation.documents.units import UnreadableError

_HEADER_FIELDS = re.compile(r"(?i)(?:Language|Plural-Forms|Content-Type|Content-Transfer-Encoding):")
_DIRECTIVE_OR_PERCENT = re.compile(f"{DIRECTIVE.pattern}|%")
_ENDS_IN_LINE = re.compile(r"(?<!\\)(?:\\\\)*\\n\Z")


def structure(text: str) -> Structure:
    """Return the structure of a catalogue."""
    return _Reader().read(text)


def _line_ends(strings: str) -> tuple[bool, bool]:
    """Return whether a text begins and ends with a line feed; `strings`: with its escape sequences."""
    return strings.startswith("\\n"), _ENDS_IN_LINE.search(strings) is not None


def _directives(strings: str) -> list[str]:
    """Return the directives of a text, in order where their order says what they stand for.

    A percent sign that begins none is one of them, since msgfmt refuses it.
    """
    found = [match[0] for match in _DIRECTIVE_OR_PERCENT.finditer(strings)]
    has_names = any("(" in each or "$" in each for each in found)
    return sorted(found) if has_names else found


class _Reader:
    """Reads a catalogue line by line and collects its structure."""

    def __init__(self) -> None:
        self.builder = StructureBuilder()
        self.line = 0
        self.keyword = ""  # of the strings that are read
        self.flags = ""  # of the message that follows
        self.strings_of: dict[str, list[str]] = {}  # the strings of the current message, by keyword

    def read(self, text: str) -> Structure:
        for self.line, raw_line in enumerate(text.split("\n"), start=1):
            check_cancelled()
            line = raw_line.strip(" \t\r\f\v")
            if line.startswith("#"):
                self.comment(line)
            elif line.startswith('"'):
                self.strings(line)
            elif line:
                self.statement(line)
        self.end_message()
        return self.builder.build()

    def comment(self, line: str) -> None:
        if any(keyword.startswith("msgstr") for keyword in self.strings_of):
            self.end_message()
        if line.startswith("#,"):  # a translation with warnings becomes fuzzy
            self.flags += line
            flags = [flag.strip() for flag in line[2:].split(",")]
            line = ",".join(sorted(flag for flag in flags if flag and flag != "fuzzy"))
        if line:
            self.builder.block(f"# {line}")

    def statement(self, line: str) -> None:
        keyword = line[: min((line.index(mark) for mark in ' \t"' if mark in line), default=len(line))]
        name = keyword.partition("[")[0]
        if name not in ("domain", "msgctxt", "msgid", "msgid_plural", "msgstr"):
            self.fail(f"expected msgid, msgstr or a comment; got {keyword[:40]!r}")
        has_translation = any(each.startswith("msgstr") for each in self.strings_of)
        if name in ("domain", "msgctxt") or (name == "msgid" and (has_translation or "msgid" in self.strings_of)):
            self.end_message()
        if name in ("msgid_plural", "msgstr") and "msgid" not in self.strings_of:
            self.fail(f"expected a msgid before {keyword}")
        if keyword in self.strings_of:
            self.fail(f"expected one {keyword} in a message; got another")
        self.keyword = keyword
        self.strings_of[keyword] = []
        self.strings(line[len(keyword) :].strip())

    def strings(self, line: str) -> None:
        """Read the strings of a line, character by character."""
        if not self.keyword:
            self.fail("expected msgid or msgstr before a string")
        content: list[str] = []
        is_inside = is_escaped = False
        for char in line:
            if is_escaped:
                is_escaped = False
            elif is_inside and char == "\\":
                is_escaped = True
            elif char == '"':
                is_inside = not is_inside
                continue
            elif not is_inside and char not in " \t":
                self.fail(f"expected a string in quotation marks; got {char!r}")
            if is_inside:
                content.append(char)
        if is_inside:
            self.fail('expected " at the end of the string')
        self.strings_of[self.keyword] += content

    def end_message(self) -> None:
        """Add the current message to the structure. The language of the header and new translations are left out."""
        message = {keyword: "".join(strings) for keyword, strings in self.strings_of.items()}
        self.strings_of, self.keyword = {}, ""
        if "domain" in message:
            self.builder.block(f"domain {message['domain']}")
        if not message or message.keys() <= {"domain"}:
            return
        forms = [keyword for keyword in message if keyword.startswith("msgstr")]
        if "msgid" not in message or not forms:
            missing = "msgstr" if "msgid" in message else "msgid"
            self.fail(f"expected a {missing} in the message before this line")
        for keyword in ("msgctxt", "msgid", "msgid_plural"):
            if keyword in message:
                self.builder.block(f"{keyword} {message[keyword]}")
        self.check_translations(message, forms)
        if not message["msgid"]:
            fields = message[forms[0]].split("\\n")
            self.builder.block(" ".join(field for field in fields if not _HEADER_FIELDS.match(field)))
        self.builder.block("msgstr of plurals" if "msgid_plural" in message else "msgstr")

    def check_translations(self, message: Mapping[str, str], forms: Sequence[str]) -> None:
        """Add what msgfmt -c refuses: line feeds at one end only of a message and its translation, other directives."""
        sources = [message[keyword] for keyword in ("msgid", "msgid_plural") if message.get(keyword)]
        flags, self.flags = self.flags, ""
        for translation in {message[keyword] for keyword in forms if sources and message[keyword]}:
            if any(_line_ends(source) != _line_ends(translation) for source in sources):
                self.builder.inside("a translation has other line feeds at its ends")
            if has_directives(flags) and _directives(translation) not in map(_directives, sources):
                self.builder.inside("a translation has other directives")

    def fail(self, message: str) -> None:
        raise UnreadableError(message, self.line, "check the file with msgfmt -c")
