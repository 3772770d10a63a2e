"""Each of the three steps by itself: texts to sentences, sentences to results, results to translations."""

from dataclasses import replace

import pytest

from sixfold.translation.glossary import Glossary, Term
from sixfold.translation.memory import TranslationMemory
from sixfold.translation.options import TranslateOptions
from sixfold.translation.pair_files import Pair
from sixfold.translation.pipeline import PreparedText, assemble, decode, prepare
from sixfold.translation.prepare import source_sentence
from sixfold.translation.request import DecodeOptions, TranslationRequest

TEXT = " 我爱猫。你看书！\n\n12.5\n我爱猫。 \n"
MEMORY = TranslationMemory((Pair("你看书！", "Read!"),))


@pytest.fixture
def direction(translator):
    return translator.direction("我", "zh", "en")


@pytest.fixture
def counted(counting):
    """A direction whose engine records the sources that it decodes."""
    return counting.direction("我", "zh", "en")


def sentence(direction, text, prefix=""):
    prefix_ids = tuple(direction.encode_target(prefix)) if prefix else ()
    return source_sentence(text, direction.tokenizer)._replace(prefix=prefix_ids)


def run(direction, texts, request):
    """Carry out all three steps."""
    prepared = prepare(direction, texts, request)
    options = request.decode_options(direction.languages)
    results = decode(direction, [each for text in prepared for each in text.sentences], options)
    remaining = iter(results)
    return [assemble(direction, text, [next(remaining) for _ in text.sentences], request) for text in prepared]


def test_prepare_returns_the_sentences_of_each_text_in_order(counted):
    prepared = prepare(counted, [TEXT, "", "12", "花"], TranslationRequest())
    texts = [[each.text for each in text.sentences] for text in prepared]
    assert texts == [["我爱猫。", "你看书！", "我爱猫。"], [], [], ["花"]]
    assert [text.layout.text for text in prepared] == [TEXT, "", "12", "花"]
    first = prepared[0].sentences[0]
    assert first == source_sentence("我爱猫。", counted.tokenizer)
    assert first.ids == tuple(counted.tokenizer.encode("我爱猫。"))
    assert counted.engine.sources == []  # no step before `decode` needs the model


def test_the_prefix_belongs_to_the_first_sentence_of_each_text(direction):
    options = TranslateOptions(prefix="you")
    prepared = prepare(direction, [TEXT, "花"], TranslationRequest(options=options))
    expected = tuple(direction.encode_target("you"))
    assert [[each.prefix for each in text.sentences] for text in prepared] == [[expected, (), ()], [expected]]


def test_without_splitting_a_line_is_a_sentence(direction):
    (prepared,) = prepare(direction, [TEXT], TranslationRequest(options=TranslateOptions(split=False)))
    assert [each.text for each in prepared.sentences] == ["我爱猫。你看书！", "我爱猫。"]


def test_what_the_memory_has_is_noted_on_the_sentence_and_never_decoded(counted):
    request = TranslationRequest(memory=MEMORY)
    (prepared,) = prepare(counted, [TEXT], request)
    assert [each.memory_translation for each in prepared.sentences] == [None, "Read!", None]
    results = decode(counted, prepared.sentences, DecodeOptions())
    assert [bool(result.hypotheses) for result in results] == [True, False, True]
    assert [result.translation(counted) for result in results] == ["I love cats.", "Read!", "I love cats."]
    assert len(counted.engine.sources) == 1
    assert assemble(counted, prepared, results, request).text == " I love cats. Read!\n\n12.5\nI love cats. \n"
    # A translation with a prefix is written by the model.
    (with_prefix,) = prepare(
        counted, ["你看书！"], TranslationRequest(options=TranslateOptions(prefix="I"), memory=MEMORY)
    )
    assert with_prefix.sentences[0].memory_translation is None


def test_decode_returns_a_result_for_each_sentence_and_decodes_equal_ones_once(counted):
    sentences = [sentence(counted, text) for text in ("我爱猫", "你看书", "我爱猫", "我爱狗")]
    results = decode(counted, sentences, DecodeOptions())
    assert [result.sentence for result in results] == sentences
    translations = [result.translation(counted) for result in results]
    assert translations == ["I love cats", "you watch books", "I love cats", "I love dogs"]
    assert len(counted.engine.sources) == 3
    assert decode(counted, [], DecodeOptions()) == []


def test_sentences_with_different_prefixes_can_share_a_call(direction):
    sentences = [sentence(direction, "我爱猫", prefix) for prefix in ("", "you", "dogs")]
    results = decode(direction, sentences, DecodeOptions())
    translations = [result.translation(direction) for result in results]
    assert translations[0] == "I love cats"
    assert translations[1].startswith("you")
    assert translations[2].startswith("dogs")


def test_a_result_is_the_same_whatever_else_is_decoded_with_it(direction):
    texts = ["我爱猫", "你看书！", "山", "我爱水。"]
    together = decode(direction, [sentence(direction, text) for text in texts], DecodeOptions())
    for text, result in zip(texts, together, strict=True):
        (alone,) = decode(direction, [sentence(direction, text)], DecodeOptions())
        assert alone.hypotheses[0].tokens == result.hypotheses[0].tokens


def test_a_result_knows_what_it_cost(direction):
    results = decode(direction, [sentence(direction, text) for text in ("我", "我爱猫你看书我爱狗")], DecodeOptions())
    for result in results:
        assert result.tokens == len(result.sentence.ids) + len(result.hypotheses[0].tokens)
        assert not result.is_cached
    assert 0 < results[0].milliseconds < results[1].milliseconds  # shares by the number of tokens
    assert results[0].milliseconds < 10_000


def test_the_glossary_of_the_options_is_used_for_each_sentence(direction):
    glossary = Glossary((Term("猫", "dogs"), Term("书", "zzz")))
    results = decode(
        direction, [sentence(direction, text) for text in ("我爱猫", "我爱水")], DecodeOptions(glossary=glossary)
    )
    assert "dogs" in results[0].translation(direction)
    assert results[1].translation(direction) == "I love water"


def test_details_are_computed_with_the_sentences_only_if_the_options_say_so(direction):
    sentences = [sentence(direction, "我爱猫"), sentence(direction, "花")]
    assert [each.details for each in decode(direction, sentences, DecodeOptions())] == [None, None]
    detailed = decode(direction, sentences, DecodeOptions(details=True))
    assert [len(each.details.alignment) for each in detailed if each.details] == [3, 1]


def test_assemble_puts_results_into_the_layout_with_their_spans_and_costs(direction):
    request = TranslationRequest()
    (prepared,) = prepare(direction, [TEXT], request)
    first, second, third = decode(direction, prepared.sentences, DecodeOptions())
    third = replace(third, is_cached=True, milliseconds=0.0)
    translation = assemble(direction, prepared, [first, second, third], request)
    assert translation.text == " I love cats. you watch books!\n\n12.5\nI love cats. \n"
    assert (translation.source, translation.languages) == (TEXT, ("zh", "en"))
    spans = [(TEXT[slice(*each.source)], translation.text[slice(*each.target)]) for each in translation.sentences]
    assert spans == [("我爱猫。", "I love cats."), ("你看书！", "you watch books!"), ("我爱猫。", "I love cats.")]
    assert [each.cached for each in translation.sentences] == [False, False, True]
    assert [each.tokens for each in translation.sentences] == [result.tokens for result in (first, second, third)]
    assert translation.sentences[0].milliseconds > translation.sentences[2].milliseconds == 0


def test_assemble_computes_details_later_unless_it_is_closed(direction):
    request = TranslationRequest()
    (prepared,) = prepare(direction, ["我爱猫。花"], request)
    results = decode(direction, prepared.sentences, DecodeOptions())
    later = assemble(direction, prepared, results, request)
    with_results = decode(direction, prepared.sentences, DecodeOptions(details=True))
    assert later.alignment == assemble(direction, prepared, with_results, request).alignment
    assert [
        later.text[slice(*link.target)] for link in later.alignment if later.source[slice(*link.source)] == "花"
    ] == ["flowers"]

    def is_closed():
        raise RuntimeError("closed")

    closed = assemble(direction, prepared, results, request, is_closed)
    assert closed.text == later.text
    with pytest.raises(RuntimeError, match="closed"):
        _ = closed.alignment


def test_the_n_best_of_a_text_combine_those_of_its_sentences(direction):
    request = TranslationRequest(options=TranslateOptions(n_best=3))
    (translation,) = run(direction, ["我爱猫。你看书！"], request)
    texts = [each.text for each in translation.n_best]
    assert texts[0] == translation.text == "I love cats. you watch books!"
    assert len(set(texts)) == 3


def test_a_text_without_sentences_needs_no_results(direction):
    request = TranslationRequest()
    (prepared,) = prepare(direction, [" 12 \n"], request)
    assert isinstance(prepared, PreparedText)
    assert assemble(direction, prepared, [], request).text == " 12 \n"


def test_the_three_steps_are_what_a_translator_does(translator, direction):
    texts = [TEXT, "", "我爱水\r\n你看山", "花"]
    request = TranslationRequest("zh", "en", TranslateOptions(n_best=2), memory=MEMORY)
    assert run(direction, texts, request) == translator.translate_request(texts, request)
