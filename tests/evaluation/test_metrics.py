import numpy as np
import pytest
import sacrebleu
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from small_systems import sentences

from sixfold.errors import DataError, RequestError
from sixfold.evaluation.metrics import comet, corpus_score, metrics_for


def sacrebleu_metrics(language):
    if language == "zh":
        return {"BLEU": BLEU(tokenize="zh"), "chrF": CHRF(), "TER": TER(normalized=True, asian_support=True)}
    return {"BLEU": BLEU(), "chrF": CHRF(), "TER": TER()}


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("count", [1, 3, 60])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_sums_of_counts_give_the_scores_of_sacrebleu(language, count, seed):
    references, hypotheses = sentences(language, seed, count)
    for name, metric in metrics_for(references, language).items():
        expected = sacrebleu_metrics(language)[name].corpus_score(hypotheses, [references])
        assert corpus_score(metric, metric.counts(hypotheses)) == pytest.approx(expected.score, abs=1e-9), name


@pytest.mark.parametrize("hypothesis", ["a x b y c z", "a b x y c z", "a b c x d e", "a b c", "a", "x", ""])
def test_orders_without_a_match_are_smoothed_as_in_sacrebleu(hypothesis):
    metric = metrics_for(["a b c d e f"], "en")["BLEU"]
    expected = sacrebleu.corpus_bleu([hypothesis], [["a b c d e f"]]).score
    assert corpus_score(metric, metric.counts([hypothesis])) == pytest.approx(expected)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_signatures_are_those_of_sacrebleu(language):
    references, hypotheses = sentences(language)
    for name, metric in metrics_for(references, language).items():
        expected = sacrebleu_metrics(language)[name]
        expected.corpus_score(hypotheses, [references])
        assert metric.signature == str(expected.get_signature())


def test_a_row_of_counts_is_a_sentence():
    references, hypotheses = sentences("en")
    metric = metrics_for(references, "en")["chrF"]
    expected = [sacrebleu.sentence_chrf(h, [r]).score for h, r in zip(hypotheses, references, strict=True)]
    assert metric.score(metric.counts(hypotheses)) == pytest.approx(expected)


def test_empty_hypotheses_have_the_worst_score():
    for name, metric in metrics_for(["one two", "three"], "en").items():
        assert corpus_score(metric, metric.counts(["", ""])) == (100 if name == "TER" else 0)


def test_edits_of_an_empty_reference_are_an_error_of_100():
    metric = metrics_for(["", ""], "en")["TER"]
    assert metric.score(np.array([[2.0, 0.0], [0.0, 0.0]])).tolist() == [100, 0]


def test_ter_is_left_out_where_words_cannot_be_counted():
    assert list(metrics_for(["ฉันรักแมว"], "th")) == ["BLEU", "chrF"]
    assert list(metrics_for(["猫が好き"], "ja")) == ["BLEU", "chrF", "TER"]


def test_comet_names_what_is_missing(tmp_path):
    with pytest.raises(DataError, match="there is no such file"):
        comet(tmp_path / "none.ckpt", ["a"], ["b"])
    (tmp_path / "some.ckpt").touch()
    with pytest.raises(RequestError, match="needs COMET") as caught:
        comet(tmp_path / "some.ckpt", ["a"], ["b"])
    assert caught.value.hint == "pip install unbabel-comet"
