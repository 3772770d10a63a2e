"""Python, the interface /api/v1 and LibreTranslate's routes choose the same models for the same languages."""

import pytest
from small_servers import Server, multipart

from sixfold import RequestError, Translator, modelfile

TEXTS = ("我爱书。", "I love books.", "12")


@pytest.fixture(scope="module")
def portuguese(models, tmp_path_factory):
    """A model whose target language has a region, as LibreTranslate's models have."""
    file = modelfile.load(models["zh-en"])
    path = tmp_path_factory.mktemp("portuguese") / "zh-pt.safetensors"
    card = {"languages": {"source": "zh", "target": "pt-BR"}}
    modelfile.save(path, file.config, file.weights(), file.tokenizer, card)
    return path


@pytest.fixture(scope="module")
def three_languages(models, portuguese):
    with Server(models["tagged"], portuguese) as server:
        yield server


@pytest.fixture(scope="module")
def translator(models, portuguese):
    with Translator([models["tagged"], portuguese], "cpu") as translator:
        yield translator


@pytest.mark.parametrize("source", ["zh", "ZH-cn", "en"])
@pytest.mark.parametrize("target", ["en", "EN-us", "zh", "zh-Hant", "zh_TW", "pt-BR", "pt-br", "PT", "fr"])
def test_the_same_languages_give_the_same_translation_everywhere(three_languages, translator, source, target):
    if target.lower().startswith("zh"):
        pytest.importorskip("opencc")
    for text in TEXTS:
        try:
            expected = translator.translate(text, source, target).text
        except RequestError:
            expected = None
        status, _, response = three_languages.ask(
            "/api/v1/translate", {"texts": [text], "source": source, "target": target}
        )
        assert (response["translations"][0]["translation"] if status == 200 else None) == expected
        status, _, response = three_languages.ask("/translate", {"q": text, "source": source, "target": target})
        if expected is not None:
            assert (status, response["translatedText"]) == (200, expected)
        elif status == 200:  # LibreTranslate returns a text that is in the target language already
            assert response["translatedText"] == text
        else:
            assert status == 400


DETECTED = [
    ("我爱书。", "en", "I love books."), ("我爱书。", "pt-br", "I love books."),
    ("I love books.", "zh-Hant", "我愛書。"), ("我爱 cats dogs", "zh", None), ("我爱书。", "zh-Hant", None),
    ("I love cats", "en", None), ("Wi-Fi", "en", None),
    ("Je t'aime", "en", None), ("Я люблю", "en", None), ("Я люблю", "zh", None), ("Я люблю", "pt", None),
    ("foo_bar()", "en", None), ("12", "en", None), (" 我爱书。 a\n\n猫。  狗。\n", "zh", None),
]  # fmt: skip


@pytest.mark.parametrize("source", ["auto", "Auto"])
@pytest.mark.parametrize(("text", "target", "expected"), DETECTED)
def test_a_detected_language_is_the_same_everywhere(three_languages, translator, text, source, target, expected):
    """A text in the target language, or in one that no model reads, stays as it is (None)."""
    pytest.importorskip("opencc")
    expected = text if expected is None else expected
    assert translator.translate(text, source, target).text == expected
    fields = {"source": source, "target": target}
    _, _, response = three_languages.ask("/api/v1/translate", {"texts": [text], **fields})
    assert response["translations"][0]["translation"] == expected
    _, _, response = three_languages.ask("/translate", {"q": text, **fields})
    assert response["translatedText"] == expected
    status, _, response = three_languages.ask("/translate_file", *multipart("a.md", text.encode(), **fields))
    assert status == 200
    path = response["translatedFileUrl"].removeprefix(three_languages.url)
    assert three_languages.ask(path)[2].decode() == expected


def test_a_text_that_stays_as_it_is_has_a_notice_and_a_place_in_a_stream(three_languages):
    fields = {"texts": ["Я люблю", "我爱书。", "We went to the library yesterday."], "target": "en"}
    _, _, response = three_languages.ask("/api/v1/translate", fields)
    of_texts = response["translations"]
    assert [each["translation"] for each in of_texts] == ["Я люблю", "I love books.", fields["texts"][2]]
    assert [[notice["kind"] for notice in each["warnings"]] for each in of_texts] == [
        ["direction"],
        [],
        ["same-language"],
    ]
    _, _, events = three_languages.ask("/api/v1/translate/stream", fields)
    assert [events.count(b"event: " + kind) for kind in (b"sentence", b"translation", b"done", b"error")] == [
        3,
        3,
        1,
        0,
    ]


def test_what_libretranslate_says_it_has_detected(three_languages):
    def detected(text, target):
        fields = {"q": text, "source": "auto", "target": target}
        return three_languages.ask("/translate", fields)[2]["detectedLanguage"]

    assert detected("我爱 cats dogs", "zh")["language"] == "zh-Hans"
    assert detected("我愛書，你愛貓", "zh")["language"] == "zh-Hant"
    assert detected("I love cats", "en")["language"] == "en"
    assert detected("Я люблю", "zh") == detected("12", "zh") == {"confidence": 0.0, "language": "en"}


def test_a_code_with_capitals_is_listed_and_works_for_files(three_languages):
    _, _, languages = three_languages.ask("/languages")
    assert "pt-BR" in next(each for each in languages if each["code"] == "zh-Hans")["targets"]
    for target in ("pt-BR", "pt-br"):
        form = multipart("a.html", "<p>我爱<b>书</b></p>".encode(), source="zh", target=target)
        status, _, response = three_languages.ask("/translate_file", *form)
        assert status == 200
        path = response["translatedFileUrl"].removeprefix(three_languages.url)
        assert three_languages.ask(path)[2] == b"<p>I love <b>books</b></p>"
