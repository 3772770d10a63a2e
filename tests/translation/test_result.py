"""The details of a translation: tokens with their spans, words with the words they are aligned with, JSON values."""

import json
import random

import pytest
from small_translators import ENDS, WORDS, pair

from sixfold.config import TokenizerConfig
from sixfold.text.learn import train_tokenizer
from sixfold.translation.explain import group_into_words, piece_spans
from sixfold.translation.options import TranslateOptions
from sixfold.translation.result import Alternative, Details, Link, Notice, Token, Translation

MEANINGS = WORDS | ENDS


def texts_of(text, spans):
    return [text[slice(*span)] for span in spans]


def test_tokens_stand_where_they_say_and_make_the_translation(translator):
    translation = translator.translate("  我爱猫。你看山！\n\n 1\n\t花。\n花。")
    tokens = translation.tokens
    assert texts_of(translation.text, [token.span for token in tokens]) == [token.text for token in tokens]
    assert "".join(token.text for token in tokens) == "Ilovecats.youwatchmountains!flowers.flowers."
    assert [token.span for token in tokens] == sorted({token.span for token in tokens})
    assert [token.source for token in tokens] == sorted({token.source for token in tokens})
    assert all(0 < token.probability <= 1 for token in tokens)
    assert all(token.probability > 0.5 for token in tokens)
    assert "".join(texts_of(translation.source, [token.source for token in tokens])) == "我爱猫。你看山！花。花。"


def test_every_word_is_linked_to_the_word_it_comes_from(translator):
    chance = random.Random(7)
    text = "\n\n ".join(pair(chance)[0] for _ in range(40))
    translation = translator.translate(text)
    links = translation.alignment
    sources, targets = (
        texts_of(translation.source, [x.source for x in links]),
        texts_of(translation.text, [x.target for x in links]),
    )
    assert targets == translation.text.replace(".", " .").replace("!", " !").split()
    right = sum(MEANINGS[source] == target for source, target in zip(sources, targets, strict=True))
    assert right >= 0.97 * len(links)
    assert all(0 < link.weight <= 1.001 for link in links)


def test_the_links_of_the_other_direction_point_at_words_without_their_spaces(models):
    from sixfold.translation.translator import Translator

    with Translator(models["en-zh"], "cpu", 1, "float32") as translator:
        translation = translator.translate(" I watch dogs!  I love mountains.")
        found = [
            (translation.text[slice(*x.target)], translation.source[slice(*x.source)]) for x in translation.alignment
        ]
        assert [MEANINGS[target] for target, _ in found] == [source for _, source in found]


def test_a_word_that_is_unknown_is_one_word_of_many_bytes(translator):
    translation = translator.translate("我爱犇。")
    assert {translation.source[slice(*link.source)] for link in translation.alignment} <= set("我爱犇。")
    assert {translation.source[slice(*token.source)] for token in translation.tokens} <= set("我爱犇。")


def test_a_word_of_many_pieces_has_one_link_and_no_more_than_all_its_attention(translator):
    translation = translator.score("山", "mountainswatermountains")
    assert len(translation.tokens) > 3
    (link,) = translation.alignment
    assert (link.target, link.source) == ((0, 23), (0, 1))
    assert 0.3 < link.weight <= 1.001


def test_alternatives_and_scores_are_explained_too(translator):
    for translation in (*translator.alternatives(" 我爱猫 ", "I", 3), translator.score(" 我爱猫 ", "I  love\ncats")):
        tokens = translation.tokens
        assert tokens
        assert texts_of(translation.text, [token.span for token in tokens]) == [token.text for token in tokens]
        assert all(1 <= token.source[0] < token.source[1] <= 4 for token in tokens)
    assert translator.score("我爱猫", "I  love\ncats").text == "I love cats"
    assert translator.score("我爱猫", "").tokens == ()


def test_details_are_worked_out_once_and_only_when_asked_for():
    calls = []

    def explain():
        calls.append(1)
        return Details((Token("a", (0, 1), 0.5, (0, 1)),), ())

    translation = Translation("猫", "a", -1.0, ("zh", "en"), _explain=explain)
    translation.to_dict()
    assert calls == []
    assert translation.tokens is translation.tokens
    assert translation.alignment == ()
    assert calls == [1]
    assert Translation("猫", "a", -1.0, ("zh", "en")).tokens == ()


def test_it_becomes_json_with_all_details(translator):
    translation = translator.translate("我爱猫\ud800。", options=TranslateOptions(n_best=2))
    values = json.loads(json.dumps(translation.to_dict(details=True)))
    assert values["translation"] == translation.text == values["n_best"][0]["text"]
    assert (values["from"], values["to"], values["source"]) == ("zh", "en", "我爱猫\ufffd。")
    assert values["score"] == translation.score
    assert values["warnings"] == [translation.warnings[0]._asdict()]
    assert [each["text"] for each in values["tokens"]] == [token.text for token in translation.tokens]
    assert [tuple(each["source"]) for each in values["alignment"]] == [link.source for link in translation.alignment]
    assert "tokens" not in translation.to_dict()


def test_the_parts_of_a_result_have_names():
    translation = Translation(
        "猫", "cats", -0.1, ("zh", "en"), (Alternative("cats", -0.1),), (Notice("cut", "…"),),
        _explain=lambda: Details((), (Link((0, 4), (0, 1), 0.9),)),
    )  # fmt: skip
    assert translation.n_best[0].score == -0.1
    assert translation.warnings[0].kind == "cut"
    assert translation.to_dict(details=True)["alignment"] == [{"target": (0, 4), "source": (0, 1), "weight": 0.9}]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("the cat sat", ["the", "cat", "sat"]),
        ("cat-mat, 12.5!", ["cat", "-", "mat", ",", "12", ".", "5", "!"]),
        ("猫爱cat狗", ["猫", "爱", "cat", "狗"]),
        ("고양이 cat", ["고양이", "cat"]),
        ("cafés naïve", ["cafés", "naïve"]),
        ("cafe\u0301s", ["cafe\u0301s"]),
        ("犇 cat 🙂", ["犇", "cat", "🙂"]),
        ("𠀀𠀁", ["𠀀", "𠀁"]),
    ],
)
def test_pieces_make_words_on_both_sides(text, words):
    tokenizer = train_tokenizer(["the cat sat", "爱"] * 9, TokenizerConfig(vocab=280))
    ids = tokenizer.encode(text)
    spans = piece_spans(tokenizer, ids, text)
    assert "".join(texts_of(text, spans)) == text.replace(" ", "")
    assert len(spans) == len(ids)
    groups = group_into_words(text, spans)
    assert [index for group in groups for index in group] == list(range(len(ids)))
    found = [text[spans[group[0]][0] : spans[group[-1]][1]] for group in groups]
    assert [word for word in found if word] == words
    sources = [(end - len(text[start:end].lstrip()), end) for start, end in tokenizer.encode_with_offsets(text).offsets]
    found = [text[sources[group[0]][0] : sources[group[-1]][1]] for group in group_into_words(text, sources)]
    assert [word for word in found if word] == words


def test_bytes_that_make_no_character_are_at_the_end():
    tokenizer = train_tokenizer(["the cat sat"] * 9, TokenizerConfig(vocab=280))
    ids = tokenizer.encode("cat犇")[:-1]
    text = tokenizer.decode(ids)
    assert text.startswith("cat\ufffd")
    assert "".join(texts_of(text, piece_spans(tokenizer, ids, text))) == text
