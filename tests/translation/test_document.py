"""Documents come back whole: every byte that is no prose, every tag, every placeholder."""

import csv
import io
import json
import random
import re
import sysconfig
from collections import Counter
from html.parser import HTMLParser
from importlib.metadata import distributions
from itertools import islice
from pathlib import Path
from xml.etree import ElementTree

import docx
import polib
import pytest
import yaml
from markdown_it import MarkdownIt

from sixfold.errors import DataError, RequestError
from sixfold.translation.document import FORMATS, Document, format_of, translate_document
from sixfold.translation.inline import place
from sixfold.translation.result import Details, Link, Translation
from sixfold.translation.units import Mark, Unit

PLAIN = "the old lighthouse stands above seven grey houses a where ever sings"
WORDS = [*re.findall(r"\w+", PLAIN), "&", "<harbour>", "*nobody*", "'at'", '"night"']
ATOMS = ("{name}", "%s", "https://example.org/a_b?c=1", "me@example.org", "{{ count }}", "%(total)d", "12.5%")


class Turned:
    """Says every word in capitals, the last one first, and knows which comes from which: a hard language to mark up."""

    languages = ("en", "xx")

    def __init__(self, same=False):
        self.same = same

    def direction(self, *_):
        return self

    def translate(self, text, *_):
        if self.same:
            return Translation(text, text, 0.0, self.languages)
        found = list(re.finditer(r"\S+", text))
        said, links = "", []
        for match in reversed(found):
            said += " " if said else ""
            word = match[0] if any(atom in match[0] for atom in ATOMS) or "`" in match[0] else match[0].upper()
            links.append(Link((len(said), len(said) + len(word)), match.span(), 1.0))
            said += word
        before = text[: len(text) - len(text.lstrip())]
        links = [link._replace(target=(link.target[0] + len(before), link.target[1] + len(before))) for link in links]
        behind = text[len(text.rstrip()) :] if text.strip() else ""
        return Translation(
            text, before + said + behind, 0.0, self.languages, _explain=lambda: Details((), tuple(links))
        )

    def translate_batch(self, texts, *_):
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
        self.seen = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        kept = [(name, value) for name, value in attrs if name not in ("alt", "title")]
        self.seen.append((tag, str(kept)))

    def handle_endtag(self, tag):
        self.seen.append(("/" + tag, ""))


def shape(value):
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items()}
    return [shape(each) for each in value] if isinstance(value, list) else type(value) if value != "" else ""


def blocks(text):
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    found = []
    for token in parser.parse(text):
        found.append((token.type, token.tag, token.content if token.type in ("fence", "code_block") else ""))
        inside = [child for child in token.children or [] if child.type not in ("text", "softbreak", "text_special")]
        found.append(
            Counter((child.type, str(child.attrs.get("href", child.attrs.get("src", "")))) for child in inside)
        )
    return found


def structure(form, data):
    """What a translation must not change."""
    if form == "docx":
        return [len(part.paragraphs) for part in (docx.Document(io.BytesIO(data)),)]
    text = data.decode()
    if form == "html":
        return Counter(Tags(text).seen), re.findall(r"<script>.*?</pre>", text, re.S)
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


@pytest.mark.parametrize("form", MAKERS)
def test_what_is_not_changed_comes_back_byte_for_byte(form):
    for number in range(1000 if form != "docx" else 40):
        data = made(form, number)
        said, report = translate_document(Turned(same=True), data, form)
        assert said == data, number
        assert report.notices == []


@pytest.mark.parametrize("form", MAKERS)
def test_structure_and_placeholders_survive_a_translation(form):
    changed = 0
    for number in range(300 if form != "docx" else 20):
        data = made(form, number)
        said, _ = translate_document(Turned(), data, form)
        changed += said != data
        assert structure(form, said) == structure(form, data), (number, data, said)
        if form != "docx":
            for atom in ATOMS:
                assert said.count(atom.encode()) >= data.count(atom.encode()), (atom, data, said)
    assert changed or form in ("po", "xliff")  # those have their translations already


def real_documents():
    """What is lying about: this project's pages, and the READMEs and data files of installed packages."""
    root = Path(__file__).parents[2]
    yield from ((path, path.read_bytes()) for path in [*root.glob("*.md"), *root.glob("docs/**/*.md")])
    for each in distributions():
        text = each.read_text("METADATA") or ""
        if "Description-Content-Type: text/markdown" in text:
            yield Path(f"{each.name}.md"), text.partition("\n\n")[2].encode()
    kinds = (".html", ".json", ".yaml", ".yml", ".po", ".csv", ".docx")
    for packages in map(Path, sysconfig.get_paths()["purelib"].splitlines()):
        for kind in kinds:
            some = (path for path in sorted(packages.rglob(f"*{kind}")) if path.stat().st_size < 200_000)
            yield from ((path, path.read_bytes()) for path in islice(some, 25))


def test_real_documents_survive():
    seen = Counter()
    for path, data in real_documents():
        form = format_of(path)
        try:
            before = structure(form, data)
            if form == "markdown":
                before = [each for each in before if not isinstance(each, Counter)]
        except (ValueError, yaml.YAMLError, OSError):  # made to be broken, for tests
            continue
        said, _ = translate_document(Turned(same=True), data, form)
        assert said == data, path
        said, _ = translate_document(Turned(), data, form)
        after = structure(form, said)
        if form == "markdown":  # emphasis is ambiguous enough in the wild
            after = [each for each in after if not isinstance(each, Counter)]
        assert after == before, path
        seen[form] += 1
    assert seen["markdown"] > 20
    assert seen["json"] > 5


def translated(form, text, translator=None):
    data = text if isinstance(text, bytes) else text.encode()
    said, report = translate_document(translator or Turned(), data, form)
    return said if isinstance(text, bytes) else said.decode(), [notice.kind for _, notice in report.notices]


def test_tags_follow_their_words_and_stay_nested():
    page = "<p>one <b>two <i>three</i></b> four<wbr> five<br>six seven</p>"
    assert translated("html", page) == ("<p><wbr>FIVE FOUR <b><i>THREE</i> TWO</b> ONE<br>SEVEN SIX</p>", [])
    page = '<p>see <a href="/a" title="the page">this page</a></p><pre>this page</pre>'
    assert translated("html", page)[0] == '<p><a href="/a" title="PAGE THE">PAGE THIS</a> SEE</p><pre>this page</pre>'
    assert translated("html", '<p class="notranslate">this page</p>')[0] == '<p class="notranslate">this page</p>'
    assert translated("html", "<p>call <code>a &lt; b</code> now")[0] == "<p><code>a &lt; b</code> NOW CALL"


class Forgetful(Turned):
    """Loses words that begin with a z, and knows where no word comes from."""

    def translate(self, text, *_):
        said = " ".join(word.upper() for word in text.split() if "z" not in word)
        return Translation(text, said, 0.0, self.languages)


def test_what_a_model_loses_comes_back_and_a_tag_without_words_is_told():
    said, kinds = translated("html", "<p>one <b>two</b> {zebra} three</p>", Forgetful())
    assert Counter(re.findall(r"<.*?>|\{zebra\}", said)) == Counter(["<p>", "<b>", "</b>", "{zebra}", "</p>"])
    assert kinds == ["markup"]
    said, _ = translated("markdown", "Open `zip it` and `z` now\n", Forgetful())
    assert said.count("`zip it`") == said.count("`z`") == 1


def test_words_between_two_pairs_are_shared_out_and_none_is_left_outside_of_a_run():
    unit = Unit((0, 9), "ab cd ef", (Mark(0, "open", (0, 0)), Mark(2, "close", (0, 0)), Mark(6, "open", (0, 0)),
                Mark(8, "close", (0, 0))), covers=True)  # fmt: skip
    links = [Link((0, 2), (6, 8), 1.0), Link((3, 5), (3, 5), 1.0), Link((6, 8), (0, 2), 1.0)]
    places, is_sure = place(unit, "EF CD AB", links)
    assert places == [(0, 2), (6, 3), (6, 0), (8, 1)]
    assert is_sure


def test_catalogues_get_the_translations_that_they_lack():
    text = 'msgid ""\nmsgstr "Language: xx\\n"\n\nmsgid "a \\"b\\"\\n"\n"c"\nmsgstr ""\n\nmsgid "so"\nmsgstr "kept"\n'
    said, _ = translated("po", text)
    assert [entry.msgstr for entry in polib.pofile(said)] == ['C "B" A', "kept"]
    many = 'msgid "one file"\nmsgid_plural "many files"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    assert polib.pofile(translated("po", many)[0])[0].msgstr_plural == {0: "FILE ONE", 1: "FILES MANY"}
    unit = '<unit><segment>\n  <source>one <pc id="1">two</pc> <ph id="2"/></source>{}\n</segment></unit>'
    for target in ("", "\n  <target/>", "\n  <target></target>"):
        said, _ = translated("xliff", unit.format(target))
        bare = re.sub(r'\s*<ph id="2"/>\s*', "", said)
        assert '<target><pc id="1">TWO</pc> ONE</target>' in bare
        assert said.count('<ph id="2"/>') == 2
        ElementTree.fromstring(said)
    kept = unit.format("\n  <target>said</target>")
    assert translated("xliff", kept)[0] == kept


def test_a_word_document_keeps_how_its_words_look():
    document = docx.Document()
    paragraph = document.add_paragraph("the ")
    paragraph.add_run("old").bold = True
    paragraph.add_run(" house & garden")
    out = io.BytesIO()
    document.save(out)
    said, _ = translated("docx", out.getvalue())
    (read,) = docx.Document(io.BytesIO(said)).paragraphs
    assert read.text == "GARDEN & HOUSE OLD THE"
    assert "".join(run.text for run in read.runs if run.bold).strip() == "OLD"
    with pytest.raises(DataError, match="expected a DOCX file"):
        translated("docx", b"PK no")


@pytest.mark.parametrize(
    ("form", "data", "message"),
    [
        ("json", b'{"a": ', "expected JSON"),
        ("json", b"[" * 100_000, "expected JSON"),
        ("yaml", b"a: [b", "expected YAML"),
        ("html", b"<p>\n\xff", ":2: expected UTF-8; got byte 0xff"),
        ("docx", b"", "expected a DOCX file"),
    ],
)
def test_what_is_no_such_document_is_said(form, data, message):
    with pytest.raises(DataError, match=message):
        translated(form, data)


def test_formats_are_known_by_name_or_told():
    assert format_of(Path("a.HTML")) == "html"
    assert format_of(Path("a.txt")) is None
    assert format_of(Path("a.html"), "text") is None
    assert format_of(Path("a"), "srt") == "srt"
    with pytest.raises(RequestError, match="--format: expected one of text, html"):
        format_of(Path("a"), "word")
    assert MAKERS.keys() == FORMATS.keys()


def test_a_byte_order_mark_and_empty_documents_stay():
    for form in FORMATS.keys() - {"docx", "json"}:
        assert translated(form, b"") == (b"", [])
    assert translated("html", b"\xef\xbb\xbf<p>so")[0] == b"\xef\xbb\xbf<p>SO"
    assert Document.read(b"<b></b>", "html").units == ()
