"""XLIFF 1.2 and 2: sources without a target get one; targets that are there, notes and alternatives stay.

A code of XLIFF 1.2 may have sub-flows, texts in `<sub>` such as the value of an alt attribute. They are units of their
own, in the copy of the code that the target has.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from sixfold.text.language_codes import base_language
from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.documents import xml
from sixfold.translation.documents.catalogues.xliff_segments import (
    UNTRANSLATED_STATES,
    Segment,
    lacks_translation,
    segments,
    value_of,
    with_attribute,
)
from sixfold.translation.documents.units import (
    Kind,
    Piece,
    Span,
    TargetLanguage,
    Unit,
    make_unit,
    text_pieces,
    unescape_references,
)
from sixfold.translation.protection import Edit, apply_edits

PAIRED_TAGS = frozenset(["g", "mrk", "pc"])
STARTS = {"bpt": "ept", "bx": "ex", "sc": "ec"}  # codes that stand for a start tag, and those for its end tag
ENDS = {end: start for start, end in STARTS.items()}
_SEGMENTS = re.compile(r"<(?:[\w.-]+:)?mrk\b[^<>]*\bmtype\s*=\s*[\"']seg[\"']")


def parse(text: str) -> list[Unit]:
    """Return the sources without a target, or with an empty one, as units."""
    units: list[Unit] = []
    for segment in segments(text):
        check_cancelled()
        if segment.source is None or not segment.translates or value_of(text, segment.tag, "approved") == "yes":
            continue
        if segment.target is not None and (segment.seg_source is not None or _has_sub_flows(text, segment.source)):
            units += _copied_units(text, segment)
        elif lacks_translation(text, segment):
            unit = _make_unit(text, segment.source, segment)
            units += [] if unit is None else [_placed(text, segment, unit)]
    return units


def _placed(text: str, segment: Segment, unit: Unit) -> Unit:
    """Return a unit for the target of its segment, which is written with its state.

    The codes and white space around the text of the source are written around the translation.
    """
    assert segment.source_tag is not None
    assert segment.source is not None
    opened, closed = text[segment.source[0] : unit.span[0]], text[unit.span[1] : segment.source[1]]
    prefix = segment.source_tag.name.removesuffix("source")
    start, end = segment.target_element if segment.target is not None else (segment.insertion,) * 2
    tag = f"<{prefix}target>"
    if segment.target_tag is not None:
        tag = re.sub(r"\s*/>\Z", ">", text[slice(*segment.target_tag.span)])
    after = f"{closed}</{prefix}target>"
    before = ""
    if segment.target is None:  # it stands below its source, with the same white space in front
        leading = re.search(r"\s*\Z", text[segment.tag.span[1] : segment.source_tag.span[0]])
        before = leading[0] if leading else ""
    if segment.version == 1:
        done, review = (
            before + _with_state(tag, state) + opened for state in ("translated", "needs-review-translation")
        )
        return _with_cdata(
            text, segment, replace(unit, span=(start, end), around=(done, after), review_around=(review, after))
        )
    raw = text[segment.tag.span[1] : start]
    done = with_attribute(text, segment.tag, "state", "translated")
    around = (f"{done}{raw}{before}{tag}{opened}", after)
    review_around = (f"{text[slice(*segment.tag.span)]}{raw}{before}{tag}{opened}", after)
    return _with_cdata(
        text, segment, replace(unit, span=(segment.tag.span[0], end), around=around, review_around=review_around)
    )


def _with_state(tag: str, state: str) -> str:
    """Return the opening tag of a target of XLIFF 1.2 with a state."""
    token = next(xml.tokens(tag))
    return with_attribute(tag, token, "state", state)


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


def _copied_units(text: str, segment: Segment) -> list[Unit]:
    """Return the units of a target that `normalise` has copied: its segments, or else all of it, and its sub-flows."""
    assert segment.target is not None
    content = segment.seg_source or segment.source
    if content is None or text[slice(*segment.target)] != text[slice(*content)]:
        return []
    state = xml.attributes(text, segment.target_tag).get("state") if segment.target_tag else None
    if state is None or text[slice(*xml.attribute_span(state))] not in ("translated", *UNTRANSLATED_STATES):
        return []
    spans = _divided(text, segment.target) or [segment.target]
    units = []
    for span in spans:
        unit = _make_unit(text, span, segment)
        units += [] if unit is None else [unit]
        units += _sub_units(text, span, segment)
    review, unfinished = (
        (xml.attribute_span(state), other) for other in ("needs-review-translation", "needs-translation")
    )
    return [replace(unit, review=review, unfinished=unfinished) for unit in units]


def _divided(text: str, target: Span) -> list[Span]:
    """Return the contents of the segments that a target is divided into."""
    spans, start, depth = [], None, 0
    for token in xml.tokens(text, *target):
        if xml.local_name(token.name) != "mrk":
            continue
        if token.kind == "open" and start is None and _SEGMENTS.match(text, *token.span):
            start, depth = token.span[1], 0
        elif token.kind == "open":
            depth += 1
        elif token.kind == "close" and depth:
            depth -= 1
        elif token.kind == "close" and start is not None:
            spans.append((start, token.span[0]))
            start = None
    return spans


def _has_sub_flows(text: str, span: Span) -> bool:
    return "sub" in text[slice(*span)] and any(xml.local_name(token.name) == "sub" for token in xml.tokens(text, *span))


def _sub_units(text: str, span: Span, segment: Segment) -> list[Unit]:
    """Return the sub-flows in the codes of a segment as units; those that are in protected texts stay."""
    units: list[Unit] = []
    opened: list[xml.XmlToken] = []  # the sub-flows around the position
    protected = 0  # elements around the position, from the one that is protected
    for token in xml.tokens(text, *span):
        if protected or (token.kind == "open" and _is_protected(text, token)):
            protected += (token.kind == "open") - (token.kind == "close")
        elif xml.local_name(token.name) == "sub" and token.kind == "open":
            opened.append(token)
        elif xml.local_name(token.name) == "sub" and token.kind == "close" and opened:
            first = opened.pop()
            pieces = _pieces(text, (first.span[1], token.span[0]))
            before = unescape_references(text[max(0, first.span[0] - 6) : first.span[0]])[-1:]
            unit = make_unit(pieces, _escape_after(before), collapses=not segment.keeps_space)
            units += [] if unit is None else [unit]
    return units


def _escape_after(before: str) -> Callable[[str], str]:
    """Return the function that writes a sub-flow after a character of its code, which may be a quotation mark.

    The value of `alt="` ends at the next straight mark, so that a translation has curly ones.
    """
    curly = {'"': "“”", "'": "’’"}.get(before)
    if curly is None:
        return xml.escape_text

    def escape(translation: str) -> str:
        first, *others = translation.split(before)
        return xml.escape_text(first + "".join(curly[index % 2] + part for index, part in enumerate(others)))

    return escape


def normalise(text: str) -> str:
    """Return a document in which a source with segments or sub-flows has a target with the same ones.

    The target is a copy of the seg-source or of the source, whose parts are then translated one by one.
    """
    edits = []
    for segment in segments(text):
        if not segment.translates or segment.source is None or segment.source_tag is None:
            continue
        span = segment.source if segment.seg_source is None else segment.seg_source
        content = text[slice(*span)]
        is_divided = segment.seg_source is not None and _SEGMENTS.search(content)
        if not (is_divided or _has_sub_flows(text, span)) or not lacks_translation(text, segment):
            continue
        prefix = segment.source_tag.name.removesuffix("source")
        tag = f"<{prefix}target>" if segment.target_tag is None else text[slice(*segment.target_tag.span)]
        replaced = segment.target_element if segment.target is not None else (segment.insertion,) * 2
        edits.append(Edit(replaced, f"{_with_state(tag, 'translated')}{content}</{prefix}target>"))
    return apply_edits(text, edits)


def _make_unit(text: str, span: Span, segment: Segment) -> Unit | None:
    pieces = _pieces(text, span)
    return make_unit(pieces, xml.escape_text, collapses=not segment.keeps_space)


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
    return value_of(text, token, "startRef") or value_of(text, token, "rid") or value_of(text, token, "id")


def target_languages(text: str) -> list[TargetLanguage]:
    """Return the target languages that the files name, with the positions of their tags."""
    named = [(token.span[0], value_of(text, token, attribute)) for token, attribute in _language_tags(text)]
    translated = [segment.tag.span[0] for segment in segments(text) if _has_own_translation(text, segment)]
    languages = []
    for index, (start, code) in enumerate(named):
        end = named[index + 1][0] if index + 1 < len(named) else len(text)
        has_translations = bisect_left(translated, start) < bisect_left(translated, end)
        languages += [TargetLanguage(start, code, has_translations)] if code else []
    return languages


def _has_own_translation(text: str, segment: Segment) -> bool:
    """Return whether a segment has a translation that stays: no copy of its source that `normalise` has made."""
    return segment.translates and not lacks_translation(text, segment) and not _copied_units(text, segment)


def set_language(text: str, code: str) -> str:
    """Return a document whose files name a target language; one that names a region of it already stays."""
    edits = [
        Edit(token.span, with_attribute(text, token, attribute, code))
        for token, attribute in _language_tags(text)
        if base_language(value_of(text, token, attribute)) != base_language(code)
    ]
    return apply_edits(text, edits)


def _language_tags(text: str) -> Iterator[tuple[xml.XmlToken, str]]:
    """Yield the tags that name the target language, with the names of their attributes for it.

    In XLIFF 1.2 that is the tag of each file, and in XLIFF 2 that of the whole document.
    """
    for token in xml.tokens(text):
        name = xml.local_name(token.name)
        if token.kind == "open" and name in ("xliff", "file"):
            values = xml.attributes(text, token)
            if name == "xliff" and "srcLang" in values:
                yield token, "trgLang"
            elif name == "file" and not values.keys().isdisjoint(("source-language", "target-language")):
                yield token, "target-language"
