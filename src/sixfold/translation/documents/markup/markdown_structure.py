"""Markdown: the blocks of a page, and the links, images, code and emphasis in each."""

from __future__ import annotations

import re
from collections.abc import Sequence

from markdown_it.token import Token

from sixfold.translation.documents.markup import front_matter, html_structure
from sixfold.translation.documents.markup.markdown_grammar import FRONT_MATTER, admonition_title, make_parser
from sixfold.translation.documents.structure import Structure, StructureBuilder

_PARSER = make_parser()
_NOTE = re.compile(r"\[\^[^\]\s]+\]:?|\A\[[ xX]\](?=\s)|\A\[![A-Z]+\]")
_TEXTS = ("text", "text_special", "softbreak")


def structure(text: str) -> Structure:
    """Return the blocks of a page, and what stays in them; the parser is that of CommonMark's reference tests.

    It reads the translated page without knowing its source, and so says what a browser will show.
    """
    builder = StructureBuilder()
    for item in front_matter.structure(text):
        builder.block(item)
    front = FRONT_MATTER.match(text)
    environment: dict[str, dict[str, dict[str, str]]] = {}
    for token in _PARSER.parse(text[front.end() :] if front else text, environment):
        if token.type == "inline":
            _add_inline(builder, token)
        elif token.type == "html_block":
            for item in html_structure.structure(token.content):
                builder.block(item)
        else:
            builder.block(_block(token))
    for label, target in sorted(environment.get("references", {}).items()):
        builder.block(f"[{label}]: {target['href']} {target['title']}")
    return builder.build()


def _block(token: Token) -> str:
    attributes = "".join(f" {key}={value}" for key, value in token.attrs.items())
    content = token.content
    if token.type == "admonition_open" and (title := admonition_title(content)):
        content = content[: title[0]] + content[title[1] :]
    return f"{token.type} {token.tag}{attributes} {token.info} {content}"


def _add_inline(builder: StructureBuilder, inline: Token) -> None:
    open_types: list[str] = []
    text = ""
    for child in inline.children or []:
        parent = f"{open_types[-1]} " if open_types else ""
        if child.type in _TEXTS:
            text += child.content if child.type == "text" else "\n"
        elif child.nesting < 0:
            open_types.pop()
        elif child.type == "html_inline":
            for item in html_structure.structure(child.content):
                builder.inside(parent + item)
        else:
            builder.inside(f"{parent}{child.type} {_target(child)}{child.content if child.type != 'image' else ''}")
        if child.nesting > 0:
            open_types.append(child.type)
        if child.type not in _TEXTS:
            text += "\0"
    for note in _NOTE.findall(text):
        builder.inside(note)
    for line in re.findall(r"^:[ \t]", text, re.M):
        builder.inside(f"definition {line.strip()}")


def _target(token: Token) -> str:
    names: Sequence[str] = ("href", "src", "title")
    return "".join(f"{name}={token.attrs[name]} " for name in names if name in token.attrs)
