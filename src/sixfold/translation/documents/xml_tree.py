"""XML as small trees of elements with their positions: a paragraph, a cell, a picture."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from sixfold.translation.documents.units import Span, unescape_references
from sixfold.translation.documents.xml import XmlToken, attribute_span, attributes, tokens

_DECLARATION = re.compile(r"""\bxmlns(?::(?P<prefix>[\w.-]+))?\s*=\s*["'](?P<namespace>[^"'<>]*)["']""")
_ROOT = re.compile(r"<[^\s/<>!?][^<>]*>")


@dataclass(slots=True)
class Element:
    """An element with everything in it, or a text if it has no name."""

    name: str
    span: Span  # with its tags
    inner: Span  # between its tags
    attributes: Mapping[str, tuple[str, Span]] = field(default_factory=dict)  # values and where they are
    children: list[Element] = field(default_factory=list)

    @property
    def elements(self) -> list[Element]:
        """The children that are elements."""
        return [child for child in self.children if child.name]

    def value(self, name: str, default: str = "") -> str:
        """Return the value of an attribute."""
        return self.attributes[name][0] if name in self.attributes else default

    def child(self, name: str) -> Element | None:
        """Return the first child with a name."""
        return next((child for child in self.children if child.name == name), None)

    def nodes(self) -> Iterator[Element]:
        """Yield the element and all elements and texts in it, in the order of the document."""
        pending = [self]
        while pending:
            node = pending.pop()
            yield node
            pending += reversed(node.children)

    def descendants(self) -> Iterator[Element]:
        """Yield the element and all elements in it, in the order of the document."""
        return (node for node in self.nodes() if node.name)


class Names:
    """The names of elements and attributes, with the prefixes that a format usually has.

    A document may declare other prefixes in its first tag: `<ns0:p xmlns:ns0="…/wordprocessingml/2006/main">` is `w:p`.
    """

    def __init__(self, text: str, prefixes: Mapping[str, str]) -> None:
        """`prefixes`: the usual prefixes by namespace; an empty one stands for names without a prefix."""
        root = _ROOT.search(text)
        found = _DECLARATION.finditer(root[0]) if root else ()
        declared = {
            match["prefix"] or "": prefixes[match["namespace"]] for match in found if match["namespace"] in prefixes
        }
        self._prefixes = {own: usual for own, usual in declared.items() if own != usual}
        self._own = {usual: own for own, usual in declared.items()}

    def usual(self, name: str) -> str:
        """Return the usual form of a name in the document."""
        if not self._prefixes:
            return name
        prefix, _, local = name.rpartition(":")
        return _joined(self._prefixes.get(prefix, prefix), local)

    def own(self, name: str) -> str:
        """Return the form that the document has of a usual name."""
        prefix, _, local = name.rpartition(":")
        return _joined(self._own.get(prefix, prefix), local)


def _joined(prefix: str, local: str) -> str:
    return f"{prefix}:{local}" if prefix else local


def trees(
    text: str, names: Names, is_root: Callable[[str], bool], is_skipped: Callable[[Element], bool] = lambda _: False
) -> Iterator[Element]:
    """Yield the outermost elements of some names, each with everything in it.

    `is_skipped`: whether an element outside of them is left out with all that is in it.
    """
    open_elements: list[Element] = []  # the element that is yielded, and those open inside it
    skipped = 0  # open elements, from the one that is left out
    for token in tokens(text):
        if skipped:
            skipped += (token.kind == "open") - (token.kind == "close")
        elif token.kind == "close":
            if open_elements:
                element = open_elements.pop()
                element.inner, element.span = (element.inner[0], token.span[0]), (element.span[0], token.span[1])
                if not open_elements:
                    yield element
        elif token.kind in ("open", "empty"):
            if not open_elements and not is_root(names.usual(token.name)):
                skipped = int(token.kind == "open" and is_skipped(_element(text, token, names)))
                continue
            element = _element(text, token, names)
            if open_elements:
                open_elements[-1].children.append(element)
            if token.kind == "open":
                open_elements.append(element)
            elif not open_elements:
                yield element
        elif open_elements and token.kind in ("text", "cdata"):
            content = token.content if token.kind == "cdata" else token.span
            open_elements[-1].children.append(Element("", token.span, content))


def text_of(text: str, element: Element) -> str:
    """Return the text in an element, without its tags."""
    return "".join(decoded(text, node) for node in element.nodes() if not node.name)


def decoded(text: str, node: Element) -> str:
    """Return the characters of a text between tags, or of a CDATA section."""
    raw = text[slice(*node.inner)]
    return raw if node.inner != node.span else unescape_references(raw)


def _element(text: str, token: XmlToken, names: Names) -> Element:
    values = {
        names.usual(name): (unescape_references(text[slice(*span)]), span)
        for name, match in attributes(text, token).items()
        for span in (attribute_span(match),)
    }
    return Element(names.usual(token.name), token.span, (token.span[1], token.span[1]), values)
