"""Documents in reStructuredText come back as docutils reads them: titles, lists, links and roles; code stays."""

import io
import re
from collections import Counter

import pytest
from docutils import core, nodes
from made_documents import Turned, made

from sixfold.translation.documents import seams
from sixfold.translation.documents.markup import rst_structure
from sixfold.translation.documents.markup.rst import fit_titles
from sixfold.translation.documents.markup.rst_inline import layout
from sixfold.translation.documents.steps import translate_document
from sixfold.translation.result import Details, Link, Translation


def translated(text, translator=None):
    return translate_document(translator or Turned(), text.encode(), "rst")[0].decode()


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
        ("one\ntwo ``a *b`` three", "THREE ``a *b`` TWO ONE"),
        ("one *two* **three**", "**THREE** *TWO* ONE"),
        ("see `one two <http://a>`_ so", "SO `TWO ONE <http://a>`_ SEE"),
        ("see :ref:`one two <so>` so", "SO :ref:`TWO ONE <so>` SEE"),
        ("see :func:`so` or |so| [1]_ `so it`_", "`so it`_ [1]_ |so| OR :func:`so` SEE"),
        ("one::\n\n    so it", "ONE::\n\n    so it"),
        ("one ::\n\n> so it\n\ntwo", "ONE ::\n\n> so it\n\nTWO"),
        ("- one\n  two\n\n  - three four\n- five", "- TWO ONE\n\n  - FOUR THREE\n- FIVE"),
        ("1. one two\n2. three", "1. TWO ONE\n2. THREE"),
        ("So said\nhe then", "THEN HE SAID SO"),
        (".. note:: one\n   two", ".. note:: TWO ONE"),
        (".. note::\n   :name: so it\n\n   one two", ".. note::\n   :name: so it\n\n   TWO ONE"),
        (".. admonition:: one two\n\n   three four", ".. admonition:: TWO ONE\n\n   FOUR THREE"),
        (".. versionadded:: 1.2\n   one two", ".. versionadded:: 1.2\n   TWO ONE"),
        (".. code-block:: sh\n\n   so it\n\none two", ".. code-block:: sh\n\n   so it\n\nTWO ONE"),
        (".. figure:: so.png\n   :alt: it\n\n   one two", ".. figure:: so.png\n   :alt: it\n\n   TWO ONE"),
        (".. toctree::\n   :maxdepth: 1\n\n   so it", ".. toctree::\n   :maxdepth: 1\n\n   so it"),
        (".. function:: so(it)\n\n   one two", ".. function:: so(it)\n\n   TWO ONE"),
        (".. so it\n   is here\n\none two", ".. so it\n   is here\n\nTWO ONE"),
        (".. _so: http://a.b\n.. [1] one two", ".. _so: http://a.b\n.. [1] TWO ONE"),
        (".. |so| replace:: so it", ".. |so| replace:: so it"),
        ("one\n\n:param so: one two\n:type so: it so", "ONE\n\n:param so: TWO ONE\n:type so: it so"),
        (":Author: so it\n\none two", ":Author: so it\n\nTWO ONE"),
        ("one two : so\n   three four", "TWO ONE : so\n   FOUR THREE"),
        ("| one two\n| three four", "| TWO ONE\n| FOUR THREE"),
        ("-a, --all  one two", "-a, --all  TWO ONE"),
        ("+----+\n| so |\n+----+\n\none two", "+----+\n| so |\n+----+\n\nTWO ONE"),
        ("===  ===\nso   it\n===  ===\n\none two", "===  ===\nso   it\n===  ===\n\nTWO ONE"),
        (">>> so(it)\nis\n\none two", ">>> so(it)\nis\n\nTWO ONE"),
        ("One two\n=======\n\nsee `One two`_", "One two\n=======\n\n`One two`_ SEE"),
        ("one \\*two\\* so", "SO \\*TWO\\* ONE"),
        ("- :doc:`one: two three <so>`", "- :doc:`THREE TWO ONE: <so>`"),
        ("one:: two", "TWO ONE\\::"),
    ],
)
def test_prose_is_translated_and_what_it_stands_between_stays(text, expected):
    assert translated(text) == expected


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (["", "one", "`", " two ", " <http://a>`_", "three"], "one `two <http://a>`_ three"),
        (["", "one", "**", " two ", "**``so``", "three"], "one **two** ``so``\\ three"),
        (["", "one", "``so``|it|", "", "*", "two", "*"], "one\\ ``so``\\ |it|\\ *two*"),
        (["", "一", "me@example.org", "二"], "一\\ me@example.org\\ 二"),
        (["", "one '", "`", "' two", " <http://a>`_", ""], "one '\\ `' two <http://a>`_"),
    ],
)
def test_markup_is_written_so_that_docutils_reads_it(parts, expected):
    seam = seams.mark_edges(str)("")[:1]
    assert layout(seam.join(parts)) == expected


def test_markup_beside_chinese_characters_is_separated_from_them():
    assert translated("so **bold** it ``code`` is", Chinese()) == "文字\\ **文字**\\ 文字\\ ``code``\\ 文字"
    assert translated("so (**bold**) it", Chinese()) == "文字(**文字**)文字"
    assert translated("``code``, **bold**. So", Chinese()) == "``code``,\\ **文字**.文字"


@pytest.mark.parametrize("before", ["--", "a.", "x", "100%", "`", "一 -", "/"])
def test_docutils_reads_the_same_address_whatever_is_written_beside_it(before):
    seam = seams.mark_edges(str)("")[:1]
    for texts in ([f"Write {before}", " now."], ["Write ", f"{before} now."]):
        tree = core.publish_doctree(layout(seam.join([texts[0], "me@example.org", texts[1]])))
        (link,) = tree.findall(nodes.reference)
        assert link["refuri"] == "mailto:me@example.org"


def test_lines_below_titles_are_as_long_as_the_titles():
    text = "===\nOne\n===\n\nSee it now\n----------\n\nAs\n~~"
    translation = translated(text, Chinese())
    assert translation == "====\n文字\n====\n\n文字文字文字\n------------\n\n文字\n~~~~"
    assert fit_titles("a\n\n====\n\nb\n====\n") == "a\n\n====\n\nb\n====\n"


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("one\n\ntwo", "one\ntwo"),
        ("one **two**", "one **two **"),
        ("one ``two``", "one ``three``"),
        ("`one <http://a>`_", "`one <http://b>`_"),
        (":ref:`one <a>`", ":ref:`one <b>`"),
        ("one\n===", "one\n\n==="),
        ("one::\n\n  two", "one:\n\n  two"),
        ("- one", "\\- one"),
        ("one", "1. one"),
        (".. note:: one", "note:: one"),
        (".. image:: one", ".. image:: two"),
        (":a: one", "a: one"),
        ("文 **字** 文", "文**字**文"),
        ("one\n  two", "one two"),
    ],
)
def test_the_structure_tells_a_document_from_a_damaged_one(text, broken):
    assert rst_structure.structure(text) != rst_structure.structure(broken)


def doctree(text):
    """Return how many nodes of each kind docutils reads, and its warnings."""
    warnings = io.StringIO()
    settings = {"report_level": 2, "halt_level": 5, "warning_stream": warnings, "file_insertion_enabled": False}
    tree = core.publish_doctree(text, settings_overrides=settings)
    for message in list(tree.findall(nodes.system_message)):
        message.parent.remove(message)
    kinds = Counter(type(node).__name__ for node in tree.findall() if not isinstance(node, nodes.Text))
    return kinds, len(re.findall(r"WARNING|ERROR|SEVERE", warnings.getvalue()))


@pytest.mark.parametrize("translator", [Turned(), Chinese()])
def test_docutils_reads_the_same_nodes_from_a_translation(translator):
    for number in range(60):
        text = made("rst", number).decode()
        assert doctree(translated(text, translator)) == doctree(text), text
