"""The structure of JSON and YAML: keys, types and all values but the texts, as `json` and libyaml read them."""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

from sixfold.text.languages import SCRIPTS
from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.documents.data.json_yaml import MAX_DEPTH, STRING_TAG, unreadable_yaml
from sixfold.translation.documents.data.keys import text_item
from sixfold.translation.documents.structure import Structure, StructureBuilder
from sixfold.translation.documents.units import UnreadableError

_ROOT_KEY = re.compile(
    r"(?:^---[^\n]*\n|\A)(?:[ \t]*(?:#[^\n]*)?\r?\n)*(?P<key>[a-z]{2,3}(?:-[A-Z]{2})?):[ \t]*\r?\n", re.M
)
_RESOLVER = yaml.resolver.Resolver()
_C_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml, which reads in its own way


def json_structure(text: str) -> Structure:
    """Return the keys and the values of a document that are no texts, in order."""
    try:
        root = json.loads(
            text, object_pairs_hook=_Pairs, parse_int=_Number, parse_float=_Number, parse_constant=_Number
        )
    except json.JSONDecodeError as error:
        raise UnreadableError(f"expected JSON; column {error.colno}: {error.msg}", error.lineno) from None
    except RecursionError:
        raise UnreadableError("expected JSON that is nested less deeply") from None
    items: Structure = []
    pending: list[Any] = [root]  # the next value last
    while pending:
        check_cancelled()
        value = pending.pop()
        if isinstance(value, _Pairs):
            items.append("{")
            pending.append(_End("}"))
            for key, child in reversed(value):
                pending += [child, _End(f"key {key!r}")]
        elif isinstance(value, list):
            items.append("[")
            pending += [_End("]"), *reversed(value)]
        elif isinstance(value, _End):
            items.append(value)
        else:
            is_text = isinstance(value, str) and not isinstance(value, _Number)
            items.append(text_item(value) if is_text else f"the value {value}")
    return items


class _Pairs(list[tuple[str, Any]]):
    """The keys and values of an object; keys may be there twice."""


class _Number(str):
    """A number as it is written."""


class _End(str):
    """An item of the structure itself."""


def yaml_structure(text: str) -> Structure:
    """Return the events of a document without its texts; keys, anchors, aliases and tags are kept."""
    builder = StructureBuilder()
    reader = _EventReader(builder, _language_key(text))
    try:
        for event in yaml.parse(text, _C_LOADER):
            check_cancelled()
            reader.read(event)
    except yaml.YAMLError as error:
        raise unreadable_yaml(error) from None
    return builder.build()


class _EventReader:
    """Adds the events of YAML to a structure; it knows which scalars are keys."""

    def __init__(self, builder: StructureBuilder, language_key: str | None) -> None:
        self.builder, self.language_key = builder, language_key
        self.collections: list[str] = []  # around the position: sequence, key or value; the last two in a mapping

    def read(self, event: yaml.Event) -> None:
        if isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            self.collections.pop()
            self.builder.block("the end of a list or mapping")
            return
        if not isinstance(event, yaml.NodeEvent):
            if isinstance(event, (yaml.DocumentStartEvent, yaml.DocumentEndEvent)):
                self.builder.block(f"{type(event).__name__} {event.explicit}")
            return
        is_key = self.collections[-1:] == ["key"]
        if self.collections and self.collections[-1] != "sequence":
            self.collections[-1] = "value" if is_key else "key"
        if isinstance(event, yaml.ScalarEvent):
            self.builder.block(self.scalar_item(event, is_key))
        elif isinstance(event, yaml.AliasEvent):
            self.builder.block(f"*{event.anchor}")
        else:
            is_mapping = isinstance(event, yaml.MappingStartEvent)
            self.builder.block(f"{'mapping' if is_mapping else 'list'} {_properties(event)}")
            self.collections.append("key" if is_mapping else "sequence")
            if len(self.collections) > MAX_DEPTH:
                expected = f"expected YAML that is nested less deeply, at most {MAX_DEPTH} levels"
                raise UnreadableError(expected, event.start_mark.line + 1)

    def scalar_item(self, event: yaml.ScalarEvent, is_key: bool) -> str:
        tag = event.tag or _RESOLVER.resolve(yaml.ScalarNode, event.value, event.implicit)
        if is_key:
            if event.value == self.language_key and len(self.collections) == 1:
                return "the key of a language"
            return f"key {event.value!r} {_properties(event)}"
        shown = text_item(event.value) if tag == STRING_TAG else f"{tag} {event.value!r}"
        return f"{shown} {_properties(event)}"


def _properties(event: yaml.NodeEvent) -> str:
    """Return the anchor and the tag of a node, where it has them."""
    tag = getattr(event, "tag", None)
    return f"{f'&{event.anchor}' if event.anchor else ''} {tag or ''}".strip()


def set_yaml_language(text: str, code: str) -> str:
    """Return a document with another language as its only key at the root, as the locales of Rails have it."""
    key = _language_key(text)
    match = _ROOT_KEY.search(text) if key else None
    return f"{text[: match.start('key')]}{code}{text[match.end('key') :]}" if match else text


def _language_key(text: str) -> str | None:
    """Return the key at the root of a document if it is the code of a language, and the only key there."""
    match = _ROOT_KEY.match(text)
    if match is None or match["key"].split("-")[0] not in SCRIPTS:
        return None
    return None if re.compile(r"^[^\s#]", re.M).search(text, match.end()) else match["key"]
