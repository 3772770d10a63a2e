"""The outline of reStructuredText by docutils, which need not have Sphinx to know its directives and roles."""

from __future__ import annotations

import io
import re
from collections import Counter
from typing import Any

from document_outlines import ERROR, Block
from docutils import nodes
from docutils.core import publish_doctree
from docutils.parsers.rst import Directive, directives, roles

# Directives whose content is no prose.
_LITERAL = re.compile(
    r".*(?:code|source|literal|include|toctree|math|raw|auto|graph|plot|doctest|test|parsed|image|figure|index|currentmodule|module"
    r"|highlight|prompt|tab-?set|mermaid|uml|click|program|argparse|production|csv-table|ipython|default|tags).*"
)
_INLINE = (nodes.Inline, nodes.TextElement)


class _AnyOptions(dict[str, Any]):
    def __getitem__(self, _name: str) -> Any:
        return lambda value: value or ""

    def __bool__(self) -> bool:
        return True


class _AnyDirective(Directive):
    """A directive that is known by name only: its content is read as text unless its name says that it is code."""

    optional_arguments = 99
    final_argument_whitespace = True
    has_content = True
    option_spec = _AnyOptions()

    def run(self) -> list[nodes.Node]:
        container = nodes.container()
        options = sorted(self.options.items())
        is_literal = _LITERAL.fullmatch(self.name) is not None
        takes_text = self.name in (
            "versionadded",
            "versionchanged",
            "deprecated",
            "versionremoved",
            "deprecated-removed",
            "seealso",
            "todo",
            "tab",
            "tab-item",
            "dropdown",
            "rubric",
            "centered",
            "topic",
        )
        container["kept"] = (
            f"{self.name} {'' if takes_text else self.arguments} {options} {self.content if is_literal else ''}"
        )
        if "version" in self.name or self.name.startswith("deprecated"):
            container["kept"] += " ".join(self.arguments).split(" ")[0]
        if not is_literal:
            self.state.nested_parse(self.content, self.content_offset, container)
        return [container]


def _any_role(name: str, rawtext: str, text: str, *_: Any, **__: Any) -> tuple[list[nodes.Node], list[nodes.Node]]:
    # A role with a title, as in :ref:`the title <goal>`, keeps its goal.
    titled = re.fullmatch(r"(.*?)\s*<([^<>]*)>", text, re.S)
    node = (
        nodes.inline(rawtext, titled[1], role=name, kept=titled[2])
        if titled
        else nodes.literal(rawtext, "", role=name, kept=text)
    )
    return [node], []


def _directive(name: str, module: Any, document: Any) -> tuple[Any, list[Any]]:
    known, messages = _known_directive(name, module, document)
    if known is not None and name not in (
        "include",
        "raw",
        "csv-table",
        "image",
        "figure",
        "code",
        "code-block",
        "math",
    ):
        return known, []
    return _AnyDirective, [] if known is None else messages


def _role(name: str, module: Any, line: int, reporter: Any) -> tuple[Any, list[Any]]:
    known, _ = _known_role(name, module, line, reporter)
    return (known, []) if known is not None else (_any_role, [])


_known_directive, _known_role = directives.directive, roles.role


def rst_outline(text: str) -> list[Block]:
    """Return the outline of a page; what docutils complains about is in its first block."""
    directives.directive, roles.role = _directive, _role
    errors = io.StringIO()
    try:
        settings = {
            "warning_stream": errors, "report_level": 2, "halt_level": 5, "raw_enabled": False,
            "file_insertion_enabled": False, "_disable_config": True,
        }  # fmt: skip
        tree = publish_doctree(text, settings_overrides=settings)
    finally:
        directives.directive, roles.role = _known_directive, _known_role
    messages = re.findall(r"\((\w+/\d)\) ([^\n]*)", errors.getvalue())
    blocks = [Block("the page", Counter(f"{ERROR}{level} {_plain(message)}" for level, message in messages))]
    _visit(tree, blocks, False)
    return blocks


def _plain(message: str) -> str:
    """Return a message without the words of the page that it names."""
    message = re.sub(r"\"[^\"]*\"|'[^']*'|: .*$", "", message)
    return "Title underline too short." if "nderline too short" in message else message


def _visit(node: Any, blocks: list[Block], verbatim: bool) -> None:
    if isinstance(node, nodes.Text):
        if verbatim:
            blocks[-1].inside[f"the text {node.astext()!r}"] += 1
        else:
            blocks[-1].text += node.astext()
            blocks[-1].parts += f" {node.astext()} "
        return
    if isinstance(node, nodes.system_message):
        return
    name = type(node).__name__
    values = [
        str(node[key]) for key in ("refuri", "uri", "role", "kept", "footnotes", "enumtype", "target") if node.get(key)
    ]
    if name in ("footnote_reference", "citation_reference", "substitution_reference"):
        values.append(node.astext())
    if name in ("comment", "literal_block", "doctest_block", "math_block", "raw", "substitution_definition", "label"):
        values.append(node.astext())
    shown = f"{name} {' '.join(values)}"
    if name == "reference" and node.astext() in (node.get("refuri"), node.get("refuri", "").removeprefix("mailto:")):
        shown = "address"  # whether docutils makes a link of it depends on the characters around
    is_inline = isinstance(node, nodes.Inline) or (
        name in ("target", "image") and isinstance(node.parent, nodes.TextElement)
    )
    if not is_inline:
        blocks.append(Block(shown))
    elif shown != "address":
        blocks[-1].inside[shown] += 1
    if name in ("comment", "literal_block", "doctest_block", "math_block", "raw", "substitution_definition", "label"):
        return
    for child in node.children:
        _visit(
            child,
            blocks,
            verbatim
            or name in ("literal", "math", "footnote_reference", "citation_reference", "substitution_reference"),
        )
    if not is_inline:
        blocks.append(Block(f"/{name}"))
