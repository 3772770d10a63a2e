"""No text, however hostile, takes longer than in proportion to its length: parsers, and what reads sentences."""

from contextlib import suppress

import pytest
from catalogue_growth import CATALOGUE_INPUTS, CATALOGUE_QUICK, CUE
from growth import MAX_RATIO, assert_linear, nested, numbered, repeated, seconds
from made_documents import Turned
from office_growth import OFFICE_INPUTS, OFFICE_QUICK, packed

from sixfold.errors import DataError, SixfoldError
from sixfold.text.chinese import chinese_variant
from sixfold.text.languages import guess_language
from sixfold.text.sentences import cut_to_fit, split_sentences
from sixfold.translation.documents.formats import FORMATS
from sixfold.translation.documents.markup.markdown import _escape as escape_markdown
from sixfold.translation.documents.steps import translate_document
from sixfold.translation.glossary import Glossary, Term
from sixfold.translation.guard import find_faults
from sixfold.translation.memory import TranslationMemory
from sixfold.translation.protection import model_text
from sixfold.translation.string_search import find_strings

MARKUP = {
    "open": repeated("<"),
    "tags that do not end": repeated("<a"),
    "with a space": repeated("<a "),
    "closing tags": repeated("</a"),
    "attributes": repeated('<a href="'),
    "more attributes": repeated("b=c ", "<a "),
    "tags in attributes": repeated(' b="<a"', "<a"),
    "tags in both quotes": repeated(" b='<a\" c=\"<a'", "<a"),
    "quotes in attributes": repeated('b="\'" ', "<a "),
    "comments": repeated("<!--"),
    "ended comments": repeated("<!-- a -->"),
    "cdata": repeated("<![CDATA["),
    "declarations": repeated("<!a"),
    "instructions": repeated("<?"),
    "nested": nested("<b>", "</b>"),
    "nested words": nested("<b>a ", "</b>"),
    "pairs": repeated("a <b>c</b> "),
    "breaks": repeated("a <br/>"),
    "images": repeated("a <img src=x>"),
    "alt texts": repeated('a <img alt="b c"> '),
    "code": repeated("<code>"),
    "code and words": repeated("a <code>x</code> "),
    "codes": numbered("a <code>x{}</code>"),
    "scripts": repeated("<script>"),
    "titles": repeated("<title></script "),
    "references": repeated("&"),
    "short references": repeated("&a"),
    "a long reference": repeated("a", "&"),
    "digits": repeated("1", "&#", ";"),
    "hexadecimal digits": repeated("f", "&#x", ";"),
    "not translated": nested("<div translate=no>", "</div>"),
    "translated again": nested("<p translate=no><p translate=yes>", "</p></p>"),
    "drawings": nested("<svg><title>a b", "</title></svg>"),
    "paragraphs without ends": repeated("<p translate=no>a"),
}
MARKDOWN = {
    "brackets": repeated("["),
    "closed brackets": repeated("]"),
    "links": repeated("[a](b) "),
    "open links": repeated("[a]("),
    "open images": repeated("![a"),
    "images of Markdown": repeated("![a](b) "),
    "references of Markdown": repeated("[a][b"),
    "nested links": nested("[", "](b)"),
    "nested images": nested("![", "](b)"),
    "parentheses": repeated("(", "[a]("),
    "angles in links": repeated("[a](<(>) "),
    "definitions": numbered("[a{}]: b", "\n"),
    "stars": repeated("*"),
    "open emphasis": repeated("*a "),
    "emphasis": repeated("*a* "),
    "mixed emphasis": repeated("*a**b"),
    "underlines": repeated("_a "),
    "strikes": repeated("~~a "),
    "ticks": repeated("`"),
    "code spans": repeated("a `b` "),
    "other code spans": numbered("a `b{}`"),
    "fences": repeated("```\n"),
    "quotations": repeated("> a\n"),
    "items": repeated("- a\n"),
    "headings": repeated("# a\n"),
    "paragraphs": repeated("a\n\n"),
    "hard breaks": repeated("a  \n"),
    "a table": repeated("|c|d|\n", "|a|b|\n|-|-|\n"),
    "bars": repeated("|"),
    "backslashes": repeated("\\"),
    "escapes": repeated("\\a"),
    "front matter": repeated("---\n"),
    "open notes": repeated("[^a"),
    "notes": repeated("a[^1] "),
    "automatic links": repeated("<http:"),
    "blocks of HTML": repeated("<div>\n\na\n\n"),
    "rules": repeated("-"),
    "maths": repeated("$a_b$ "),
    "open maths of Markdown": repeated("$a_b "),
    "blocks of maths": repeated("$$a\n\n"),
    "open templates": repeated("{{a"),
    "admonitions": repeated("!!! a\n    b\n"),
    "nested admonitions": lambda size: "".join("    " * depth + "!!! a\n" for depth in range(int((size // 2) ** 0.5))),
    "containers": repeated(":::\n"),
    "definitions of words": repeated("a\n: b\n"),
    "code in HTML": repeated("<code>a</code> "),
    "titles in YAML": repeated("title: a b\n", "---\n", "---\n"),
    "a wide table": lambda size: "\n".join(cell * (size // 6) + "|" for cell in ("|a", "|-", "|b")),
}
PLAIN = {
    "spaces": repeated(" ", "", "x"),
    "spaces inside": repeated(" ", "x", "x"),
    "tabs": repeated("\t", "", "x"),
    "blank lines": repeated("\n", "x", "x"),
    "lines that end in spaces": repeated("x \n"),
    "carriage returns": repeated("\r"),
    "a long word": repeated("a"),
    "words": repeated("ab "),
    "sentences": repeated("Ab cd. "),
    "Chinese": repeated("我爱。"),
    "full stops": repeated("."),
    "quotation marks": repeated('"'),
    "quoted words": repeated('"a" '),
    "apostrophes": repeated("'"),
    "nested quotation marks": nested("“", "”"),
    "braces": repeated("{"),
    "placeholders": repeated("{a} "),
    "other placeholders": numbered("{{a{}}}"),
    "open placeholders": repeated("{a"),
    "percent signs": repeated("%"),
    "conversions": repeated("%s "),
    "open conversions": repeated("%(a"),
    "addresses": repeated("http://a "),
    "other addresses": numbered("http://a/{}"),
    "joined addresses": repeated("www."),
    "mail": repeated("a@b.c "),
    "open mail": repeated("a@"),
    "a long domain": repeated("b.", "a@"),
    "accents": repeated("\u0301", "e"),
    "flags": repeated("🇨🇳"),
    "null characters": repeated("\0"),
}
OWN = {
    "html": MARKUP,
    "markdown": MARKUP | MARKDOWN,
    "srt": {
        "times": repeated(CUE),
        "cues": repeated(f"1\n{CUE}a\n\n"),
        "spaces in a cue": repeated(" ", CUE, "x"),
        "returns in a cue": repeated(" \r", f"{CUE}a", "x"),
        "tags in a cue": repeated("<i>a</i> ", CUE),
        "open tags in a cue": repeated("<a", CUE),
        "speakers": repeated("- a\n", CUE),
        "places": repeated("{\\a", CUE),
        "colons": repeated("1:"),
        "arrows": repeated("-->"),
        "lines of spaces": repeated(" " * 50 + "\n"),
    },
    "json": {
        "arrays": nested("[", "]", ""),
        "strings": repeated(',"a b"', '["a"', "]"),
        "a long string": repeated("a ", '["', '"]'),
        "escapes of JSON": repeated("\\n", '["', 'a"]'),
        "escaped backslashes": repeated("\\\\", '["', 'a"]'),
        "keys": lambda size: "{" + numbered('"k{}":"a b"', ",")(size) + "}",
        "space behind a string": repeated(" ", '["a"', "]"),
        "digits of a number": repeated("1", "[", "]"),
        "placeholders in a string": repeated("{a} ", '["', '"]'),
        "elements over lines": repeated("<b>a\\nb</b>\\n", '["', '"]'),
        "open elements in a string": repeated("<b>a\\n<i>", '["', '</b>"]'),
    },
    "yaml": {
        "lists in brackets": repeated("["),
        "entries": repeated("- a b\n"),
        "keys of YAML": numbered("k{}: a b", "\n"),
        "a block": repeated("  b c\n", "a: |\n"),
        "elements over lines of a block": repeated("  <b>a\n  b</b>\n", "a: |\n"),
        "a folded block": repeated("  b c\n", "a: >\n"),
        "a string of YAML": repeated("b ", 'a: "', '"'),
        "plain lines": repeated("  c\n", "a: b\n"),
        "aliases": repeated("- *a\n", "- &a b\n"),
        "documents": repeated("--- a\n"),
        "dashes": repeated("- ", "", "a"),
        "braces of YAML": lambda size: "{" + numbered("k{}: a", ", ")(size) + "}",
        "questions": repeated("? a\n"),
        "levels": lambda size: "".join(" " * depth + "a:\n" for depth in range(int((2 * size) ** 0.5))),
    },
    "po": {
        "entries of PO": repeated('msgid "a b"\nmsgstr ""\n\n'),
        "strings without an end": repeated('"b"\n', 'msgid "a"\n', "x"),
        "one long entry": repeated('"b c"\n', 'msgid ""\n', 'msgstr ""\n'),
        "backslashes in PO": repeated("\\", 'msgid "'),
        "plural forms": repeated('msgstr[1] ""\n', 'msgid "a"\nmsgid_plural "b"\n'),
        "quotes in PO": repeated('"', "msgid "),
        "space in PO": repeated(" ", 'msgid "a"', "x"),
        "strings on a line": repeated('"a" ', "msgid "),
    },
    "xliff": {
        "segments": repeated("<source>a b</source>"),
        "open sources": repeated("<source>"),
        "open targets": repeated("<source>a</source><target>"),
        "space behind a source": repeated(" ", "<source>a</source>"),
        "groups": repeated("<g>a</g> ", "<source>", "</source>"),
        "open codes": repeated("<ph>", "<source>a", "</source>"),
        "open ends": repeated("</source ", "<source>a"),
        "open ends of targets": repeated("</target ", "<source>a</source><target>"),
        "slashes": repeated("/", "<source>a</source><target "),
    },
    "csv": {
        "cells": repeated("a b,c d\n"),
        "quoted cells": repeated('"a ""b"",c",d\n'),
        "odd quotes": repeated('"', '"', '"'),
        "open cells": repeated('"a,'),
        "quotes in cells": repeated('"a"b,'),
        "commas": repeated(","),
        "empty rows": repeated(",\n", "", "a"),
        "doubled quotes": repeated('""a,', '"'),
    },
}
OWN |= {
    "rst": {
        "paragraphs of RST": repeated("ab cd\n\n"),
        "long paragraphs": repeated("ab cd\n"),
        "open literals": repeated("``a "),
        "open emphasis of RST": repeated("*a "),
        "open roles": repeated(":a:`b "),
        "roles": repeated(":ref:`a b <c>` "),
        "links of RST": repeated("`a b <http://c>`_ "),
        "references of RST": numbered("a{}_"),
        "bars of RST": repeated("|a "),
        "titles of RST": repeated("ab\n==\n\n"),
        "adornments": repeated("====\n"),
        "open tables": repeated("==  ==\na\n"),
        "grids": repeated("+--+\n"),
        "items of RST": repeated("- a b\n"),
        "numbers of RST": repeated("1. a\n"),
        "nested items": lambda size: "".join(" " * depth + "- a\n" for depth in range(int((2 * size) ** 0.5))),
        "items in items": repeated("- ", "", "a b"),
        "levels of RST": lambda size: "".join(" " * depth + "a\n\n" for depth in range(int((2 * size) ** 0.5))),
        "fields": repeated(":a: b c\n"),
        "colons of RST": repeated(":a"),
        "options": repeated("-a, "),
        "directives": repeated(".. note:: a b\n\n"),
        "comments of RST": repeated(".. a b\n"),
        "literal blocks": repeated("a::\n\n b\n\n"),
        "terms": repeated("a b\n c d\n"),
        "backslashes of RST": repeated("\\"),
    },
    "man": {
        "lines of roff": repeated("ab cd\n"),
        "macros": repeated(".B a b\n"),
        "macros in text": repeated("a b\n.B c\n"),
        "fonts": repeated("\\fBa b\\fR c "),
        "open fonts": repeated("\\fB a "),
        "escapes of roff": repeated("\\-"),
        "open escapes": repeated("\\["),
        "strings of roff": repeated("\\*(a"),
        "braces of roff": repeated("\\{"),
        "headings of roff": repeated('.SH "a b"\n'),
        "tags of roff": repeated(".TP\na b\nc d\n"),
        "examples": repeated(".nf\n"),
        "quotation marks of roff": repeated('"', ".IP "),
        "names of roff": repeated("a, ", ".SH NAME\n", "\\- b"),
        "definitions of roff": repeated(".de a\n"),
    },
    "latex": {
        "paragraphs of LaTeX": repeated("ab cd\n\n"),
        "commands": repeated("\\a "),
        "open commands": repeated("\\emph{a "),
        "nested commands": nested("\\emph{a ", "}"),
        "nested footnotes": nested("\\footnote{a ", "}"),
        "arguments": repeated("[a]", "\\a"),
        "open arguments": repeated("\\a["),
        "open groups": repeated("{"),
        "closed groups": repeated("}"),
        "maths of LaTeX": repeated("$a$ "),
        "open maths": repeated("$a$$"),
        "brackets of LaTeX": repeated("\\["),
        "parentheses of LaTeX": repeated("\\("),
        "comments of LaTeX": repeated("a %b\n"),
        "environments": repeated("\\begin{a}"),
        "verbatim": repeated("\\begin{verbatim}"),
        "verb": repeated("\\verb|"),
        "accents of LaTeX": repeated("\\'e"),
        "items of LaTeX": repeated("\\item[a b] c "),
        "cells of LaTeX": repeated("a b & "),
        "titles of LaTeX": repeated("\\title{a b}", "", "\\begin{document}"),
        "definitions of LaTeX": repeated("\\def\\a{"),
    },
}
OWN |= {"vtt": {}, "tsv": OWN["csv"]} | OFFICE_INPUTS
OWN |= {form: OWN[form] | inputs for form, inputs in CATALOGUE_INPUTS.items()}
# What took time by the square of its length once, and one of each kind besides.
QUICK = {
    "html": [
        "tags that do not end",
        "tags in attributes",
        "nested words",
        "pairs",
        "alt texts",
        "codes",
        "digits",
        "other placeholders",
        "other addresses",
    ],
    "markdown": [
        "tags that do not end",
        "breaks",
        "links",
        "emphasis",
        "other code spans",
        "a wide table",
        "notes",
        "brackets",
    ],
    "srt": ["spaces in a cue", "returns in a cue", "cues", "tags in a cue"],
    "vtt": [],
    "json": ["a long string", "strings", "arrays", "placeholders in a string"],
    "yaml": ["lists in brackets", "entries", "levels"],
    "po": ["entries of PO", "strings without an end", "backslashes in PO"],
    "xliff": ["groups", "open ends", "open targets"],
    "rst": ["open literals", "items in items", "levels of RST", "roles"],
    "man": ["macros in text", "fonts"],
    "latex": ["nested footnotes", "open commands", "open maths"],
    "csv": ["quoted cells", "odd quotes", "placeholders"],
    "tsv": ["placeholders", "mail"],
    **OFFICE_QUICK,
}
QUICK |= {form: QUICK[form] + kinds for form, kinds in CATALOGUE_QUICK.items()}


def inputs_of(form):
    return OWN[form] if form in OFFICE_INPUTS else OWN[form] | PLAIN


def translate_hostile(form, text):
    """A document may be refused, and must not take long to be."""
    data = packed(form, text) if form in OFFICE_INPUTS else text.encode()
    with suppress(DataError):
        translate_document(Turned(), data, form)


@pytest.mark.parametrize(("form", "kind"), [(form, kind) for form, kinds in QUICK.items() for kind in kinds])
def test_a_document_takes_time_in_proportion_to_its_length(form, kind):
    assert_linear(lambda text: translate_hostile(form, text), inputs_of(form)[kind])


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
def test_every_document_takes_time_in_proportion_to_its_length(form):
    for make in inputs_of(form).values():
        assert_linear(lambda text: translate_hostile(form, text), make)


GLOSSARY = Glossary((*(Term(f"term {number}", "x") for number in range(1000)), Term("a", "b"), Term("a a", "c")))
SENTENCES = PLAIN | {
    "quotations": repeated("“A.” Bob said. "),
    "names behind quotations": repeated(".’A"),
    "brackets": repeated(". ("),
    "Chinese quotations": repeated("。”的"),
    "who said it": repeated("。”我我我我我我我我"),
    "abbreviations": repeated("v. "),
    "numbers of items": repeated("1. "),
    "questions in addresses": repeated("?/我"),
    "closing brackets": repeated(")", "."),
    "notes": repeated(".[1]"),
    "names": numbered("aB{}c"),
    "numbers": numbered("1{}7"),
    "ideographs": repeated("爱我"),
}
READERS = {
    "splitting": split_sentences,
    "cutting": lambda text: cut_to_fit(text, lambda piece: len(piece) <= 100),
    "language": lambda text: (guess_language([text]), chinese_variant(text)),
    "placeholders": lambda text: model_text(text, 8).target_edits(text),
    "escaping": escape_markdown,
    "glossary": lambda text: GLOSSARY.find_terms(text, "en"),
    "glossary without words": lambda text: GLOSSARY.find_terms(text, "zh"),
    "memory": lambda text: TranslationMemory(((text, "x"),)).matches([text + " b"]),
    "guard": lambda text: (
        find_faults(text, text.upper(), ("en", "de")),
        find_faults(text, "我" * len(text), ("en", "zh")),
    ),
}
QUICK_READERS = [
    ("splitting", "names behind quotations"),
    ("splitting", "sentences"),
    ("cutting", "a long word"),
    ("language", "Chinese"),
    ("placeholders", "placeholders"),
    ("escaping", "quoted words"),
    ("glossary", "words"),
    ("glossary without words", "words"),
    ("memory", "words"),
    ("guard", "names"),
    ("guard", "other placeholders"),
    ("guard", "words"),
]
LONGEST_SENTENCE = {"guard": 20_000}  # characters: sentences are cut to what a model reads before they are guarded


@pytest.mark.parametrize(("reader", "kind"), QUICK_READERS)
def test_a_sentence_takes_time_in_proportion_to_its_length(reader, kind):
    assert_linear(READERS[reader], SENTENCES[kind], LONGEST_SENTENCE.get(reader, 200_000))


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
def test_every_sentence_takes_time_in_proportion_to_its_length(reader):
    for make in SENTENCES.values():
        assert_linear(READERS[reader], make, LONGEST_SENTENCE.get(reader, 200_000))


def test_more_terms_take_no_longer_to_find():
    """Sixteen times as many terms, once they are indexed, take less than three times as long to look up."""
    sentence = "word1 and word2, but not the words of others, " * 10
    took = []
    for count in (1000, 16_000):
        glossary = Glossary(tuple(Term(f"word{number}", "x") for number in range(count)))
        glossary.find_terms(sentence, "en")
        took.append(min(seconds(lambda _, own=glossary: own.find_terms(sentence, "en"), None) for _ in range(20)))
    assert took[1] < MAX_RATIO * took[0]


def test_strings_are_found_in_one_pass_however_many_there_are():
    strings = [f"<{number}>" for number in range(1000)]
    text = "".join(reversed(strings)) + "<7>"
    found = find_strings(text, strings)
    assert all(text[place:].startswith(string) for string, places in found.items() for place in places)
    assert [len(places) for places in found.values()] == [1] * 7 + [2] + [1] * 992
    overlapping = find_strings("aaaab" * 3, ["a" * size for size in range(1, 12)] + ["b", "ab", "ba"])
    assert overlapping["a"] == [0, 1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 13]
    assert (overlapping["aa"], overlapping["aaaa"], overlapping["aaaaa"]) == ([0, 2, 5, 7, 10, 12], [0, 5, 10], [])
    assert (overlapping["ab"], overlapping["ba"]) == ([3, 8, 13], [4, 9])
    assert_linear(lambda text: find_strings(text, text.split()), numbered("<a{}>"))


def test_what_is_nested_too_deeply_is_refused_before_it_takes_long():
    for data in ("[" * 100_000, "- " * 100_000 + "a", "{a: " * 10_000):
        with pytest.raises(
            SixfoldError, match=r"^b.yaml:1: expected YAML that is nested less deeply, at most 100 levels$"
        ):
            translate_document(Turned(), data.encode(), "yaml", name="b.yaml")
