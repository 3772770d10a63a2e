"""LaTeX comes back with its commands, groups, maths, comments and verbatim texts, and special characters escaped."""

import re

import pytest
from made_documents import Turned

from sixfold.translation.documents.markup import latex, latex_structure
from sixfold.translation.documents.markup.latex_syntax import decode, escape
from sixfold.translation.documents.steps import translate_document
from sixfold.translation.result import Details, Link, Translation


def translated(text, translator=None):
    return translate_document(translator or Turned(), text.encode(), "latex")[0].decode()


class Chinese(Turned):
    """Writes two Chinese characters for each word, without spaces between them, in the order of the source."""

    languages = ("en", "zh")

    def translate(self, text, *_):
        translation, links = "", []
        for match in re.finditer(r"[A-Za-z]+|[^A-Za-z ]", text):
            word = "文字" if match[0].isascii() and match[0].isalpha() else match[0]
            links.append(Link((len(translation), len(translation) + len(word)), match.span(), 1.0))
            translation += word
        return Translation(text, translation, 0.0, self.languages, _explain=lambda: Details((), tuple(links)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one\ntwo\n\nthree four", "TWO ONE\n\nFOUR THREE"),
        ("one \\emph{two three} $a_b$ four", "FOUR $a_b$ \\emph{THREE TWO} ONE"),
        ("\\section{one two}\\label{so it} three four", "\\section{TWO ONE}\\label{so it} FOUR THREE"),
        ("one\\footnote{two three} four", "\\footnote{THREE TWO}FOUR ONE"),
        ("see \\cite[so it]{so} and \\ref{it:so}", "\\ref{it:so} AND \\cite[so it]{so} SEE"),
        ("one \\verb|a_b{| two", "TWO \\verb|a_b{| ONE"),
        ("\\begin{verbatim}\nso it\n\\end{verbatim}\none two", "\\begin{verbatim}\nso it\n\\end{verbatim}\nTWO ONE"),
        ("\\begin{equation}\nso it\n\\end{equation}one two", "\\begin{equation}\nso it\n\\end{equation}TWO ONE"),
        ("\\[ so it \\] one two $$ so $$ three four", "\\[ so it \\] TWO ONE $$ so $$ FOUR THREE"),
        ("one two % so it\n% it so\n\nthree four", "TWO ONE % so it\n% it so\n\nFOUR THREE"),
        ("\\begin{itemize}\n\\item one two\n\\item[three four] five\n\\end{itemize}", None),
        ("one two & three \\& four \\\\[2pt] \\hline five six", "TWO ONE & FOUR \\& THREE \\\\[2pt] \\hline SIX FIVE"),
        ("{\\bf one two} three", "THREE {\\bf TWO ONE}"),
        ("\\href{http://a_b}{one two} three", "THREE \\href{http://a_b}{TWO ONE}"),
        ("\\begin{figure}[so]\n\\caption[so]{one two}", "\\begin{figure}[so]\n\\caption[so]{TWO ONE}"),
        ("\\begin{frame}{one two}\nthree four\n\\end{frame}", "\\begin{frame}{TWO ONE}\nFOUR THREE\n\\end{frame}"),
        ("\\newcommand{\\so}[1]{so #1}\none two", "\\newcommand{\\so}[1]{so #1}\nTWO ONE"),
        ("caf\\'e 50\\% of \\LaTeX\\ so", "SO \\LaTeX{} OF 50\\% CAFÉ"),
        ("\\documentclass{so}\\author{so it}\\title{one two}\n\\begin{document}\nthree four\n\\end{document}\nso it",
         "\\documentclass{so}\\author{so it}\\title{TWO ONE}\n\\begin{document}\nFOUR THREE\n\\end{document}\nso it"),
        ("\\documentclass{so}\nso it", "\\documentclass{so}\nso it"),
        ("one |so_it| two |\\so it|", "|\\so it| TWO |so_it| ONE"),
        ("one ^{so it} two so_it", "so_it TWO ^{so it} ONE"),
        ("\\item\\emph{one} two", "\\item TWO \\emph{ONE}"),
    ],
)  # fmt: skip
def test_prose_is_translated_and_commands_stay(text, expected):
    if expected is None:
        expected = "\\begin{itemize}\n\\item TWO ONE\n\\item[FOUR THREE] FIVE\n\\end{itemize}"
    assert translated(text) == expected


def test_a_command_ends_before_a_chinese_character():
    assert translated("so \\LaTeX{} is it", Chinese()).replace("{}{}", "{}") == "文字\\LaTeX{}文字文字"
    assert translated("so \\TeX, it", Chinese()) == "文字\\TeX,文字"


def test_a_translation_with_line_feeds_ends_no_paragraph():
    assert escape("one\n\n two\n") == "one two "


@pytest.mark.parametrize("text", ["a & b % c $ d # e _ f { g } h ~ i ^ j \\ k", "“so” – it\u00a0is — “", "€ 5~6"])
def test_special_characters_are_escaped_and_read_again(text):
    assert decode(escape(text)) == text
    assert not re.search(r"(?<!\\)[&%$#_^]", escape(text))


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("one \\emph{two}", "one \\emph{two"),
        ("one \\emph{two}", "one \\textbf{two}"),
        ("one $a$", "one $b$"),
        ("one 5\\%", "one 5%"),
        ("one \\& two", "one & two"),
        ("one\n\ntwo", "one two"),
        ("\\cite{a}", "\\cite{b}"),
        ("one % two", "one % three"),
        ("\\item one", "\\itemone"),
        ("\\begin{a}one\\end{a}", "\\begin{a}one\\end{b}"),
        ("\\begin{verbatim}a\\end{verbatim}", "\\begin{verbatim}b\\end{verbatim}"),
        ("one \\\\ two", "one two"),
        ("a\\_b", "a_b"),
        ("one |\\two|", "one \\two"),
        ("\\LaTeX{}one", "\\LaTeXone"),
    ],
)
def test_the_structure_tells_a_document_from_a_damaged_one(text, broken):
    assert latex_structure.structure(text) != latex_structure.structure(broken)


@pytest.mark.parametrize(
    ("preamble", "lacks_fonts"),
    [
        (r"\documentclass{article}", True), (r"\documentclass{ctexart}", False),
        (r"\documentclass[12pt]{book}" + "\n" + r"\usepackage[UTF8]{ctex}", False),
        (r"\documentclass{article}\usepackage{amsmath, xeCJK}", False),
    ],
)  # fmt: skip
def test_a_notice_says_that_a_document_has_no_fonts_for_chinese(preamble, lacks_fonts):
    text = "% a comment\n" + preamble + "\n\\begin{document}\nOne old house.\n\\end{document}\n"
    _, report = translate_document(Chinese(), text.encode(), "latex", "en", "zh")
    assert [(where, notice.kind) for where, notice in report.notices] == ([("2", "fonts")] if lacks_fonts else [])
    assert latex.notices(text, "fr") == []
    assert latex.notices("One old house.", "zh") == []
