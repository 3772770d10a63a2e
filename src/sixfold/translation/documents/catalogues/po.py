"""PO, the message catalogues of gettext: messages without a translation get one; everything else stays."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sixfold.text.language_codes import base_language
from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.documents.catalogues.accelerators import split_accelerator, uses_underscores
from sixfold.translation.documents.catalogues.plurals import is_first_form_for_one, plural_forms
from sixfold.translation.documents.options import NO_OPTIONS, DocumentOptions
from sixfold.translation.documents.units import Atom, Span, TargetLanguage, Unit
from sixfold.translation.documents.wrapping import join_wrapped
from sixfold.translation.protection import Edit, apply_edits, protected_spans

_QUOTED = r'(?:"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"[ \t]*+(?:\r?\n[ \t]*+)?+)++'
_ENTRY = re.compile(
    rf"(?:^[ \t]*+msgctxt[ \t]*+(?P<context>{_QUOTED}))?^[ \t]*+msgid[ \t]*+(?P<singular>{_QUOTED})"
    rf"(?:^[ \t]*+msgid_plural[ \t]*+(?P<plural>{_QUOTED}))?"
    rf"(?P<forms>(?:^[ \t]*+msgstr(?:\[\d+\])?[ \t]*+{_QUOTED})+)",
    re.M,
)
_FORM = re.compile(rf"^[ \t]*+msgstr(?:\[(?P<number>\d+)\])?[ \t]*+(?P<translation>{_QUOTED})", re.M)
_STRING = re.compile(r'"([^"\\\n]*+(?:\\.[^"\\\n]*+)*+)"')
_FLAGS = re.compile(r"^#,(?P<flags>.*)$", re.M)
_ESCAPE = re.compile(r"\\(?:x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", re.S)
_CONTROL = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_ESCAPED = {"\\": "\\\\", '"': '\\"', **{char: f"\\{name}" for name, char in _CONTROL.items()}}

# What the flags of a message call a directive; most of them are protected in every text.
_PERCENT_FLAGS = re.compile(
    r"(?<![\w-])(?:c|objc|python|php|perl|tcl|sh-printf|awk|lua|gcc-internal|gfc-internal)-format"
)
DIRECTIVE = re.compile(
    r"%(?:\(\w{1,60}\)|\d{1,2}\$)?[-+ #0'I]{0,5}(?:\d{1,4}|\*(?:\d{1,2}\$)?)?(?:\.(?:\d{1,4}|\*(?:\d{1,2}\$)?)?)?"
    r"(?:<[A-Za-z]\w{0,20}>|(?:hh|ll|[hlLqjzt])?[diouxXeEfFgGaAcCsSpnmKqr%])"
)
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,2000}+>")


@dataclass(frozen=True)
class Entry:
    """A message with its translations, as spans of the catalogue."""

    start: int  # of its msgctxt or msgid, in the line where that begins
    comments: Span
    singular: str
    plural: str | None
    forms: tuple[tuple[Span, str], ...]  # the strings of each msgstr without the white space behind them, and its text

    @property
    def is_header(self) -> bool:
        return not self.singular


def parse(text: str, _options: DocumentOptions = NO_OPTIONS) -> list[Unit]:
    """Return the messages with an empty msgstr as units; the header and translated messages stay."""
    all_entries = list(_entries(text))
    entries = [entry for entry in all_entries if entry.singular.strip()]
    rule = next((_field(entry.forms[0][1], "Plural-Forms") for entry in all_entries if entry.is_header), None)
    line_end = "\r\n" if "\r\n" in text else "\n"
    has_underscores = uses_underscores(entry.singular for entry in entries)
    units = []
    for entry in entries:
        flags = " ".join(match["flags"] for match in _FLAGS.finditer(text, *entry.comments))
        for number, (span, translation) in enumerate(entry.forms):
            if translation:
                continue
            is_plural = number > 0 or len(entry.forms) == 1 or _needs_plural(entry, rule)
            source = entry.plural if is_plural and entry.plural is not None else entry.singular
            review = None if "fuzzy" in flags else _fuzzy_flag(text, entry, line_end)
            units += _unit(source, span, flags, review, has_underscores, line_end)
    return units


def _entries(text: str) -> Iterator[Entry]:
    """Yield the messages of a catalogue, the header too; not those that are obsolete."""
    end = 0
    for match in _ENTRY.finditer(text):
        check_cancelled()
        forms = []
        for form in _FORM.finditer(text, *match.span("forms")):
            start = form.start("translation")
            forms.append(((start, start + len(form["translation"].rstrip())), _unquote(form["translation"])))
        yield Entry(
            match.start(), (end, match.start()), _unquote(match["singular"]),
            None if match["plural"] is None else _unquote(match["plural"]), tuple(forms),
        )  # fmt: skip
        end = match.end()


def _needs_plural(entry: Entry, rule: str | None) -> bool:
    """Return whether the first form of a message stands for 0 or 21 things too, while its msgid has no number."""
    if entry.plural is None or not rule or "INTEGER" in rule or is_first_form_for_one(rule):
        return False
    return _placeholders(entry.singular) != _placeholders(entry.plural)


def _fuzzy_flag(text: str, entry: Entry, line_end: str) -> tuple[Span, str]:
    """Return the edit that marks a message as fuzzy: in its line of flags, or in a new line before it."""
    flags = _FLAGS.search(text, *entry.comments)
    if flags is not None:
        return (flags.start() + 2, flags.start() + 2), " fuzzy,"
    previous = re.compile(r"^#\|", re.M).search(text, *entry.comments)  # flags come before the previous msgid
    start = previous.start() if previous else entry.start
    return (start, start), f"#, fuzzy{line_end}"


def _unit(
    source: str, span: Span, flags: str, review: tuple[Span, str] | None, has_underscores: bool, line_end: str
) -> list[Unit]:
    body = source.strip("\n")
    if not body.strip():
        return []
    leading, trailing = source[: len(source) - len(source.lstrip("\n"))], source[len(source.rstrip("\n")) :]
    joined, wrap = join_wrapped(body)
    plain, place_accelerator = split_accelerator(joined, has_underscores)

    def escape(translation: str) -> str:
        return _quote(leading + wrap(place_accelerator(translation)).strip("\n") + trailing, line_end)

    return [Unit(span, plain, atoms=tuple(_atoms(plain, flags)), escape=escape, review=review)]


def _atoms(text: str, flags: str) -> list[Atom]:
    """Return what only a catalogue says is no text.

    That is a directive that only the flags of a message tell from text, such as the "% d" of C, and a tag with line
    breaks inside: of any other text, each line is translated by itself.
    """
    spans = [match.span() for match in _TAG.finditer(text) if "\n" in match[0]]
    if "%" in text and has_directives(flags):
        kept = {position for span in [*protected_spans(text), *spans] for position in range(*span)}
        spans += [match.span() for match in DIRECTIVE.finditer(text) if not kept.issuperset(range(*match.span()))]
    return [Atom(span) for span in sorted(spans)]


def has_directives(flags: str) -> bool:
    """Return whether the flags of a message say that it has directives with percent signs."""
    return _PERCENT_FLAGS.search(flags) is not None


def _unquote(strings: str) -> str:
    return _ESCAPE.sub(_unescape, "".join(_STRING.findall(strings)))


def _unescape(escape_sequence: re.Match[str]) -> str:
    code = escape_sequence[0][1:]
    if code[0] == "x" and len(code) > 1:
        return chr(int(code[1:], 16))
    return chr(int(code, 8)) if code.isdigit() else _CONTROL.get(code, code)


def _quote(text: str, line_end: str = "\n") -> str:
    """Return a text as strings of PO, one for each of its lines."""
    lines = ["".join(_ESCAPED.get(char, char) for char in line) for line in re.findall(r"[^\n]*\n|[^\n]+", text)]
    strings = [f'"{line}"' for line in lines]
    return (strings or ['""'])[0] if len(strings) <= 1 else line_end.join(['""', *strings])


def target_languages(text: str) -> list[TargetLanguage]:
    """Return the language that the header names, with the position of its fields; nothing if it names none."""
    entries = list(_entries(text))
    header = next((entry for entry in entries if entry.is_header), None)
    if header is None:
        return []
    span, fields = header.forms[0]
    code = re.match(r"[A-Za-z]{2,3}(?=$|[-_@.])", _field(fields, "Language") or "")
    has_translations = any(form.strip() for entry in entries if not entry.is_header for _, form in entry.forms)
    return [TargetLanguage(span[0], code.string, has_translations)] if code else []


def set_language(text: str, code: str) -> str:
    """Return a catalogue whose header names a language, with as many plural forms as that language has.

    A header for that language already, or for a region of it, keeps its own rule for plurals. The last of the forms
    that a message had are kept, since the first may be for one thing only; where more are needed, the last is repeated.
    """
    entries = list(_entries(text))
    header = next((entry for entry in entries if entry.is_header), None)
    count: int | None = None
    rule: str | None = None
    edits: list[Edit] = []
    if header is not None and header.forms[0][1]:
        span, fields = header.forms[0]
        new_fields, count = _translated_header(fields, code)
        if _field(fields, "Language") != _field(new_fields, "Language"):  # of another language: so are its plurals
            rule = _field(new_fields, "Plural-Forms")
        if new_fields != fields:
            edits.append(Edit(span, _quote(new_fields, "\r\n" if "\r\n" in text else "\n")))
    for entry in entries:
        if entry.plural is not None and any(form for _, form in entry.forms):
            edits += _plural_edits(text, entry, count or len(entry.forms), rule)
    return apply_edits(text, sorted(edits))


def _translated_header(fields: str, code: str) -> tuple[str, int | None]:
    """Return the fields of a header for a language, and the number of its plural forms; None if that is not known."""
    language = _field(fields, "Language")
    code = code.replace("-", "_")
    declared = re.search(r"nplurals\s*=\s*(\d{1,2})\s*;", _field(fields, "Plural-Forms") or "")
    if language and re.split("[-_@]", language)[0].lower() == code.split("_")[0].lower() and declared:
        count: int | None = int(declared[1])
    else:
        forms = plural_forms(code)
        count = int(forms[9]) if forms else None
        language = language if language and base_language(language) == base_language(code) else code
        fields = _with_field(fields, "Language", language)
        fields = _with_field(fields, "Plural-Forms", forms) if forms else fields
    fields = re.sub(r"(?m)^(Content-Type:.*charset=)\S+", r"\1UTF-8", fields)
    return fields.replace("Content-Transfer-Encoding: ENCODING", "Content-Transfer-Encoding: 8bit"), count


def _field(fields: str, name: str) -> str | None:
    match = re.search(rf"(?mi)^{name}:(.*)$", fields)
    return match[1].strip() if match else None


def _with_field(fields: str, name: str, value: str) -> str:
    if _field(fields, name) is None:
        return f"{fields.removesuffix(chr(10))}\n{name}: {value}\n"
    return re.sub(rf"(?mi)^{name}:.*$", lambda _match: f"{name}: {value}", fields)


def _plural_edits(text: str, entry: Entry, count: int, rule: str | None) -> list[Edit]:
    """Return the edits that give a message so many plural forms, all of them or none.

    There are none if only a form for one thing is translated and it lacks the number of things.
    """
    forms = [(text[slice(*span)], form) for span, form in entry.forms]
    has_number = len(forms) == 1 or _placeholders(entry.singular) == _placeholders(entry.plural or "")
    last = next((raw for raw, form in reversed(forms if has_number else forms[1:]) if form), "")
    if not last and rule is None and count == len(forms):
        return []
    written = [raw if form and last else last or '""' for raw, form in forms]
    last = last or '""'
    if _needs_plural(entry, rule):
        written[0] = last
    wanted = [*written, *[last] * (count - len(written))] if count > len(written) else written[len(written) - count :]
    if wanted == [raw for raw, _ in forms]:
        return []
    line_end = "\r\n" if "\r\n" in text else "\n"
    first, end = entry.forms[0][0][0], entry.forms[-1][0][1]
    start = text.rfind("msgstr", 0, first)
    return [Edit((start, end), line_end.join(f"msgstr[{number}] {raw}" for number, raw in enumerate(wanted)))]


def _placeholders(text: str) -> list[str]:
    return sorted(text[slice(*span)] for span in protected_spans(text))
