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


@pytest.mark.parametrize("source", ["auto", "Auto"])
@pytest.mark.parametrize(("text", "target"), [("我爱书。", "en"), ("I love books.", "zh-Hant"), ("我爱书。", "pt-br")])
def test_a_detected_language_is_the_same_everywhere(three_languages, translator, text, source, target):
    pytest.importorskip("opencc")
    expected = translator.translate(text, source, target).text
    fields = {"source": source, "target": target}
    _, _, response = three_languages.ask("/api/v1/translate", {"texts": [text], **fields})
    assert response["translations"][0]["translation"] == expected
    _, _, response = three_languages.ask("/translate", {"q": text, **fields})
    assert response["translatedText"] == expected


def test_a_code_with_capitals_is_listed_and_works_for_files(three_languages):
    _, _, languages = three_languages.ask("/languages")
    assert "pt-BR" in next(each for each in languages if each["code"] == "zh-Hans")["targets"]
    for target in ("pt-BR", "pt-br"):
        form = multipart("a.html", "<p>我爱<b>书</b></p>".encode(), source="zh", target=target)
        status, _, response = three_languages.ask("/translate_file", *form)
        assert status == 200
        path = response["translatedFileUrl"].removeprefix(three_languages.url)
        assert three_languages.ask(path)[2] == b"<p>I love <b>books</b></p>"
