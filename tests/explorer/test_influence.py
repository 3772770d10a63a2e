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
def test_what_is_hidden_is_masked_everywhere(untaught, max_logits, monkeypatch):
    monkeypatch.setattr(module, "MAX_LOGITS", max_logits)
    trace = explore("the black cat", "the dog", untaught()[0])
    found = influence(trace)
    assert found.shape == (len(trace.predicted), len(trace.source))
    source, target = np.array([trace.source.ids]), np.array([trace.target.ids])
    for column in range(len(trace.source)):
        seen = np.arange(len(trace.source))[None] != column
        chances = forward(trace.model, source, target, seen)["probabilities"][0]
        for row, written in enumerate(trace.predicted.ids):
            fall = np.log(trace["probabilities"][row, written]) - np.log(chances[row, written])
            assert found[row, column] == pytest.approx(fall, abs=1e-4)


def test_a_word_hangs_on_the_word_that_it_translates(learned):
    right = count = 0
    for text in WORD_BY_WORD:
        trace = explore(text, None, learned["zh-en"])
        hangs = word_weights(influence(trace), trace.predicted.words, trace.source.words)
        gold = {word: place for place, word in enumerate(trace.source.word_texts)}
        for row, word in zip(hangs, trace.predicted.word_texts, strict=True):
            one = next((one for one, other in WORDS.items() if other == word), None)
            if one in gold:
                count += 1
                right += trace.source.word_texts[int(row.argmax())] == one
    assert count > 10
    assert right >= 0.9 * count


def test_a_head_that_looks_where_the_words_hang_comes_first(learned):
    trace = explore("我爱猫", None, learned["zh-en"])
    found = aligners(trace)
    assert {each.head for each in found} == {Head("cross", 0, head) for head in range(trace.config.heads)}
    assert [each.agreement for each in found] == sorted((each.agreement for each in found), reverse=True)
    # A head made to look at what the words hang on agrees with all of them, one that looks at <eos> goes by the rest.
    name, hangs = "decoder.layers.0.cross_attention.weights", influence(trace)
    hangs[:, [index in trace.tokenizer.reserved for index in trace.source.ids]] = -np.inf
    weights = np.zeros_like(trace[name])
    weights[1, np.arange(len(hangs)), hangs.argmax(axis=1)] = 0.4
    weights[1, :, -1] = 0.6
    made = aligners(replace(trace, arrays={**trace.arrays, name: weights}))
    assert made[0] == (Head("cross", 0, 1), 1.0, False)
    assert made[1].agreement < 1
    # Another head attends to the same a step later, when a piece is read.
    weights[0, 1:] = weights[1, :-1]
    weights[1] = 0
    assert aligners(replace(trace, arrays={**trace.arrays, name: weights}))[0] == (Head("cross", 0, 0), 1.0, True)


def test_the_heads_that_agree_best_with_influence_are_measured(untaught):
    file, _ = untaught(heads=4, decoder_layers=2, kv_heads=4)
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


def test_what_is_too_long_or_has_no_source_is_refused(untaught):
    with pytest.raises(RequestError, match="source: expected at most 96 pieces; got 1"):
        influence(explore("the dog " * 60, "the dog", untaught(max_length=400)[0]))
    with pytest.raises(RequestError, match="expected a model that translates; got one of the kind 'decoder'"):
        aligners(explore("the dog sat", None, untaught(kind="decoder")[0]))
