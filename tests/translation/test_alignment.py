"""Word alignments, compared with pairs that were marked by hand and with the explorer."""

from dataclasses import replace
from pathlib import Path

import pytest

from sixfold import Translator, modelfile
from sixfold.alignment_heads import CARD_KEY, word_weights
from sixfold.engines.cpu import CpuEngine
from sixfold.evaluation.word_alignment import alignment_error_rate, read_annotated_pairs
from sixfold.explorer.explore import Explorer
from sixfold.explorer.views import view
from sixfold.translation.explain import TranslatedSentence, explain, group_into_words, piece_spans
from sixfold.translation.loading import shipped_models

MARKED = read_annotated_pairs(Path(__file__).with_name("alignments.tsv"))


@pytest.fixture(scope="module")
def shipped_translator():
    with Translator(device="cpu") as translator:
        yield translator


def in_directions(translator):
    """Yield each direction with its marked pairs and the tokens of their targets."""
    for languages in translator.directions:
        pairs = [pair for pair in MARKED if pair.languages == languages]
        direction = translator.direction(pairs[0].source, *languages)
        yield direction, pairs, [direction.encode_target(pair.target) for pair in pairs]


def by_details(translator):
    """Yield each pair with the links of `Translation.alignment`."""
    for direction, pairs, targets in in_directions(translator):
        sentences = [
            TranslatedSentence(pair.source, pair.target, ids) for pair, ids in zip(pairs, targets, strict=True)
        ]
        for pair, details in zip(pairs, explain(direction, sentences), strict=True):
            yield pair, pair.links((link.target, link.source) for link in details.alignment)


def by_mean_of_heads(translator):
    """Yield each pair with the links of the mean of all heads of the last layer, without tags and <eos>."""
    file = modelfile.load(shipped_models()[0])
    card = {name: value for name, value in file.card.items() if name != CARD_KEY}
    engine = CpuEngine(replace(file, card=card, checksum=""), threads=2)
    for direction, pairs, targets in in_directions(translator):
        encodings = [direction.tokenizer.encode_with_offsets(pair.source) for pair in pairs]
        attention = engine.align([direction.encoder_input(encoding.ids) for encoding in encodings], targets)
        for pair, encoding, ids, weights in zip(pairs, encodings, targets, attention, strict=True):
            sides = ((pair.target, piece_spans(direction.tokenizer, ids, pair.target)), (pair.source, encoding.offsets))
            target_words, source_words = (group_into_words(*side) for side in sides)
            spans = [
                [(spans[word[0]][0], spans[word[-1]][1]) for word in words]
                for words, (_, spans) in zip((target_words, source_words), sides, strict=True)
            ]
            best = word_weights(weights[:, len(direction.tag) : -1], target_words, source_words).argmax(axis=1)
            yield pair, pair.links(zip(spans[0], (spans[1][index] for index in best), strict=True))


def test_the_error_rate_is_at_least_five_points_below_that_of_the_mean_of_heads(shipped_translator):
    error = alignment_error_rate(by_details(shipped_translator))
    error_of_mean = alignment_error_rate(by_mean_of_heads(shipped_translator))
    assert error < 0.16
    assert error_of_mean - error >= 0.05


@pytest.mark.parametrize(
    "text", ["机器学习很有趣", "The animal didn't cross the street because it was too tired", "我忘了带雨伞。"]
)
def test_details_and_the_explorer_show_the_same_links_and_no_tags(shipped_translator, text):
    translation = shipped_translator.translate(text)
    explorer = Explorer(shipped_translator)
    table, _ = view("alignment", [explorer.explore(text, translation.text)]).tables
    explored = {(target, source): weight for target, source, weight in table.rows}
    links = [
        (translation.text[slice(*link.target)], text[slice(*link.source)], link.weight)
        for link in translation.alignment
    ]
    assert [target for target, _, _ in links] == [target for target, _, _ in table.rows]
    strong = [(target, source, weight) for target, source, weight in links if weight > 0.7]
    assert len(strong) >= len(links) // 2  # weaker links may differ between int8 and float32
    for target, source, weight in strong:
        assert explored[target, source] == pytest.approx(weight, abs=0.2)


def test_a_small_model_has_the_same_links_in_float32(translator):
    text = "我爱猫。"
    translation = translator.translate(text)
    table, _ = view("alignment", [Explorer(translator).explore(text, translation.text)]).tables
    assert [(translation.text[slice(*link.target)], text[slice(*link.source)]) for link in translation.alignment] == [
        (target, source) for target, source, _ in table.rows
    ]
