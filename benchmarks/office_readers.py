"""Outlines of documents in XML: office documents, books and XLIFF, made with lxml and with the office libraries."""

from __future__ import annotations

import io
import posixpath
import re
import subprocess
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

from document_outlines import ERROR, Block, MalformedError, placeholders
from document_readers import Outline, element_outline, read_file
from lxml import etree

_PARSER = etree.XMLParser(resolve_entities=False, huge_tree=True, no_network=True)
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
# Inside a paragraph: what sets the look of text, or the text itself, and may be joined or taken apart.
_OFFICE_TEXT = frozenset(
    ["r", "t", "rPr", "pPr", "proofErr", "lastRenderedPageBreak", "endParaRPr", "delText", "noBreakHyphen",
     "softHyphen", "bidi", "rtl"]
)  # fmt: skip
_ODF_TEXT = frozenset(["s", "soft-page-break"])
# Attributes that mean nothing, name the language, or are text.
_OTHER_ATTRIBUTES = re.compile(
    r"\{[^{}]*\}(?:rsid\w*|paraId|textId|space|dirty|err)$|^(?:dirty|err|lang|altLang|descr|title)$"
    r"|\}(?:language|country)(?:-asian|-complex)?$"  # of OpenDocument
)


def parse_xml(data: bytes, name: str) -> Any:
    try:
        return etree.fromstring(data, _PARSER)
    except etree.XMLSyntaxError as error:
        raise MalformedError(f"{name}: {error}") from None


def members_of(data: bytes) -> dict[str, bytes]:
    """Return the members of an archive, each of which must be whole, and well-formed if it is XML."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            members = {name: file.read(name) for name in file.namelist()}
    except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError) as error:
        raise MalformedError(str(error)) from None
    for name, content in members.items():
        if name.endswith((".xml", ".rels", ".xhtml", ".opf", ".ncx")) and content:
            parse_xml(content, name)
    return members


@contextmanager
def _opened_by(library: str) -> Iterator[None]:
    """Whatever a library raises for a document says that it does not accept it."""
    try:
        yield
    except Exception as error:
        raise MalformedError(f"{library}: {type(error).__name__}: {error}") from None


def _name(element: Any) -> str:
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else "comment"


def _shown(element: Any, kept_text: bool = False) -> str:
    values = " ".join(
        f"{key.rpartition('}')[2]}={value!r}"
        for key, value in sorted(element.attrib.items())
        if not _OTHER_ATTRIBUTES.search(key)
    )
    text = f" {element.text!r}" if kept_text else ""
    return f"<{_name(element)} {values}>{text}"


def paragraph_blocks(root: Any, member: str, paragraphs: frozenset[str], ignored: frozenset[str]) -> Outline:
    """Return the paragraphs of a member: the elements inside each but those that set the look of its text."""
    blocks = [Block(member)]
    open_blocks = [blocks[0]]

    def visit(element: Any, in_paragraph: bool) -> None:
        name = _name(element)
        first_inside = len(blocks) + 1
        is_outermost = name in paragraphs and not in_paragraph
        if name in paragraphs:
            # Inside another paragraph, as in a note, what is around may have been placed elsewhere.
            around = [_name(each) for each in reversed(list(element.iterancestors()))]
            path = "/".join(takewhile(lambda each: each not in paragraphs, around))
            depth = sum(each in paragraphs for each in around)
            blocks.append(Block(f"{member} {path} {depth} {_shown(element)}"))
            open_blocks.append(blocks[-1])
            in_paragraph = True
        elif not in_paragraph:
            is_text = name in ("title", "desc")  # of a picture in OpenDocument
            open_blocks[-1].inside[_shown(element, kept_text=not len(element) and not is_text)] += 1
        elif name in ("rPr", "endParaRPr"):
            return
        elif name not in ignored:
            open_blocks[-1].inside[_shown(element, name in ("instrText", "f", "annotation"))] += 1
        if name == "delText":  # of a tracked change; it is no part of the text
            open_blocks[-1].inside[f"deleted: {element.text}"] += 1
        elif in_paragraph and name != "instrText":
            text = _text_shown(element, name)
            open_blocks[-1].text += text
            open_blocks[-1].parts += text if _goes_on(element) else f" {text}"
        for child in element:
            visit(child, in_paragraph)
            if in_paragraph:
                open_blocks[-1].text += child.tail or ""
                open_blocks[-1].parts += (child.tail or "") if _goes_on(child.getnext()) else f" {child.tail or ''}"
        if name in paragraphs:
            open_blocks.pop()
        if is_outermost:  # two notes in it may have changed places
            blocks[first_inside:] = sorted(blocks[first_inside:], key=_block_key)

    visit(root, False)
    return blocks


def _goes_on(element: Any) -> bool:
    """Return whether an element is a text right behind another one, in the same run."""
    return element is not None and all(
        each is not None and _name(each) == "t" for each in (element, element.getprevious())
    )


def _text_shown(element: Any, name: str) -> str:
    """Return the text directly in an element: Word strips it, and no word goes on behind a field or a line break."""
    text = element.text or ""
    if name in ("br", "cr", "tab", "line-break", "s"):
        return " "
    if name in ("noBreakHyphen", "softHyphen", "sym"):
        return "\u2011"  # a hyphen, which ends an address as a symbol does
    if name == "t" and etree.QName(element).namespace == _WORD:
        text = text if element.get(_SPACE) == "preserve" else text.strip()
    is_apart = any(_name(each) in ("fld", "oMath") for each in element.iterancestors())  # a field, a formula
    return f" {text} " if is_apart else text


def _block_key(block: Block) -> tuple[str, list[tuple[str, int]], list[tuple[str, int]]]:
    """Return what a block is sorted by, which a translation does not change."""
    return block.label, sorted(block.inside.items()), sorted(placeholders(block.parts).items())


def _other_members(members: dict[str, bytes], text_members: str) -> Outline:
    """Return a block for each member that must stay byte for byte."""
    outline = [Block(f"the members {list(members)}")]
    for name, content in members.items():
        if not re.fullmatch(text_members, name):
            outline.append(Block(f"{name}, {hash(content)}"))
    return outline


def _metadata_blocks(members: dict[str, bytes]) -> Outline:
    """Return the elements of the metadata, with the texts of those that are no prose, such as authors and dates."""
    blocks = []
    for name in ("docProps/core.xml", "meta.xml"):
        for element in parse_xml(members[name], name).iter() if members.get(name) else ():
            is_prose = _name(element) in ("title", "subject", "description", "language")
            text = "" if is_prose else (element.text or "").strip()
            blocks.append(Block(f"{name} {_name(element)} {sorted(element.attrib.items())} {text}"))
    return blocks


def read_docx(data: bytes) -> Outline:
    """Read every member with lxml, and open the document with python-docx."""
    import docx

    members = members_of(data)
    pattern = (
        r"word/(?:[^/]*\.xml|diagrams/.*|charts/.*)|docProps/(?:core|app|custom)\.xml|\[Content_Types\]\.xml|_rels/.*"
    )
    blocks = [*_other_members(members, pattern), *_metadata_blocks(members)]
    for name, content in members.items():
        if re.fullmatch(r"word/(?:document\d*|header\d*|footer\d*|footnotes|endnotes|comments)\.xml", name):
            blocks += paragraph_blocks(parse_xml(content, name), name, frozenset(["p"]), _OFFICE_TEXT)
    with _opened_by("python-docx"):
        document = docx.Document(io.BytesIO(data))
        shapes = [len(document.paragraphs), len(document.tables), len(document.sections), len(document.inline_shapes)]
    return [*blocks, Block(f"python-docx finds {shapes}")]


def read_pptx(data: bytes) -> Outline:
    import pptx

    members = members_of(data)
    blocks = _other_members(members, r"ppt/.*\.xml|docProps/(?:core|app|custom)\.xml")
    blocks += _metadata_blocks(members)
    for name, content in members.items():
        if re.fullmatch(r"ppt/(?:slides|notesSlides|diagrams|comments|slideLayouts|slideMasters)/[^/]*\.xml", name):
            blocks += paragraph_blocks(parse_xml(content, name), name, frozenset(["p"]), _OFFICE_TEXT)
    with _opened_by("python-pptx"):
        slides = pptx.Presentation(io.BytesIO(data)).slides
        shapes = [[type(shape).__name__ for shape in slide.shapes] for slide in slides]
    return [*blocks, Block(f"python-pptx finds {shapes}")]


def read_xlsx(data: bytes) -> Outline:
    """Read the cells as openpyxl does: what is no text must stay, as formulas and the names of sheets."""
    import openpyxl

    members = members_of(data)
    blocks = _other_members(members, r"xl/.*\.xml|docProps/(?:core|app|custom)\.xml")
    blocks += _metadata_blocks(members)
    with _opened_by("openpyxl"):
        book = openpyxl.load_workbook(io.BytesIO(data), rich_text=True)
    names = sorted(f"{name}={value.attr_text}" for name, value in book.defined_names.items())
    blocks.append(Block(f"the sheets {book.sheetnames}, the names {names}"))
    for sheet in book.worksheets:
        blocks.append(Block(f"{sheet.title} {sheet.dimensions} {sorted(map(str, sheet.merged_cells.ranges))}"))
        for row in sheet.iter_rows():
            for cell in row:
                if cell.value is None:
                    continue
                link = cell.hyperlink.target if cell.hyperlink else ""
                is_text = cell.data_type == "s"
                text = str(cell.value) if is_text else ""
                parts = " ".join(map(str, cell.value)) if isinstance(cell.value, list) else text
                shown = "text" if is_text else repr(cell.value)
                blocks.append(Block(f"{cell.coordinate} {shown} {link}", text=text, parts=parts))
    return blocks


def read_odf(data: bytes) -> Outline:
    from odf import opendocument

    members = members_of(data)
    blocks = [
        Block("mimetype", _mimetype_errors(data)),
        *_other_members(members, r"content\.xml|styles\.xml|meta\.xml"),
        *_metadata_blocks(members),
    ]
    for name in ("content.xml", "styles.xml"):
        if name in members:
            blocks += paragraph_blocks(parse_xml(members[name], name), name, frozenset(["p", "h"]), _ODF_TEXT)
    with _opened_by("odfpy"):
        read_file(opendocument.load, data, ".odt")
    return blocks


def _mimetype_errors(data: bytes) -> Counter[str]:
    """Return whether the rule is broken that mimetype comes first and is not compressed. Debian's books break it."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        first = file.infolist()[0]
    is_right = first.filename == "mimetype" and first.compress_type == zipfile.ZIP_STORED
    return Counter() if is_right else Counter([f"{ERROR}mimetype is not the first member, stored without compression"])


def read_epub(data: bytes) -> Outline:
    """Read a book by the rules of EPUB: its members, its package, its pages, and the goals of the links inside it."""
    members = members_of(data)
    if members.get("mimetype", b"").strip() != b"application/epub+zip":
        raise MalformedError("mimetype is another")
    container = parse_xml(members.get("META-INF/container.xml", b""), "META-INF/container.xml")
    packages = [each.get("full-path") for each in container.iter("{*}rootfile")]
    blocks = [Block(f"the members {list(members)}", _mimetype_errors(data))]
    for package in packages:
        if package not in members:
            raise MalformedError(f"{package} is missing")
        opf = parse_xml(members[package], package)
        folder = posixpath.dirname(package)
        ids = [each.get("id") for each in opf.iter("{*}item")]
        blocks.append(Block(f"the items {ids}, the spine {[each.get('idref') for each in opf.iter('{*}itemref')]}"))
        for item in opf.iter("{*}item"):
            path = posixpath.normpath(posixpath.join(folder, unquote(item.get("href"))))
            if path not in members:
                raise MalformedError(f"{path} is in the manifest and not in the book")
            kind = item.get("media-type")
            if kind == "application/xhtml+xml":
                page = parse_xml(members[path], path)
                blocks += [Block(f"{path}, with links to nowhere {_dead_links(page)}"), *element_outline(page)]
            elif kind == "application/x-dtbncx+xml":
                ncx = parse_xml(members[path], path)
                blocks += [Block(f"{path} {_shown(each)}") for each in ncx.iter("{*}navPoint", "{*}content")]
            else:
                blocks.append(Block(f"{path} {hash(members[path])}"))
    return blocks


def _dead_links(page: Any) -> list[str]:
    ids = {value for each in page.iter() for key, value in each.attrib.items() if key in ("id", "name")}
    goals = [urldefrag(each.get("href")) for each in page.iter("{*}a") if each.get("href")]
    return [goal.fragment for goal in goals if not goal.url and goal.fragment and unquote(goal.fragment) not in ids]


def read_xliff(data: bytes) -> Outline:
    """Read the units of XLIFF 1.2 and 2: sources must stay, targets must have the inline elements of their sources."""
    root = parse_xml(data, "XLIFF")
    if _name(root) != "xliff":
        raise MalformedError(f"expected xliff; got {_name(root)}")
    blocks = [Block("the root")]
    for unit in root.iter("{*}trans-unit", "{*}unit"):
        kept = {key: value for key, value in unit.attrib.items() if not key.endswith("approved")}
        notes = [each.text for each in unit.iter("{*}note")]
        blocks.append(Block(f"unit {sorted(kept.items())} {notes}"))
        for source in unit.iter("{*}source"):
            if _name(source.getparent()) == "alt-trans":
                continue
            text = etree.tostring(source, encoding="unicode", with_tail=False)
            blocks.append(Block(f"source {re.sub(r'</?source[^>]*>', '', text)}"))
            target = next((each for each in source.getparent() if _name(each) == "target"), None)
            if target is None or not "".join(target.itertext()).strip():
                blocks.append(Block("target", Counter(["elements as the source has"])))
                continue
            inside, expected = (
                Counter(_shown(each) for each in side.iter() if each is not side and each.get("mtype") != "seg")
                for side in (target, source)
            )
            is_equal = "as the source has" if inside == expected else f"not as the source has: {inside} {expected}"
            inside = Counter([f"elements {is_equal}"])
            blocks.append(Block("target", inside, _text_beside_codes(target), _text_beside_codes(source)))
    return blocks


def _text_beside_codes(element: Any) -> str:
    """Return the text in an element, with spaces around the codes of the original document that stand in it.

    The sub-flows of a code, which are translated, stand behind it: `<img alt="">` and then the value of alt.
    """
    text, sub_flows = element.text or "", ""
    for child in element:
        inner = _text_beside_codes(child)
        if _name(child) == "sub":
            sub_flows += f" {inner}"
        else:
            text += f" {inner} " if _name(child) in ("bpt", "ept", "ph", "it") else inner
        text += child.tail or ""
    return text + sub_flows


def convert_to_pdf(office: str, files: list[Path], folder: Path) -> list[str]:
    """Convert office documents with LibreOffice; return the names of those that it does not open or convert."""
    profile = f"-env:UserInstallation=file://{folder / 'profile'}"
    subprocess.run(
        [office, profile, "--headless", "--convert-to", "pdf", "--outdir", str(folder), *map(str, files)],
        capture_output=True, timeout=60 + 30 * len(files), check=False,
    )  # fmt: skip
    return [file.name for file in files if not (folder / f"{file.stem}.pdf").is_file()]
