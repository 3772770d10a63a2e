import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from sixfold.decoding.search import beam_search
from sixfold.engines.cpu import CpuEngine
from sixfold.errors import RequestError
from sixfold.explorer.beam import free_run, search_tree
from sixfold.explorer.explore import explore
from sixfold.model.stepper import Stepper, translation_stepper
from sixfold.modelfile import Shortlist
from sixfold.translation.options import TranslateOptions
from sixfold.translation.translator import Translator

SENTENCES = ["我爱猫。", "你看狗书！", "I love mountains", "you watch water."]


@pytest.fixture(scope="module")
def trace(make_model):
    return explore("the black cat", "the dog", make_model()[0])


def search_with_torch(trace, model, beam, penalty):
    """Return the best hypothesis of `sixfold.decoding.search`."""
    options = TranslateOptions(beam=beam, length_penalty=penalty).search(39)
    if trace.source is not None:
        tokens = trace.source.ids
        stepper = translation_stepper(model, torch.tensor([tokens]), None, 40)
        start = trace.config.bos
    else:
        tokens = trace.target.ids
        options = replace(options, min_length=0, max_length=40 - len(tokens))
        stepper, start = Stepper(model, 40), tokens[-1]
        stepper.feed(torch.tensor([tokens[:-1]]))
    options = replace(options, max_length=options.max_target_length(len(tokens)))
    return beam_search(stepper, torch.tensor([start]), trace.config.eos, options)[0][0]


@pytest.mark.parametrize("kind", ["encoder-decoder", "decoder"])
@pytest.mark.parametrize(("beam", "penalty"), [(1, 1.0), (2, 0.0), (4, 1.0), (4, 2.0), (7, 0.5)])
def test_the_tree_finds_what_the_real_search_finds(make_model, kind, beam, penalty):
    for seed in range(6):
        file, model = make_model(seed, eos_bias=3.0, kind=kind, tie_output=False)
        trace = explore("the black cat", None if kind == "decoder" else "the dog", file)
        tree, expected = search_tree(trace, beam, penalty), search_with_torch(trace, model, beam, penalty)
        assert tree.best == expected.tokens
        assert tree.hypotheses[0].score == pytest.approx(expected.score, abs=1e-4)


@pytest.mark.parametrize("beam", [1, 3, 4])
def test_every_node_follows_from_its_parent(trace, beam):
    nodes = search_tree(trace, beam, 0.6).nodes
    assert nodes[0][:4] == (0, -1, 0, trace.config.bos)
    survivors, ranked = (
        Counter(node.step for node in nodes[1:] if node.fate in fates)
        for fates in (("kept",), ("kept", "pruned", "ended"))
    )
    assert max(survivors.values()) <= beam
    assert set(ranked.values()) == {2 * beam}
    for index, node in enumerate(nodes[1:], 1):
        parent = nodes[node.parent]
        assert (node.id, node.step) == (index, parent.step + 1)
        assert parent.fate == "kept"
        assert node.total == pytest.approx(parent.total + node.logprob)
        assert node.score == pytest.approx(node.total / node.step**0.6)


def test_the_path_of_the_best_hypothesis_is_marked(trace):
    tree = search_tree(trace)
    path = [node for node in tree.nodes if node.is_best]
    assert [node.parent for node in path[1:]] == [node.id for node in path[:-1]]
    assert path[-1].id == tree.hypotheses[0].node
    assert [node.token for node in path[1:] if node.token != trace.config.eos] == tree.best
    assert {node.fate for node in path[:-1]} == {"kept"}
    assert [hypothesis.score for hypothesis in tree.hypotheses] == sorted(
        (hypothesis.score for hypothesis in tree.hypotheses), reverse=True
    )
    assert {hypothesis.node for hypothesis in tree.hypotheses} == {
        node.id for node in tree.nodes if node.fate == "ended"
    }
    assert json.loads(json.dumps(tree.to_dict(), allow_nan=False))["nodes"][1]["parent"] == 0


def test_it_finds_what_the_translator_finds(trained_models):
    with Translator([trained_models["zh-en"], trained_models["en-zh"]], "cpu", 1) as translator:
        for text in SENTENCES:
            languages = ("zh", "en") if text[0] > "z" else ("en", "zh")
            tree = search_tree(explore(text, None, trained_models["-".join(languages)]))
            assert tree.hypotheses[0].text == translator.translate(text, *languages).text


def test_a_shortlist_shares_all_probability_among_its_pieces(make_model):
    file, _ = make_model(2, tie_output=False)
    vocab = file.config.model.vocab
    candidates = np.arange(270, vocab, 3, dtype=np.int32)
    shortlisted = replace(file, shortlist=Shortlist(candidates, np.zeros(vocab + 1, np.int32), np.empty(0, np.int32)))
    trace = explore("the black cat", "the dog", shortlisted)
    tree = search_tree(trace)
    assert tree.candidates == len(candidates) + 3
    assert {node.token for node in tree.nodes} <= {*candidates.tolist(), *(trace.config.unk, 1, 2)}
    (expected,) = CpuEngine(shortlisted, "float32", 1).decode([trace.source.ids], TranslateOptions().search(39))[0]
    assert tree.best == expected.tokens
    assert tree.hypotheses[0].score == pytest.approx(expected.score, abs=1e-3)
    assert search_tree(explore("the black cat", "the dog", file)).hypotheses[0].score < expected.score - 0.1


@pytest.mark.parametrize("kind", ["encoder-decoder", "decoder"])
def test_a_free_run_is_a_search_of_beam_one(make_model, kind):
    file, _ = make_model(3, kind=kind)
    trace = explore("the black cat", None if kind == "decoder" else "the dog", file)
    tree, steps = search_tree(trace, 1), free_run(trace, 4)
    path = [node for node in tree.nodes if node.is_best]
    assert [step.choices[0].id for step in steps] == [node.token for node in path[1:]]
    assert [step.probability for step in steps] == pytest.approx([np.exp(node.logprob) for node in path[1:]], rel=1e-4)
    assert all((step.rank, len(step.choices)) == (0, 4) for step in steps)
    assert [step.read for step in steps[1:]] == [step.wrote for step in steps[:-1]]


def test_a_free_run_over_its_own_translation_equals_teacher_forcing(trained_models):
    trace = explore(SENTENCES[0], None, trained_models["zh-en"])
    steps = trace.steps(1)
    free_steps = free_run(trace, 1)
    assert [(step.read, step.wrote) for step in free_steps] == [(step.read, step.wrote) for step in steps]
    assert [step.probability for step in free_steps] == pytest.approx([step.probability for step in steps], abs=1e-3)
    assert [step.entropy for step in free_steps] == pytest.approx([step.entropy for step in steps], abs=1e-2)


def test_what_cannot_be_searched_is_refused(trace, make_model):
    encoder_trace = explore("the cat", None, make_model(kind="encoder")[0])
    for call, message in (
        (lambda: search_tree(trace, 0), "beam: expected 1 to 16; got 0"),
        (lambda: search_tree(trace, 17), "beam: expected 1 to 16; got 17"),
        (lambda: search_tree(trace, 4, -1.0), "length_penalty: expected 0 to 10; got -1"),
        (lambda: search_tree(encoder_trace), "expected a model with a decoder; got one of the kind 'encoder'"),
        (lambda: free_run(encoder_trace), "expected a model with a decoder"),
    ):
        with pytest.raises(RequestError, match=message):
            call()
