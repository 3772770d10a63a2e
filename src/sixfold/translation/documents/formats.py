"""The formats of documents: how each is read, checked and written, and which file names it has."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from sixfold.errors import RequestError
from sixfold.translation.documents import csv_tsv, docx, html, json_yaml, markdown, po_xliff, subtitles
from sixfold.translation.documents.options import FLAGS, DocumentOptions
from sixfold.translation.documents.structure import Structure
from sixfold.translation.documents.units import Unit

Parse = Callable[[str, DocumentOptions], list[Unit]]


def _no_structure(_text: str) -> Structure:
    return []


def _no_language(text: str, _code: str) -> str:
    return text


class Format(NamedTuple):
    """What is known about a format that is text.

    `structure` reads a document with a parser that `parse` does not use, and returns what a translation must keep. It
    raises UnreadableError for a document that does not have the format. `set_language` writes the code of the target
    language into a translated document, where the format has a place for it; the structure leaves that place out.
    `normalise` rewrites a document, before it is parsed, into one of the same meaning that is simpler to parse.
    """

    parse: Parse
    suffixes: tuple[str, ...] = ()
    structure: Callable[[str], Structure] = _no_structure
    set_language: Callable[[str, str], str] = _no_language
    normalise: Callable[[str], str] = str
    options: tuple[str, ...] = ()  # the fields of DocumentOptions that `parse` uses


class Archive(NamedTuple):
    """What is known about a format that is a ZIP archive: the formats of its members that have text."""

    title: str  # for messages
    suffixes: tuple[str, ...]
    required: str  # a member that every such archive has
    members: tuple[tuple[re.Pattern[str], Format], ...]

    def format_of(self, member: str) -> Format | None:
        """Return the format of a member by its name; None if it has no text."""
        return next((form for pattern, form in self.members if pattern.fullmatch(member)), None)


def _without_options(parse: Callable[[str], list[Unit]]) -> Parse:
    return lambda text, _options: parse(text)


_DOCX_MEMBERS = re.compile(r"word/(?:document|header\d*|footer\d*|footnotes|endnotes|comments)\.xml")
_DOCX_PART = Format(_without_options(docx.parse), normalise=docx.preserve_spaces)

FORMATS: Mapping[str, Format | Archive] = {
    "html": Format(_without_options(html.parse), (".html", ".htm", ".xhtml")),
    "markdown": Format(_without_options(markdown.parse), (".md", ".markdown")),
    "srt": Format(_without_options(subtitles.parse), (".srt",)),
    "vtt": Format(_without_options(subtitles.parse), (".vtt",)),
    "json": Format(_without_options(json_yaml.parse_json), (".json",)),
    "yaml": Format(_without_options(json_yaml.parse_yaml), (".yaml", ".yml")),
    "po": Format(_without_options(po_xliff.parse_po), (".po", ".pot")),
    "xliff": Format(_without_options(po_xliff.parse_xliff), (".xliff", ".xlf")),
    "csv": Format(csv_tsv.parse_csv, (".csv",), options=("columns", "header")),
    "tsv": Format(csv_tsv.parse_tsv, (".tsv",), options=("columns", "header")),
    "docx": Archive("a DOCX file", (".docx",), docx.MAIN_PART, ((_DOCX_MEMBERS, _DOCX_PART),)),
}
# Formats that are refused by name, and what to do instead.
REFUSED = {
    ".pdf": "a PDF has glyphs on pages and no paragraphs: take its text with pdftotext, or translate its source",
    ".doc": "save it as .docx", ".xls": "save it as .xlsx", ".ppt": "save it as .pptx", ".rtf": "save it as .docx",
    ".pages": "export it as .docx", ".mobi": "convert it into .epub",
}  # fmt: skip


def format_of(path: Path, forced: str | None = None) -> str | None:
    """Return the format of a file by its name, or `forced`; None: lines of text."""
    if forced is not None:
        if forced != "text" and forced not in FORMATS:
            raise RequestError(f"--format: expected one of text, {', '.join(FORMATS)}; got {forced!r}")
        return None if forced == "text" else forced
    suffix = path.suffix.lower()
    if suffix in REFUSED:
        raise RequestError(f"{path.name}: expected a document that can be translated; got {suffix}", REFUSED[suffix])
    return next((name for name, form in FORMATS.items() if suffix in form.suffixes), None)


def check_options(options: DocumentOptions, form: str | None) -> None:
    """Raise RequestError if an option is given that the format does not have; None stands for lines of text."""
    known = FORMATS[form] if form else None
    names = known.options if isinstance(known, Format) else ()
    for name in options.chosen():
        if name not in names:
            takes = [key for key, each in FORMATS.items() if isinstance(each, Format) and name in each.options]
            raise RequestError(
                f"{FLAGS[name]}: expected a document in the format {' or '.join(takes)}; got {form or 'text'}",
                f"add --format {takes[0]} if it is one",
            )


def is_archive(form: str) -> bool:
    """Return whether the documents of a format are archives rather than text."""
    return isinstance(FORMATS[form], Archive)
