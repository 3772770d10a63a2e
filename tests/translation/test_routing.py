"""Which models translate a text, and what of a request belongs to which of them if a text goes through two.

The German models behave like the others: what they write is Chinese.
"""

from dataclasses import replace

import pytest

from sixfold import TranslationMemory, modelfile, translate_document
from sixfold.errors import RequestError
from sixfold.translation.documents.document import Document
from sixfold.translation.documents.steps import translate_read_document
from sixfold.translation.glossary import Glossary, Term
from sixfold.translation.hops import join_links, join_sentences, translate_along
from sixfold.translation.options import TranslateOptions
from sixfold.translation.pair_files import Pair, is_reversed
from sixfold.translation.request import TranslationRequest
from sixfold.translation.result import Link, Match, Sentence
from sixfold.translation.routing import TargetFinder, direction_names, targets_of
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


KNOWN = TranslationMemory((Pair("我爱猫。", "Ich liebe Katzen."), Pair("狗。山。", "Hunde & Berge")), ("zh", "de"))


@pytest.mark.parametrize("memory", [KNOWN, replace(KNOWN, languages=None), KNOWN.toward(("de", "zh"))])
def test_sentences_that_the_memory_has_for_the_route_are_taken_from_it(through_english, memory):
    text = "我看狗。我爱猫。你看书！\n狗。山。\n我爱猫"
    translation = through_english.translate(text, "zh", "de", memory=memory, pivot=True)
    assert translation.text == "我看狗。 Ich liebe Katzen. 你看书！\nHunde & Berge\n我爱猫"
    assert translation.warnings == ()
    assert translation.matches[:2] == (
        Match("我爱猫。", "Ich liebe Katzen.", 1.0), Match("狗。山。", "Hunde & Berge", 1.0)
    )  # fmt: skip
    assert {translation.source[slice(*link.source)] for link in translation.alignment} == set("我看狗。你书！爱猫")
    assert min(link.target[0] for link in translation.alignment if link.source[0] > 4) > len("我看狗。 Ich liebe")
    with_prefix = TranslateOptions(prefix="你")
    translation = through_english.translate("我爱猫。", "zh", "de", with_prefix, memory=memory, pivot=True)
    assert translation.text.startswith("你")
    assert [match.score for match in translation.matches] == [1.0]  # shown, not used


def test_a_known_text_between_two_hops_is_no_text_in_a_wrong_language(through_english):
    memory = TranslationMemory((Pair("我们昨天去了图书馆。", "Gestern."),), ("zh", "de"))
    translation = through_english.translate("我们昨天去了图书馆。", "zh", "de", memory=memory, pivot=True)
    assert (translation.text, translation.warnings) == ("Gestern.", ())


def test_a_known_sentence_that_would_be_none_after_the_first_hop_is_translated(through_english):
    """The model writes no full stop before it, so that the last one would read two languages in one sentence."""
    memory = TranslationMemory((Pair("I LOVE。", "Ich liebe."),), ("zh", "de"))
    request = TranslationRequest("zh", "de", memory=memory, pivot=True)
    steps = translate_along(["猫。I LOVE。"], [through_english.route("", request)], request)
    (first,) = next(steps)
    (translated,) = through_english._translate_hops([first], None)[0]
    assert translated.text == "cats. I LOVE。"
    unfinished = replace(translated, text="cats and I LOVE。")
    (again,) = steps.send([[unfinished]])
    assert (again.direction.languages, again.texts, again.first_of) == (("zh", "en"), ["猫。I LOVE。"], first.first_of)
    (translated,) = through_english._translate_hops([again], None)[0]
    assert "LOVE" not in translated.text
    assert translated.matches == (Match("I LOVE。", "Ich liebe.", 1.0),)
    (last,) = steps.send([[translated]])
    assert last.direction.languages == ("en", "de")


def test_a_memory_of_one_hop_is_used_there(through_english):
    memory = TranslationMemory((Pair("我爱猫。", "I watch dogs."),), ("zh", "en"))
    assert through_english.translate("我爱猫。", "zh", "de", memory=memory, pivot=True).text == "我看狗。"
    memory = TranslationMemory((Pair("I love cats.", "Katzen!"),), ("en", "de"))
    assert through_english.translate("我爱猫。", "zh", "de", memory=memory, pivot=True).text == "Katzen!"


def test_sentences_have_the_costs_of_both_hops(through_english):
    text = "我爱猫。我看狗！\n\n你。"
    request = TranslationRequest("zh", "de", pivot=True)
    translation = through_english.translate_request([text], request)[0]
    first = through_english.translate(text, "zh", "en")
    last = through_english.translate(first.text, "en", "de")
    pairs = [(text[slice(*each.source)], translation.text[slice(*each.target)]) for each in translation.sentences]
    assert pairs == [("我爱猫。", "我爱猫。"), ("我看狗！", "我看狗！"), ("你。", "你。")]
    expected = [sum(each.tokens for each in pair) for pair in zip(first.sentences, last.sentences, strict=True)]
    assert [each.tokens for each in translation.sentences] == expected
    assert all(each.milliseconds > 0 for each in translation.sentences)


def test_sentences_that_the_hops_split_in_other_ways_are_joined():
    first = [Sentence((0, 4), (0, 9), 5, 1.0, True), Sentence((4, 6), (10, 20), 3, 2.0, True)]
    two_for_one = [Sentence((0, 3), (0, 2), 1, 1.0, True), Sentence((4, 9), (3, 5), 1), Sentence((10, 20), (6, 9), 2)]
    assert join_sentences(first, two_for_one) == (
        Sentence((0, 4), (0, 5), 7, 2.0, False), Sentence((4, 6), (6, 9), 5, 2.0, False)
    )  # fmt: skip
    one_for_two = [Sentence((0, 20), (0, 8), 4, 0.5, True)]
    assert join_sentences(first, one_for_two) == (Sentence((0, 6), (0, 8), 12, 3.5, True),)
    assert join_sentences(first, []) == join_sentences([], one_for_two) == ()


def test_markup_is_placed_through_both_hops(models):
    """Without links from the first text to the last, a tag would lose the words that it stands around."""
    pytest.importorskip("opencc")
    data = "<p><i>我</i>爱<b>书</b></p>\n<p>你<b>看</b>书</p>".encode()
    request = TranslationRequest("ja", "zh-Hant", pivot=True)
    with Translator([with_languages(models, "ja", "en"), models["en-zh"]], "cpu", 1, "float32") as translator:
        written, report = translate_read_document(translator, Document.read(data, "html", "a"), request)
    assert written.decode() == "<p><i>我</i>愛<b>書</b></p>\n<p>你<b>看</b>書</p>"
    assert report.notices == []


def test_a_document_may_go_through_a_third_language_and_shows_its_progress(through_english):
    page = "<p>我爱猫。我看狗。</p><p>你<b>看</b>书。</p>".encode()
    with pytest.raises(RequestError, match="got from zh to de"):
        translate_document(through_english, page, "html", "zh", "de")
    progress = []
    written, report = translate_document(
        through_english,
        page,
        "html",
        "zh",
        "de",
        pivot=True,
        progress=lambda done, total: progress.append((done, total)),
    )
    assert written.decode() == "<p>我爱猫。 我看狗。</p><p>你<b>看</b>书。</p>"
    assert report.notices == []
    assert progress == [(1, 1), (1, 1), (2, 2), (2, 2)]  # with markup and without it, for each hop


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


PARTS = [("我爱猫。", 1, 3), (" 我看狗。\n", 2, 3), ("你！", 3, 3), ("", 3, 3)]


def test_a_text_through_a_third_language_is_streamed_by_the_sentences_of_the_last_hop(through_english):
    text, request = "我爱猫。我看狗。\n你！", TranslationRequest("zh", "de", pivot=True)
    *parts, last = through_english.stream_request(text, request)
    assert [each[:3] for each in (*parts, last)] == PARTS
    assert [each.translation for each in parts] == [None] * 3
    assert last.translation == through_english.translate_request([text], request)[0]
    assert through_english.translate_request([text], request)[0].text == "".join(each.text for each in parts)


def test_sentences_are_streamed_with_their_white_space_one_by_one(models):
    with Translator(models["zh-en"], "cpu", 1, "float32") as translator:
        decoded = []
        decode = translator.direction("").engine.decode
        translator.direction("").engine.decode = lambda sources, *more: (
            decoded.extend(sources) or decode(sources, *more)
        )
        options, glossary = TranslateOptions(beam=2), Glossary((Term("猫", "dogs"),))

        def whole(sentence):
            return translator.translate(sentence, "zh", "en", options, glossary).text

        stream = translator.stream_sentences("  我爱猫。我看狗。\n\n12\n你！ \n", "zh", "en", options, glossary)
        first = next(stream)
        assert first[:3] == (f"  {whole('我爱猫。')}", 1, 3)
        assert first.translation is None
        before = len(decoded)
        rest = list(stream)
        assert len(decoded) > before  # later sentences were not decoded before the first part came
        second, third = f" {whole('我看狗。')}\n", f"\n12\n{whole('你！')} \n"
        assert [each[:3] for each in rest] == [(second, 2, 3), (third, 3, 3), ("", 3, 3)]
        assert rest[-1].translation.text == f"{first.text}{second}{third}"
        for text in ("", " \n", "12"):
            assert "".join(part.text for part in translator.stream_sentences(text)) == text
        with pytest.raises(RequestError, match="expected a string"):
            translator.stream_sentences(["我"])


UNREAD = "Die Katzen sind auf dem Tisch und sehen uns nicht."


@pytest.mark.parametrize(
    ("text", "target", "kinds"),
    [
        ("Я люблю", "en", ["direction"]), ("Je t'aime", "en", ["direction"]), ("cats", "en", []),
        ("We went to the library yesterday.", "en", ["same-language"]), ("我爱 cats dogs", "zh", []),
        ("我们昨天去了图书馆。", "zh-Hant", ["same-language"]), ("foo_bar()", "en", []),
        (" 猫。  狗。\n\n猫。\r\n", "zh", []),
    ],
)  # fmt: skip
def test_a_text_that_is_not_translated_stays_as_it_is(models, text, target, kinds):
    request = TranslationRequest(None, target, TranslateOptions(n_best=2, prefix="x"), Glossary((Term("猫", "x"),)))
    with Translator([models["zh-en"], models["en-zh"]], "cpu", 1, "float32") as translator:
        translation = translator.translate_request([text], request)[0]
        assert (translation.text, [notice.kind for notice in translation.warnings]) == (text, kinds)
        assert [each.text for each in translation.n_best] == [text]
        assert "".join(part.text for part in translator.stream_request(text, request)) == text
        assert [notice.kind for notice in translator.route(text, request).notices(text)] == kinds
        assert "memory" not in translation.to_dict()


def test_a_text_with_a_few_words_of_a_language_that_is_translated_is_translated(models):
    """Chinese with names in Latin letters is not English, though it has more Latin letters than characters."""
    with Translator([models["zh-en"], models["en-zh"]], "cpu", 1, "float32") as translator:
        text = "安装 TensorFlow Serving Docker Image"
        assert translator.choose_source(text, None, "en").language == "zh"
        assert not translator.route(text, TranslationRequest(None, "en")).unchanged


def test_a_language_without_the_direction_is_not_read_as_another_one(models):
    with Translator([models["de-en"], models["en-zh"]], "cpu", 1, "float32") as translator:
        translation = translator.translate(UNREAD, target="zh")
        assert (translation.text, [notice.kind for notice in translation.warnings]) == (UNREAD, ["direction"])
        assert translator.translate(UNREAD, target="zh", pivot=True).languages == ("de", "zh")
        assert translator.choose_source(UNREAD).language == "de"


def test_a_text_in_the_target_language_does_not_go_to_a_third_one_and_back(models):
    with Translator([models["zh-en"], models["en-zh"]], "cpu", 1, "float32") as translator:
        assert translator.translate("我爱猫。", target="zh", pivot=True).text == "我爱猫。"
        with pytest.raises(RequestError, match="got from zh to zh"):
            translator.translate("我爱猫。", "zh", "zh", pivot=True)
        with pytest.raises(RequestError, match="got from zh to zh"):
            translator.check_languages("zh", "zh", pivot=True)


def test_the_targets_of_a_language_are_those_that_can_be_asked_for():
    pairs = [("zh", "pt-BR"), ("pt", "en"), ("en", "zh")]
    assert targets_of(pairs, "zh") == targets_of(pairs, "zh-TW") == ["pt-BR"]
    assert targets_of(pairs, "pt-BR") == ["en"]
    assert targets_of(pairs, "zh", pivot=True) == ["pt-BR", "en"]
    assert targets_of(pairs, "en", pivot=True) == ["zh", "pt-BR"]
    assert targets_of(pairs, "fr", pivot=True) == []


@pytest.mark.parametrize(
    ("pair", "direction", "expected"),
    [
        (None, ("zh", "en"), False), (("zh", "en"), ("zh", "en"), False), (("en", "zh"), ("zh", "en"), True),
        (("zh", "pt"), ("zh", "pt-BR"), False), (("pt_br", "zh-CN"), ("zh", "pt"), True),
        (("en", "zh-Hant"), ("en", "zh"), False), (("zh", "de"), ("zh", "en"), None),
        (("en", "en"), ("en", "zh"), None),
        (("pt-BR", "pt-PT"), ("pt-PT", "pt-BR"), True), (("zh-Hant", "zh"), ("zh-Hant", "zh"), False),
    ],
)  # fmt: skip
def test_pairs_fit_a_direction_whatever_the_regions(pair, direction, expected):
    assert is_reversed(pair, direction) is expected


def test_a_glossary_and_a_memory_without_the_region_of_the_model_are_used(models):
    with Translator(with_languages(models, "zh", "pt-BR"), "cpu", 1, "float32") as translator:
        glossary = Glossary((Term("猫", "dogs"),), ("zh", "pt"))
        assert translator.translate("我爱猫", glossary=glossary).text.rstrip(".!") == "I love dogs"
        memory = TranslationMemory((Pair("Adoro", "我爱猫"),), ("pt", "zh"))
        assert translator.translate("我爱猫", memory=memory).text == "Adoro"


@pytest.mark.parametrize("languages", [("en", "zh-Hant"), ("en", "zh"), None])
def test_terms_in_traditional_chinese_are_used_on_the_way_there(models, languages):
    pytest.importorskip("opencc")
    with Translator(models["en-zh"], "cpu", 1, "float32") as translator:
        glossary = Glossary((Term("books", "愛"),), languages)
        translation = translator.translate("I watch books", "en", "zh-Hant", glossary=glossary)
        assert ("愛" in translation.text, translation.warnings) == (True, ())
        request = TranslationRequest("en", "zh-Hant", glossary=glossary)
        ((_, _, own),), _ = hops(translator, ["I watch books"], request)
        assert own.glossary.terms == (Term("books", "爱"),)  # as the model writes it


def test_targets_of_many_languages_are_found_at_once():
    codes = [f"{first}{second}" for first in "abcdefghij" for second in "klmnopqrst"]
    pairs = [(source, target) for source in codes for target in codes if source != target]
    finder = TargetFinder(pairs)
    assert [finder.targets(code, pivot=True) for code in codes] == [
        [each for each in codes if each != code] for code in codes
    ]
    chain = TargetFinder([("zh", "en"), ("en", "de"), ("de", "fr"), ("pt-BR", "en")])
    assert chain.targets("zh") == ["en"]
    assert chain.targets("zh", pivot=True) == ["en", "de"]
    assert chain.targets("pt", pivot=True) == ["en", "de"]
    assert chain.targets("xx", pivot=True) == []
    message = direction_names(pairs)
    assert message.endswith(" and 9,860 more")
