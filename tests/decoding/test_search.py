import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sixfold.decoding.constraints import ban, force_prefix, no_repeat
from sixfold.decoding.options import SamplingOptions, SearchOptions
from sixfold.decoding.sampling import sampler
from sixfold.decoding.search import beam_search, greedy, search_single_path
from sixfold.errors import ConfigError

EOS = 0
START = 1


class Table:
    """A stepper that is a lookup table: the logits depend on the sentence and on all tokens written so far."""

    def __init__(self, batch, vocab=4, seed=0, spread=1.5):
        self.vocab, self.seed, self.spread = vocab, seed, spread
        self.rows = [(sentence, ()) for sentence in range(batch)]

    def logits(self, sentence, prefix):
        key = hash((self.seed, sentence, prefix)) % 2**31
        return self.spread * torch.randn(self.vocab, generator=torch.Generator().manual_seed(key))

    def step(self, tokens):
        assert len(tokens) == len(self.rows)
        self.rows = [(s, (*prefix, t)) for (s, prefix), t in zip(self.rows, tokens.tolist(), strict=True)]
        return torch.stack([self.logits(*row) for row in self.rows])

    def reorder(self, rows):
        self.rows = [self.rows[row] for row in rows.tolist()]


def start(batch):
    return torch.full((batch,), START)


def score_of(table, sentence, tokens, options, ended=True):
    """Return the score of a target by its definition, token by token."""
    prefix, total = (START,), 0.0
    for step, token in enumerate([*tokens, *([EOS] if ended else [])]):
        logits = table.logits(sentence, prefix).clone()
        if step < options.min_length:
            logits[EOS] = -math.inf
        total += logits.log_softmax(-1)[token].item()
        prefix = (*prefix, token)
    return total / (len(tokens) + ended) ** options.length_penalty


def best_by_enumeration(table, sentence, options):
    words = [token for token in range(table.vocab) if token != EOS]
    scores = {}
    for length in range(options.min_length, options.max_length):
        for tokens in itertools.product(words, repeat=length):
            scores[tokens] = score_of(table, sentence, tokens, options)
    for tokens in itertools.product(words, repeat=options.max_length):
        scores[tokens] = score_of(table, sentence, tokens, options, ended=False)
    return sorted(scores.items(), key=lambda item: -item[1])


@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0, 2.0])
@pytest.mark.parametrize("min_length", [0, 1, 2])
def test_a_wide_beam_finds_the_best_of_all(length_penalty, min_length):
    options = SearchOptions(beam=90, n_best=5, length_penalty=length_penalty, min_length=min_length, max_length=4)
    results = beam_search(Table(3), start(3), EOS, options)
    for sentence in range(3):
        expected = best_by_enumeration(Table(3), sentence, options)[:5]
        assert [tuple(hypothesis.tokens) for hypothesis in results[sentence]] == [tokens for tokens, _ in expected]
        for hypothesis, (_, score) in zip(results[sentence], expected, strict=True):
            assert hypothesis.score == pytest.approx(score, abs=1e-5)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), batch=st.integers(1, 4), max_length=st.integers(1, 9))
def test_beam_one_is_greedy(seed, batch, max_length):
    options = SearchOptions(beam=1, max_length=max_length)
    simple = greedy(Table(batch, seed=seed), start(batch), EOS, options)
    beam = beam_search(Table(batch, seed=seed), start(batch), EOS, options)
    assert [[hypothesis.tokens] for hypothesis in simple] == [[h.tokens for h in each] for each in beam]
    for hypothesis, (reference,) in zip(simple, beam, strict=True):
        assert hypothesis.score == pytest.approx(reference.score, abs=1e-5)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), beam=st.integers(1, 5), length_penalty=st.sampled_from([0.0, 0.5, 1.0, 1.5]))
def test_a_batch_gives_what_each_sentence_gives_alone(seed, beam, length_penalty):
    options = SearchOptions(beam=beam, n_best=beam, max_length=7, length_penalty=length_penalty)
    batched = beam_search(Table(3, seed=seed), start(3), EOS, options)
    for sentence in range(3):
        single = Table(1, seed=seed)
        single.rows = [(sentence, ())]
        assert beam_search(single, start(1), EOS, options) == [batched[sentence]]


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**6), beam=st.integers(1, 4), n_best=st.integers(1, 4), length_penalty=st.floats(0.0, 2.0))
def test_an_early_finish_never_drops_a_better_hypothesis(seed, beam, n_best, length_penalty):
    n_best = min(n_best, beam)
    options = SearchOptions(beam=beam, n_best=n_best, max_length=8, length_penalty=length_penalty)
    # With this patience it always runs to the last step.
    patient = SearchOptions(beam=beam, n_best=n_best, max_length=8, length_penalty=length_penalty, patience=1e6)
    early = beam_search(Table(2, seed=seed), start(2), EOS, options)
    assert early == beam_search(Table(2, seed=seed), start(2), EOS, patient)


def test_an_early_finish_is_early():
    class Counting(Table):
        steps = 0

        def step(self, tokens):
            self.steps += 1
            logits = super().step(tokens)
            logits[:, EOS] += 6
            return logits

    stepper = Counting(2)
    beam_search(stepper, start(2), EOS, SearchOptions(beam=2, max_length=200))
    assert stepper.steps < 60


def test_scores_are_the_definition_and_best_comes_first():
    options = SearchOptions(beam=3, n_best=3, max_length=6)
    for sentence, each in enumerate(beam_search(Table(4), start(4), EOS, options)):
        assert [h.score for h in each] == sorted((h.score for h in each), reverse=True)
        for hypothesis in each:
            ended = len(hypothesis.logprobs) > len(hypothesis.tokens)
            expected = score_of(Table(4), sentence, hypothesis.tokens, options, ended)
            assert hypothesis.score == pytest.approx(expected, abs=1e-5)
            assert EOS not in hypothesis.tokens


@pytest.mark.parametrize("search", [greedy, beam_search])
def test_lengths_are_kept(search):
    options = SearchOptions(beam=2, min_length=3, max_length=5)
    results = search(Table(6, spread=0.1), start(6), EOS, options)
    for each in results:
        hypothesis = each[0] if search is beam_search else each
        assert 3 <= len(hypothesis.tokens) <= 5


@pytest.mark.parametrize("search", [greedy, beam_search])
def test_a_prefix_is_forced_and_free_of_charge(search):
    options = SearchOptions(beam=3, max_length=6)
    prefixes = [[2, 2, 3], [], [3]]
    results = search(Table(3), start(3), EOS, options, [force_prefix(prefixes)])
    for prefix, each in zip(prefixes, results, strict=True):
        hypothesis = each[0] if search is beam_search else each
        assert hypothesis.tokens[: len(prefix)] == prefix
        assert hypothesis.logprobs[: len(prefix)] == [0.0] * len(prefix)
        assert math.isfinite(hypothesis.score)


@pytest.mark.parametrize("search", [greedy, beam_search])
def test_banned_tokens_are_never_written(search):
    results = search(Table(5), start(5), EOS, SearchOptions(beam=2, max_length=8, min_length=8), [ban([2])])
    for each in results:
        assert 2 not in (each[0] if search is beam_search else each).tokens


@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_ngram_is_written_twice(size):
    options = SearchOptions(beam=3, max_length=9, min_length=3)
    for (hypothesis,) in beam_search(Table(5, vocab=9), start(5), EOS, options, [no_repeat(size)]):
        ngrams = [tuple(hypothesis.tokens[i : i + size]) for i in range(len(hypothesis.tokens) - size + 1)]
        assert len(ngrams) == len(set(ngrams))


def test_forbidden_hypotheses_never_fill_up_the_n_best():
    options = SearchOptions(beam=4, n_best=4, max_length=6)
    for each in beam_search(Table(5), start(5), EOS, options, [ban([2, 3])]):
        assert all(set(hypothesis.tokens) == {1} and math.isfinite(hypothesis.score) for hypothesis in each)


def test_forbidding_everything_is_no_crash():
    (first,), (second,) = beam_search(Table(2), start(2), EOS, SearchOptions(), [ban(range(4))])
    assert first.tokens == second.tokens == []
    assert first.score == -math.inf
    # When each token was written once, only <eos> is left, which min_length forbids, too.
    options = SearchOptions(beam=2, min_length=9, max_length=9)
    assert len(beam_search(Table(2), start(2), EOS, options, [no_repeat(1)])) == 2
    assert len(greedy(Table(2), start(2), EOS, options, [no_repeat(1)])) == 2
    choose = sampler(SamplingOptions())
    sampled = search_single_path(Table(2), start(2), EOS, choose, options, [no_repeat(1)])
    assert [hypothesis.score for hypothesis in sampled] == [-math.inf] * 2


def test_an_ensemble_is_a_stepper_too():
    class Mean:
        def __init__(self, *members):
            self.members = members

        def step(self, tokens):
            return torch.stack([member.step(tokens).log_softmax(-1) for member in self.members]).mean(0)

        def reorder(self, rows):
            for member in self.members:
                member.reorder(rows)

    twice = beam_search(Mean(Table(2), Table(2)), start(2), EOS, SearchOptions(max_length=6))
    once = beam_search(Table(2), start(2), EOS, SearchOptions(max_length=6))
    assert [[h.tokens for h in each] for each in twice] == [[h.tokens for h in each] for each in once]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SearchOptions(beam=0), r"decoding\.beam: expected 1 to 1000; got 0"),
        (lambda: SearchOptions(beam=2, n_best=3), r"decoding\.n_best: expected at most beam = 2; got 3"),
        (lambda: SearchOptions(min_length=9, max_length=3), r"decoding\.min_length: expected 0 to max_length = 3"),
        (lambda: SearchOptions(patience=-1.0), r"decoding\.patience: expected 0 or more; got -1\.0"),
        (lambda: SamplingOptions(temperature=-1.0), r"sampling\.temperature: expected 0 or more; got -1"),
        (lambda: SamplingOptions(top_p=0.0), r"sampling\.top_p: expected above 0, at most 1; got 0\.0"),
        (lambda: SamplingOptions(min_p=1.5), r"sampling\.min_p: expected from 0 to 1; got 1\.5"),
        (lambda: SamplingOptions(repetition_penalty=0.0), r"sampling\.repetition_penalty: expected above 0"),
        (lambda: SamplingOptions(seed=-1), r"sampling\.seed: expected 0 or more; got -1"),
        (lambda: SamplingOptions(temperature=math.nan), r"sampling\.temperature: expected a finite number; got nan"),
        (lambda: SamplingOptions(top_k=-1), r"sampling\.top_k"),
    ],
)
def test_impossible_options_are_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()
