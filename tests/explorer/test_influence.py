from dataclasses import replace

import numpy as np
import pytest
from small_translators import WORDS

from sixfold.alignment_heads import AligningHeads, aligning_heads, word_weights
from sixfold.errors import RequestError
from sixfold.explorer import influence as module
from sixfold.explorer.explore import explore
from sixfold.explorer.forward import forward
from sixfold.explorer.heads import Head
from sixfold.explorer.influence import aligners, influence, measure_aligning_heads

WORD_BY_WORD = ["我爱猫", "你看狗。", "书爱花！", "我看山水", "猫爱我", "花狗你"]


@pytest.mark.parametrize("max_logits", [module.MAX_LOGITS, 1])
def test_a_hidden_piece_is_masked_everywhere(make_model, max_logits, monkeypatch):
    monkeypatch.setattr(module, "MAX_LOGITS", max_logits)
    trace = explore("the black cat", "the dog", make_model()[0])
    matrix = influence(trace)
    assert matrix.shape == (len(trace.predicted), len(trace.source))
    source, target = np.array([trace.source.ids]), np.array([trace.target.ids])
    for column in range(len(trace.source)):
        padding = np.arange(len(trace.source))[None] != column
        probabilities = forward(trace.model, source, target, padding)["probabilities"][0]
        for row, token in enumerate(trace.predicted.ids):
            decrease = np.log(trace["probabilities"][row, token]) - np.log(probabilities[row, token])
            assert matrix[row, column] == pytest.approx(decrease, abs=1e-4)


def test_a_word_depends_on_the_word_that_it_translates(trained_models):
    matches = count = 0
    for text in WORD_BY_WORD:
        trace = explore(text, None, trained_models["zh-en"])
        influences = word_weights(influence(trace), trace.predicted.words, trace.source.words)
        positions = {word: index for index, word in enumerate(trace.source.word_texts)}
        for row, word in zip(influences, trace.predicted.word_texts, strict=True):
            origin = next((source for source, target in WORDS.items() if target == word), None)
            if origin in positions:
                count += 1
                matches += trace.source.word_texts[int(row.argmax())] == origin
    assert count > 10
    assert matches >= 0.9 * count


def test_a_head_that_looks_at_the_most_influential_pieces_comes_first(trained_models):
    trace = explore("我爱猫", None, trained_models["zh-en"])
    ranked = aligners(trace)
    assert {aligner.head for aligner in ranked} == {Head("cross", 0, head) for head in range(trace.config.heads)}
    assert [aligner.agreement for aligner in ranked] == sorted((aligner.agreement for aligner in ranked), reverse=True)
    # A head made to look at the most influential pieces agrees with all of them; its weight on <eos> does not count.
    name, influences = "decoder.layers.0.cross_attention.weights", influence(trace)
    influences[:, [index in trace.tokenizer.reserved for index in trace.source.ids]] = -np.inf
    weights = np.zeros_like(trace[name])
    weights[1, np.arange(len(influences)), influences.argmax(axis=1)] = 0.4
    weights[1, :, -1] = 0.6
    ranked = aligners(replace(trace, arrays={**trace.arrays, name: weights}))
    assert ranked[0] == (Head("cross", 0, 1), 1.0, False)
    assert ranked[1].agreement < 1
    # Another head attends to the same a step later, when a piece is read.
    weights[0, 1:] = weights[1, :-1]
    weights[1] = 0
    assert aligners(replace(trace, arrays={**trace.arrays, name: weights}))[0] == (Head("cross", 0, 0), 1.0, True)


def test_the_heads_that_agree_best_with_influence_are_measured(make_model):
    file, _ = make_model(heads=4, decoder_layers=2, kv_heads=4)
    pairs = [("the black cat", "the black cat"), ("the dog sat", "the dog"), ("", "the dog")]
    chosen = measure_aligning_heads(file, pairs)

    def agreement(heads):
        hits = total = 0
        for pair in pairs[:2]:
            trace = explore(*pair, file)
            first = len(trace.source) - 1 - len(trace.alignment()[2])
            origins = influence(trace)[:-1, first:-1].argmax(axis=1)
            hits += (trace.alignment(heads)[0].argmax(axis=1) == origins).sum()
            total += len(origins)
        return hits / total

    singles = [AligningHeads(layer, (head,), reads) for layer in (0, 1) for head in range(4) for reads in (False, True)]
    assert agreement(chosen) >= max(map(agreement, [*singles, aligning_heads({}, file.config.model)]))
    with pytest.raises(RequestError, match="pairs: expected sentences of at most 96 pieces; got none"):
        measure_aligning_heads(file, [("", "the dog")])


def test_a_long_source_and_a_model_without_source_are_refused(make_model):
    with pytest.raises(RequestError, match="source: expected at most 96 pieces; got 1"):
        influence(explore("the dog " * 60, "the dog", make_model(max_length=400)[0]))
    with pytest.raises(RequestError, match="expected a model that translates; got one of the kind 'decoder'"):
        aligners(explore("the dog sat", None, make_model(kind="decoder")[0]))
