import sys

import pytest
import sacrebleu
from sacremoses import MosesTokenizer

from sixfold.errors import RequestError
from sixfold.evaluation.scores import score, tokenized_lowercase_bleu

HYPOTHESES = ["The cat sat on a mat, quietly.", "It's raining again in London today!"]
REFERENCES = ["The cat sat on the mat, quietly.", "It is raining again in London today."]


def test_scores_are_those_of_sacrebleu():
    scores = score(HYPOTHESES, REFERENCES, "en")
    assert scores.bleu == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
    assert scores.chrf == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert 0 < scores.bleu < scores.chrf < 100


def test_signatures_say_how_to_repeat_the_scores():
    scores = score(HYPOTHESES, REFERENCES, "de")
    version = sacrebleu.__version__
    assert scores.signature == f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{version}"
    assert scores.chrf_signature == f"nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:{version}"


@pytest.mark.parametrize(
    ("language", "tokenizer"),
    [("zh", "zh"), ("zh-Hant", "zh"), ("ja", "char"), ("th", "char"), ("lo", "char"), ("km", "char"), ("my", "char")],
)
def test_languages_without_spaces_are_scored_by_character(language, tokenizer):
    hypotheses, references = ["我喜欢在早上喝 green tea。"], ["我喜欢在晚上喝 green tea。"]
    scores = score(hypotheses, references, language)
    assert scores.bleu == sacrebleu.corpus_bleu(hypotheses, [references], tokenize=tokenizer).score
    assert scores.bleu > 2 * score(hypotheses, references, "en").bleu
    assert f"|tok:{tokenizer}|" in scores.signature


@pytest.mark.parametrize("language", ["en", "zh", "ja"])
def test_the_reference_itself_scores_100(language):
    scores = score(REFERENCES, REFERENCES, language)
    assert (scores.bleu, scores.chrf) == pytest.approx((100, 100))


def test_empty_hypotheses_score_zero():
    scores = score(["", ""], REFERENCES, "zh")
    assert (scores.bleu, scores.chrf) == (0, 0)
    assert tokenized_lowercase_bleu(["", ""], REFERENCES, "en") == 0


@pytest.mark.parametrize("hypotheses", [[], ["one"]])
@pytest.mark.parametrize("scorer", [score, tokenized_lowercase_bleu])
def test_every_reference_needs_its_hypothesis(scorer, hypotheses):
    with pytest.raises(AssertionError):
        scorer(hypotheses, REFERENCES, "en")


def test_tokenised_bleu_ignores_case_and_the_shape_of_quotes():
    hypothesis, reference = "EIN „Hund“ läuft, und zwar schnell.", 'ein "hund" läuft , und zwar schnell .'
    assert tokenized_lowercase_bleu([hypothesis], [reference], "de") == pytest.approx(100)


def test_tokenised_bleu_is_sacrebleu_over_moses_tokens():
    def prepare(texts):
        return [MosesTokenizer("en").tokenize(text.lower(), escape=False, return_str=True) for text in texts]

    expected = sacrebleu.corpus_bleu(prepare(HYPOTHESES), [prepare(REFERENCES)], tokenize="none", force=True).score
    assert tokenized_lowercase_bleu(HYPOTHESES, REFERENCES, "en") == expected


def test_tokenised_bleu_is_not_smoothed():
    assert tokenized_lowercase_bleu(["one two three five"], ["one two three four"], "en") == 0


def test_without_sacremoses_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    with pytest.raises(RequestError, match="needs sacremoses") as caught:
        tokenized_lowercase_bleu(HYPOTHESES, REFERENCES, "en")
    assert caught.value.hint == "pip install sacremoses"
