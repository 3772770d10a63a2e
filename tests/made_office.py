"""Make random office documents and books, and outline what a translation of them must not change."""

import io
import zipfile
from collections import Counter
from xml.etree import ElementTree

PLAIN = ["the", "old", "lighthouse", "stands", "above", "seven", "grey", "houses", "where", "nobody", "ever", "sings"]
ATOMS = ("{name}", "%s", "https://example.org/a_b?c=1", "12.5%")
W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
A = "http://schemas.openxmlformats.org/drawingml/2006/main"
P = "http://schemas.openxmlformats.org/presentationml/2006/main"
S = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
ODF = "urn:oasis:names:tc:opendocument:xmlns:{}:1.0"
DC = "http://purl.org/dc/elements/1.1/"


def words(chance, most=6):
    chosen = [chance.choice([*PLAIN, "&amp;", "&lt;3", "'at'"]) for _ in range(chance.randint(1, most))]
    if chance.random() < 0.2:
        chosen.insert(chance.randint(0, len(chosen)), chance.choice(ATOMS))
    return " ".join(chosen) + chance.choice(["", ".", "!", " "])


def zipped(members, stored=()):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            method = zipfile.ZIP_STORED if name in stored else zipfile.ZIP_DEFLATED
            file.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), content, method)
    return out.getvalue()


def package(main, content_type, members, extra_types=""):
    """Return an OOXML package with one main part."""
    types = (
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Default Extension="xml" ContentType="application/xml"/>{extra_types}'
        f'<Override PartName="/{main}" ContentType="application/vnd.openxmlformats-officedocument.{content_type}"/>'
        "</Types>"
    )
    relations = relations_of(("officeDocument", main))
    return zipped({"[Content_Types].xml": types, "_rels/.rels": relations, **members})


def relations_of(*targets):
    items = "".join(
        f'<Relationship Id="rId{number}" Type="{RELATIONS}/{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(targets, 1)
    )
    return (
        f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{items}</Relationships>'
    )


WORD_LOOKS = (
    "",
    "<w:rPr/>",
    "<w:rPr><w:b/></w:rPr>",
    "<w:rPr><w:i/><w:lang w:val='en-US'/></w:rPr>",
    "<w:rPr><w:b/><w:color w:val='FF0000'/></w:rPr>",
    "<w:rPr><w:rFonts w:hint='eastAsia'/></w:rPr>",
)


def word_text(chance):
    return f"""<w:t{chance.choice(["", ' xml:space="preserve"'])}>{words(chance)}</w:t>"""


def word_run(chance):
    inside = [
        word_text, lambda _: "<w:br/>", lambda _: "<w:tab/>", lambda _: '<w:br w:type="page"/>', word_text, word_text,
        lambda _: "<w:lastRenderedPageBreak/>", lambda _: "<w:noBreakHyphen/>", lambda _: "<w:t/>",
        lambda chance: f'<w:footnoteReference w:id="{chance.randint(2, 9)}"/>', word_text,
        lambda _: '<w:sym w:font="Wingdings" w:char="F0E0"/>',
    ]  # fmt: skip
    content = "".join(chance.choice(inside)(chance) for _ in range(chance.choice([1, 1, 1, 2, 4])))
    return f'<w:r w:rsidR="00{chance.randint(10, 99)}">{chance.choice(WORD_LOOKS)}{content}</w:r>'


def field_run(kind):
    return f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>'


def word_field(chance, depth):
    instruction = chance.choice(["PAGE", "REF _x \\h", 'HYPERLINK "http://a.b/"', "DATE"])
    code = f'{field_run("begin")}<w:r><w:instrText xml:space="preserve"> {instruction} </w:instrText></w:r>'
    return f"{code}{field_run('separate')}{word_inline(chance, depth + 1)}{field_run('end')}"


def word_inline(chance, depth=0):
    number = chance.randint(10, 10**6)
    kind = chance.randint(0, 18 if depth < 3 else 8)
    if kind < 8:
        return word_run(chance)
    if kind == 8:
        return chance.choice(
            ['<w:proofErr w:type="spellStart"/>', f'<w:bookmarkStart w:id="{number}" w:name="b{number}"/>']
        )
    inside = "".join(word_inline(chance, depth + 1) for _ in range(chance.randint(0, 3)))
    box = f"<w:txbxContent>{word_paragraph(chance, depth + 1)}</w:txbxContent>" if kind == 16 else ""
    return {
        9: lambda: f'<w:hyperlink r:id="rId{number}">{inside}</w:hyperlink>',
        10: lambda: f'<w:bookmarkStart w:id="{number}" w:name="n{number}"/>{inside}<w:bookmarkEnd w:id="{number}"/>',
        11: lambda: f'<w:ins w:id="{number}" w:author="a b">{inside}</w:ins>',
        12: lambda: f'<w:del w:id="{number}" w:author="a"><w:r><w:delText>not this</w:delText></w:r></w:del>',
        13: lambda: f'<w:sdt><w:sdtPr><w:alias w:val="x y"/></w:sdtPr><w:sdtContent>{inside}</w:sdtContent></w:sdt>',
        14: lambda: f'<w:smartTag w:element="x"><w:smartTagPr/>{inside}</w:smartTag>',
        15: lambda: word_field(chance, depth),
        16: lambda: f"<w:r><mc:AlternateContent><mc:Choice Requires='wps'>{box}</mc:Choice><mc:Fallback><w:pict>{box}"
        f"</w:pict></mc:Fallback></mc:AlternateContent></w:r>",
        17: lambda: "<m:oMath><m:r><m:t>x+y</m:t></m:r></m:oMath>",
        18: lambda: f'<w:r><w:drawing><wp:inline><wp:docPr id="{number}" name="p 1" descr="a grey cat"/></wp:inline>'
        "</w:drawing></w:r>",
    }[kind]()  # fmt: skip


def word_paragraph(chance, depth=0):
    properties = chance.choice(
        ["", '<w:pPr><w:jc w:val="center"/><w:rPr><w:b/></w:rPr></w:pPr>', "<w:pPr><w:bidi/></w:pPr>"]
    )
    inside = "".join(word_inline(chance, depth) for _ in range(chance.randint(0, 5)))
    return f'<w:p w:rsidR="00{chance.randint(10, 99)}">{properties}{inside}</w:p>'


def docx_bytes(chance):
    blocks = [word_paragraph(chance) for _ in range(chance.randint(1, 4))]
    cells = "".join(f"<w:tc>{word_paragraph(chance)}</w:tc>" for _ in range(2))
    table = f"<w:tbl><w:tblPr/><w:tblGrid><w:gridCol/><w:gridCol/></w:tblGrid><w:tr>{cells}</w:tr></w:tbl>"
    namespaces = (
        f'xmlns:w="{W}" xmlns:r="{RELATIONS}" xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
        'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math" '
        'xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing"'
    )
    body = f"<w:document {namespaces}><w:body>{''.join(blocks)}{table}{word_paragraph(chance)}</w:body></w:document>"
    return package("word/document.xml", "wordprocessingml.document.main+xml", {"word/document.xml": body})


def slide_paragraph(chance):
    looks = [
        '<a:rPr lang="en-US" dirty="0"/>',
        "",
        '<a:rPr lang="de-DE" b="1"/>',
        '<a:rPr><a:latin typeface="Arial"/></a:rPr>',
    ]
    parts = [
        lambda: f"<a:r>{chance.choice(looks)}<a:t>{words(chance)}</a:t></a:r>",
        lambda: "<a:br><a:rPr/></a:br>",
        lambda: '<a:fld id="{5BCAD085}" type="slidenum"><a:rPr/><a:t>7</a:t></a:fld>',
    ]
    inside = "".join(chance.choices(parts, [6, 2, 1])[0]() for _ in range(chance.randint(0, 6)))
    return f'<a:p><a:pPr algn="ctr"/>{inside}<a:endParaRPr lang="en-US"/></a:p>'


def pptx_bytes(chance):
    box = (
        '<p:sp><p:nvSpPr><p:cNvPr id="2" name="Box 1" descr="a grey cat"/><p:cNvSpPr/><p:nvPr/></p:nvSpPr><p:spPr/>'
        f"<p:txBody><a:bodyPr/>{''.join(slide_paragraph(chance) for _ in range(chance.randint(1, 5)))}</p:txBody>"
        "</p:sp>"
    )
    slide = (
        f'<p:sld xmlns:p="{P}" xmlns:a="{A}" xmlns:r="{RELATIONS}"><p:cSld><p:spTree>'
        f'<p:nvGrpSpPr><p:cNvPr id="1" name=""/>'
        f"<p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/>{box}</p:spTree></p:cSld></p:sld>"
    )
    presentation = (
        f'<p:presentation xmlns:p="{P}" xmlns:r="{RELATIONS}"><p:sldIdLst><p:sldId id="256" r:id="rId1"/></p:sldIdLst>'
        "</p:presentation>"
    )
    slide_type = "application/vnd.openxmlformats-officedocument.presentationml.slide+xml"
    return package(
        "ppt/presentation.xml",
        "presentationml.presentation.main+xml",
        {
            "ppt/presentation.xml": presentation,
            "ppt/_rels/presentation.xml.rels": relations_of(("slide", "slides/slide1.xml")),
            "ppt/slides/slide1.xml": slide,
        },
        f'<Override PartName="/ppt/slides/slide1.xml" ContentType="{slide_type}"/>',
    )


def xlsx_bytes(chance):
    def string():
        if chance.random() < 0.5:
            return f"<t xml:space='preserve'>{words(chance)}</t>"
        looks = ["", "<rPr><b/></rPr>", '<rPr><i/><sz val="9"/></rPr>']
        return "".join(f"<r>{chance.choice(looks)}<t>{words(chance)}</t></r>" for _ in range(chance.randint(1, 4)))

    strings = [string() for _ in range(chance.randint(1, 5))]
    pronounced = '<si><t>nobody sings</t><rPh sb="0" eb="1"><t>kana</t></rPh></si>'
    shared = (
        f'<sst xmlns="{S}">{"".join(f"<si>{each}</si>" for each in strings)}<si><t>Done now</t></si>{pronounced}</sst>'
    )
    cells = "".join(f'<c r="A{row}" t="s"><v>{row - 1}</v></c>' for row in range(1, len(strings) + 2))
    rows = (
        f'<row r="1"><c r="B1"><f>COUNTIF(A:A,"Done now")</f><v>1</v></c>'
        f'<c r="C1" t="inlineStr"><is>{string()}</is></c><c r="D1"><v>42</v></c></row>'
    )
    sheet = f'<worksheet xmlns="{S}"><sheetData>{rows}</sheetData></worksheet>'
    column = "".join(f'<row r="{number}">{cell}</row>' for number, cell in enumerate(cells.split("</c>")[:-1], 1))
    second = f'<worksheet xmlns="{S}"><sheetData>{column.replace("</v>", "</v></c>")}</sheetData></worksheet>'
    workbook = (
        f'<workbook xmlns="{S}" xmlns:r="{RELATIONS}"><sheets><sheet name="First sheet" sheetId="1" r:id="rId1"/>'
        '<sheet name="Second" sheetId="2" r:id="rId2"/></sheets></workbook>'
    )
    types = {"worksheets/sheet1": "worksheet", "worksheets/sheet2": "worksheet", "sharedStrings": "sharedStrings"}
    overrides = "".join(
        f'<Override PartName="/xl/{name}.xml" '
        f'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.{kind}+xml"/>'
        for name, kind in types.items()
    )
    return package(
        "xl/workbook.xml",
        "spreadsheetml.sheet.main+xml",
        {
            "xl/workbook.xml": workbook,
            "xl/_rels/workbook.xml.rels": relations_of(*((kind, f"{name}.xml") for name, kind in types.items())),
            "xl/worksheets/sheet1.xml": sheet,
            "xl/worksheets/sheet2.xml": second,
            "xl/sharedStrings.xml": shared,
        },
        overrides,
    )


def odf_inline(chance, depth=0):
    kind = chance.randint(0, 12 if depth < 3 else 5)
    if kind < 5:
        return words(chance)
    inside = " ".join(odf_inline(chance, depth + 1) for _ in range(chance.randint(1, 3)))
    number = chance.randint(1, 10**6)
    return [
        chance.choice(["<text:tab/>", '<text:s text:c="3"/>', "<text:line-break/>", "<text:soft-page-break/>"]),
        f'<text:span text:style-name="T{chance.randint(1, 3)}">{inside}</text:span>',
        f'<text:a xlink:href="http://a.b/{number}">{inside}</text:a>',
        f'<text:bookmark-start text:name="b{number}"/>{inside}<text:bookmark-end text:name="b{number}"/>',
        f'<text:note text:id="n{number}"><text:note-citation>1</text:note-citation><text:note-body>'
        f"<text:p>{inside}</text:p></text:note-body></text:note>",
        "<text:page-number>3</text:page-number>",
        '<draw:frame draw:name="F 1"><svg:desc>a grey cat</svg:desc></draw:frame>',
        '<text:change-start text:change-id="c1"/>',
    ][kind - 5]  # fmt: skip


def odf_paragraph(chance):
    tag = chance.choice(["text:p", "text:p", "text:h"])
    inside = " ".join(odf_inline(chance) for _ in range(chance.randint(0, 4)))
    return f'<{tag} text:style-name="P{chance.randint(1, 3)}">{inside}</{tag}>'


def odf_bytes(chance, kind="text"):
    names = {"office": "office", "text": "text", "table": "table", "draw": "drawing", "svg": "svg-compatible"}
    namespaces = "".join(f' xmlns:{prefix}="{ODF.format(name)}"' for prefix, name in names.items())
    paragraphs = "".join(odf_paragraph(chance) for _ in range(chance.randint(1, 4)))
    cells = (
        f'<table:table-cell office:value-type="string">{odf_paragraph(chance)}</table:table-cell>'
        '<table:table-cell office:value-type="float" office:value="4"><text:p>4 and no more</text:p></table:table-cell>'
    )
    table = f'<table:table table:name="T"><table:table-column/><table:table-row>{cells}</table:table-row></table:table>'
    inside = {
        "text": paragraphs + table,
        "presentation": f'<draw:page draw:name="p"><draw:frame><draw:text-box>{paragraphs}</draw:text-box></draw:frame>'
        "</draw:page>",
        "spreadsheet": table,
    }[kind]
    content = (
        f'<office:document-content{namespaces} xmlns:xlink="http://www.w3.org/1999/xlink" office:version="1.2">'
        f"<office:body><office:{kind}>{inside}</office:{kind}></office:body></office:document-content>"
    )
    manifest = (
        f'<manifest:manifest xmlns:manifest="{ODF.format("manifest")}"><manifest:file-entry manifest:full-path="/" '
        f'manifest:media-type="application/vnd.oasis.opendocument.{kind}"/><manifest:file-entry '
        'manifest:full-path="content.xml" manifest:media-type="text/xml"/></manifest:manifest>'
    )
    members = {
        "mimetype": f"application/vnd.oasis.opendocument.{kind}",
        "content.xml": content,
        "META-INF/manifest.xml": manifest,
    }
    return zipped(members, stored=("mimetype",))


def epub_bytes(chance):
    def inline(depth=0):
        kind = chance.randint(0, 5 if depth < 2 else 2)
        inside = words(chance) if kind < 3 else " ".join(inline(depth + 1) for _ in range(2))
        return [inside, inside, f"{inside}<br/>", f"<em>{inside}</em>", f'<a href="b.xhtml#x">{inside}</a>',
                f'<span xml:lang="en">{inside}</span>'][kind]  # fmt: skip

    page = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="en"><head>'
        f'<title>{words(chance)}</title><script src="a.js"/></head><body><p id="x"/>'
        + "".join(f"<p>{inline()}</p>" for _ in range(chance.randint(1, 4)))
        + "</body></html>"
    )
    package_text = (
        f'<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="i"><metadata xmlns:dc="{DC}">'
        f'<dc:identifier id="i">x 1</dc:identifier><dc:title>{words(chance)}</dc:title><dc:language>en</dc:language>'
        '<dc:creator>A. Person</dc:creator></metadata><manifest><item id="b" href="b.xhtml" '
        'media-type="application/xhtml+xml"/></manifest><spine><itemref idref="b"/></spine></package>'
    )
    contents = (
        '<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/" version="2005-1"><docTitle><text>One book</text></docTitle>'
        f'<navMap><navPoint id="n1"><navLabel><text>{words(chance)}</text></navLabel>'
        '<content src="b.xhtml"/></navPoint></navMap></ncx>'
    )
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0"><rootfiles>'
        '<rootfile full-path="OPS/package.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
    )
    members = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": container,
        "OPS/package.opf": package_text,
        "OPS/toc.ncx": contents,
        "OPS/b.xhtml": page,
        "OPS/a.js": "say('hello there')",
    }
    return zipped(members, stored=("mimetype",))


OFFICE_MAKERS = {
    "docx": docx_bytes, "pptx": pptx_bytes, "xlsx": xlsx_bytes, "odt": odf_bytes,
    "odp": lambda chance: odf_bytes(chance, "presentation"), "ods": lambda chance: odf_bytes(chance, "spreadsheet"),
    "epub": epub_bytes,
}  # fmt: skip
# What may be divided otherwise, or is the place of the language.
_RUNS = {
    f"{{{W}}}{name}" for name in ("r", "rPr", "t", "proofErr", "lastRenderedPageBreak", "lang", "bidi", "noBreakHyphen")
}
_RUNS |= {f"{{{A}}}{name}" for name in ("r", "rPr", "t")} | {f"{{{S}}}{name}" for name in ("r", "rPr", "t")}
_RUNS |= {f"{{{ODF.format('text')}}}s", f"{{{W}}}rFonts"}
_PARAGRAPHS = {f"{{{W}}}p", f"{{{A}}}p", f"{{{S}}}si", "{http://www.w3.org/1999/xhtml}p"}
_PARAGRAPHS |= {f"{{{ODF.format('text')}}}{name}" for name in "ph"}
_PROSE = ("descr", "lang", "{http://www.w3.org/XML/1998/namespace}lang", "dirty")


def office_outline(data):
    """Return the names of the members, and of each the elements of each paragraph and what is around them."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        assert file.testzip() is None
        names = [(entry.filename, entry.compress_type) for entry in file.infolist()]
        parts = {name: file.read(name) for name, _ in names}
    outlines = {
        name: outline_of(ElementTree.fromstring(content)) if content.startswith(b"<") else content
        for name, content in parts.items()
    }
    return names, outlines


def outline_of(root):
    """Return the elements of each paragraph, without runs, in a count, and before them those outside of paragraphs."""
    groups = [[]]

    def visit(element, group, parent):
        if element.tag.endswith("}rPr"):
            return
        is_run = element.tag in _RUNS
        if element.tag in _PARAGRAPHS and group is groups[0]:
            group = []
            groups.append(group)
        if not is_run:
            attributes = sorted((key, value) for key, value in element.attrib.items() if key not in _PROSE)
            text = element.text if element.tag.endswith(("instrText", "delText", "}v", "}f", "creator")) else ""
            shown = [] if f"{{{W}}}rsidR" in element.attrib else attributes
            group.append((element.tag, str(shown), parent, text))
        for child in element:
            visit(child, group, parent if is_run else element.tag)

    visit(root, groups[0], "")
    return [Counter(group) for group in groups]
