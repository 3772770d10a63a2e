"""SubRip and WebVTT: the text of every cue; numbers, times, notes and styles stay, and lines keep their lengths."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from sixfold.text.languages import letters
from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.documents.structure import Structure, StructureBuilder
from sixfold.translation.documents.units import (
    Kind,
    Piece,
    Span,
    Unit,
    UnreadableError,
    make_unit,
    text_pieces,
    unescape_references,
)
from sixfold.translation.documents.wrapping import balance, visible_width

LATIN_COLUMNS, WIDE_COLUMNS = 42, 40  # of a line at most, unless the source has a longer one; 40: 20 Chinese characters
MIN_COLUMNS = 12  # of a line that a translation is broken into for the sake of the number of lines
_TIME = r"-?[ \t]*+\d{1,4}[ \t]*:[ \t]*\d{1,2}(?:[ \t]*:[ \t]*\d{1,2})?(?:[ \t]*[.,:][ \t]*\d{1,6})?"
_TIMES = re.compile(rf"^[ \t]*+{_TIME}[ \t]*+-->[ \t]*+{_TIME}(?:[ \t][^\n]*|\r)?(?:\n|\Z)", re.M)
_BLANK = re.compile(r"(?:^|\n)[ \t\r]*(?=\n|\Z)")
_TAG = re.compile(
    r"<(?P<close>/?)(?P<name>[a-z][^<>\n]*|[\d:.]+)>"
    r"|\{\\[^{}\n]*\}|\{[a-z]:[^{}\n]*\}"  # {\an8}: the position of a cue on the screen; {y:i}: italic
    r"|(?P<speaker>(?:\n|\A|(?<=\n))[ \t]*(?:[-–—]{1,2}[ \t]+|[-–—]{1,2}(?=[^\W\d_]|[\"'“‘¿¡\[(…])))"
    r"|(?P<voice>\n(?=<v[ .]))",
    re.I,
)
_WIDE = letters("Han", "Hiragana", "Katakana", "Hangul")


def parse_srt(text: str) -> list[Unit]:
    """Return the texts of the cues as units; a blank line inside a cue separates two of them."""
    return _parse(text, False)


def parse_vtt(text: str) -> list[Unit]:
    """Return the texts of the cues as units."""
    return _parse(text, True)


def _parse(text: str, is_vtt: bool) -> list[Unit]:
    """Return units; a line that begins with a dash or a voice, for another speaker, starts a new one."""
    units: list[Unit] = []
    for span in _cue_texts(text, is_vtt):
        check_cancelled()
        pieces: list[Piece] = []
        position = span[0]
        for tag in _TAG.finditer(text, *span):
            pieces += text_pieces(text, (position, tag.start()), unescape_references if is_vtt else str)
            position = tag.end()
            if tag["speaker"] is not None or tag["voice"] is not None:
                units += _units(text, pieces, is_vtt)
                pieces = []
                continue
            is_named = tag["name"] is not None and not tag["name"][0].isdigit()
            kind: Kind = "single" if not is_named else "close" if tag["close"] else "open"
            pieces.append(Piece(tag.span(), kind=kind))
        rest = text_pieces(text, (position, span[1]), unescape_references if is_vtt else str)
        units += _units(text, [*pieces, *rest], is_vtt)
    return units


def _cue_texts(text: str, is_vtt: bool) -> Iterator[Span]:
    """Yield the spans of text below the times of cues, up to a blank line; of SubRip also those up to the next cue."""
    all_times = list(_TIMES.finditer(text))
    starts = [*(times.start() for times in all_times[1:]), len(text)][: len(all_times)]
    for times, next_start in zip(all_times, starts, strict=True):
        end = next_start
        if next_start < len(text):  # the number of the next cue stands in the line before
            number = re.compile(r"(?:\A|\n)[ \t]*[^\n]*\r?\n\Z" if is_vtt else r"(?:\A|\n)[ \t]*\d+[ \t]*\r?\n\Z")
            line = text.rfind("\n", times.end() - 1, next_start - 1)
            if line >= 0 and number.match(text, line, next_start):
                end = line
        position = times.end()
        for blank in _BLANK.finditer(text, max(0, position - 1), end):
            if blank.start() > position:
                yield position, blank.start()
            position = max(position, blank.end())
            if is_vtt:
                break
        else:
            if position < end:
                yield position, end


def _units(text: str, pieces: list[Piece], is_vtt: bool) -> list[Unit]:
    unit = make_unit(pieces, _escape_vtt if is_vtt else _escape_srt)
    return [] if unit is None else [replace(unit, layout=_line_breaker(text[slice(*unit.span)]))]


def _escape_srt(text: str) -> str:
    """Return a text without the arrow that stands between times only."""
    return text.replace("-->", "→")


def _escape_vtt(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("-->", "--&gt;")


def _line_breaker(source: str) -> Callable[[str], str]:
    """Return the function that breaks a translation into lines of a cue.

    They are as many as before where each gets a few words, more if one would be too wide, and never empty.
    """
    lines = re.split(r"\r?\n", source)
    widest = max(map(visible_width, lines))
    line_end = "\r\n" if "\r\n" in source else "\n"

    def break_lines(translation: str) -> str:
        text = " ".join(translation.split())
        limit = max(widest, WIDE_COLUMNS if _WIDE.search(text) else LATIN_COLUMNS)
        count = min(len(lines), max(1, visible_width(text) // MIN_COLUMNS))
        return line_end.join(balance(text, count, limit))

    return break_lines


def srt_structure(text: str) -> Structure:
    """Return the numbers and times of the cues, their tags, and how many texts each has, read line by line."""
    builder = StructureBuilder()
    lines = text.split("\n")
    has_times = has_text = False
    for index, raw in enumerate(lines):
        check_cancelled()
        line = raw.strip()
        if "-->" in line:
            _check_times(line, index + 1)
            builder.block(line)
            has_times, has_text = True, False
        elif line.isdigit() and _next_has_times(lines, index):
            builder.block(f"number {line}")
            has_text = False
        elif not line:
            builder.block("a blank line")
            has_text = False
        elif not has_times:
            raise UnreadableError(
                f"expected the number or the times of a cue; got {line[:40]!r}", index + 1, TIMES_HINT
            )
        else:
            _add_text(builder, line, has_text)
            has_text = True
    return builder.build()


TIMES_HINT = "times look like 00:00:01,000 --> 00:00:02,500"


def vtt_structure(text: str) -> Structure:
    """Return the head, notes, styles, names and times of the cues, and their tags, read block by block."""
    builder = StructureBuilder()
    lines = text.split("\n")
    if text.strip() and not re.match(r"WEBVTT(?:\s|\Z)", text):
        raise UnreadableError(f"expected WEBVTT; got {lines[0].strip()[:40]!r}", 1)
    is_cue = has_text = False  # whether the lines are below the times of a cue
    for index, raw in enumerate(lines):
        check_cancelled()
        line = raw.strip()
        if not line:
            builder.block("a blank line")
            is_cue = has_text = False
        elif "-->" in line and not (is_cue and not _TIMES.match(line)):
            _check_times(line, index + 1)
            builder.block(line)
            is_cue, has_text = True, False
        elif not is_cue:
            builder.block(line)
        else:
            _add_text(builder, line, has_text)
            has_text = True
    return builder.build()


def _check_times(line: str, number: int) -> None:
    if not _TIMES.match(line):
        raise UnreadableError(f"expected the times of a cue; got {line[:60]!r}", number, TIMES_HINT)


def _next_has_times(lines: list[str], index: int) -> bool:
    return index + 1 < len(lines) and "-->" in lines[index + 1]


def _add_text(builder: StructureBuilder, line: str, is_continued: bool) -> None:
    """Add a line of text, which several may become, with its tags."""
    if not is_continued:
        builder.block("a text")
    for tag in re.findall(r"</?[a-zA-Z][^<>]*>?|<[\d:.]+>|\{\\[^{}]*\}|\{[a-z]:[^{}]*\}", line):
        builder.inside(tag if tag.endswith((">", "}")) else "a tag without its end")
