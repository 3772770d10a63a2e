"""JSON and YAML: the strings that are values; keys, numbers, comments and layout stay."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import yaml

from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.documents.data.keys import is_data, key_patterns
from sixfold.translation.documents.options import NO_OPTIONS, DocumentOptions
from sixfold.translation.documents.units import Span, Unit, UnreadableError, make_unit, text_pieces
from sixfold.translation.documents.wrapping import join_elements, join_wrapped

MAX_DEPTH = 100  # of lists and mappings in YAML; the time of its scanner grows with the square of the depth
_TOKEN = re.compile(r'"(?P<string>[^"\\]*+(?:\\.[^"\\]*+)*+)"(?P<colon>\s*:)?|[\[\]{},]', re.S)
_PROPERTIES = re.compile(r"(?:[&!]\S*\s+(?:#[^\n]*\s+)*)*")  # the anchor and the tag of a node
_HEADER = re.compile(r"[|>][^\n]*\n")
# Characters that some writers of JSON escape although they need not: for HTML around it, or for old JavaScript.
_ESCAPABLE = re.compile("[/<>&'=\u2028\u2029\xa0]")
_LONE = re.compile("[\ud800-\udfff\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")  # UTF-8 or YAML has none of them in a line
# Texts that YAML would not read as these texts if they were written without quotation marks.
_NEEDS_QUOTES = re.compile(
    r"[\s&*?|>@`\"'%#!,\[\]{}:\d.+~<=-]|\Z|.*(?::\s|:\Z|\s#|\s\Z|[\n\t,\[\]{}\x85\u2028\u2029])", re.I | re.S
)


def parse_json(text: str, options: DocumentOptions = NO_OPTIONS) -> list[Unit]:
    """Return the strings that are values as units."""
    patterns = key_patterns(options.keys, text)
    units = []
    for span, path in _json_values(text):
        if not patterns.choose(path):
            continue
        raw = text[slice(*span)]
        if is_data(raw):
            continue
        unit = make_unit(text_pieces(text, span, _decode_text), _encoder(raw), collapses=False)
        if unit is not None:
            units.append(unit)
    return units


def _json_values(text: str) -> Iterator[tuple[Span, list[str]]]:
    """Yield the span of each string that is a value, and the keys that lead to it."""
    keys: list[str] = []  # of the objects around the position; an empty one stands for a list
    for token in _TOKEN.finditer(text):
        check_cancelled()
        opening = token[0]
        if token["string"] is not None:
            if token["colon"] is not None:
                keys[-1:] = [_decode(token["string"])]
            else:
                yield token.span("string"), [key for key in keys if key]
        elif opening in "[{":
            keys.append("")
        elif opening in "]}":
            del keys[-1:]


def _decode(raw: str) -> str:
    return str(json.loads(f'"{raw}"', strict=False))


def _decode_text(raw: str) -> str:
    return join_elements(_decode(raw))


def _encode(text: str) -> str:
    """Return a text as the content of a string of JSON, which YAML understands too."""
    encoded = json.dumps(text, ensure_ascii=False)[1:-1]
    return _LONE.sub(lambda char: f"\\u{ord(char[0]):04x}", encoded)


def _encoder(raw: str) -> Callable[[str], str]:
    """Return the function that writes a text as a string of JSON, with the characters escaped that `raw` escapes."""
    codes = {chr(int(code, 16)): f"\\u{code}" for code in re.findall(r"\\u([\da-fA-F]{4})", raw)}
    if r"\/" in raw:
        codes["/"] = r"\/"
    escaped = {char: code for char, code in codes.items() if _ESCAPABLE.match(char)}
    if not escaped:
        return _encode
    return lambda text: "".join(escaped.get(char, char) for char in _encode(text))


class Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Refuses what is nested too deeply before that takes long, and can be cancelled."""

    depth = 0

    def fetch_flow_collection_start(self, token: Any) -> None:
        self.check_depth(self.flow_level + 1)
        super().fetch_flow_collection_start(token)

    def compose_node(self, parent: Any, index: Any) -> Any:
        check_cancelled()
        self.depth += 1
        self.check_depth(self.depth)
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def check_depth(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            expected = f"expected YAML that is nested less deeply, at most {MAX_DEPTH} levels"
            raise UnreadableError(expected, self.line + 1)


def unreadable_yaml(error: yaml.YAMLError) -> UnreadableError:
    """Return the error for a document that PyYAML refuses."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or error
    return UnreadableError(f"expected YAML; {problem}", mark.line + 1 if mark else None)


class Scalar(NamedTuple):
    """A string of YAML that is a value, and the keys that lead to it."""

    node: Any
    path: tuple[str, ...]


def parse_yaml(text: str, options: DocumentOptions = NO_OPTIONS) -> list[Unit]:
    """Return the strings that are values as units; PyYAML finds them."""
    patterns = key_patterns(options.keys, text)
    try:
        scalars = [scalar for root in yaml.compose_all(text, Loader) if root for scalar in _scalars(root, (), set())]
    except yaml.YAMLError as error:
        raise unreadable_yaml(error) from None
    chosen = [scalar.node for scalar in scalars if patterns.choose(scalar.path) and not is_data(scalar.node.value)]
    return [unit for node in chosen for unit in _scalar_units(text, node)]


def _scalars(node: Any, path: tuple[str, ...], seen: set[int]) -> Iterator[Scalar]:
    """Yield the strings of a tree that are values; a node with several aliases once."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if node.id == "scalar":
        yield from [Scalar(node, path)] if node.tag == STRING_TAG else []
    elif node.id == "sequence":
        for child in node.value:
            yield from _scalars(child, path, seen)
    else:
        for key, child in node.value:
            yield from _scalars(child, (*path, str(key.value) if key.id == "scalar" else ""), seen)


STRING_TAG = "tag:yaml.org,2002:str"


def _scalar_units(text: str, node: Any) -> list[Unit]:
    start, end = node.start_mark.index, node.end_mark.index
    properties = _PROPERTIES.match(text, start, end)
    start = properties.end() if properties else start
    if not node.value.strip():
        return []
    if node.style in ("|", ">"):
        return _block_units(text, (start, end), node.value)
    joined = join_elements(node.value)
    if node.style is None:
        return [Unit((start, end), joined, escape=_quote_if_needed)]
    if node.style == '"':
        return [Unit((start + 1, end - 1), joined, escape=_encode)]
    return [Unit((start, end), joined, escape=_single_quoted)]


def _block_units(text: str, span: Span, value: str) -> list[Unit]:
    """Return a block scalar as one unit, whose lines are indented as before.

    In a folded scalar a line feed is written as an empty line; one with lines that are indented further is left alone,
    because those are not folded.
    """
    header = _HEADER.match(text, *span)
    is_folded = text[span[0]] == ">"
    if header is None or (is_folded and re.search(r"(?m)^[ \t]", value)):
        return []
    body = text[header.end() : span[1]]
    first = re.match(r"(?:[ \t\r]*\n)*", body)
    blank = first.end() if first else 0
    content = body[blank:].rstrip()
    lines = value.strip("\n")
    own = len(content) - len(content.lstrip(" ")) - (len(lines) - len(lines.lstrip(" ")))
    indent, start = " " * own, header.end() + blank + own
    joined, wrap = (join_elements(lines.rstrip()), str) if is_folded else join_wrapped(lines.rstrip())

    def indented(translation: str) -> str:
        written = (translation.replace("\n", "\n\n") if is_folded else wrap(translation)).split("\n")
        return "\n".join((indent if number and line.strip() else "") + line for number, line in enumerate(written))

    return [Unit((start, header.end() + blank + len(content)), joined, escape=indented)]


def _quote_if_needed(text: str) -> str:
    """Return a text as a plain scalar, or in quotation marks if YAML would read it as anything else."""
    is_string = _RESOLVER.resolve(yaml.ScalarNode, text, (True, False)) == STRING_TAG
    return text if is_string and not _NEEDS_QUOTES.match(text) and not _LONE.search(text) else f'"{_encode(text)}"'


def _single_quoted(text: str) -> str:
    return f'"{_encode(text)}"' if "\n" in text or _LONE.search(text) else "'" + text.replace("'", "''") + "'"


_RESOLVER = yaml.resolver.Resolver()
