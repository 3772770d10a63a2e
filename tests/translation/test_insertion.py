"""A model that loses what must be copied: it is searched for in order, and else inserted afterwards."""

import re

import pytest

from sixfold.decoding.options import Hypothesis, SearchOptions
from sixfold.translation.joint_search import search_jointly
from sixfold.translation.searches import search_in_order


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("我爱{name}猫", ["{name}"]),
        ("{a}我看书{b}", ["{a}", "{b}"]),
        ("我<b>爱</b>猫。", ["<b>", "</b>"]),
        ("%s爱%d", ["%s", "%d"]),
        ("我`x_y`看 --help 书", ["`x_y`", "--help"]),
        ("我爱猫👍", ["👍"]),
    ],
)
def test_every_part_is_in_the_translation_once(translator, text, parts):
    translation = translator.translate(text, "zh", "en")
    assert [translation.text.count(part) for part in parts] == [1] * len(parts)
    assert sorted(re.findall(r"\w+", translation.text), key=len)  # words besides them
    positions = [translation.text.index(part) for part in parts]
    assert positions == sorted(positions) or not text.startswith("%s")


def test_tags_go_around_the_words_that_are_aligned_with_theirs(translator):
    assert translator.translate("我<b>爱</b>猫。", "zh", "en").text == "I <b>love</b> cats."


def test_tokens_and_links_have_spans_in_the_texts_with_the_parts(translator):
    text = "我爱{name}猫"
    translation = translator.translate(text, "zh", "en")
    for link in translation.alignment:
        assert translation.text[slice(*link.target)] in ("I", "love", "cats")
        assert text[slice(*link.source)] in "我爱猫"
    for token in translation.tokens:
        assert translation.text[slice(*token.span)].strip() == token.text.strip()


class Scripted:
    """An engine that writes all tokens that are not banned, in falling order, after the prefix."""

    def __init__(self, missing=()):
        self.missing = set(missing)

    def decode(self, _sources, options, prefixes=None):
        prefix = prefixes[0] if prefixes else []
        tokens = [token for token in (9, 8, 7, 3) if token not in {*options.banned, *self.missing, *prefix}]
        return [[Hypothesis([*prefix, *tokens], -1.0)]]


def test_tokens_are_written_in_a_given_order():
    ((hypothesis, _),) = search_jointly(Scripted(), [search_in_order([1, 2], [7, 9, 8], [], SearchOptions())])
    assert [token for token in hypothesis.tokens if token != 3] == [7, 9, 8]


def test_an_order_that_the_model_cannot_write_is_given_up():
    steps = search_in_order([1, 2], [7, 9, 8], [], SearchOptions())
    ((hypothesis, _),) = search_jointly(Scripted(missing=[9]), [steps])
    assert hypothesis is None
