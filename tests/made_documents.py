"""Make random documents of every format, translate them by reversing their words, and compare their structure."""

import csv
import io
import json
import random
import re
from collections import Counter
from html.parser import HTMLParser
from xml.etree import ElementTree

import docx
import polib
import yaml
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

    def inline(depth=0):
        kind = chance.randint(0, 7 if depth < 3 else 1)
        if kind < 2:
            return text()
        if kind == 2:
            return f"<code>{chance.choice(['map()', 'a &lt; b'])}</code>"
        if kind == 3:
            return chance.choice(["<br>", "<!-- so -->", '<img src="a.png" alt="A cat">', "<br/>"])
        tag = chance.choice(["b", "i", "a href='/x?a=1&b=2' title='Go there'", "span class=x", "em"])
        inside = " ".join(inline(depth + 1) for _ in range(chance.randint(1, 3)))
        return f"<{tag}>{inside}</{tag.split()[0]}>"

    def block():
        kind = chance.randint(0, 5)
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
    head = "WEBVTT\n\nNOTE this is\na note\n\n" if dot == "." else ""
    cues = []
    for number in range(1, chance.randint(2, 6)):
        text = sentence(chance, True) + chance.choice(["", "\n" + sentence(chance, True)])
        text = chance.choice([text, f"<i>{text}</i>", "{\\an8}" + text, f"- {text}\n- {sentence(chance, True)}"])
        cues.append(f"{number}\n00:00:0{number}{dot}000 --> 00:00:0{number}{dot}900 align:start\n{text}\n")
    return head + "\n".join(cues)


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
    entries = ['msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n']
    for number in range(chance.randint(1, 5)):
        text = json.dumps(f"{number} {sentence(chance)}", ensure_ascii=False)
        entries.append(f"#: a.c:{number}\nmsgid {text}\nmsgstr {chance.choice([text, text])}\n")
    return "\n".join(entries)


def xliff(chance):
    units = []
    for number in range(chance.randint(1, 5)):
        text = sentence(chance).replace("&", "&amp;").replace("<", "&lt;")
        text = chance.choice([text, f'<g id="1">{text}</g> {number} <x id="2"/>'])
        units.append(f'<trans-unit id="{number}">\n <source>{text}</source>\n <target>{text}</target>\n</trans-unit>')
    return f'<?xml version="1.0"?>\n<xliff version="1.2"><file><body>{"".join(units)}</body></file></xliff>'


def csv_text(chance):
    out = io.StringIO()
    rows = [[sentence(chance) for _ in range(3)] for _ in range(chance.randint(1, 5))]
    csv.writer(out, lineterminator=chance.choice(["\n", "\r\n"])).writerows([["id", "text", "note"], *rows])
    return out.getvalue()


def tsv_text(chance):
    return "\n".join("\t".join(sentence(chance) for _ in range(3)) for _ in range(chance.randint(1, 5)))


def docx_bytes(chance):
    document = docx.Document()
    for _ in range(chance.randint(1, 3)):
        paragraph = document.add_paragraph()
        for _ in range(chance.randint(0, 4)):
            run = paragraph.add_run(sentence(chance) + " ")
            run.bold, run.italic = chance.random() < 0.3, chance.random() < 0.3
    table = document.add_table(1, 2)
    table.cell(0, 0).text = sentence(chance)
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


MAKERS = {
    "html": html, "markdown": markdown, "srt": subtitles, "vtt": lambda chance: subtitles(chance, "."),
    "json": json_text, "yaml": yaml_text, "po": po, "xliff": xliff, "csv": csv_text, "tsv": tsv_text,
    "docx": docx_bytes,
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
        attributes = [(name, value) for name, value in attrs if name not in ("alt", "title")]
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
    if form == "docx":
        return [len(part.paragraphs) for part in (docx.Document(io.BytesIO(data)),)]
    text = data.decode()
    if form == "html":
        return Counter(Tags(text).tags), re.findall(r"<script>.*?</pre>", text, re.S)
    if form == "markdown":
        return blocks(re.sub(r"\A---\ntitle: a b\n---\n", "", text))
    if form in ("srt", "vtt"):
        return re.findall(r"^\d.*-->.*$|^\d+$|^NOTE.*\n.*$", text, re.M), Counter(re.findall(r"</?i>|\{\\an8\}", text))
    if form in ("json", "yaml"):
        return shape((json.loads if form == "json" else yaml.safe_load)(text))
    if form == "po":
        return [(entry.msgid, entry.occurrences, bool(entry.msgstr)) for entry in polib.pofile(text)]
    if form == "xliff":
        return [(each.tag, sorted(each.attrib)) for each in ElementTree.fromstring(text).iter() if each.tag != "target"]
    rows = list(csv.reader(io.StringIO(text))) if form == "csv" else [line.split("\t") for line in text.split("\n")]
    return [len(row) for row in rows]
