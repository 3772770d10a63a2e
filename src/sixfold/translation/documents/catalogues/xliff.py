"""XLIFF 1.2 and 2: sources without a target get one; targets that are there, notes and alternatives stay."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from sixfold.text.language_codes import base_language
from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.documents import xml
from sixfold.translation.documents.units import Kind, Piece, Span, Unit, make_unit, text_pieces, unescape_references
from sixfold.translation.protection import Edit, apply_edits

PAIRED_TAGS = frozenset(["g", "mrk", "pc"])
STARTS = {"bpt": "ept", "bx": "ex", "sc": "ec"}  # codes that stand for a start tag, and those for its end tag
ENDS = {end: start for start, end in STARTS.items()}
SKIPPED = frozenset(["alt-trans", "match", "matches", "note", "notes", "glossary", "bin-unit", "changeTrack"])
UNTRANSLATED_STATES = frozenset(["new", "needs-translation", "needs-l10n", "initial"])
_SEGMENTS = re.compile(r"<(?:[\w.-]+:)?mrk\b[^<>]*\bmtype\s*=\s*[\"']seg[\"']")


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


def parse(text: str) -> list[Unit]:
    """Return the sources without a target, or with an empty one, as units."""
    units: list[Unit] = []
    for segment in _segments(text):
        check_cancelled()
        if segment.source is None or not segment.translates or _value(text, segment.tag, "approved") == "yes":
            continue
        if segment.seg_source is not None and segment.target is not None:
            units += _segment_units(text, segment)
        elif _lacks_translation(text, segment):
            unit = _make_unit(text, segment.source, segment)
            units += [] if unit is None else [_placed(text, segment, unit)]
    return units


def _segments(text: str) -> Iterator[Segment]:
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


def _value(text: str, tag: xml.XmlToken | None, name: str) -> str:
    attribute = xml.attributes(text, tag).get(name) if tag is not None else None
    return text[slice(*xml.attribute_span(attribute))] if attribute else ""


def _with_attribute(text: str, tag: xml.XmlToken, name: str, value: str) -> str:
    """Return a tag with another value of an attribute, as an opening tag."""
    start, end = tag.span
    attribute = xml.attributes(text, tag).get(name)
    if attribute is not None:
        first, last = xml.attribute_span(attribute)
        raw = text[start:first] + value + text[last:end]
    else:
        raw = f'{text[start : tag.attributes[1]].rstrip()} {name}="{value}"{text[tag.attributes[1] : end].lstrip()}'
    return re.sub(r"\s*/>\Z", ">", raw)


def _lacks_translation(text: str, segment: Segment) -> bool:
    """Return whether a target is missing, empty, or a copy of its source that is marked as new."""
    if segment.target is None or not text[slice(*segment.target)].strip():
        return True
    state = segment.state if segment.version == 2 else _value(text, segment.target_tag, "state")
    source, target = (" ".join(text[slice(*span)].split()) for span in (segment.source or (0, 0), segment.target))
    return state in UNTRANSLATED_STATES and source == target


def _placed(text: str, segment: Segment, unit: Unit) -> Unit:
    """Return a unit for the target of its segment, which is written with its state."""
    assert segment.source_tag is not None
    prefix = segment.source_tag.name.removesuffix("source")
    start, end = segment.target_element if segment.target is not None else (segment.insertion,) * 2
    tag = f"<{prefix}target>"
    if segment.target_tag is not None:
        tag = re.sub(r"\s*/>\Z", ">", text[slice(*segment.target_tag.span)])
    after = f"</{prefix}target>"
    before = ""
    if segment.target is None:  # it stands below its source, with the same white space in front
        leading = re.search(r"\s*\Z", text[segment.tag.span[1] : segment.source_tag.span[0]])
        before = leading[0] if leading else ""
    if segment.version == 1:
        done, review = (before + (_with_state(tag, state)) for state in ("translated", "needs-review-translation"))
        return _with_cdata(
            text, segment, replace(unit, span=(start, end), around=(done, after), review_around=(review, after))
        )
    raw = text[segment.tag.span[1] : start]
    done = _with_attribute(text, segment.tag, "state", "translated")
    around = (f"{done}{raw}{before}{tag}", after)
    review_around = (f"{text[slice(*segment.tag.span)]}{raw}{before}{tag}", after)
    return _with_cdata(
        text, segment, replace(unit, span=(segment.tag.span[0], end), around=around, review_around=review_around)
    )


def _with_state(tag: str, state: str) -> str:
    """Return the opening tag of a target of XLIFF 1.2 with a state."""
    token = next(xml.tokens(tag))
    return _with_attribute(tag, token, "state", state)


def _with_cdata(text: str, segment: Segment, unit: Unit) -> Unit:
    """Return a unit whose translation is a CDATA section if that is all that its source is."""
    content = text[slice(*segment.source)].strip() if segment.source else ""
    if unit.marks or unit.atoms or not content.startswith("<![CDATA[") or content.find("]]>") != len(content) - 3:
        return unit

    def escape(translation: str) -> str:
        return translation.replace("]]>", "]]]]><![CDATA[>")

    opened = [
        (before + "<![CDATA[", f"]]>{after}") for before, after in (unit.around, unit.review_around or unit.around)
    ]
    return replace(unit, escape=escape, around=opened[0], review_around=opened[1])


def _segment_units(text: str, segment: Segment) -> list[Unit]:
    """Return the parts of a target that `normalise` has copied from its seg-source as units."""
    assert segment.target is not None
    assert segment.seg_source is not None
    if text[slice(*segment.target)] != text[slice(*segment.seg_source)]:
        return []
    state = xml.attributes(text, segment.target_tag).get("state") if segment.target_tag else None
    if state is None or text[slice(*xml.attribute_span(state))] not in ("translated", *UNTRANSLATED_STATES):
        return []
    units, start, depth = [], None, 0
    for token in xml.tokens(text, *segment.target):
        if xml.local_name(token.name) != "mrk":
            continue
        if token.kind == "open" and start is None and _SEGMENTS.match(text, *token.span):
            start, depth = token.span[1], 0
        elif token.kind == "open":
            depth += 1
        elif token.kind == "close" and depth:
            depth -= 1
        elif token.kind == "close" and start is not None:
            unit = _make_unit(text, (start, token.span[0]), segment)
            if unit is not None:
                review = xml.attribute_span(state), "needs-review-translation"
                units.append(replace(unit, span=(start, token.span[0]), review=review))
            start = None
    return units


def normalise(text: str) -> str:
    """Return a document in which a source that is divided into segments has a target divided in the same way.

    The target is a copy of its seg-source, whose segments are then translated one by one.
    """
    edits = []
    for segment in _segments(text):
        if segment.seg_source is None or not segment.translates or not _lacks_translation(text, segment):
            continue
        content = text[slice(*segment.seg_source)]
        if not _SEGMENTS.search(content) or segment.source_tag is None:
            continue
        prefix = segment.source_tag.name.removesuffix("source")
        tag = f"<{prefix}target>" if segment.target_tag is None else text[slice(*segment.target_tag.span)]
        span = segment.target_element if segment.target is not None else (segment.insertion,) * 2
        edits.append(Edit(span, f"{_with_state(tag, 'translated')}{content}</{prefix}target>"))
    return apply_edits(text, edits)


def _make_unit(text: str, span: Span, segment: Segment) -> Unit | None:
    pieces = _pieces(text, span)
    return make_unit(pieces, xml.escape_text, collapses=not segment.keeps_space, trims=False)


def _pieces(text: str, span: Span) -> list[Piece]:
    """Return the texts, tags, codes and protected parts of a source."""
    pieces: list[Piece] = []
    tags: list[tuple[xml.XmlToken, int]] = []  # of the pieces that are codes, with their indices
    hidden: list[xml.XmlToken] = []  # the element that is kept as it is, and those inside it
    for token in xml.tokens(text, *span):
        name = xml.local_name(token.name)
        if hidden:
            hidden += [token] if token.kind == "open" else []
            if token.kind == "close":
                first = hidden.pop()
                if not hidden:
                    whole = first.span[0], token.span[1]
                    if xml.local_name(first.name) == "mrk":
                        content = re.sub(r"<[^<>]*>", "", text[first.span[1] : token.span[0]])
                        pieces.append(Piece(whole, unescape_references(content) or " ", kind="atom"))
                    else:
                        tags.append((first, len(pieces)))
                        pieces.append(Piece(whole, kind="single"))
        elif token.kind == "text":
            pieces += text_pieces(text, token.span, unescape_references)
        elif token.kind == "cdata":
            pieces.append(Piece(token.span, text[slice(*token.content)]))
        elif token.kind == "open" and (name not in PAIRED_TAGS or _is_protected(text, token)):
            hidden.append(token)
        elif token.kind != "other":
            kind: Kind = "single" if token.kind == "empty" else "open" if token.kind == "open" else "close"
            tags += [(token, len(pieces))] if token.kind == "empty" else []
            pieces.append(Piece(token.span, kind=kind))
    _pair_codes(text, pieces, tags)
    return pieces


def _is_protected(text: str, token: xml.XmlToken) -> bool:
    """Return whether an inline element has text that is not translated."""
    values = {key: text[slice(*xml.attribute_span(match))] for key, match in xml.attributes(text, token).items()}
    return values.get("translate") == "no" or values.get("mtype") == "protected"


def _pair_codes(text: str, pieces: Sequence[Piece], tags: Sequence[tuple[xml.XmlToken, int]]) -> None:
    """Make pairs of the codes that stand for a start tag and its end tag, if all pairs of a unit are nested."""
    pairs: dict[int, int] = {}
    indices = {index: token for token, index in tags}
    open_pieces: list[tuple[int, str]] = []  # the index of each, and what its end has
    for index, piece in enumerate(pieces):
        token = indices.get(index)
        name = xml.local_name(token.name) if token else ""
        if piece.kind == "open":
            open_pieces.append((index, ""))
        elif piece.kind == "close":
            if not open_pieces or open_pieces.pop()[1]:
                return
        elif token is not None and name in STARTS:
            open_pieces.append((index, f"{STARTS[name]} {_code_id(text, token)}"))
        elif token is not None and name in ENDS and open_pieces:
            opening, expected = open_pieces[-1]
            if expected == f"{name} {_code_id(text, token)}":
                open_pieces.pop()
                pairs[opening] = index
    if open_pieces:
        return
    for opening, closing in pairs.items():
        pieces[opening].kind, pieces[closing].kind = "open", "close"


def _code_id(text: str, token: xml.XmlToken) -> str:
    return _value(text, token, "startRef") or _value(text, token, "rid") or _value(text, token, "id")


def set_language(text: str, code: str) -> str:
    """Return a document whose files name a target language; one that names a region of it already stays."""
    edits = []
    for token in xml.tokens(text):
        name = xml.local_name(token.name)
        if token.kind != "open" or name not in ("xliff", "file"):
            continue
        values = xml.attributes(text, token)
        is_version_2 = "srcLang" in values
        if name == "file" and not ("source-language" in values or "target-language" in values):
            continue
        if name == "xliff" and not is_version_2:
            continue
        attribute = "trgLang" if is_version_2 else "target-language"
        present = _value(text, token, attribute)
        if base_language(present) != base_language(code):
            edits.append(Edit(token.span, _with_attribute(text, token, attribute, code)))
    return apply_edits(text, edits)
