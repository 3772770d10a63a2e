import logging

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest
from small_systems import reworded, sentences

from sixfold.evaluation import significance
from sixfold.evaluation.metrics import corpus_score, metrics_for
from sixfold.evaluation.significance import confidence_interval, p_value, resample_scores, resamples

SAMPLES = 300
REFERENCES, _ = sentences("en", seed=3, count=120)
FIRST, OTHER = reworded(REFERENCES, 1), reworded(REFERENCES, 2)
# Every eighth sentence is the reference itself.
BETTER = [ref if number % 8 == 0 else hyp for number, (ref, hyp) in enumerate(zip(REFERENCES, FIRST, strict=True))]


def resample(*systems):
    metrics = metrics_for(REFERENCES, "en")
    counts = {
        str(number): {name: metric.counts(hypotheses) for name, metric in metrics.items()}
        for number, hypotheses in enumerate(systems)
    }
    return metrics, counts, resample_scores(counts, metrics, SAMPLES)


def system_p_value(name, metrics, counts, scores, system="1"):
    difference = corpus_score(metrics[name], counts[system][name]) - corpus_score(metrics[name], counts["0"][name])
    return p_value(scores[system][name], scores["0"][name], difference)


@pytest.fixture(scope="module")
def sacrebleu_results():
    logging.getLogger("sacrebleu").setLevel(logging.ERROR)
    metrics = {"BLEU": BLEU(), "chrF": CHRF(), "TER": TER()}
    systems = [("0", FIRST), ("1", BETTER), ("2", OTHER)]
    return PairedTest(systems, metrics, [REFERENCES], test_type="bs", n_samples=SAMPLES)()[1]


@pytest.mark.parametrize(("name", "their_name"), [("BLEU", "BLEU"), ("chrF", "chrF2"), ("TER", "TER")])
def test_intervals_and_p_values_are_those_of_sacrebleu(sacrebleu_results, name, their_name):
    metrics, counts, scores = resample(FIRST, BETTER, OTHER)
    for system in ("0", "1", "2"):
        expected = sacrebleu_results[their_name][int(system)]
        low, high = confidence_interval(scores[system][name])
        assert (high - low) / 2 == pytest.approx(expected.ci, abs=1e-3)
        assert scores[system][name].mean() == pytest.approx(expected.mean, abs=1e-3)
        if system != "0":
            # sacreBLEU sums in float32, so a resample at the limit may fall to either side.
            assert system_p_value(name, metrics, counts, scores, system) == pytest.approx(
                expected.p_value, abs=2 / SAMPLES
            )
    assert sacrebleu_results[their_name][1].p_value < 0.05 < sacrebleu_results[their_name][2].p_value


@pytest.mark.parametrize("name", ["BLEU", "chrF", "TER"])
def test_a_system_does_not_differ_from_itself(name):
    metrics, counts, scores = resample(FIRST, list(FIRST))
    assert system_p_value(name, metrics, counts, scores) == 1


def test_chance_alone_is_rarely_significant():
    """Two systems err equally often, on different sentences: about one test in twenty may find a difference."""
    random = np.random.default_rng(5)
    p_values = []
    for _ in range(40):
        correct = random.integers(0, 2, (2, 200))
        gap = (correct[0].mean() - correct[1].mean()) * 100
        scores = [100 * np.concatenate([counts @ system for counts in resamples(200, 200)]) / 200 for system in correct]
        p_values.append(p_value(scores[0], scores[1], gap))
    assert np.mean(np.array(p_values) < 0.01) <= 0.1
    assert max(p_values) > 0.3


def test_resamples_do_not_depend_on_how_many_are_drawn_at_once(monkeypatch):
    expected = np.concatenate(list(resamples(50, 30)))
    monkeypatch.setattr(significance, "MAX_DRAWS", 120)
    parts = list(resamples(50, 30))
    assert len(parts) == 15
    assert (np.concatenate(parts) == expected).all()
    assert (expected.sum(axis=1) == 50).all()


def test_the_interval_contains_95_percent():
    low, high = confidence_interval(np.arange(1000.0))
    assert (low, high) == (25, 974)


def test_one_sentence_has_no_spread():
    metrics = metrics_for(["one two three four"], "en")
    counts = {"a": {name: metric.counts(["one two three five"]) for name, metric in metrics.items()}}
    for scores in resample_scores(counts, metrics, 40)["a"].values():
        assert scores.std() < 1e-9
