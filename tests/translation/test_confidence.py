"""Confidence is a calibrated probability for models whose card has a curve, and None for others."""

import math
import random

import pytest

from sixfold import Translator, modelfile
from sixfold.translation.confidence import ConfidenceCurve, curve_from_card, fit_curve


def test_the_curve_that_made_the_data_is_found_again():
    rng, true = random.Random(1), ConfidenceCurve(3.0, 2.0)
    scores = [rng.uniform(-3, 0) for _ in range(20_000)]
    fitted = fit_curve(scores, [rng.random() < true.probability(score) for score in scores])
    assert fitted.slope == pytest.approx(true.slope, abs=0.15)
    assert fitted.intercept == pytest.approx(true.intercept, abs=0.15)
    assert all(math.isfinite(value) for value in fit_curve([-1.0, -0.5], [False, True]))


@pytest.mark.parametrize("curves", [None, 5, {}, {"zh-en": 1}, {"zh-en": {"slope": 1}}, {"zh-en": {"slope": "a"}}])
def test_a_card_without_a_curve_gives_none(curves):
    assert curve_from_card({"confidence": curves}, ("zh", "en")) is None


def test_the_confidence_of_a_text_is_that_of_its_weakest_sentence(models, tmp_path):
    file = modelfile.load(models["zh-en"])
    path = tmp_path / "with-curve.safetensors"
    card = {**file.card, "confidence": {"zh-en": {"slope": 2.0, "intercept": 1.0}}}
    modelfile.save(path, file.config, file.weights(), file.tokenizer, card)
    with Translator(path, "cpu") as translator:
        texts = ("我爱猫。", "猫猫猫猫看看。", "我爱猫。猫猫猫猫看看。")
        first, second, both = translator.translate_batch(texts)
        assert first.confidence == pytest.approx(1 / (1 + math.exp(-2 * first.score - 1)))
        assert both.confidence == pytest.approx(min(first.confidence, second.confidence), rel=1e-3)
        assert translator.translate("").confidence is None
        assert both.to_dict()["confidence"] == both.confidence
    with Translator(models["zh-en"], "cpu") as translator:
        assert translator.translate("我爱猫。").confidence is None
