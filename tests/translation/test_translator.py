"""Strings in, translations out, for any string, from any number of threads, on a machine without torch too."""

import itertools
import json
from concurrent.futures import ThreadPoolExecutor
from math import exp, prod

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sixfold import modelfile
from sixfold.errors import RequestError
from sixfold.translation.line_translator import LineTranslator
from sixfold.translation.options import TranslateOptions
from sixfold.translation.request import TranslationRequest
from sixfold.translation.translator import MAX_WINDOW, Translator

REQUESTS = 1000  # of 8 threads together; 8,000 pass too
NASTY = [
    "", " ", "\n", "\t\r\n \u3000", "\n" * 1000, "我爱猫" * 3334, "x" * 10_000, "🧑‍🚀👩‍👩‍👧‍👦🇨🇳",
    "مرحبا بالعالم", "שלום", "a\x00b", "\x00",
    "\ud800", "猫\udfff狗", "\ud83d\ude00猫", "我love猫и狗", "e\u0301\u0327\u0301" * 40,
    "\ufeff我爱猫", "猫\u2028狗\u2029山\x85水\x0b花\x0c书\x1c你\x1d我\x1e爱",
    "猫\r狗", "猫\r\n狗\r\n", "\u200b猫\u200b", "\u202e猫", "猫" + " " * 3000 + "狗",
    "\U0010ffff\ufffe\uffff", "<eos><pad></s>[UNK]▁Ġ", "9" * 5000,
]  # fmt: skip
ANY = st.text(st.characters(codec=None, categories=None), max_size=60)
LIKELY = st.text(st.sampled_from("我爱猫狗 。！.!\n\r\t\u2028\x0b\x1c1a\ud83d\ude00\x00"), max_size=60)


def ends(line):
    """The white space at both ends of a line."""
    return line[: len(line) - len(line.lstrip())], line[len(line.rstrip()) :]


def test_the_route_of_a_line_is_chosen_once(translator, monkeypatch):
    lines, routed = ["我爱猫。", "我爱狗。", "我爱猫。"], []
    route = translator.route
    monkeypatch.setattr(Translator, "route", lambda _, text, request: routed.append(text) or route(text, request))
    translations = list(LineTranslator(translator, TranslationRequest()).translate(lines, 1))
    assert [translation.source for translation in translations] == routed == lines


def test_text_goes_in_and_text_comes_out(translator):
    translation = translator.translate("我爱猫。")
    assert translation.text == "I love cats."
    assert (translation.source, translation.languages, translation.warnings) == ("我爱猫。", ("zh", "en"), ())
    assert -0.5 < translation.score < 0
    assert translator.directions == [("zh", "en")]


def test_a_path_may_be_a_string_and_a_model_may_be_loaded_already(models):
    for model in (str(models["zh-en"]), modelfile.load(models["zh-en"]), [models["zh-en"]]):
        assert Translator(model, "cpu").translate("你看山").text == "you watch mountains"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("我爱猫。你看山！", "I love cats. you watch mountains!"),
        ("  我爱猫。\t你看山！ \n\n\n\t花\r\n", "  I love cats.\tyou watch mountains! \n\n\n\tflowers\r\n"),
        ("猫\n狗", "cats\ndogs"),
        ("猫\u2028狗\x0b山\x85", "cats\u2028dogs\x0bmountains\x85"),
        ("12.5\n猫\n...\n🙂 ①", "12.5\ncats\n...\n🙂 ①"),
        ("\n" * 1000 + "猫" + "\n" * 1000, "\n" * 1000 + "cats" + "\n" * 1000),
    ],
)
def test_the_layout_stays(translator, text, expected):
    assert translator.translate(text).text == expected


@pytest.mark.parametrize("text", ["", "   ", "\n\n", "1 + 1 = 2", "— … ！？", "🙂👩‍👩‍👧", "2024-01-01\t€ 5"])
def test_what_has_no_letters_comes_back_unchanged(counting, text):
    translation = counting.translate(text, options=TranslateOptions(n_best=2))
    assert translation.text == text
    assert translation.score == 0
    assert translation.tokens == translation.alignment == ()
    assert counting.direction(text).engine.sources == []


def test_lines_are_split_unless_they_are_not_to_be(counting):
    counting.translate("我爱猫。你看山！")
    counting.translate("  我爱猫。你看山！ \n花", options=TranslateOptions(split=False))
    encode = counting.direction("").tokenizer.encode
    expected = ["我爱猫。", "你看山！", "我爱猫。你看山！", "花"]
    assert counting.direction("").engine.sources == [(*encode(text), 2) for text in expected]


def check_layout(translator, text):
    translation = translator.translate(text)
    # A toy model may return nothing for a line; the mark keeps the last line.
    lines, translated = (f"{each}|".splitlines() for each in (text, translation.text))
    assert len(lines) == len(translated)
    assert text.count("\n") == translation.text.count("\n")
    assert list(map(ends, lines)) == list(map(ends, translated))
    translation.text.encode()  # no half characters are left
    return translation


@pytest.mark.parametrize("text", NASTY)
def test_nasty_texts_keep_their_lines(translator, text):
    translation = check_layout(translator, text)
    for token in translation.tokens:
        assert translation.text[slice(*token.span)] == token.text
        assert 0 < token.probability <= 1
        assert 0 <= token.source[0] <= token.source[1] <= len(translation.source)
    json.dumps(translation.to_dict(details=True), ensure_ascii=False).encode()


@given(st.one_of(ANY, LIKELY))
@settings(max_examples=150)
@example("我\r\r\n 爱\x1c")
def test_any_text_keeps_its_lines(translator, text):
    check_layout(translator, text)


def test_half_characters_are_replaced_with_a_notice(translator):
    translation = translator.translate("猫\ud800\n\ud83d\ude00")
    assert translation.source == "猫\ufffd\n😀"
    assert [notice.kind for notice in translation.warnings] == ["characters"]


def test_a_sentence_too_long_is_cut_with_a_notice(translator):
    translation = translator.translate("猫" * 500, options=TranslateOptions(guard=False))
    assert [notice.kind for notice in translation.warnings] == ["cut"]
    assert translation.text.count("cats") >= 500 // 63


def test_a_batch_is_as_one_by_one(translator):
    texts = ["我爱猫。", "", "你看山！花。", "1", "书", "水\n\n狗", "我爱猫。"]
    batch = translator.translate_batch(texts)
    assert [each.text for each in batch] == [translator.translate(text).text for text in texts]
    assert [each.source for each in batch] == texts
    assert translator.translate_batch([]) == []


def test_repeated_sentences_are_decoded_once(counting):
    translations = counting.translate_batch(["猫。狗。", "狗。", "猫。\n猫。", "猫。"])
    assert len(counting.direction("").engine.sources) == 2
    assert [each.text for each in translations] == ["cats. dogs.", "dogs.", "cats.\ncats.", "cats."]


def test_the_n_best_are_as_many_as_asked_and_the_best_comes_first(translator):
    for text in ("我爱猫", "我爱猫。你看山！"):
        translation = translator.translate(text, options=TranslateOptions(beam=2, n_best=5))
        assert len(translation.n_best) == len({each.text for each in translation.n_best}) == 5
        assert translation.n_best[0] == (translation.text, translation.score)
        scores = [each.score for each in translation.n_best]
        assert scores == sorted(scores, reverse=True)
    assert translator.translate("我爱猫").n_best == ()


def test_the_second_best_of_a_text_changes_one_sentence(translator):
    options = TranslateOptions(n_best=2)
    alone = [translator.translate(text, options=options).n_best for text in ("我爱猫。", "你看山！")]
    both = {f"{alone[0][i].text} {alone[1][j].text}" for i, j in ((0, 1), (1, 0))}
    assert translator.translate("我爱猫。你看山！", options=options).n_best[1].text in both


def test_a_prefix_is_how_the_text_begins_and_no_sentence_after_the_first(translator):
    for prefix in ("you", " you  love", "books water " * 13):
        text = translator.translate("我爱猫。你看山！", options=TranslateOptions(prefix=prefix)).text
        assert text.startswith(" ".join(prefix.split()))
        assert text.endswith(" you watch mountains!")
    assert translator.translate("我爱猫", options=TranslateOptions(prefix="you")).text == "you love cats"
    translator.translate("我爱猫", options=TranslateOptions(prefix="\ud800"))
    with pytest.raises(RequestError, match="prefix: expected at most 63 tokens; got 100"):
        translator.translate("猫", options=TranslateOptions(prefix="cats " * 100))


@pytest.mark.parametrize("prefix", ["", "I", "I love ", "books"])
def test_alternatives_are_distinct_begin_with_the_prefix_and_come_best_first(translator, prefix):
    alternatives = translator.alternatives("我爱猫", prefix, 6)
    texts = [each.text for each in alternatives]
    assert len(set(texts)) == len(texts)
    assert 3 <= len(texts) <= 6  # two tokens may begin the same text
    assert all(text.startswith(prefix.strip()) for text in texts)
    scores = [each.score for each in alternatives]
    assert scores == sorted(scores, reverse=True)
    assert len({text.removeprefix(prefix.strip()).strip()[:3] for text in texts}) > 3
    assert prefix == "books" or texts[0] == "I love cats"
    assert translator.alternatives("  ") == []


def test_alternatives_that_read_the_same_are_one(models):
    with Translator(models["tagged"], "cpu", 1, "float32") as translator:
        texts = [each.text for each in translator.alternatives("我爱猫", "I love", 40, "zh")]
        assert 10 < len(set(texts)) == len(texts) < 40  # some of the 40 differ only in a tag, which has no text


def test_alternatives_are_scored_as_whole_translations(translator):
    for each in translator.alternatives("我爱猫", "I love", 3):
        if each.text in ("I love cats", "I love you cats"):
            assert each.score == pytest.approx(translator.score("我爱猫", each.text).score, abs=1e-4)


def test_the_score_of_its_own_translation_is_the_translations_score(translator):
    for text in ("我爱猫。", "你看山", "花"):
        own = translator.translate(text)
        scored = translator.score(f" {text}\n", own.text)
        assert scored.text == own.text
        assert scored.score == pytest.approx(own.score, abs=2e-3)  # int8 rounds differently in another batch
        assert translator.score(text, "books books").score < own.score - 1
        direction = translator.direction(text)
        end = direction.engine.score(
            [direction.encoder_input(direction.tokenizer.encode(text))], [direction.tokenizer.encode(own.text)]
        )[0][-1]
        probability = prod(token.probability for token in own.tokens) * exp(end)
        assert probability == pytest.approx(exp(own.score * (len(own.tokens) + 1)), rel=1e-3)
    assert translator.score("我爱猫", "").score < -2
    assert translator.score("", "cats").score < -2


def test_many_threads_get_what_one_gets(models):
    texts = ["我爱猫。", "你看山！花。", "书\n水", "狗爱水。", "我看书！你看花。"]

    def ask(translator, number):
        text, kind = texts[number % len(texts)], number % 4
        if kind == 0:
            return translator.translate(text).text
        if kind == 1:
            return [each.text for each in translator.translate_batch(texts[: number % 5])]
        if kind == 2:
            return round(translator.score(text.replace("\n", ""), "I love cats.").score, 3)
        return [each.text for each in translator.alternatives(text.split("\n")[0], "I", 3)]

    with Translator(models["zh-en"], "cpu", 2, "float32") as translator, ThreadPoolExecutor(8) as pool:
        expected = [ask(translator, number) for number in range(20)]
        results = pool.map(lambda number: ask(translator, number % 20), range(REQUESTS))
        assert list(results) == [expected[number % 20] for number in range(REQUESTS)]


def test_a_stream_may_be_endless_and_is_read_little_ahead(translator):
    read = itertools.count()
    words = itertools.cycle("猫狗")
    stream = translator.stream(next(words) for _ in read)
    assert next(read) == 0
    assert next(stream).text == "cats"
    assert next(read) <= 3
    assert [each.text for each in itertools.islice(stream, 2 * MAX_WINDOW)] == ["dogs", "cats"] * MAX_WINDOW
    assert next(read) <= 4 * MAX_WINDOW + 3


def test_a_stream_passes_on_what_its_source_raises(translator):
    def texts():
        yield from "猫狗山"
        raise OSError("the disk is gone")

    stream = translator.stream(texts())
    assert [next(stream).text for _ in range(3)] == ["cats", "dogs", "mountains"]
    with pytest.raises(OSError, match="the disk is gone"):
        next(stream)


@pytest.mark.parametrize("text", [None, 5, b"bytes", ["a list"], ("a", "tuple")])
def test_what_is_no_string_is_refused(translator, text):
    for ask in (translator.translate, translator.alternatives, lambda text: translator.score("我", text)):
        with pytest.raises(RequestError, match=r"(text|translation): expected a string; got"):
            ask(text)
    with pytest.raises(RequestError, match=r"texts\[1\]: expected a string; got"):
        translator.translate_batch(["我", text])


@pytest.mark.parametrize("texts", [None, 5, b"", b"bytes", "", "a string", {"a": "b"}, iter(["我"])])
def test_what_is_no_list_is_refused(translator, texts):
    with pytest.raises(RequestError, match="texts: expected a list of strings; got") as caught:
        translator.translate_batch(texts)
    assert "translate() takes a single text" in caught.value.hint


@pytest.mark.parametrize("texts", [None, 5, b"bytes", "a string"])
def test_what_cannot_be_streamed_is_refused_at_once(translator, texts):
    with pytest.raises(RequestError, match="texts: expected an iterable of strings; got"):
        translator.stream(texts)


def test_what_is_too_long_to_score_is_refused(translator):
    with pytest.raises(RequestError, match="text: expected at most 63 tokens; got 101"):
        translator.score("猫" * 100, "cats")
    with pytest.raises(RequestError, match="translation: expected at most 63 tokens; got 100"):
        translator.score("猫", "cats " * 100)
    with pytest.raises(RequestError, match="prefix: expected at most 63 tokens; got 100"):
        translator.alternatives("猫", "cats " * 100)


def test_a_translator_says_what_it_translates_and_with_what(models):
    with Translator([models["zh-en"], models["de-en"]], "cpu", threads=1) as translator:
        assert repr(translator) == "<Translator zh→en, de→en with zh-en, de-en on cpu>"
    assert repr(translator) == "<Translator, closed>"


def test_a_closed_translator_says_so(models):
    with Translator(models["zh-en"], "cpu") as translator:
        translation = translator.translate("我爱猫")
    translator.close()
    asks = [lambda: translator.translate("猫"), lambda: translator.score("猫", "cats"), lambda: translation.tokens]
    for ask in (*asks, lambda: translator.alternatives("猫"), lambda: next(translator.stream(["猫"]))):
        with pytest.raises(RequestError, match="this one is closed"):
            ask()
