"""The formats of documents: how each is read, checked and written, and which file names it has."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from sixfold.errors import RequestError
from sixfold.translation.documents.catalogues import po, po_structure, xliff, xliff_structure
from sixfold.translation.documents.data import csv_tsv, json_yaml, json_yaml_structure, subtitles
from sixfold.translation.documents.markup import (
    html,
    html_structure,
    latex,
    latex_structure,
    man,
    man_structure,
    markdown,
    markdown_structure,
    rst,
    rst_structure,
)
from sixfold.translation.documents.office import docx, drawing, epub, odt, pptx, xlsx
from sixfold.translation.documents.options import FLAGS, DocumentOptions
from sixfold.translation.documents.structure import Structure
from sixfold.translation.documents.units import Located, TargetLanguage, Unit
from sixfold.translation.documents.xml_texts import METADATA, XmlTexts

Parse = Callable[[str, DocumentOptions], list[Unit]]


def _no_structure(_text: str) -> Structure:
    return []


def _unfinished(text: str, _code: str) -> str:
    return text


class Format(NamedTuple):
    """What is known about a format that is text.

    `structure` reads a document with a parser that `parse` does not use, and returns what a translation must keep. It
    raises UnreadableError for a document that does not have the format. `finish` changes a translated document, given
    the code of the target language: it writes the code where the format has a place for it, and fits what depends on
    the width of a translation, such as the line under a title. The structure leaves that out.
    `notices` says what a document lacks that a language needs, given the code of that language.
    `normalise` rewrites a document, before it is parsed, into one of the same meaning that is simpler to parse.
    `target_languages` returns the languages that a catalogue says its translations are in.
    """

    parse: Parse
    suffixes: tuple[str, ...] = ()
    structure: Callable[[str], Structure] = _no_structure
    finish: Callable[[str, str], str] = _unfinished
    normalise: Callable[[str], str] = str
    options: tuple[str, ...] = ()  # the fields of DocumentOptions that `parse` uses
    notices: Callable[[str, str], list[Located]] = lambda _text, _code: []
    target_languages: Callable[[str], list[TargetLanguage]] = lambda _text: []


class Archive(NamedTuple):
    """What is known about a format that is a ZIP archive: the formats of its members that have text.

    `named_texts` reads members, those with text and those whose names `naming` matches, and returns the texts that must
    stay since something in the archive refers to them.
    """

    title: str  # for messages
    suffixes: tuple[str, ...]
    required: str  # a member that every such archive has; * stands for any characters
    members: tuple[tuple[re.Pattern[str], Format], ...]
    naming: re.Pattern[str] | None = None
    named_texts: Callable[[Mapping[str, str]], set[str]] = lambda _members: set()

    def format_of(self, member: str) -> Format | None:
        """Return the format of a member by its name; None if it has no text."""
        return next((form for pattern, form in self.members if pattern.fullmatch(member)), None)

    def is_read(self, member: str) -> bool:
        """Return whether a member has text, or names texts."""
        return self.format_of(member) is not None or (self.naming is not None and bool(self.naming.fullmatch(member)))


def _without_options(parse: Callable[[str], list[Unit]]) -> Parse:
    return lambda text, _options: parse(text)


def _texts(elements: XmlTexts) -> Format:
    return Format(_without_options(elements.parse), (), elements.structure, elements.set_language)


_DOCX = Format(_without_options(docx.parse), (), docx.structure, docx.set_language, docx.split_runs)
_DRAWING = Format(_without_options(drawing.parse), (), drawing.structure, drawing.set_language)
_XLSX = Format(_without_options(xlsx.parse), (), xlsx.structure, xlsx.set_direction)
_ODT = Format(_without_options(odt.parse), (), odt.structure, odt.set_language)
_XHTML = Format(_without_options(html.parse), (), epub.page_structure, html.set_language, epub.expand_empty_tags)
_METADATA = _texts(METADATA)
_OOXML_PROPERTIES = re.compile(r"docProps/core\.xml"), _METADATA
_ODT_MEMBERS = (
    (re.compile(r"(?:Object [^/]+/)?(?:content|styles)\.xml"), _ODT),
    (re.compile(r"meta\.xml"), _METADATA),
)

MAN_SUFFIXES = (".man", *(f".{section}" for section in range(1, 10)))
FORMATS: Mapping[str, Format | Archive] = {
    "html": Format(
        _without_options(html.parse), (".html", ".htm", ".xhtml"), html_structure.structure, html.set_language
    ),
    "markdown": Format(_without_options(markdown.parse), (".md", ".markdown"), markdown_structure.structure),
    "rst": Format(_without_options(rst.parse), (".rst",), rst_structure.structure, rst.fit_titles),
    "man": Format(_without_options(man.parse), MAN_SUFFIXES, man_structure.structure),
    "latex": Format(_without_options(latex.parse), (".tex",), latex_structure.structure, notices=latex.notices),
    "srt": Format(_without_options(subtitles.parse_srt), (".srt",), subtitles.srt_structure),
    "vtt": Format(_without_options(subtitles.parse_vtt), (".vtt",), subtitles.vtt_structure),
    "json": Format(json_yaml.parse_json, (".json",), json_yaml_structure.json_structure, options=("keys",)),
    "yaml": Format(
        json_yaml.parse_yaml,
        (".yaml", ".yml"),
        json_yaml_structure.yaml_structure,
        json_yaml_structure.set_yaml_language,
        options=("keys",),
    ),
    "po": Format(
        _without_options(po.parse),
        (".po", ".pot"),
        po_structure.structure,
        po.set_language,
        target_languages=po.target_languages,
    ),
    "xliff": Format(
        _without_options(xliff.parse),
        (".xliff", ".xlf"),
        xliff_structure.structure,
        xliff.set_language,
        xliff.normalise,
        target_languages=xliff.target_languages,
    ),
    "csv": Format(csv_tsv.parse_csv, (".csv",), csv_tsv.csv_structure, options=("columns", "header")),
    "tsv": Format(csv_tsv.parse_tsv, (".tsv",), csv_tsv.tsv_structure, options=("columns", "header")),
    "docx": Archive(
        "a DOCX file",
        (".docx", ".docm", ".dotx"),
        docx.MAIN_PART,
        (
            (re.compile(r"word/(?:document|header|footer|footnotes|endnotes|comments|styles)\d*\.xml"), _DOCX),
            (re.compile(r"word/(?:charts/chart|diagrams/(?:data|drawing))\d*\.xml"), _DRAWING),
            _OOXML_PROPERTIES,
        ),
    ),
    "pptx": Archive(
        "a PPTX file",
        (".pptx", ".pptm", ".ppsx", ".potx"),
        pptx.MAIN_PART,
        (
            (pptx.DRAWING_PARTS, _DRAWING),
            (pptx.COMMENT_PARTS, _texts(pptx.COMMENTS)),
            _OOXML_PROPERTIES,
        ),
    ),
    "xlsx": Archive(
        "an XLSX file",
        (".xlsx", ".xlsm", ".xltx"),
        xlsx.MAIN_PART,
        (
            (re.compile(r"xl/(?:sharedStrings|(?:comments/)?comments?\d*|worksheets/[^/]+)\.xml"), _XLSX),
            (re.compile(r"xl/(?:charts/chart|drawings/drawing|diagrams/(?:data|drawing))\d*\.xml"), _DRAWING),
            (re.compile(r"xl/threadedComments/[^/]+\.xml"), _texts(xlsx.THREADED_COMMENTS)),
            _OOXML_PROPERTIES,
        ),
        re.compile(r"xl/(?:workbook|tables/[^/]+|pivotCache/[^/]+Definition\d*)\.xml"),
        xlsx.named_texts,
    ),
    "odt": Archive("an ODT file", (".odt", ".ott"), odt.MAIN_PART, _ODT_MEMBERS),
    "odp": Archive("an ODP file", (".odp", ".otp"), odt.MAIN_PART, _ODT_MEMBERS),
    "ods": Archive("an ODS file", (".ods", ".ots"), odt.MAIN_PART, _ODT_MEMBERS, named_texts=odt.named_texts),
    "epub": Archive(
        "an EPUB file",
        (".epub",),
        epub.MAIN_PART,
        (
            (re.compile(r".*\.(?:xhtml|html|htm)", re.I), _XHTML),
            (re.compile(r".*\.opf", re.I), _METADATA),
            (re.compile(r".*\.ncx", re.I), _texts(epub.CONTENTS)),
        ),
    ),
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
