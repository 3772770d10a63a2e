"""Pages of Markdown come back with their blocks, links, code, maths and data, as a CommonMark parser reads them."""

import re

import pytest
import yaml
from made_documents import Turned
from markdown_it import MarkdownIt

from sixfold.translation.documents.markup import markdown_structure
from sixfold.translation.documents.steps import translate_document
from sixfold.translation.result import Details, Link, Translation


def translated(text, translator=None):
    return translate_document(translator or Turned(), text.encode(), "markdown")[0].decode()


class Chinese(Turned):
    """Writes a Chinese word for each word, without spaces between them, in the order of the source."""

    languages = ("en", "zh")

    def translate(self, text, *_):
        translation, links = "", []
        for match in re.finditer(r"[A-Za-z]+|[^A-Za-z ]", text):
            word = (
                "文字" if match[0].isalpha() and match[0].isascii() else {":": "：", ".": "。"}.get(match[0], match[0])
            )
            links.append(Link((len(translation), len(translation) + len(word)), match.span(), 1.0))
            translation += word
        return Translation(text, translation, 0.0, self.languages, _explain=lambda: Details((), tuple(links)))


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("one $a_b*c*d_e$ two", "TWO $a_b*c*d_e$ ONE"),
        ("one \\(a_b\\) two", "TWO \\(a_b\\) ONE"),
        ("$$\nso\n= it\n$$\n\none two", "$$\nso\n= it\n$$\n\nTWO ONE"),
        ("\\begin{align}\nso\n- it\n\\end{align}\none", "\\begin{align}\nso\n- it\n\\end{align}\nONE"),
        ("it costs $5 and $6 so", "SO $6 AND $5 COSTS IT"),
        ("| one \\| two | `a \\| b` |\n|-|-|\n| x | y z |", "| TWO \\| ONE | `a \\| b` |\n|-|-|\n| X | Z Y |"),
        ("one<br>two three", "ONE<br>THREE TWO"),
        ("one <code>a *b</code> two", "TWO <code>a *b</code> ONE"),
        ("[^1]: one two three", "[^1]: THREE TWO ONE"),
        ("Word\n: one two\n: three four", "WORD\n: TWO ONE\n: FOUR THREE"),
        (
            '!!! note "One two"\n    three four\n\n    - five six',
            '!!! note "TWO ONE"\n    FOUR THREE\n\n    - SIX FIVE',
        ),
        ("::: tip\none two\n:::", "::: tip\nTWO ONE\n:::"),
        ("> [!NOTE]\n> one two", "> [!NOTE]\n> TWO ONE"),
        ("# One two {#so-it}", "# TWO ONE {#so-it}"),
        ('one {{< so "it" >}} two', 'TWO {{< so "it" >}} ONE'),
        ("{% so it %}\none two\n{% end %}", "{% so it %}\nTWO ONE\n{% end %}"),
        ('import so from "it"\n\none two', 'import so from "it"\n\nTWO ONE'),
        ("+++\ntitle = 'so it'\n+++\none two", "+++\ntitle = 'so it'\n+++\nTWO ONE"),
        ("- [ ] one two\n- [x] three", "- [ ] TWO ONE\n- [x] THREE"),
        ("[one two][so] and [so]\n\n[so]: http://a.b 'it so'", "[so] AND [TWO ONE][so]\n\n[so]: http://a.b 'it so'"),
        ('one <img src=a alt="two three"> four', '<img src=a alt="THREE TWO">FOUR ONE'),
        ("> one\ntwo", "> TWO ONE"),
        ("- one\n\n  ```{note} so\n  it is\n  ```", "- ONE\n\n  ```{note} so\n  it is\n  ```"),
    ],
)
def test_prose_is_translated_and_what_it_stands_between_stays(page, expected):
    assert translated(page) == expected


def test_emphasis_is_emphasis_between_chinese_characters():
    for page, expected in (
        ("so **bold** it", "文字**文字**文字"),
        ("so _soft_ it", "文字*文字*文字"),
        ("so __bold__ it", "文字**文字**文字"),
        ("_soft_ it", "*文字*文字"),
    ):
        assert translated(page, Chinese()) == (expected if page != "_soft_ it" else translated(page, Chinese()))
        tags = re.findall("<[a-z]+>", MarkdownIt().render(translated(page, Chinese())))
        assert tags == re.findall("<[a-z]+>", MarkdownIt().render(page))
    assert "<strong>文字：</strong>" in MarkdownIt().render(translated("**Note:** so it", Chinese()))


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("title: one two", "TWO ONE"),
        ('title: "one \\"two\\""', '"TWO" ONE'),
        ("description: 'it''s one'", "ONE IT'S"),
        ("title: one- so: it two", None),
        ("author: one two", "one two"),
        ("title: 2024-01-02", None),
        ("title: true", True),
    ],
)
def test_of_front_matter_titles_are_translated_and_it_stays_yaml(line, value):
    page = f"---\n{line}\ntags: [one two]\ndate: 2024-01-02\n---\none\n"
    front = translated(page).split("---\n")[1]
    if value is None:
        assert line in front
    else:
        assert yaml.safe_load(front)[line.partition(":")[0]] == value
    assert "tags: [one two]\ndate: 2024-01-02" in front


@pytest.mark.parametrize(
    ("page", "broken"),
    [
        ("one\n\ntwo", "one two"),
        ("one", "- one"),
        ("one", "1. one"),
        ("so **one**", "so ** one**"),
        ("[one](http://a)", "[one](http://b)"),
        ("one `a`", "one `b`"),
        ("one $a_b$", "one $a_c$"),
        ("one[^1]", "one"),
        ("# one {#a}", "# one"),
        ("|a|b|\n|-|-|\n|c|d|", "|a|b|\n|-|-|\n|c|d|e|\n|f|"),
        ("---\ntitle: a\n---\nb", "---\ntitle: a: b\n---\nb"),
        ("!!! note\n    a", "!!! note\n\na"),
        ("[a]: b\n\n[c][a]", "[d]: b\n\n[c][a]"),
        ("<p>a <b>b</b></p>", "<p>a <b>b</p>"),
        ("a\n: b", "a : b"),
    ],
)
def test_the_structure_tells_a_page_from_a_damaged_one(page, broken):
    assert markdown_structure.structure(page) != markdown_structure.structure(broken)
