"""Of JSON and YAML the chosen texts are translated; keys, types, numbers, anchors and comments stay."""

import json

import pytest
import yaml
from made_documents import Turned

from sixfold.errors import DataError, RequestError
from sixfold.translation.documents.steps import translate_document
from sixfold.translation.result import Translation


def translated(text, form="json", keys=(), translator=None):
    return translate_document(translator or Turned(), text.encode(), form, keys=keys)[0].decode()


KEYED = {
    "title": "one two",
    "page": {"a": {"text": "one two", "id": "one two"}, "items": [{"text": "one two"}]},
    "flat.text": "one two",
}


@pytest.mark.parametrize("form", ["json", "yaml"])
@pytest.mark.parametrize(
    ("keys", "chosen"),
    [
        ([], "title page.a.text page.a.id page.items.text flat.text"),
        (["title"], "title"),
        (["text"], "page.a.text page.items.text flat.text"),
        (["page.*.text"], "page.a.text page.items.text"),
        (["page.**.text"], "page.a.text page.items.text"),
        (["page"], "page.a.text page.a.id page.items.text"),
        (["page", "!id"], "page.a.text page.items.text"),
        (["!page.a"], "title page.items.text flat.text"),
        (["t*"], "title page.a.text page.items.text flat.text"),
        (["*.text"], "flat.text"),
        (["nothing"], ""),
    ],
)
def test_patterns_choose_the_keys(form, keys, chosen):
    text = json.dumps(KEYED) if form == "json" else yaml.safe_dump(KEYED, sort_keys=False)
    output = yaml.safe_load(translated(text, form, keys))
    values = {
        "title": output["title"], "page.a.text": output["page"]["a"]["text"], "page.a.id": output["page"]["a"]["id"],
        "page.items.text": output["page"]["items"][0]["text"], "flat.text": output["flat.text"],
    }  # fmt: skip
    assert {key for key, value in values.items() if value == "TWO ONE"} == set(chosen.split())
    assert set(values.values()) <= {"TWO ONE", "one two"}


def test_a_pattern_with_an_empty_key_is_refused():
    with pytest.raises(
        RequestError, match=r"--keys: expected a pattern such as title, page.\*.text or !id; got 'a..b'"
    ):
        translated("{}", keys=["a..b"])


@pytest.mark.parametrize(
    "value",
    [
        "#ff0000", "rgb(1, 2, 3)", "en-US", "2024-01-02T03:04:05Z", "image/png", "^1.2.3", "12px", "some_name",
        "https://a.b/c", "file.txt", "MAX_SIZE", "9f86d081884c7d659a2feaa0c55ad015", "btn--large", "src/**/*.ts",
    ],
)  # fmt: skip
def test_what_programs_read_stays(value):
    assert translated(json.dumps([value])) == json.dumps([value])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": "one two", "a": "three four"}', '{"a": "TWO ONE", "a": "FOUR THREE"}'),
        ('"one two"', '"TWO ONE"'),
        ('\n["one two"]\n', '\n["TWO ONE"]\n'),
        ('[1.50, 1e400, "one two", null]', '[1.50, 1e400, "TWO ONE", null]'),
        (r'["say \"one\" two\tthree"]', r'["THREE TWO \"ONE\" SAY"]'),
        (r'["\u4f60 one \ud83d\ude00"]', '["😀 ONE 你"]'),
        (r'["one two\/three"]', r'["TWO\/THREE ONE"]'),
        (r'["one \u0026 two"]', r'["TWO \u0026 ONE"]'),
    ],
)
def test_strings_of_json_are_written_as_they_were(text, expected):
    assert translated(text) == expected


class Same(Turned):
    """Changes nothing but one word."""

    def translate(self, text, *_):
        return Translation(text, text.replace("one", "eins"), 0.0, self.languages)


def test_html_and_icu_in_strings_come_back_exactly():
    text = json.dumps(["<a href='x' class=\"b\">one</a>", "{n, plural, =1 {# one} other {# many}}", "{{n}} one"])
    assert translated(text, translator=Same()) == text.replace("one", "eins")


class Lines(Turned):
    """Keeps the texts that it is asked to translate."""

    def __init__(self):
        super().__init__()
        self.texts = []

    def translate(self, text, *_):
        self.texts.append(text)
        return super().translate(text)


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("see <b>one\ntwo</b>\nthree", "see <b>one two</b>\nthree"),
        ("see <a\nhref='x'>one\n  two</a> it", "see <a\nhref='x'>one two</a> it"),
        ("<i>one\n<b>two</b></i>\n\nthree", "<i>one <b>two</b></i>\n\nthree"),
        ("<p>one\ntwo</p>", "<p>one\ntwo</p>"),
        ("<b>one\n\ntwo</b>\nthree", "<b>one\n\ntwo</b>\nthree"),
        ("one <b\ntwo", "one <b\ntwo"),
    ],
)
def test_a_line_break_inside_an_inline_element_divides_no_text(text, joined):
    block = "".join(f"  {line}\n" if line else "\n" for line in text.split("\n"))
    for form, data in (("json", json.dumps([text])), ("yaml", json.dumps([text])), ("yaml", f"a: |\n{block}")):
        translator = Lines()
        translate_document(translator, data.encode(), form)
        assert translator.texts == [joined]


YAML = """# one two
a: &x one two  # three
b: *x
c: 'one''s two'
d: "one\\ttwo"
e: |-
  one two

  three
f: >
  one
  two
g: !!str one two
h: !Sub one two
no: true
? k
: one two
l: [one two, "three, four"]
---
- one two
"""


def test_yaml_keeps_anchors_aliases_tags_comments_and_styles():
    output = translated(YAML, "yaml")
    for kept in (
        "# one two\n", "a: &x TWO ONE  # three\n", "g: !!str TWO ONE\n", "b: *x\n", "h: !Sub one two\n", "no: true\n",
        "e: |-\n  ", "f: >\n  TWO ONE\n", "'TWO ONE''S'", '"TWO ONE"', "---\n- TWO ONE\n",
    ):  # fmt: skip
        assert kept in output, kept
    values, _ = yaml.safe_load_all(output.replace("!Sub", "!!str"))
    assert values["b"] == values["k"] == values["g"] == "TWO ONE"
    assert values["f"] == "TWO ONE\n"
    assert sorted(values["e"].split()) == ["ONE", "THREE", "TWO"]
    assert values["l"] == ["TWO ONE", "FOUR THREE,"]


class Fixed(Turned):
    """Translates every text into the same."""

    def __init__(self, translation):
        super().__init__()
        self.translation = translation

    def translate(self, text, *_):
        return Translation(text, self.translation, 0.0, self.languages)


@pytest.mark.parametrize(
    "value",
    [
        "yes", "No", "null", "~a", "1.5", "2024-01-01", "- a", "a: b", "a #b", "a, b", "[a", "x\ny", " a ", "=a", "é",
        "好", "'a", '"a', "@a", "%a", "!a", "&a", "1_000", "12:30:45", ".inf", "a:",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "style", ["a: one two\n", "a: 'one two'\n", 'a: "one two"\n', "[one two]\n", "- one two # so\n"]
)
def test_a_translation_stays_a_string(value, style):
    read = yaml.safe_load(translated(style, "yaml", translator=Fixed(value)))
    assert list(read.values() if isinstance(read, dict) else read) == [value]


@pytest.mark.parametrize("header", ["|", "|-", "|+", "|2", ">", ">-", "|2-"])
def test_block_scalars_keep_their_indentation_and_chomping(header):
    text = f"a:\n  b: {header}\n    one two\n\nc: 1\n"
    before, after = yaml.safe_load(text), yaml.safe_load(translated(text, "yaml"))
    assert after["a"]["b"] == before["a"]["b"].replace("one two", "TWO ONE")
    assert after["c"] == 1


def test_hard_wrapped_lines_of_a_block_are_one_text():
    text = "a: |\n  The name of the file\n  that is read.\n\n  - one\n  - two\n"
    seen = []

    class Seen(Turned):
        def translate(self, text, *_):
            seen.append(text)
            return super().translate(text)

    translated(text, "yaml", translator=Seen())
    assert seen == ["The name of the file that is read.\n\n- one\n- two"]


def test_a_language_at_the_root_of_a_locale_is_changed():
    german = Turned()
    german.languages = ("en", "de")
    for text, expected in (
        ("# locale\nen:\n  a: one two\n", "# locale\nde:\n  a: TWO ONE\n"),
        ("---\nen-GB:\n  a: one two\n", "---\nde:\n  a: TWO ONE\n"),
        ("en:\n  a: one two\nfr: B\n", "en:\n  a: TWO ONE\nfr: B\n"),
        ("en: one two\n", "en: TWO ONE\n"),
    ):
        assert translated(text, "yaml", translator=german) == expected


@pytest.mark.parametrize(
    ("form", "text", "message"),
    [
        ("json", '{"a": "b",}', ":1: expected JSON; column 11"),
        ("json", "{'a': 1}", ":1: expected JSON; column 2"),
        ("json", "", ":1: expected JSON"),
        ("yaml", "a: b\n c: d\n", ":2: expected YAML; mapping values are not allowed"),
        ("yaml", 'a: "b\n', ": expected YAML"),
        ("yaml", "a: *b\n", ":1: expected YAML; found undefined alias"),
        ("yaml", "a: b\n\tc: d\n", ":2: expected YAML"),
    ],
)
def test_malformed_documents_are_errors_with_their_line(form, text, message):
    with pytest.raises(DataError, match=message):
        translated(text, form)


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_of_a_json_schema_only_titles_and_descriptions_are_translated(form):
    schema = {
        "$schema": "http://json-schema.org/draft-06/schema#", "title": "one two", "type": "object", "required": ["old"],
        "properties": {"description": {"type": "string", "enum": ["red"], "description": "one two"}},
    }  # fmt: skip
    text = json.dumps(schema) if form == "json" else yaml.safe_dump(schema, sort_keys=False)
    output = yaml.safe_load(translated(text, form))
    expected = json.loads(json.dumps(schema).replace("one two", "TWO ONE"))
    assert output == expected
    assert yaml.safe_load(translated(text, form, ["required"]))["required"] == ["OLD"]
