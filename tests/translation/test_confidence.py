"""A chance that means what it says, for models whose card has the curve, and none for others."""

import math
import random

import pytest

from sixfold import Translator, modelfile
from sixfold.translation.confidence import Confidence, fit, of_card


def test_the_curve_that_made_the_data_is_found_again():
    chance, true = random.Random(1), Confidence(3.0, 2.0)
    scores = [chance.uniform(-3, 0) for _ in range(20_000)]
    found = fit(scores, [chance.random() < true.of(score) for score in scores])
    assert found.slope == pytest.approx(true.slope, abs=0.15)
    assert found.intercept == pytest.approx(true.intercept, abs=0.15)
    assert all(math.isfinite(each) for each in fit([-1.0, -0.5], [False, True]))


@pytest.mark.parametrize("told", [None, 5, {}, {"zh-en": 1}, {"zh-en": {"slope": 1}}, {"zh-en": {"slope": "a"}}])
def test_a_card_without_a_curve_gives_none(told):
    assert of_card({"confidence": told}, ("zh", "en")) is None


def test_a_text_is_as_sure_as_its_least_sure_sentence(models, tmp_path):
    file = modelfile.load(models["zh-en"])
    path = tmp_path / "sure.safetensors"
    card = {**file.card, "confidence": {"zh-en": {"slope": 2.0, "intercept": 1.0}}}
    modelfile.save(path, file.config, file.weights(), file.tokenizer, card)
    with Translator(path, "cpu") as translator:
        texts = ("我爱猫。", "猫猫猫猫看看。", "我爱猫。猫猫猫猫看看。")
        one, other, both = translator.translate_batch(texts)
        assert one.confidence == pytest.approx(1 / (1 + math.exp(-2 * one.score - 1)))
        assert both.confidence == pytest.approx(min(one.confidence, other.confidence), rel=1e-3)
        assert translator.translate("").confidence is None
        assert both.to_dict()["confidence"] == both.confidence
    with Translator(models["zh-en"], "cpu") as translator:
        assert translator.translate("我爱猫。").confidence is None
