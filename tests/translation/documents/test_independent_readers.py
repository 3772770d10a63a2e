"""Formats that Sixfold reads with libraries are read by others here, which find the same structure in a translation.

Markdown is read by Python-Markdown instead of markdown-it-py, JSON by PyYAML's scanner in Python instead of `json`,
YAML by the same instead of libyaml, and tables by a reader of RFC 4180.
"""

import sys
from collections import Counter
from pathlib import Path

import html5lib
import markdown
import pytest
import yaml
from made_documents import Turned, made

from sixfold.translation.documents.steps import translate_document

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))  # at the end: its modules hide nothing

from hostile_translator import LawlessTranslator

KEPT_TEXT = ("code", "pre")
ATTRIBUTES = ("href", "src", "class", "id", "start")


def markdown_outline(text):
    """Return the blocks of a page in order, and the links, pictures and codes inside each."""
    page = markdown.markdown(text, extensions=["tables", "fenced_code", "sane_lists"], output_format="xhtml")
    root = html5lib.parse(page, namespaceHTMLElements=False)
    inline, spans = ("a", "code", "img"), ("em", "strong", "br", "del", "span")
    blocks = []
    for element in root.iter():
        if not isinstance(element.tag, str) or element.tag in spans:  # comments; what nests in other ways here
            continue
        kept = "".join(element.itertext()) if element.tag in KEPT_TEXT else ""
        goals = [element.get(name) for name in ATTRIBUTES]
        if element.tag in inline and blocks:
            blocks[-1][1][f"{element.tag} {goals} {kept}"] += 1
        else:
            blocks.append((f"{element.tag} {goals} {kept}", Counter()))
    return blocks


def yaml_outline(text):
    """Return the nodes of a document with their keys, and the values that are no strings."""

    def shown(node):
        if isinstance(node, yaml.MappingNode):
            return {(key.tag, key.value): shown(value) for key, value in node.value}
        if isinstance(node, yaml.SequenceNode):
            return [shown(child) for child in node.value]
        return node.tag if node.tag == "tag:yaml.org,2002:str" else (node.tag, node.value)

    return [shown(root) for root in yaml.compose_all(text, yaml.SafeLoader) if root is not None]


def table_outline(text, delimiter):
    """Return the number of cells of each row, by the rules of RFC 4180."""
    rows, cells, position, is_quoted = [], 1, 0, False
    is_start = True
    while position < len(text):
        char = text[position]
        if is_quoted:
            if char == '"' and text[position + 1 : position + 2] == '"':
                position += 1
            elif char == '"':
                is_quoted = False
        elif char == '"' and is_start:
            is_quoted = True
        elif char == delimiter:
            cells += 1
        elif char == "\n":
            rows, cells = [*rows, cells], 1
        is_start = not is_quoted and char in (delimiter, "\n")
        position += 1
    assert not is_quoted
    return rows if is_start else [*rows, cells]


OUTLINES = {
    "markdown": markdown_outline,
    "json": yaml_outline,
    "yaml": yaml_outline,
    "csv": lambda text: table_outline(text, ","),
    "tsv": lambda text: table_outline(text, "\t"),
}


@pytest.mark.parametrize("form", OUTLINES)
def test_another_reader_finds_the_same_structure_in_a_translation(form):
    outline = OUTLINES[form]
    changed = 0
    for number in range(80):
        data = made(form, number)
        for translator in (Turned(), LawlessTranslator(seed=number)):
            output, _ = translate_document(translator, data, form, "en", "zh")
            assert outline(output.decode()) == outline(data.decode()), (data.decode(), output.decode())
            changed += output != data
    assert changed > 80


def test_the_outlines_tell_damaged_documents():
    assert markdown_outline("a [b](c) `d`") != markdown_outline("a [b](e) `d`")
    assert markdown_outline("# a\n\n- b") != markdown_outline("# a\n\nb")
    assert yaml_outline("a: b") != yaml_outline("a: 1")
    assert table_outline('a,"b,c"\n', ",") != table_outline("a,b,c\n", ",")
