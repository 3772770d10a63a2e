"""LaTeX: paragraphs, headings, captions and footnotes; maths, code, comments, commands and the preamble stay."""

from __future__ import annotations

import re
from dataclasses import replace

from sixfold.text.language_codes import base_language
from sixfold.text.languages import EAST_ASIAN
from sixfold.translation.documents import seams
from sixfold.translation.documents.markup import latex_syntax as syntax
from sixfold.translation.documents.markup.latex_tokens import Token, arguments, tokens
from sixfold.translation.documents.units import MAX_DEPTH, Located, Piece, Span, Unit, make_unit, text_pieces
from sixfold.translation.result import Notice

_BODY = re.compile(r"\\begin[ \t]*\{document\}")
_BODY_END = re.compile(r"\\end[ \t]*\{document\}")
_CLASS = re.compile(r"^[^%\n]*\\document(?:class|style)\b", re.M)
_TITLE = re.compile(r"^(?:[^%\n\\]|\\(?!(?:sub)?title\b).)*+\\(?:sub)?title[ \t]*(?:\[[^\[\]\n]*\])?(?=\{)", re.M)
_DECLARATION = re.compile(rf"\{{[ \t]*\\(?P<name>{'|'.join(sorted(syntax.DECLARATIONS))})(?![A-Za-z@])[ \t]*\n?")
_COMMAND_END = re.compile(r"\\[A-Za-z@]+\*?\Z")
_MAX_NAME = 40  # characters of the name of a command
# Classes and packages with which LaTeX prints Chinese, Japanese or Korean characters.
_EAST_ASIAN_SUPPORT = re.compile(
    r"\\(?:document(?:class|style)|usepackage|RequirePackage)[ \t]*(?:\[[^\[\]]*\])?[ \t]*\{[^{}]*"
    r"(?:ctex|CJK|luatexja|zhspacing|kotex|fontspec|polyglossia|ltj|ujarticle|ujreport|ujbook|jsarticle|jsbook)"
)
_LETTERS = re.compile(r"[^\W\d_]")
_MAKE_OTHER = re.compile(r"\\makeatother(?![A-Za-z@])")
# Commands between sentences, which a unit does not need to hold.
_BREAKS = syntax.names(
    "par newline linebreak newpage clearpage pagebreak item maketitle tableofcontents listoffigures listoftables hline "
    "toprule midrule bottomrule noindent centering bigskip medskip smallskip vspace vspace* hspace hspace* hfill vfill "
    "appendix printbibliography and quad qquad indent raggedright cline multicolumn multirow columnbreak pause"
)


def notices(text: str, code: str) -> list[Located]:
    """Return a notice at the class of a document that lacks what LaTeX needs for a language."""
    document_class = _CLASS.search(text)
    if document_class is None or base_language(code) not in EAST_ASIAN or _EAST_ASIAN_SUPPORT.search(text):
        return []
    message = "the document loads no package for East Asian characters, without which LaTeX leaves them out"
    hint = r"add \usepackage{ctex} for Chinese, and run xelatex"
    return [(document_class.end(), Notice("fonts", f"{message}: {hint}"))]


def parse(text: str) -> list[Unit]:
    """Return the units of a document. Of the preamble, the title is a unit."""
    reader = _Reader(text)
    start, end = 0, len(text)
    if body := _BODY.search(text):
        for title in _TITLE.finditer(text, 0, body.start()):
            reader.read_arguments(title.end(), body.start(), 0)
        start = body.end()
        closing = _BODY_END.search(text, start)
        end = closing.start() if closing else end
    elif _CLASS.search(text) or text.lstrip().startswith(("\\ProvidesPackage", "\\NeedsTeXFormat")):
        return []
    reader.read((start, end), 0)
    return reader.units


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.has_bars = syntax.BARS.search(text) is not None
        self.units: list[Unit] = []

    def read(self, span: Span, depth: int) -> None:
        """Add the units of a part of the document."""
        reader = _TextReader(self, depth)
        reader.read(span)
        self.units += reader.units()

    def read_arguments(self, position: int, end: int, depth: int) -> None:
        """Add the units of the last argument that begins at a position."""
        found = arguments(self.text, position, end)
        if found and depth < MAX_DEPTH:
            self.read((found[-1][0] + 1, found[-1][1] - 1), depth + 1)


class _TextReader:
    """The sentences of one part of a document, and the texts inside them that stand by themselves."""

    def __init__(self, reader: _Reader, depth: int) -> None:
        self.reader, self.text, self.depth = reader, reader.text, depth
        self.blocks: list[list[Piece]] = [[]]
        self.ends: list[int] = []  # where the open pairs of marks end
        self.position = 0

    def units(self) -> list[Unit]:
        made = (make_unit(pieces, _escape) for pieces in self.blocks)
        return [
            replace(unit, layout=_layout, around=(" " if self._follows_command(unit) else "", ""))
            for unit in made
            if unit is not None
        ]

    def _follows_command(self, unit: Unit) -> bool:
        """Return whether the name of a command ends right before a unit, which may begin with a letter now."""
        start = unit.span[0]
        return _COMMAND_END.search(self.text[max(0, start - _MAX_NAME) : start]) is not None

    def read(self, span: Span) -> None:
        self.position = span[0]
        for token in tokens(self.text, *span, has_bars=self.reader.has_bars):
            if token.span[0] < self.position:
                continue  # in the arguments of a command
            if token.span[0] > self.position:
                self._add_text(token.span[0])
            self.position = token.span[1]
            self._add(token, span[1])
        self._add_text(span[1])

    def _add_text(self, end: int) -> None:
        if end > self.position:
            self.blocks[-1] += text_pieces(self.text, (self.position, end), syntax.decode)

    def _add(self, token: Token, end: int) -> None:
        if token.kind == "comment":
            self.blocks[-1].append(Piece(token.span, kind="single"))
        elif token.kind in ("maths", "verb", "special", "bars"):
            self.blocks[-1].append(Piece(token.span, self.text[slice(*token.span)], "atom"))
        elif token.kind == "open":
            self._open_group(token)
        elif token.kind == "close":
            self.blocks[-1].append(Piece(token.span, kind="close"))
        elif token.kind == "word":
            self._add_command(token, end)
        elif token.kind == "symbol" and token.name in ",;:!>/'`\"":
            self.blocks[-1].append(Piece(token.span, kind="single"))
        else:
            self._end_block()
            if token.kind == "begin":
                self._begin(token, end)
            elif token.name == "\\" and (found := arguments(self.text, token.span[1], end, spaced=False)):
                self.position = found[0][1] if self.text[found[0][0]] == "[" else self.position

    def _open_group(self, token: Token) -> None:
        declaration = _DECLARATION.match(self.text, token.span[0])
        if declaration is not None:
            self.position = declaration.end()
        self.blocks[-1].append(Piece((token.span[0], self.position), kind="open"))

    def _end_block(self) -> None:
        if self.blocks[-1]:
            self.blocks.append([])

    def _begin(self, token: Token, end: int) -> None:
        """Skip the arguments of an environment; the title of a slide is a text by itself."""
        found = arguments(self.text, token.span[1], end, spaced=False)
        if found:
            self.position = found[-1][1]
        if token.name in ("frame", "block", "alertblock", "exampleblock", "theorem", "lemma", "definition", "proof"):
            titles = [
                span
                for span in found
                if self.text[span[0]] == ("{" if token.name.endswith(("frame", "block")) else "[")
            ]
            if titles and self.depth < MAX_DEPTH:
                self.reader.read((titles[-1][0] + 1, titles[-1][1] - 1), self.depth + 1)

    def _add_command(self, token: Token, end: int) -> None:
        name = token.name.rstrip("*")
        found = arguments(self.text, token.span[1], end)
        if name == "makeatletter":
            other = _MAKE_OTHER.search(self.text, token.span[1], end)
            self.position = other.end() if other else end
            self._end_block()
        elif name == "item":
            self._add_item(found)
        elif name in syntax.TEXT_COMMANDS and found and self.text[found[-1][0]] == "{":
            self._add_pair(token, found[0])
        elif name in syntax.SECOND_ARGUMENT and len(found) >= 2:
            is_optional = name == "hyperref" or self.text[found[0][0]] == "["
            self._add_pair(token, found[2 if is_optional and len(found) > 2 else 1])
        elif name in syntax.OWN_TEXT and found:
            self._add_own_text(token, name, found)
        elif name in _BREAKS or name in syntax.DEFINITIONS:
            self._end_block()
            if name == "multicolumn" and len(found) >= 3:
                self.reader.read((found[2][0] + 1, found[2][1] - 1), self.depth + 1)
            self.position = self._definition_end(name, token, found, end)
        else:
            self.position = found[-1][1] if found else token.span[1]
            span = token.span[0], self.position
            is_mark = name in ("label", "index", "protect") or name in syntax.DECLARATIONS
            self.blocks[-1].append(Piece(span, kind="single") if is_mark else self._atom(span))

    def _atom(self, span: Span) -> Piece:
        return Piece(span, self.text[slice(*span)], "atom")

    def _add_item(self, found: list[Span]) -> None:
        self._end_block()
        if found and self.text[found[0][0]] == "[":
            self.position = found[0][1]
            if self.depth < MAX_DEPTH:
                self.reader.read((found[0][0] + 1, found[0][1] - 1), self.depth + 1)

    def _add_pair(self, token: Token, argument: Span) -> None:
        """Add a command around words as a pair of marks; its closing brace is a token that follows."""
        self.position = argument[0] + 1
        self.blocks[-1].append(Piece((token.span[0], self.position), kind="open"))

    def _add_own_text(self, token: Token, name: str, found: list[Span]) -> None:
        texts = [span for span in found if self.text[span[0]] == "{"]
        if not texts:
            return
        argument = texts[0] if name != "captionof" or len(texts) < 2 else texts[1]
        self.position = argument[1]
        if self.depth < MAX_DEPTH:
            self.reader.read((argument[0] + 1, argument[1] - 1), self.depth + 1)
        if name in syntax.INSIDE_SENTENCES:
            self.blocks[-1].append(Piece((token.span[0], self.position), kind="single"))
        else:
            self._end_block()

    def _definition_end(self, name: str, token: Token, found: list[Span], end: int) -> int:
        if name in ("def", "edef", "gdef", "xdef"):
            brace = self.text.find("{", token.span[1], min(end, token.span[1] + 200))
            body = arguments(self.text, brace, end, spaced=False) if brace >= 0 else []
            return body[0][1] if body else token.span[1]
        return found[-1][1] if found else token.span[1]


_escape = seams.mark_edges(syntax.escape)


def _layout(written: str) -> str:
    """Put `{}` between a command and the letter or the space behind it, which would change its name or be lost."""
    parts = seams.split(written)
    for index in range(0, len(parts) - 1, 2):
        following = parts[index + 1][:1]
        if _COMMAND_END.search(parts[index]) and (following.isspace() or _LETTERS.match(following)):
            parts[index] += "{}"
    return "".join(parts)
