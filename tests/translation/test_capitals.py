"""Text in capitals is read in sentence case, in the forms that the tokeniser knows best."""

import pytest

import sixfold
from sixfold.config import TokenizerConfig
from sixfold.decoding.options import Hypothesis
from sixfold.text.learn import train_tokenizer
from sixfold.translation.capitals import in_capitals, in_sentence_case
from sixfold.translation.pipeline import SentenceResult
from sixfold.translation.prepare import source_sentence


@pytest.fixture(scope="module")
def shipped():
    with sixfold.Translator() as translator:
        yield translator


@pytest.fixture(scope="module")
def tokenizer(shipped):
    return shipped.direction("Hello", "en", "zh").tokenizer


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("WHERE ARE YOU?", "Where are you?"),
        ("HELLO", "Hello"),
        ("NASA FLIES TO LONDON", "NASA flies to London"),
        ("I'M TIRED. I WANT TO GO HOME.", "I'm tired. I want to go home."),
        ("5.5% OF THE PEOPLE", "5.5% of the people"),
    ],
)
def test_capitals_are_read_in_sentence_case(tokenizer, text, read):
    assert in_sentence_case(text, tokenizer) == read


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I",
        "USA",
        "OK",
        "WHO",
        "NASA",
        "hello",
        "Hello THERE",
        "12.5%",
        "我爱你",
        "ЯRRR",
        "A B C",
        "\ue000",
        "他在GOOGLE和MICROSOFT工作",
    ],
)
def test_other_text_is_read_as_it_is(tokenizer, text):
    assert in_sentence_case(text, tokenizer) == text


def test_a_model_that_learnt_capitals_reads_capitals():
    lines = [
        f"THE {noun} IS {adjective}" for noun in ("HOUSE", "GARDEN", "RIVER") for adjective in ("OLD", "GREEN")
    ] * 50
    tokenizer = train_tokenizer(lines, TokenizerConfig(vocab=340))
    assert in_sentence_case("THE HOUSE IS GREEN", tokenizer) == "THE HOUSE IS GREEN"


def test_the_length_stays(tokenizer):
    for text in ("DIE STRAẞE IST LANG", "İSTANBUL IS A LARGE CITY", "ﬀ ARE LIGATURES", "ΟΔΥΣΣΕΥΣ AND HOMER"):
        assert len(in_sentence_case(text, tokenizer)) == len(text)
        assert len(in_capitals(text.lower())) == len(text.lower())


def test_a_translation_of_capitals_is_in_capitals_and_keeps_its_parts(shipped):
    direction = shipped.direction("", "zh", "en")
    for text, written in (("OPEN {name} NOW", "Open \ue000 today"), ("Open {name} now", "Open \ue000 today")):
        sentence = source_sentence(text, direction.tokenizer)
        result = SentenceResult(sentence, (Hypothesis(direction.tokenizer.encode(written), 0.0),))
        expected = "OPEN {name} TODAY" if text.isupper() or "OPEN" in text else "Open {name} today"
        assert result.translation(direction) == expected


def test_capitals_are_translated_as_what_they_mean(shipped):
    result = shipped.translate("I LOVE YOU", source="en", target="zh")
    assert result.text == "我爱你"
    read = {result.source[slice(*token.source)] for token in result.tokens}
    assert read <= {"", "I", "LOVE", "YOU"}
    assert len(read) > 1


def test_full_width_spaces_are_spaces(shipped):
    assert shipped.translate("ＷＨＥＲＥ　ＡＲＥ　ＹＯＵ", source="en", target="zh").text.startswith("你在哪")
