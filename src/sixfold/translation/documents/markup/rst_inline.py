"""reStructuredText inside a paragraph: emphasis and links are marks; literals, roles and references stay."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from sixfold.translation.documents import seams
from sixfold.translation.documents.markup.rst_syntax import (
    BULLET,
    END,
    ENUMERATOR,
    FIELD,
    LITERAL_END,
    OPTION,
    START,
    TEXT_ROLES,
)
from sixfold.translation.documents.units import SPACE, Piece, Span, text_pieces

_EMAIL = r"[A-Za-z0-9.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}"
_BEGIN = re.compile(
    rf"\\(?:\s|.)|{START}(?:(?P<literal>``)(?=\S)|(?P<role>:[\w.+:-]+:)?(?P<quoted>`)(?=[^\s`])|(?P<strong>\*\*)(?=[^\s*])"
    rf"|(?P<emphasis>\*)(?=[^\s*])|(?P<target>_`)(?=\S)|(?P<substitution>\|)(?=[^\s|])"
    rf"|(?P<note>\[(?:\d+|#[\w.-]*|\*|[A-Za-z][\w.-]*)\]_{END})|(?P<address>[a-z][a-z+.-]*://[^\s<>`|]+|{_EMAIL}))"
    rf"|(?<![\w`:.])(?P<reference>[^\W_]+(?:[-._+:][^\W_]+)*__?){END}",
    re.S,
)
_ENDS = {
    "literal": re.compile(rf"(?<!\s)``{END}"),
    "strong": re.compile(rf"(?<![\s\\])\*\*{END}"),
    "emphasis": re.compile(rf"(?<![\s\\])\*{END}"),
    "target": re.compile(rf"(?<![\s\\])`{END}"),
    "quoted": re.compile(rf"(?<![\s\\])`(?P<suffix>__?|:[\w.+:-]+:)?{END}"),
    "substitution": re.compile(rf"(?<![\s\\])\|(?:__?)?{END}"),
}
_WITH_TARGET = re.compile(r"(?P<text>[^<`]*?[^<`\s])\s+(?P<target><[^<>`]+>)", re.S)
_QUOTES = {'"': '"', "'": "'", "(": ")", "[": "]", "<": ">", "{": "}", "“": "”", "‘": "’", "«": "»"}
_ESCAPED = re.compile(r"\\(\s|.)", re.S)
_SPECIAL = re.compile(r"[\\*`]|\|(?=\S)|(?<=[^\W_])_+(?![^\W_])|(?<!\w)_(?=`)")
_COLUMNS = re.compile(r"[\t\n]+")
_BLOCK_START = re.compile(
    rf"(?:{BULLET.pattern}|{ENUMERATOR.pattern}|{FIELD.pattern}|{OPTION.pattern}|\.\.(?:\s|$)|__(?:\s|$)|>>>(?:\s|$)|\|\s)"
)
# Markup in a written translation: an atom has all of its text, a pair has its text elsewhere.
_ATOM = re.compile(
    rf"{_EMAIL}"
    r"|``.*?``(?!`)|_?(?::[\w.+:-]+:)?`[^`\s][^`]*`(?:__?|:[\w.+:-]+:)?|\|[^|]+\|_{0,2}|\[[^\]]*\]_"
    r"|[a-z][a-z+.-]*://[^\s<>`|*]+|[^\W_]+(?:[-._+:][^\W_]+)*__?",
    re.S,
)
_OPEN = re.compile(rf"(?!{_ATOM.pattern})(?:\*\*?|(?::[\w.+:-]+:)?`)", re.S)
_CLOSE = {"*": re.compile(r"\*"), "**": re.compile(r"\*\*"), "`": re.compile(r"\s*<[^<>`]+>`(?:__?)?")}
_ADDRESS = re.compile(rf"[a-z][a-z+.-]*://\S+|{_EMAIL}")
_GOES_ON = re.compile(r"[!-;=?-~]+\w")  # what would be read as a part of the address before it
_IS_EMAIL = re.compile(_EMAIL)
_BEGINS_EMAIL = re.compile(r"[-\w!~*'{|}/#?^`&=+$%.]\Z", re.ASCII)  # what would be read as a part of the one behind it
_CONTINUES_EMAIL = re.compile(r"[-_/~*{|}#^&=+$%]")
_MAY_FOLLOW, _MAY_PRECEDE = re.compile(END), re.compile(rf".{START}", re.S)


class InlineReader:
    """Reads paragraphs of a document."""

    def __init__(self, text: str) -> None:
        self.text = text
        references = re.finditer(
            r"`([^`<>\n]+(?:\n[^`<>\n]+)?)`_(?!_)|(?<![\w`])(\w[\w.+-]*?)_(?![\w_])|:ref:`([^`<>\n]+)`", text
        )
        self._names = {normalised(match[1] or match[2] or match[3]) for match in references}

    def is_referenced(self, name: str) -> bool:
        """Return whether a title or the text of a link is the name of a target, which a translation would break."""
        return normalised(name) in self._names

    def pieces(self, span: Span) -> list[Piece]:
        """Return the pieces of the text in a span of the document."""
        pieces: list[Piece] = []
        position, end = span
        for kind, start, stop in self._markup(span):
            if start > position:
                pieces += text_pieces(self.text, (position, start), unescape)
            pieces += self._markup_pieces(kind, start, stop)
            position = stop
        return pieces + (text_pieces(self.text, (position, end), unescape) if end > position else [])

    def _markup(self, span: Span) -> Iterator[tuple[str, int, int]]:
        """Yield the kind and the span of each piece of markup."""
        position, end = span
        missing: set[str] = set()
        while (match := _BEGIN.search(self.text, position, end)) is not None:
            kind = next((name for name in (*_ENDS, "note", "address", "reference") if match[name]), None)
            position = match.end()
            if kind is None or kind in missing:
                position = match.end() if kind is None else match.start() + 1
                continue
            if kind not in _ENDS:
                yield kind, *match.span()
                continue
            before, after = self.text[match.start() - 1 : match.start()], self.text[position : position + 1]
            if match.start() > span[0] and before in _QUOTES and after == _QUOTES[before]:
                continue
            closing = _ENDS[kind].search(self.text, position + 1, end)
            if closing is None:
                missing.add(kind)
                position = match.start() + 1
                continue
            position = closing.end()
            yield kind, match.start(), position

    def _markup_pieces(self, kind: str, start: int, stop: int) -> list[Piece]:
        raw = self.text[start:stop]
        if kind in ("strong", "emphasis"):
            width = 2 if kind == "strong" else 1
            return self._pair((start, start + width), (stop - width, stop))
        if kind == "quoted":
            role = raw[: raw.index("`")].strip(":")
            suffix = raw[raw.rindex("`") + 1 :]
            inner = start + raw.index("`") + 1, start + raw.rindex("`")
            match = _WITH_TARGET.fullmatch(self.text, *inner)
            is_link = not role and suffix in ("_", "__") and match is not None and not self.is_referenced(match["text"])
            if match is not None and (is_link or (role in TEXT_ROLES and not suffix)) and "\\" not in match["text"]:
                return self._pair((start, inner[0]), (match.end("text"), stop))
        return [Piece((start, stop), raw, "atom")]

    def _pair(self, opening: Span, closing: Span) -> list[Piece]:
        inner = text_pieces(self.text, (opening[1], closing[0]), unescape)
        return [Piece(opening, kind="open"), *inner, Piece(closing, kind="close")]


def normalised(name: str) -> str:
    """Return a name as references are compared: in lower case, with single spaces."""
    return " ".join(name.lower().split())


def unescape(text: str) -> str:
    """Return a text without its backslashes; an escaped space is nothing."""
    return _ESCAPED.sub(lambda match: "" if match[1].isspace() else match[1], text)


@seams.mark_edges
def escape(text: str) -> str:
    """Put a backslash before characters that would be markup; tabs and line feeds become spaces."""
    return _SPECIAL.sub(lambda match: f"\\{match[0]}", _COLUMNS.sub(" ", text))


def layout(written: str) -> str:
    """Make markup of what is written as markup, and keep text from looking like the beginning of a block.

    1. White space moves out of emphasis and links, which do not begin or end with it.
    2. `\\ `, which is nothing, separates markup from letters beside it.
    3. Two colons at the end are escaped, since they announce a literal block.
    """
    parts = _parts(written)
    for index, part in enumerate(parts):
        if part.kind != "text":
            continue
        opening, closing = parts[index - 1 : index], parts[index + 1 : index + 2]
        text = part.text.strip(SPACE)
        if text and opening and opening[0].kind == "open":
            parts[index - 1] = Part("open", part.text[: -len(part.text.lstrip(SPACE))] + opening[0].text)
            part = Part("text", part.text.lstrip(SPACE))
        if text and closing and closing[0].kind == "close":
            parts[index + 1] = Part("close", closing[0].text + part.text[len(part.text.rstrip(SPACE)) :])
            part = Part("text", part.text.rstrip(SPACE))
        parts[index] = part
    result = ""
    previous = Part("text", "")
    for part, following in zip(parts, [*parts[1:], Part("text", "")], strict=True):
        is_apart = result[-1:].isspace() or part.text[:1].isspace()
        needs_space = (part.kind in ("open", "atom") and result and not _MAY_PRECEDE.fullmatch(result[-1])) or (
            previous.kind in ("close", "atom") and not _MAY_FOLLOW.match(part.text)
        )
        # A mark between quotation marks, as in '*', is no markup.
        needs_space |= part.kind == "open" and _QUOTES.get(result[-1:], "-") == following.text[:1]
        needs_space |= bool(_IS_EMAIL.fullmatch(previous.text) and _CONTINUES_EMAIL.match(part.text))
        needs_space |= bool(_IS_EMAIL.fullmatch(part.text) and _BEGINS_EMAIL.search(result))
        needs_space |= bool(_ADDRESS.fullmatch(previous.text) and _GOES_ON.match(part.text))
        result += f"\\ {part.text}" if needs_space and not is_apart else part.text
        previous = part
    result = LITERAL_END.sub(r"\\::", result)
    is_text = bool(parts) and parts[0].kind == "text"
    return f"\\{result}" if is_text and _BLOCK_START.match(result) else result


class Part(NamedTuple):
    """A part of a written translation."""

    kind: str  # text, open, close or atom
    text: str


def _parts(written: str) -> list[Part]:
    """Return the texts and the markup of a written translation; inside a pair, markup may be its end."""
    parts: list[Part] = []
    opening = ""  # what the current pair begins with
    for index, raw in enumerate(seams.split(written)):
        if index % 2:
            parts += [Part("text", raw)] if raw else []
            continue
        position = 0
        while position < len(raw):
            match = _CLOSE["`" if opening.endswith("`") else opening].match(raw, position) if opening else None
            kind = "close" if match else "atom"
            if match is None and not opening and (match := _OPEN.match(raw, position)):
                kind = "open"
            match = match or _ATOM.match(raw, position)
            opening = match[0] if match and kind == "open" else "" if kind == "close" else opening
            end = match.end() if match else len(raw)
            parts.append(Part(kind, raw[position:end]))
            position = end
    return parts
