"""The caller chooses the direction, or the language of the text does; a direction that remains open is an error."""

from dataclasses import replace

import pytest

from sixfold import modelfile
from sixfold.errors import RequestError
from sixfold.translation.translator import Translator


def open_all(models, *names):
    return Translator([models[name] for name in names], "cpu", 1, "float32")


def test_two_models_are_told_apart_by_the_script(models):
    with open_all(models, "zh-en", "en-zh") as translator:
        assert translator.directions == [("zh", "en"), ("en", "zh")]
        assert translator.translate("我爱猫。").text == "I love cats."
        assert translator.translate("I love cats.").text == "我爱猫。"
        assert translator.translate("I love cats. I watch mountains!", "auto").text == "我爱猫。我看山！"
        translations = translator.translate_batch(["猫", "dogs", "", "山", "I watch water", "1"])
        assert [each.text for each in translations] == ["cats", "狗", "", "mountains", "我看水", "1"]
        assert [each.languages[0] for each in translations] == ["zh", "en", "zh", "zh", "en", "zh"]


def test_the_caller_is_believed(models):
    with open_all(models, "zh-en", "en-zh") as translator:
        assert translator.translate("cats", source="zh").languages == ("zh", "en")
        assert translator.translate("cats", target="en").languages == ("zh", "en")
        assert translator.translate("猫", "zh", "en").text == "cats"


@pytest.mark.parametrize(("source", "target"), [("fr", None), (None, "fr"), ("en", "en"), ("auto", "de"), ("", "en")])
def test_an_unknown_direction_is_refused_and_the_known_ones_are_named(models, source, target):
    with (
        open_all(models, "zh-en", "en-zh") as translator,
        pytest.raises(RequestError, match="expected one of zh→en, en→zh; got"),
    ):
        translator.translate("猫", source, target)


def test_languages_of_one_script_are_not_guessed_from_a_word(models):
    with open_all(models, "de-en", "en-de") as translator:
        for text in ("cats", "Katzen"):
            with pytest.raises(RequestError, match="cannot tell which of de→en, en→de this text needs") as caught:
                translator.translate(text)
            assert "--from and --to" in caught.value.hint
        assert translator.translate("cats", "de").languages == ("de", "en")
        assert translator.translate("123").text == "123"


def test_a_script_that_no_model_reads_is_refused(models):
    with open_all(models, "zh-en", "en-zh") as translator, pytest.raises(RequestError, match="cannot tell which"):
        translator.translate("Привет, мир")


def test_the_only_model_of_a_script_reads_all_its_languages(models):
    with open_all(models, "zh-en", "de-en") as translator:
        assert translator.translate("cats").languages == ("de", "en")
        assert translator.translate("ねこ").languages == ("zh", "en")


def test_with_one_direction_nothing_is_detected(models):
    with open_all(models, "zh-en") as translator:
        for text in ("cats", "Привет", "猫"):
            assert translator.translate(text, "auto").languages == ("zh", "en")


def test_a_model_with_tags_serves_both_directions(models):
    with open_all(models, "tagged") as translator:
        assert translator.directions == [("zh", "en"), ("en", "zh")]
        translations = translator.translate_batch(["我爱猫。", "you watch mountains!", "花"])
        assert [each.text for each in translations] == ["I love cats.", "你看山！", "flowers"]
        # The tag, not the script, sets the target language: here a Chinese text is translated into Chinese.
        assert translator.translate("我爱猫", "en", "zh").text == "我爱猫"
        for translation in translations:
            tokens = [token for token in translation.tokens if token.text]  # the space before Chinese text is no text
            assert [token.source for token in tokens] == [link.source for link in translation.alignment]
            assert all(translation.source[slice(*link.source)].strip() for link in translation.alignment)


def test_a_model_without_languages_on_its_card_translates(models):
    for card in ({}, {"languages": ["zh", "en"]}, {"languages": {"source": "", "target": None}}):
        with Translator(replace(modelfile.load(models["zh-en"]), card=card), "cpu") as translator:
            assert translator.directions == [("source", "target")]
            assert translator.translate("猫。狗").text == "cats. dogs"


def test_between_languages_that_no_text_can_tell_apart_the_caller_must_choose(models):
    """Of German and English there are lists of words. Of Igbo and Hausa there are none, and no profiles either."""
    with open_all(models, "de-en", "en-de") as translator:
        translator.check_languages()
    cards = [{"languages": {"source": source, "target": target}} for source, target in (("ig", "ha"), ("ha", "ig"))]
    files = [replace(modelfile.load(models["zh-en"]), card=card) for card in cards]
    with Translator(files, "cpu", 1, "float32") as translator:
        with pytest.raises(RequestError, match="their source languages share a script"):
            translator.check_languages()
        translator.check_languages(target="ha")
        translator.check_languages(source="ha")
    with open_all(models, "zh-en", "en-zh") as translator:
        translator.check_languages()
        with pytest.raises(RequestError, match="got to fr"):
            translator.check_languages(target="fr")


def test_languages_of_one_script_are_told_apart_by_their_words(models):
    with open_all(models, "de-en", "en-de") as translator:
        assert translator.translate("The cats are on the table and they do not see us.").languages == ("en", "de")
        assert translator.translate("Die Katzen sind auf dem Tisch und sehen uns nicht.").languages == ("de", "en")


def test_a_model_for_both_ways_whose_card_names_no_tag_is_refused(models):
    file = replace(modelfile.load(models["tagged"]), card={"languages": {"source": "zh-Hans", "target": "en"}})
    with pytest.raises(RequestError, match="zh-Hans"):
        Translator(file, "cpu")


@pytest.mark.parametrize("target", ["zh", "zh-CN", "zh_Hans", "ZH-sg"])
def test_a_region_of_a_language_is_that_language(models, target):
    with open_all(models, "tagged") as translator:
        assert translator.translate("cats", target=target).languages == ("en", "zh")
        with pytest.raises(RequestError, match="expected one of zh→en, en→zh; got from fr-FR to zh"):
            translator.translate("cats", "fr-FR", "zh")


def test_check_told_still_works_and_warns(translator):
    with pytest.warns(DeprecationWarning, match="check_languages"):
        translator.check_told("zh", "en")
