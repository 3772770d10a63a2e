"""Make random documents of every format, translate them by reversing their words, and compare their structure."""

import csv
import io
import json
import random
import re
from collections import Counter
from html.parser import HTMLParser
from xml.etree import ElementTree

import polib
import yaml
from made_office import OFFICE_MAKERS, office_outline
from made_prose import PROSE_MAKERS, PROSE_OUTLINES
from markdown_it import MarkdownIt

from sixfold.translation.protection import PROTECTED
from sixfold.translation.result import Details, Link, Translation

PLAIN = "the old lighthouse stands above seven grey houses a where ever sings"
WORDS = [*re.findall(r"\w+", PLAIN), "&", "<harbour>", "*nobody*", "'at'", '"night"']
ATOMS = ("{name}", "%s", "https://example.org/a_b?c=1", "me@example.org", "{{ count }}", "%(total)d", "12.5%")


class Turned:
    """A translator that writes every word in capitals, in reverse order, with alignment: markup is hard to transfer."""

    languages = ("en", "xx")

    def __init__(self, same=False):
        self.same = same

    def route(self, *_):
        return self

    def translate(self, text, *_):
        if self.same:
            return Translation(text, text, 0.0, self.languages)
        words = list(re.finditer(rf"(?:{PROTECTED.pattern}|\S)+?(?=\s|\Z)", text, re.ASCII))
        translation, links = "", []
        for match in reversed(words):
            translation += " " if translation else ""
            word = match[0] if any(atom in match[0] for atom in ATOMS) or "`" in match[0] else match[0].upper()
            links.append(Link((len(translation), len(translation) + len(word)), match.span(), 1.0))
            translation += word
        leading = text[: len(text) - len(text.lstrip())]
        links = [link._replace(target=(link.target[0] + len(leading), link.target[1] + len(leading))) for link in links]
        trailing = text[len(text.rstrip()) :] if text.strip() else ""
        return Translation(
            text, leading + translation + trailing, 0.0, self.languages, _explain=lambda: Details((), tuple(links))
        )

    def translate_request(self, texts, _request, _progress=None):
        return [self.translate(text) for text in texts]


def sentence(chance, plain=False, most=9):
    words = [chance.choice(WORDS) for _ in range(chance.randint(1, most))]
    if chance.random() < 0.3:
        words.insert(chance.randint(0, len(words)), chance.choice(ATOMS))
    words = [re.sub(r"[^\w{}%/.:@?=()]", "", word) or "x" for word in words] if plain else words
    return " ".join(words) + chance.choice([".", "!", "", "?"])


def html(chance):
    def text():
        return sentence(chance).replace("&", "&amp;").replace("<", "&lt;")

    def inline(depth=0, in_link=False):
        kind = chance.randint(0, 7 if depth < 3 else 1)
        if kind < 2:
            return text()
        if kind == 2:
            return f"<code>{chance.choice(['map()', 'a &lt; b'])}</code>"
        if kind == 3:
            return chance.choice(["<br>", "<!-- so -->", '<img src="a.png" alt="A cat">', "<br/>"])
        link = "a href='/x?a=1&b=2' title='Go there'"  # HTML has no links inside links
        tag = chance.choice(["b", "i", "b" if in_link else link, "span class=x", "em"])
        inside = " ".join(inline(depth + 1, in_link or tag == link) for _ in range(chance.randint(1, 3)))
        return f"<{tag}>{inside}</{tag.split()[0]}>"

    def block():
        kind = chance.randint(0, 8)
        if kind == 6:
            return f"<div translate=no>x <p translate=yes>{inline()}</p> y</div><template><p>{inline()}</p></template>"
        if kind == 7:
            return f"<noscript>{inline()}</noscript><INPUT TYPE=submit VALUE={chance.choice(WORDS[:9])}> {inline()}"
        if kind == 8:
            return f"<p>{inline()} <svg><title>{text()}</title><path/></svg> {inline()}<p class=notranslate>x y"
        if kind == 0:
            return "<script>if (a < b) { say('hello there') }</script>\n<pre>  as it\n is </pre>"
        if kind == 1:
            return f"<ul>\n  <li>{inline()}\n  <li>{inline()}</li></ul>"
        tag = chance.choice(["p", "div", "h2", "td", "section"])
        return f"<{tag}>{chance.choice(['', ' '])}{' '.join(inline() for _ in range(chance.randint(1, 4)))}</{tag}>"

    return "<!DOCTYPE html>\n<title>One page</title>\n" + "\n".join(block() for _ in range(chance.randint(1, 5)))


def markdown(chance):
    def inline(depth=0):
        kind = chance.randint(0, 7 if depth < 2 else 1)
        if kind < 3:
            return sentence(chance, plain=True)
        if kind == 3:
            return chance.choice(["`code here`", "<https://a.b/c>", "[^1]", "![a cat](a.png)", "a \\* b", "&copy; we"])
        if kind > 5 and depth == 0:
            return chance.choice([f"[so {inline(2)} too](https://x.y/(z) 'so')", f"[so {inline(2)} too][one]"])
        inside = " ".join(inline(depth + 1) for _ in range(chance.randint(1, 2)))
        return chance.choice([f"**so {inside} too**", f"*so {inside} too*"])

    def text():
        return chance.choice([" ", "\n"]).join(inline() for _ in range(chance.randint(1, 3)))

    def block():
        return chance.choice(
            [
                text(), "# " + inline(), "- " + text().replace("\n", "\n  "), "> " + text().replace("\n", "\n> "),
                "```sh\nsay hello\n```", "1. " + inline() + "\n2. " + inline(), "    indented code",
                f"| {sentence(chance, True)} | b |\n|---|---|\n| {inline()} | `x` |", "<div align=center>\n\n" + text(),
                inline() + "\n===", text() + "  \n" + inline(),
            ]
        )  # fmt: skip

    front = chance.choice(["", "---\ntitle: a b\n---\n"])
    return front + "\n\n".join(block() for _ in range(chance.randint(1, 6))) + "\n\n[one]: https://o.n/e\n"


def subtitles(chance, dot=","):
    head = "WEBVTT\n\nNOTE this is\na note\n\nSTYLE\n::cue { color: red }\n\n" if dot == "." else ""
    cues = []
    for number in range(1, chance.randint(2, 6)):
        text = sentence(chance, True) + chance.choice(["", "\n" + sentence(chance, True)])
        voice = f"<v Ann Bell>{text}</v>" if dot == "." else f'<font color="#ff0000">{text}</font>'
        text = chance.choice(
            [
                text,
                f"<i>{text}</i>",
                "{\\an8}" + text,
                f"- {text}\n- {sentence(chance, True)}",
                voice,
                f"-{text}\n{text}",
            ]
        )
        cues.append(f"{number}\n00:00:0{number}{dot}000 --> 00:00:0{number}{dot}900 align:start\n{text}\n")
    return chance.choice([str, lambda made: made.replace("\n", "\r\n")])(head + "\n".join(cues))


def values(chance, depth=0):
    kind = chance.randint(0, 6 if depth < 3 else 4)
    if kind < 3:
        return sentence(chance)
    if kind == 3:
        return chance.choice([1, 2.5, True, None, "", "true", "12", "a: b", "- c", "tab\there", "two\nlines"])
    if kind == 4:
        return sentence(chance) + "\n" + sentence(chance)
    if kind == 5:
        return [values(chance, depth + 1) for _ in range(chance.randint(0, 3))]
    return {f"key {number}": values(chance, depth + 1) for number in range(chance.randint(0, 4))}


def json_text(chance):
    return json.dumps({"all": values(chance)}, indent=chance.choice([None, 2]), ensure_ascii=chance.random() < 0.5)


def yaml_text(chance):
    style = chance.choice([None, "|", ">", '"', "'"])
    return "# a comment\n" + yaml.safe_dump(
        {"all": values(chance)}, default_style=style, width=chance.choice([40, 200])
    )


def po(chance):
    head = ["Content-Type: text/plain; charset=UTF-8", "Language: ", "Plural-Forms: nplurals=2; plural=(n != 1);"]
    entries = ["\n".join(['msgid ""', 'msgstr ""', *(f'"{line}\\n"' for line in head)]) + "\n"]
    for number in range(chance.randint(1, 6)):
        text = f"{number} {sentence(chance)}" + chance.choice(["", "\n", f"\n\n{sentence(chance)}\n"])
        text = chance.choice([text, text.replace(" ", "\n", 1), f"&File {number}", "\n" + text])
        quoted = "\n".join(json.dumps(line, ensure_ascii=False) for line in re.findall(r".*\n|.+", text))
        flags = chance.choice(["", "#, no-wrap\n", "#, fuzzy\n", '#| msgid "old"\n', f'msgctxt "menu {number}"\n'])
        plural = chance.random() < 0.3
        forms = f'msgid_plural {quoted}\nmsgstr[0] ""\nmsgstr[1] ""\n' if plural else 'msgstr ""\n'
        done = f"msgstr {quoted}\n"
        entries.append(f"#: a.c:{number}\n{flags}msgid {quoted}\n{chance.choice([forms, forms, done])}")
    return "\n".join([*entries, '#~ msgid "gone"\n#~ msgstr ""\n'])


XLIFF_INLINE = (
    '<g id="1">{0}</g>{1}<x id="2"/>', '<bpt id="1">&lt;b></bpt>{0}<ept id="1">&lt;/b></ept> {1}',
    '{0} <mrk mtype="protected">Ann Bell</mrk> {1}', '<bx id="3" rid="1"/>{0}<ex id="4" rid="1"/> <ph id="5">%</ph>{1}',
    '{0} <ph id="1">&lt;img alt="<sub>{1}</sub>"/></ph>',
)  # fmt: skip
XLIFF_2_INLINE = (
    '<pc id="1">{0}</pc>{1}<ph id="2"/>', '<sc id="1"/>{0}<ec startRef="1"/> {1}',
    '{0} <mrk id="m1" translate="no">Ann Bell</mrk> {1}',
)  # fmt: skip


def xliff(chance):
    is_new = chance.random() < 0.5
    units = []
    for number in range(chance.randint(1, 5)):
        text, other = (sentence(chance).replace("&", "&amp;").replace("<", "&lt;") for _ in range(2))
        inline = chance.choice(XLIFF_2_INLINE if is_new else XLIFF_INLINE).format(text, other)
        source = chance.choice([text, inline, inline, f"<![CDATA[<b>{other}</b>]]>"])
        target = chance.choice(["", "", "<target/>", f"<target>{source}</target>"])
        no = chance.choice(["", "", "", ' translate="no"'])
        if is_new:
            content = f"<segment>\n  <source>{source}</source>{target}\n</segment>"
            units.append(f'<unit id="{number}"{no}><notes><note>{text}</note></notes>{content}</unit>')
            continue
        if chance.random() < 0.2:
            segments = f'<mrk mtype="seg" mid="1">{text}</mrk> <mrk mtype="seg" mid="2">{other}</mrk>'
            sources = f"<source>{text} {other}</source><seg-source>{segments}</seg-source>"
            units.append(f'<trans-unit id="{number}"{no}>\n {sources}</trans-unit>')
            continue
        other_target = f"<alt-trans><target>{text}</target></alt-trans><note>{other}</note>"
        units.append(f'<trans-unit id="{number}"{no}>\n <source>{source}</source>{target}\n{other_target}</trans-unit>')
    if is_new:
        head = '<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en"><file id="f">'
        return f"{head}{''.join(units)}</file></xliff>"
    return (
        '<?xml version="1.0"?>\n<xliff version="1.2"><file source-language="en" original="a" datatype="plaintext">'
        f"<body>{''.join(units)}</body></file></xliff>"
    )


def csv_text(chance):
    out = io.StringIO()
    rows = [[sentence(chance) for _ in range(3)] for _ in range(chance.randint(1, 5))]
    csv.writer(out, lineterminator=chance.choice(["\n", "\r\n"])).writerows([["id", "text", "note"], *rows])
    return out.getvalue()


def tsv_text(chance):
    return "\n".join("\t".join(sentence(chance) for _ in range(3)) for _ in range(chance.randint(1, 5)))


MAKERS = {
    "html": html, "markdown": markdown, "srt": subtitles, "vtt": lambda chance: subtitles(chance, "."),
    "json": json_text, "yaml": yaml_text, "po": po, "xliff": xliff, "csv": csv_text, "tsv": tsv_text,
    **OFFICE_MAKERS, **PROSE_MAKERS,
}  # fmt: skip


def made(form, number):
    data = MAKERS[form](random.Random(f"{form} {number}"))
    return data if isinstance(data, bytes) else data.encode()


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        read = {"alt", "title", "placeholder", "aria-label", "label", "summary"}  # by people
        read |= {"html": {"lang", "dir"}, "meta": {"content"}, "input": {"value"}}.get(tag, set())
        attributes = [(name, value) for name, value in attrs if name not in read]
        self.tags.append((tag, str(attributes)))

    def handle_endtag(self, tag):
        self.tags.append(("/" + tag, ""))


def shape(value):
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items()}
    return [shape(each) for each in value] if isinstance(value, list) else type(value) if value != "" else ""


def blocks(text):
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    elements = []
    for token in parser.parse(text):
        elements.append((token.type, token.tag, token.content if token.type in ("fence", "code_block") else ""))
        inside = [child for child in token.children or [] if child.type not in ("text", "softbreak", "text_special")]
        elements.append(
            Counter((child.type, str(child.attrs.get("href", child.attrs.get("src", "")))) for child in inside)
        )
    return elements


def structure(form, data):
    """Return what a translation must not change."""
    if form in OFFICE_MAKERS:
        return office_outline(data)
    text = data.decode()
    if form in PROSE_OUTLINES:
        return PROSE_OUTLINES[form](text)
    if form == "html":
        return Counter(Tags(text).tags), re.findall(r"<script>.*?</pre>", text, re.S)
    if form == "markdown":
        return blocks(re.sub(r"\A---\ntitle: .*\n---\n", "", text))
    if form in ("srt", "vtt"):
        kept = re.findall(r"^\d.*-->.*$|^\d+\r?$|^NOTE.*\n.*$|^\s*$", text, re.M)
        return kept, Counter(re.findall(r"</?[a-z][^>]*>|\{\\an8\}", text))
    if form in ("json", "yaml"):
        return shape((json.loads if form == "json" else yaml.safe_load)(text))
    if form == "po":
        entries = [entry for entry in polib.pofile(text) if entry.msgid]
        return [
            (entry.msgid, entry.msgctxt, entry.occurrences, entry.msgid_plural, entry.obsolete) for entry in entries
        ]
    if form == "xliff":
        return xliff_structure(text)
    rows = list(csv.reader(io.StringIO(text))) if form == "csv" else [line.split("\t") for line in text.split("\n")]
    return [len(row) for row in rows]


def xliff_structure(text):
    """Return the elements outside targets, and for each target that it has the inline elements of its source."""
    found = []
    for element in ElementTree.fromstring(text).iter():
        name = element.tag.rpartition("}")[2]
        children = {child.tag.rpartition("}")[2]: child for child in element}
        if name in ("trans-unit", "segment") and "target" in children:
            sources = [children[key] for key in ("seg-source", "source") if key in children]
            inline = [Counter((each.tag, each.get("id")) for each in of.iter()) - Counter([(of.tag, None)])
                      for of in (sources[0], children["target"])]  # fmt: skip
            assert inline[0] == inline[1] or not "".join(children["target"].itertext()).strip(), text
        if name == "source":
            found.append((element.tag, "".join(element.itertext())))
        elif name in ("note", "trans-unit", "unit", "alt-trans"):
            found.append((name, element.get("id"), element.get("translate"), element.text))
    return found
