"""Outlines of documents that are text, made with parsers that Sixfold does not use, or with small ones written here."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any

import polib
import yaml
from document_outlines import ERROR, WORD, Block, MalformedError, placeholders

Outline = list[Block]
# Attributes of HTML whose values are text or name the language; the others must stay.
TEXT_ATTRIBUTES = frozenset(
    ["alt", "title", "placeholder", "aria-label", "aria-description", "aria-roledescription", "label", "summary",
     "abbr", "lang", "xml:lang", "dir"]
)  # fmt: skip
INLINE = frozenset(
    ["a", "abbr", "acronym", "b", "bdi", "bdo", "big", "br", "cite", "code", "data", "del", "dfn", "em", "font",
     "i", "img", "input", "ins", "kbd", "label", "mark", "math", "nobr", "q", "ruby", "rb", "rt", "rp", "s",
     "samp", "select", "small", "span", "strike", "strong", "sub", "sup", "svg", "time", "tt", "u", "var", "wbr",
     "button", "audio", "video", "object", "iframe", "script", "style", "noscript", "template", "textarea",
     "option", "meter", "output", "progress", "picture", "source", "map", "area", "embed", "param"]
)  # fmt: skip
VERBATIM = frozenset(["script", "style", "code", "pre", "kbd", "samp", "tt", "var", "math", "svg", "textarea"])


def decode(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise MalformedError(f"not UTF-8: {error}") from None


def read_html(data: bytes) -> Outline:
    """Read a page as a browser does, with html5lib."""
    import html5lib

    tree = html5lib.HTMLParser(html5lib.getTreeBuilder("etree"), namespaceHTMLElements=False).parse(decode(data))
    return element_outline(tree)


def element_outline(root: Any) -> Outline:
    """Return the outline of a tree of elements of HTML; those of ElementTree and of lxml will do."""
    blocks = [Block("start")]

    def add_text(text: str | None, verbatim: bool) -> None:
        if text and not verbatim:
            blocks[-1].text += text
            blocks[-1].parts += text
        elif text and text.strip():
            blocks[-1].inside[f"the text {text.strip()!r}"] += 1

    def visit(element: Any, verbatim: bool, in_picture: bool = False) -> None:
        if not isinstance(element.tag, str):
            blocks[-1].inside[f"<!--{element.text}-->"] += 1
            return
        name = element.tag.rpartition("}")[2].lower()
        is_button = name == "input" and element.get("type", "").lower() in ("button", "submit", "reset")
        kept = {
            key.rpartition("}")[2]: value
            for key, value in element.attrib.items()
            if key.rpartition("}")[2] not in TEXT_ATTRIBUTES
            and not (key == "value" and is_button)
            and not (name == "meta" and key == "content" and _is_text_of_meta(element))
        }
        shown = f"<{' '.join([name, *(f'{key}={value!r}' for key, value in sorted(kept.items()))])}>"
        translate = element.get("translate", "").lower()
        is_text = translate == "yes" or name in ("title", "desc")  # these two are in pictures, too
        verbatim = name in VERBATIM or translate == "no" or (verbatim and not is_text)
        is_inline = name in INLINE or in_picture
        if is_inline:
            blocks[-1].inside[shown] += 1
            blocks[-1].parts += " "
        else:
            blocks.append(Block(shown))
        add_text(element.text, verbatim)
        for child in element:
            visit(child, verbatim, in_picture or name == "svg")
            add_text(child.tail, verbatim)
        if is_inline:
            blocks[-1].parts += " "
        else:
            blocks.append(Block(f"</{name}>"))

    visit(root, False)
    return blocks


def _is_text_of_meta(element: Any) -> bool:
    name = (element.get("name") or element.get("property") or "").lower()
    return name.rpartition(":")[2] in (
        "description",
        "keywords",
        "title",
        "image:alt",
        "site_name",
        "alt",
        "abstract",
    ) or (element.get("http-equiv", "").lower() == "content-language")


def read_markdown(data: bytes) -> Outline:
    """Read a page with markdown-it-py, with tables, and its front matter with PyYAML."""
    from markdown_it import MarkdownIt

    text = decode(data).replace("\r\n", "\n")
    blocks: Outline = []
    if front := re.match(r"---\n(.*?\n)?---\n", text, re.S):
        blocks += read_yaml((front[1] or "").encode())
        text = text[front.end() :]
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text):
        content = token.content if token.type in ("fence", "code_block") else ""
        block = Block(f"{token.type} {token.tag} {token.info if token.type == 'fence' else ''} {content}")
        if token.type == "code_block" and len(blocks) > 1 and re.match(r"!!!|\?\?\?|===", blocks[-2].text):
            block.label = "the text of an admonition of MkDocs"
        if token.type == "html_block":
            block.inside += Counter(re.findall(r"</?[A-Za-z][\w-]*|(?:href|src|id|class)=[^\s>]+", token.content))
        stack = [*(token.children or ())]
        for child in stack:
            if child.type in ("text", "text_special", "softbreak"):
                block.text += child.content or " "
                block.parts += child.content or " "
                continue
            if child.type == "image":
                block.text += " ".join(each.content for each in child.children or () if each.type == "text")
            block.parts += " "
            goal = child.attrs.get("href", child.attrs.get("src", ""))
            code = child.content if child.type == "code_inline" else ""
            tag = _tag_shape(child.content) if child.type == "html_inline" else ""
            block.inside[f"{child.type} {goal} {code} {tag}"] += 1
        blocks.append(block)
    return blocks


def _tag_shape(tag: str) -> str:
    return re.sub(rf"\s(?:{'|'.join(TEXT_ATTRIBUTES)})=(\"[^\"]*\"|'[^']*')", "", tag)


def read_json(data: bytes) -> Outline:
    try:
        value = json.loads(decode(data))
    except (ValueError, RecursionError) as error:
        raise MalformedError(str(error)) from None
    return list(_value_blocks(value, ""))


def _value_blocks(value: Any, path: str) -> Iterator[Block]:
    if isinstance(value, dict):
        yield Block(f"{path} {{}}")
        for key, inner in value.items():
            yield from _value_blocks(inner, f"{path}.{key}")
    elif isinstance(value, list):
        yield Block(f"{path} [{len(value)}]")
        for index, inner in enumerate(value):
            yield from _value_blocks(inner, f"{path}[{index}]")
    elif isinstance(value, str):
        yield Block(f"{path} text" if value.strip() else f"{path} {value!r}", text=value, is_message=True)
    else:
        yield Block(f"{path} {value!r}")


def read_yaml(data: bytes) -> Outline:
    """Read YAML as nodes, so that tags that only some program knows do not matter."""
    blocks: Outline = []

    def visit(node: yaml.Node | None, path: str, seen: frozenset[int]) -> None:
        if node is None or id(node) in seen:
            blocks.append(Block(f"{path} again"))
        elif isinstance(node, yaml.MappingNode):
            blocks.append(Block(f"{path} {node.tag} {len(node.value)}"))
            for key, value in node.value:
                visit(value, f"{path}.{key.value}", seen | {id(node)})
        elif isinstance(node, yaml.SequenceNode):
            blocks.append(Block(f"{path} {node.tag} [{len(node.value)}]"))
            for index, value in enumerate(node.value):
                visit(value, f"{path}[{index}]", seen | {id(node)})
        elif node.tag == "tag:yaml.org,2002:str":
            blocks.append(Block(f"{path} text", text=node.value, is_message=True))
        else:
            blocks.append(Block(f"{path} {node.tag} {node.value!r}"))

    try:
        for number, document in enumerate(yaml.compose_all(decode(data), yaml.SafeLoader)):
            if isinstance(document, yaml.MappingNode) and len(document.value) == 1:
                (key, _), *_ = document.value
                if re.fullmatch(r"(?:en|zh)(?:[-_]\w+)?", str(key.value)):
                    key.value = "the language"  # of all that is in it, as in Rails
            visit(document, f"{number}", frozenset())
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise MalformedError(str(error)) from None
    return blocks


_DIRECTIVE = re.compile(r"%(?:\(\w+\))?[-+0-9.]*[sdif](?=[a-z])")


def read_po(data: bytes) -> Outline:
    """Read a catalogue with polib, and with msgfmt if it is installed."""
    text = decode(data)
    try:
        catalogue = polib.pofile(text)
    except (OSError, ValueError) as error:
        raise MalformedError(str(error)) from None
    blocks = [Block(f"the header {sorted(set(catalogue.metadata) - {'Language', 'Plural-Forms'})}")]
    for message in msgfmt_errors(data):
        blocks[0].inside[ERROR + message] += 1
    for entry in catalogue:
        flags = sorted(set(entry.flags) - {"fuzzy"})
        label = f"{entry.msgctxt!r} {entry.msgid!r} {entry.occurrences} {flags} {entry.comment} {entry.obsolete}"
        if not entry.msgid_plural:
            texts = [entry.msgstr, entry.msgid]
            if any(flag.endswith("-format") for flag in flags):  # "%dm" has a directive then
                texts = [_DIRECTIVE.sub(r"\g<0> ", text) for text in texts]
            blocks.append(Block(label, text=texts[0], source=texts[1]))
            continue
        blocks.append(Block(f"{label} {entry.msgid_plural!r}"))
        for number, msgstr in sorted(entry.msgstr_plural.items()):  # how many there are follows from the language
            # The singular may name no number, as in "one file".
            kept = [placeholders(each) for each in (entry.msgid, entry.msgid_plural)]
            if msgstr and placeholders(msgstr) not in kept:
                blocks[-1].inside[f"plural {number} with {sorted(placeholders(msgstr))}: {msgstr!r}"] += 1
    return blocks


def msgfmt_errors(data: bytes) -> list[str]:
    """Return the errors of `msgfmt -c`, without the place and without those about a header that is not filled in."""
    if shutil.which("msgfmt") is None:
        return []
    lines = _msgfmt(data).splitlines()
    if syntax := [line for line in lines if re.search(r"\d: (?!duplicate|\.\.\.)", line)]:
        raise MalformedError("\n".join(syntax))
    lines = _msgfmt(data, "-c").splitlines()
    told = [re.sub(r"^\S*?:\d+: ", "", line) for line in lines if re.match(r"\S+:\d+: ", line)]
    return [line for line in told if "header" not in line.lower()]


def _msgfmt(data: bytes, *options: str) -> str:
    """Return the complaints of msgfmt, without its warnings."""
    command = ["msgfmt", *options, "-o", "/dev/null", "-"]
    run = subprocess.run(command, input=data, capture_output=True, timeout=60, check=False)
    return re.sub(r"^.*warning: .*\n(?:  .*\n)*", "", run.stderr.decode("utf-8", "replace"), flags=re.M)


def read_csv(data: bytes, delimiter: str = ",") -> Outline:
    text = decode(data)
    if delimiter == ",":
        delimiter = max(",;\t", key=text.partition("\n")[0].count)
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=False))
    except csv.Error as error:
        raise MalformedError(str(error)) from None
    blocks = [Block(f"the header {rows[0]}")] if rows else []
    for row in rows[1:]:
        blocks.append(Block(f"a row of {len(row)}"))
        for cell in row:
            kept = [] if re.search(r"[^\W\d_]", cell) else [WORD + cell]
            blocks.append(Block("a cell", Counter(kept), cell))
    return blocks


def read_subtitles(data: bytes) -> Outline:
    """Read SRT and WebVTT: blocks between empty lines, with their times and tags."""
    text = decode(data).replace("\r\n", "\n").replace("\r", "\n")
    blocks: Outline = []
    for cue in re.split(r"\n[ \t]*\n", text.strip("\n")):
        head, times, lines = re.fullmatch(r"((?:(?!.*-->).*\n)?)((?:.*-->.*(?:\n|\Z))?)((?:.|\n)*)", cue).groups()
        if not times:
            blocks.append(Block(f"no cue: {cue!r}"))
            continue
        tags = Counter(re.findall(r"</?[A-Za-z\d][^<>,\n]*>|\{\\[^{}\n]*\}", lines))
        spoken = re.sub(r"<[^<>]*>|(?m:^-)", "", lines)  # a dash begins what another person says
        spoken = unescape(spoken) if text.startswith("WEBVTT") else spoken
        blocks.append(Block(f"{head.strip()} {times.strip()}", tags, spoken))
    return blocks


def read_rst(data: bytes) -> Outline:
    """Read reStructuredText with docutils; directives and roles of Sphinx are known by their names only."""
    from document_rst import rst_outline

    return rst_outline(decode(data))


_OPTION = re.compile(r"(?<![\w-])--?[A-Za-z](?:[\w-]*\w)?", re.ASCII)


def read_man(data: bytes) -> Outline:
    """Read a manual page as mandoc shows it, with the errors of mandoc; without mandoc, by its macros."""
    text = decode(data)
    if shutil.which("mandoc") is None:
        return [
            Block(line.split()[0]) for line in text.splitlines() if re.match(r"[.'](?:SH|SS|TH|Sh|Ss|Dt|TP|IP)\b", line)
        ]
    # mandoc ends an element with each line of the page, so words in another font are put on one line.
    joined = re.sub(
        r"\\f[BI](?:[^\\\n]|\\[^f\n]|\n(?![.'\s]))*(?=\\f[RP])", lambda run: run[0].replace("\n", " "), text
    )
    page = _mandoc(joined, "-T", "html", "-O", "fragment")
    blocks = [_without_ids(block) for block in read_html(page.stdout)]
    lint = _mandoc(text, "-T", "lint", "-W", "error")
    told = lint.stdout.decode("utf-8", "replace").splitlines()
    blocks[0].inside += Counter(ERROR + _message_of_mandoc(line) for line in told)
    for block in blocks:
        block.inside += Counter(WORD + option for option in _OPTION.findall(block.text.replace("‐", "-")))
    return blocks


def _mandoc(text: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["mandoc", "-K", "utf-8", *arguments], input=text.encode(), capture_output=True, timeout=60, check=False
    )


def _message_of_mandoc(line: str) -> str:
    return re.sub(r"^mandoc: \S+? (\w+: [^:]*).*", r"\1", line)


def _without_ids(block: Block) -> Block:
    """Return a block without what follows from the words of headings."""
    block.label = re.sub(r" (?:id|href)='#?[^']*'| (?:id|href)=\"#?[^\"]*\"", "", block.label)
    block.inside = Counter(
        {
            re.sub(r" (?:id|href)='#?[^':/]*'", "", item): count
            for item, count in block.inside.items()
            if "<a class='permalink'" not in item
        }
    )
    return block


_LATEX = re.compile(
    r"(?P<comment>(?<!\\)%[^\n]*\n?)|(?P<verbatim>\\begin\{(verbatim\*?|lstlisting|minted|comment|Verbatim)\}(?:.|\n)*?\\end\{\3\})"
    r"|\\verb\*?(?P<verb>([^\w\s*]).*?\5)|\\begin\s*\{(?P<begin>[^{}]*)\}|\\end\s*\{(?P<end>[^{}]*)\}"
    r"|(?P<maths>\$\$(?:[^$\\]|\\.|\\\n)+\$\$|\$(?:[^$\\]|\\.|\\\n)+\$|\\\((?:.|\n)*?\\\)|\\\[(?:.|\n)*?\\\])"
    r"|\\(?P<reference>(?:eq|page|auto|c|C)?ref|label|cite\w*|url|href|input|include(?:graphics)?|usepackage|bibliography)\*?(?P<values>(?:\[[^\]]*\])?\{[^{}]+\})"
    r"|\\(?P<command>[A-Za-z@]+\*?|.|\n)|(?P<open>\{)|(?P<close>\})|(?P<break>\n[ \t]*\n\s*)|(?P<special>[&~#^_])"
)


# What stands for characters that are markup, and spaces: a translation has others.
_ESCAPE = re.compile(
    r"\\[%&#_${}\s/'\"`^~=.vuHtcdbrk-]|[~^]"
    r"|\\(?:text(?:backslash|ascii(?:tilde|circum)|less|greater|bar|quotedbl|endash|emdash|degree|times)"
    r"|l?dots|copyright|pounds|euro|ss|ae|AE|oe|OE|aa|AA|[oOlLiSP])"
)


def read_latex(data: bytes) -> Outline:
    """Read the commands, environments, braces, maths and verbatim text of LaTeX, paragraph by paragraph."""
    text = decode(data)
    blocks, environments, depth = [Block("start")], [""], 0
    position = 0
    for match in _LATEX.finditer(text):
        blocks[-1].text += text[position : match.start()]
        is_symbol = re.fullmatch(r"\\[%&#_${}]", match[0]) is not None
        blocks[-1].parts += text[position : match.start()] + (match[0][1:] if is_symbol else " ")
        position = match.end()
        if match["begin"] is not None:
            environments.append(match["begin"])
            blocks.append(Block(f"begin {match['begin']}"))
        elif match["end"] is not None:
            if environments[-1] != match["end"]:
                blocks.append(Block(f"end {match['end']} inside {environments[-1]}"))
            else:
                environments.pop()
                blocks.append(Block(f"end {match['end']}"))
        elif match["break"] is not None:
            if not blocks[-1].label.startswith("paragraph") or blocks[-1].text.strip() or blocks[-1].inside:
                blocks.append(Block("paragraph" if depth == 0 else f"paragraph with {depth} braces open"))
        elif match["open"] or match["close"]:
            depth += 1 if match["open"] else -1
        elif not _ESCAPE.fullmatch(match[0]):
            item = match[0].strip()
            blocks[-1].inside[item if match["comment"] is None else f"comment {item}"] += bool(item)
    blocks[-1].text += text[position:]
    blocks[-1].parts += text[position:]
    blocks.append(Block(f"the end, with {depth} braces open and in {environments[1:]}"))
    return blocks


def read_file(read: Callable[[Path], Any], data: bytes, suffix: str) -> Any:
    """Return what a library makes of a file with this content."""
    with tempfile.NamedTemporaryFile(suffix=suffix) as file:
        file.write(data)
        file.flush()
        return read(Path(file.name))
