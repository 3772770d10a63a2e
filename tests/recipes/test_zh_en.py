"""The scripts that make the training text and the deeper teacher of the Chinese ↔ English model, and its own pairs."""

import random
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_models import SMALL, in_memory, random_batch, random_model, run

sys.path.append(str(Path(__file__).parents[2] / "recipes"))

import zh_en_noise
from zh_en_deeper import deepen, layer_origins
from zh_en_mono import is_fair
from zh_en_words import clean_gloss, one_gloss_each

from sixfold.model.transformer import build, load_weights

OWN_PAIRS = Path(__file__).parents[2] / "recipes" / "corpora"


@pytest.mark.parametrize(
    ("gloss", "translation"),
    [
        ("Jay Chou , Taiwanese pop star", "Jay Chou"),
        ("fig. to help sb out", "to help somebody out"),
        ("lit. draw legs on a snake", ""),
        ("classifier for horses", ""),
        ("apple (fruit)", "apple"),
        ("to take sb's place", "to take somebody's place"),
        ("see 畫蛇添足", ""),
    ],
)
def test_a_gloss_is_a_translation_or_nothing(gloss, translation):
    assert clean_gloss(gloss) == translation


def test_a_word_gets_the_gloss_that_stands_beside_it_in_sentences():
    entries = [("银行", "bank shore"), ("银行", "a bank"), ("过", "Guo"), ("过", "to pass"), ("苹果", "apple")]
    sentences = [("他去银行了。", "He went to the Bank.")] + [("我过了考试。", "I will pass the exam.")] * 3
    assert list(one_gloss_each(entries, sentences)) == [("银行", "a bank"), ("过", "to pass"), ("苹果", "apple")]
    assert ("过", "to pass") not in list(one_gloss_each(entries, sentences[:2])), "one character needs evidence"


def test_noise_is_the_same_for_the_same_seed_and_leaves_no_text_empty():
    text = "Please tell your friends that I am going to the restaurant tomorrow, because it's different!"
    chinese = "今天，我和朋友在一家很好的饭店吃饭。"
    sounds = {"在": "zai", "再": "zai", "做": "zuo", "作": "zuo"}
    homophones = zh_en_noise.Homophones([chinese * 60, "再作做" * 60], [], lambda part: sounds.get(part, part))
    for source, kinds in ((text, zh_en_noise.ENGLISH_NOISES), (chinese, zh_en_noise.chinese_noises(homophones))):
        for noise in kinds:
            results = [noise(source, random.Random(7)) for _ in range(2)]
            assert results[0] == results[1]
            assert results[0].strip()
        assert any(noise(source, random.Random(seed)) != source for noise in kinds for seed in range(3))
    replaced = {homophones.replace(chinese, random.Random(seed)) for seed in range(9)}
    assert replaced == {chinese, chinese.replace("在", "再")}
    assert zh_en_noise.with_short_forms("you are", random.Random(0)) == "u r"


def test_slips_change_one_word_in_six_or_so():
    words = [f"word{'abcdefghij'[number % 10]}x" for number in range(1, 600)]
    typed = zh_en_noise.with_slips(" ".join(words), random.Random(3)).split(" ")
    changed = sum(old != new for old, new in zip(words, typed, strict=True))
    assert 60 < changed < 150


def test_new_layers_follow_the_first_ones():
    assert layer_origins(3, 5) == [(0, False), (0, True), (1, False), (1, True), (2, False)]
    assert layer_origins(2, 2) == [(0, False), (1, False)]
    for layers, wanted in ((2, 1), (2, 5)):
        with pytest.raises(SystemExit, match=f"expected 2 to 4 layers; got {wanted}"):
            layer_origins(layers, wanted)


def test_a_deeper_model_computes_the_same():
    shallow = replace(SMALL, norm_position="pre")
    file = in_memory(shallow, random_model(shallow))
    deep = replace(shallow, encoder_layers=4, decoder_layers=3)
    weights = deepen(file, {"encoder": 4, "decoder": 3})
    results = []
    for config, arrays in ((shallow, {name: file.weight(name) for name in file.weights()}), (deep, weights)):
        model = build(config).eval()
        load_weights(model, arrays)
        results.append(run(model, config, *random_batch(config)).detach().numpy())
    np.testing.assert_allclose(results[0], results[1], rtol=1e-4, atol=1e-5)
    assert any(np.any(array) for name, array in weights.items() if name.startswith("encoder.layers.1."))


@pytest.mark.parametrize(
    ("original", "translation", "language", "fair"),
    [
        ("这是一个本地的项目，由社区管理。", "This is a local local local project, run by the community.", "zh", False),
        ("他是那一年的冠军，也是队长。", "He was the champion of the year of the year and the captain.", "zh", False),
        ("He lives in a small house by the sea.", "他住在海边的小房子小房子里。", "en", False),
        ("他想了又想，还是走了。", "He thought and thought about it, and still left.", "zh", True),
        ("No, no, no, I did not say that to him.", "不，不，不，我没有对他那样说，没有。", "en", True),
        ("The house by the sea is small and old.", "海边的房子。", "en", True),
        ("The house by the sea is small and old, and nobody has lived in it since the war.", "海。", "en", False),
    ],
)
def test_a_translation_that_repeats_itself_or_is_too_short_is_left_out(original, translation, language, fair):
    assert is_fair(original, translation, language) is fair


def test_own_pairs_have_two_sides_and_no_pair_twice():
    for path in sorted(OWN_PAIRS.glob("*.tsv")):
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, 1):
            sides = line.split("\t")
            assert len(sides) == 2, f"{path.name}:{number}"
            assert all(side and side == side.strip() for side in sides), f"{path.name}:{number}"
            assert any("\u4e00" <= char <= "\u9fff" for char in sides[0]), f"{path.name}:{number}"
        assert max(Counter(lines).values()) == 1, path.name
