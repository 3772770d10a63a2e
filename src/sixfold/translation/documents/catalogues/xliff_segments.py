"""The segments of XLIFF 1.2 and 2: what their sources, their targets and the elements around them say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from sixfold.translation.documents import xml
from sixfold.translation.documents.units import Span

SKIPPED = frozenset(["alt-trans", "match", "matches", "note", "notes", "glossary", "bin-unit", "changeTrack"])
UNTRANSLATED_STATES = frozenset(["new", "needs-translation", "needs-l10n", "initial"])


@dataclass
class Segment:
    """A source with its target: a trans-unit of XLIFF 1.2 or a segment of XLIFF 2, as positions in the document."""

    tag: xml.XmlToken
    translates: bool
    keeps_space: bool
    version: int
    state: str = ""  # of a segment of XLIFF 2
    source: Span | None = None  # the content of the source
    source_tag: xml.XmlToken | None = None
    insertion: int = 0  # where a target is written if there is none
    seg_source: Span | None = None
    target: Span | None = None  # the content of the target
    target_element: Span = (0, 0)
    target_tag: xml.XmlToken | None = None


@dataclass
class _Walk:
    """What is known about the elements around a position."""

    translates: list[bool] = field(default_factory=lambda: [True])
    keeps_space: list[bool] = field(default_factory=lambda: [False])


def segments(text: str) -> Iterator[Segment]:
    """Yield the segments of a document, in order."""
    walk = _Walk()
    segment: Segment | None = None
    skipped = 0  # elements that are left out around the position
    for token in xml.tokens(text):
        name = xml.local_name(token.name)
        if token.kind == "open" and (skipped or name in SKIPPED):
            skipped += 1
        elif skipped:
            skipped -= token.kind == "close"
        elif token.kind == "open":
            values = {
                key: match["double"] or match["single"] or "" for key, match in xml.attributes(text, token).items()
            }
            walk.translates.append({"yes": True, "no": False}.get(values.get("translate", ""), walk.translates[-1]))
            space = {"preserve": True, "default": False}.get(values.get("xml:space", ""), walk.keeps_space[-1])
            walk.keeps_space.append(space)
            if name in ("trans-unit", "segment"):
                version = 2 if name == "segment" else 1
                segment = Segment(token, walk.translates[-1], space, version, values.get("state", ""))
            elif segment is not None:
                _open_content(segment, name, token)
        elif token.kind == "close":
            if len(walk.translates) > 1:
                walk.translates.pop()
                walk.keeps_space.pop()
            if segment is not None and name in ("trans-unit", "segment"):
                yield segment
                segment = None
            elif segment is not None:
                _close_content(segment, name, token)
        elif token.kind == "empty" and segment is not None and name == "target":
            segment.target, segment.target_tag, segment.target_element = (0, 0), token, token.span


def _open_content(segment: Segment, name: str, token: xml.XmlToken) -> None:
    start = token.span[1]
    if name == "source" and segment.source is None:
        segment.source, segment.source_tag = (start, start), token
    elif name == "seg-source":
        segment.seg_source = start, start
    elif name == "target" and segment.target is None:
        segment.target, segment.target_tag = (start, start), token


def _close_content(segment: Segment, name: str, token: xml.XmlToken) -> None:
    start, end = token.span
    if name == "source" and segment.source is not None:
        segment.source, segment.insertion = (segment.source[0], start), end
    elif name == "seg-source" and segment.seg_source is not None:
        segment.seg_source, segment.insertion = (segment.seg_source[0], start), end
    elif name == "target" and segment.target is not None and segment.target_tag is not None:
        segment.target, segment.target_element = (segment.target[0], start), (segment.target_tag.span[0], end)


def value_of(text: str, tag: xml.XmlToken | None, name: str) -> str:
    """Return the value of an attribute of a tag; an empty text if there is no such attribute, or no tag."""
    attribute = xml.attributes(text, tag).get(name) if tag is not None else None
    return text[slice(*xml.attribute_span(attribute))] if attribute else ""


def with_attribute(text: str, tag: xml.XmlToken, name: str, value: str) -> str:
    """Return a tag with another value of an attribute, as an opening tag."""
    start, end = tag.span
    attribute = xml.attributes(text, tag).get(name)
    if attribute is not None:
        first, last = xml.attribute_span(attribute)
        raw = text[start:first] + value + text[last:end]
    else:
        raw = f'{text[start : tag.attributes[1]].rstrip()} {name}="{value}"{text[tag.attributes[1] : end].lstrip()}'
    return re.sub(r"\s*/>\Z", ">", raw)


def lacks_translation(text: str, segment: Segment) -> bool:
    """Return whether a target is missing, empty, or a copy of its source that is marked as new."""
    if segment.target is None or not text[slice(*segment.target)].strip():
        return True
    state = segment.state if segment.version == 2 else value_of(text, segment.target_tag, "state")
    copied = [text[slice(*span)].split() for span in (segment.source, segment.seg_source) if span is not None]
    return state in UNTRANSLATED_STATES and text[slice(*segment.target)].split() in copied
