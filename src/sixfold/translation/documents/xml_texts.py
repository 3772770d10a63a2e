"""XML whose prose is the text of some elements, such as the title in the metadata of a book."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.documents.structure import Structure, StructureBuilder
from sixfold.translation.documents.units import Piece, Unit, make_unit
from sixfold.translation.documents.xml import escape_attribute, escape_text, parse_events
from sixfold.translation.documents.xml_tree import Names, decoded, trees


class XmlTexts(NamedTuple):
    """What is prose in such a document: the texts of some elements, by their names with their usual prefixes."""

    translated: frozenset[str]
    language: str = ""  # the element whose text is the code of the document's language
    inside: frozenset[str] = frozenset()  # the elements that `translated` must be directly inside; empty: anywhere
    prefixes: tuple[tuple[str, str], ...] = ()  # the usual prefixes by namespace

    def parse(self, text: str) -> list[Unit]:
        """Return the texts of the translated elements as units."""
        names = Names(text, dict(self.prefixes))
        roots = self.inside or self.translated
        units = []
        for root in trees(text, names, roots.__contains__):
            check_cancelled()
            elements = root.elements if self.inside else [root]
            for element in elements:
                if element.name in self.translated and not element.elements and element.children:
                    content = "".join(decoded(text, node) for node in element.children)
                    unit = make_unit([Piece(element.inner, content)], escape_text)
                    units += [unit] if unit is not None else []
        return units

    def structure(self, text: str) -> Structure:
        """Return all elements, and all texts but those of the translated elements and the language."""
        names = Names(text, dict(self.prefixes))
        builder = StructureBuilder()
        around: list[tuple[str, bool]] = []  # the open elements, and whether each has elements in it

        def start(own_name: str, values: dict[str, str]) -> None:
            if around:
                around[-1] = around[-1][0], True
            around.append((names.usual(own_name), False))
            shown = (
                f' {key}="{value}"' for key, value in sorted(values.items())
                if not (self.language and key in ("xml:lang", "lang"))
            )  # fmt: skip
            builder.block(f"<{own_name}{''.join(shown)}>")

        def end(own_name: str) -> None:
            builder.block(f"</{own_name}>")
            around.pop()

        def characters(content: str) -> None:
            name, has_elements = around[-1]
            is_inside = not self.inside or (len(around) > 1 and around[-2][0] in self.inside)
            is_translated = name in self.translated and is_inside and not has_elements
            if content.strip() and name != self.language and not is_translated:
                builder.block(f"the text {content!r}")

        parse_events(text, start, end, characters)
        return builder.build()

    def set_language(self, text: str, code: str) -> str:
        """Write the code of a language into its element, and into the tags that have one."""
        if not self.language:
            return text
        own = Names(text, dict(self.prefixes)).own(self.language)
        element = re.compile(rf"(<{re.escape(own)}\b[^<>]*(?<!/)>)[^<>]*(?=</{re.escape(own)}\s*>)")
        text = element.sub(_with(escape_text(code)), text, count=1)
        return re.sub(r'(<[^<>!?]*? (?:xml:)?lang=")[^"<>]*', _with(escape_attribute(code)), text)


def _with(value: str) -> Callable[[re.Match[str]], str]:
    return lambda match: match[1] + value


# The title, the subject and the description of a document or a book, with its language.
METADATA = XmlTexts(
    frozenset(["dc:title", "dc:description", "dc:subject"]),
    language="dc:language",
    prefixes=(("http://purl.org/dc/elements/1.1/", "dc"),),
)
