"""Which models translate a text, and what of a request belongs to which of them if a text goes through two.

The German models behave like the others: what they write is Chinese.
"""

from dataclasses import replace

import pytest

from sixfold import modelfile, translate_document
from sixfold.errors import RequestError
from sixfold.translation.documents.document import Document
from sixfold.translation.documents.steps import translate_read_document
from sixfold.translation.glossary import Glossary, Term
from sixfold.translation.hops import join_links, translate_along
from sixfold.translation.options import TranslateOptions
from sixfold.translation.request import TranslationRequest
from sixfold.translation.result import Link
from sixfold.translation.translator import Translator


@pytest.fixture(scope="module")
def through_english(models, cache):  # noqa: ARG001
    """A translator from Chinese into German that must go through English."""
    with Translator([models["zh-en"], models["en-de"]], "cpu", 1, "float32") as translator:
        yield translator


def with_languages(models, source, target):
    card = {"languages": {"source": source, "target": target}}
    return replace(modelfile.load(models["zh-en"]), card=card)


def hops(translator, texts, request):
    """Return the languages, texts and request of every hop, and the translations."""
    steps = translate_along(texts, [translator.route(text, request) for text in texts], request)
    done = []
    try:
        batches = next(steps)
        while True:
            done += [(batch.direction.languages, batch.texts, batch.request) for batch in batches]
            batches = steps.send(translator._translate_hops(batches, None))
    except StopIteration as end:
        return done, end.value


def test_without_a_model_for_it_a_direction_goes_through_english_only_if_wanted(through_english):
    with pytest.raises(RequestError, match="expected one of zh→en, en→de; got from zh to de"):
        through_english.translate("我爱猫", "zh", "de")
    translation = through_english.translate("我爱猫", "zh", "de", pivot=True)
    assert (translation.text, translation.source, translation.languages) == ("我爱猫", "我爱猫", ("zh", "de"))
    assert through_english.translate("我爱猫", None, "de", pivot=True).languages == ("zh", "de")
    assert through_english.translate("我爱猫", "zh", "en", pivot=True).text == "I love cats"  # there is a model


def test_texts_of_several_routes_come_back_in_their_order(through_english):
    texts = ["我爱猫", "I love dogs", "", "我爱水", "12"]
    translations = through_english.translate_batch(texts, None, "de", pivot=True)
    assert [each.text for each in translations] == ["我爱猫", "我爱狗", "", "我爱水", "12"]
    assert [each.source for each in translations] == texts
    assert [each.languages[0] for each in translations[:2]] == ["zh", "en"]


def test_the_prefix_and_the_n_best_belong_to_the_last_hop_and_other_options_to_both(through_english):
    options = TranslateOptions(beam=3, n_best=2, length_penalty=0.5, prefix="你", guard=False)
    done, (translation,) = hops(through_english, ["我爱猫"], TranslationRequest("zh", "de", options, pivot=True))
    (first_languages, first_texts, first), (last_languages, last_texts, last) = done
    assert (first_languages, first_texts) == (("zh", "en"), ["我爱猫"])
    assert (last_languages, last_texts) == (("en", "de"), ["I love cats"])
    assert first.options == replace(options, prefix="", n_best=1)
    assert last.options == options
    assert translation.text.startswith("你")
    assert len(translation.n_best) == 2


@pytest.mark.parametrize("languages", [None, ("zh", "de"), ("de", "zh")])
def test_a_term_of_the_route_is_split_between_the_hops(through_english, languages):
    pair = ("猫", "狗") if languages != ("de", "zh") else ("狗", "猫")
    glossary = Glossary((Term(*pair), Term("山", "水")), languages)
    done, (translation,) = hops(
        through_english, ["我爱猫"], TranslationRequest("zh", "de", glossary=glossary, pivot=True)
    )
    assert "狗" in translation.text
    assert "猫" not in translation.text
    first, last = (request.glossary.terms for _, _, request in done[1:])
    assert (first, last) == ((Term("猫", "cats"),), (Term("cats", "狗"),))  # only the terms that the text has


@pytest.mark.parametrize(
    ("term", "languages"), [(Term("猫", "dogs"), ("zh", "en")), (Term("cats", "狗"), ("en", "de"))]
)
def test_a_term_of_one_hop_is_used_there(through_english, term, languages):
    glossary = Glossary((term,), languages)
    translation = through_english.translate("我爱猫", "zh", "de", glossary=glossary, pivot=True)
    assert "狗" in translation.text
    assert translation.warnings == ()


def test_markup_is_placed_through_both_hops(models):
    """Without links from the first text to the last, a tag would lose the words that it stands around."""
    pytest.importorskip("opencc")
    data = "<p><i>我</i>爱<b>书</b></p>\n<p>你<b>看</b>书</p>".encode()
    request = TranslationRequest("ja", "zh-Hant", pivot=True)
    with Translator([with_languages(models, "ja", "en"), models["en-zh"]], "cpu", 1, "float32") as translator:
        written, report = translate_read_document(translator, Document.read(data, "html", "a"), request)
    assert written.decode() == "<p><i>我</i>愛<b>書</b></p>\n<p>你<b>看</b>書</p>"
    assert report.notices == []


def test_links_are_joined_by_the_word_between_them():
    first = [Link((0, 1), (0, 2), 0.5), Link((2, 6), (5, 6), 0.5), Link((7, 9), (2, 4), 1.0)]
    last = [Link((0, 2), (2, 6), 0.8), Link((2, 3), (5, 9), 1.0), Link((3, 4), (20, 22), 1.0)]
    assert join_links(first, last) == (Link((0, 2), (5, 6), 0.4), Link((2, 3), (2, 4), 1.0))
    assert join_links([], last) == join_links(first, []) == ()


@pytest.mark.parametrize("target", ["pt-BR", "pt-br", "PT_BR", "pt", "pb", None])
def test_a_code_with_capitals_is_found_however_it_is_spelt(models, target):
    with Translator(with_languages(models, "zh", "pt-BR"), "cpu", 1, "float32") as translator:
        translation = translator.translate("我爱猫", "ZH", target)
        assert (translation.text, translation.languages) == ("I love cats", ("zh", "pt-BR"))
        with pytest.raises(RequestError, match="expected one of zh→pt-BR; got from zh to fr"):
            translator.translate("我爱猫", "zh", "fr")


def test_of_two_regions_the_named_one_is_taken(models):
    files = [with_languages(models, "zh", code) for code in ("pt-BR", "pt-PT")]
    with Translator(files, "cpu", 1, "float32") as translator:
        for code in ("pt-BR", "pt-PT"):
            assert translator.translate("我爱猫", "zh", code.lower()).languages == ("zh", code)
        with pytest.raises(RequestError, match="cannot tell which"):
            translator.translate("我爱猫", "zh", "pt")


@pytest.mark.parametrize("target", ["zh-Hant", "zh_hant", "zh-TW", "zt"])
def test_traditional_chinese_is_converted_from_what_the_model_writes(models, target):
    pytest.importorskip("opencc")
    with Translator(models["tagged"], "cpu", 1, "float32") as translator:
        translation = translator.translate("I love books", "en", target, TranslateOptions(n_best=2))
        assert (translation.text, translation.languages) == ("我愛書", ("en", "zh-Hant"))
        assert translation.n_best[0].text == "我愛書"
        assert [translation.text[slice(*each.target)] for each in translation.sentences] == ["我愛書"]
        assert [part.text for part in translator.stream_sentences("I love books", "en", target)] == ["我愛書", ""]
        assert translator.translate("I love books", "en", "zh").text == "我爱书"
        page = b"<p>I love <b>books</b></p>"
        written, _ = translate_document(translator, page, "html", "en", target)
        assert written.decode() == "<p>我愛<b>書</b></p>"


def test_traditional_chinese_is_written_at_the_end_of_a_pivot(models):
    pytest.importorskip("opencc")
    with Translator([models["de-en"], models["en-zh"]], "cpu", 1, "float32") as translator:
        translation = translator.translate("我爱书", "de", "zh-Hant", pivot=True)
        assert (translation.text, translation.languages) == ("我愛書", ("de", "zh-Hant"))


def test_a_text_in_traditional_chinese_is_read_as_chinese(models):
    """A tokeniser with `simplify` reads its characters; the direction is found either way."""
    with Translator([models["zh-en"], models["en-zh"]], "cpu", 1, "float32") as translator:
        for source in ("zh-Hant", "zh-TW", None):
            assert translator.translate("你看書，我愛貓。", source).languages == ("zh", "en")


def test_traditional_text_is_simplified_for_a_model_that_reads_nothing_else(models):
    pytest.importorskip("opencc")
    with Translator(models["zh-en"], "cpu", 1, "float32") as translator:
        assert not translator.direction("我").tokenizer.character_map
        translation = translator.translate("我愛書。")
        assert (translation.text, translation.source) == ("I love books.", "我愛書。")
        assert [translation.source[slice(*link.source)] for link in translation.alignment][:3] == ["我", "愛", "書"]
