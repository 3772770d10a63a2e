import json

import pytest
import sacrebleu
from small_systems import reworded, sentences

from sixfold.evaluation.comparison import compare, count_words
from sixfold.evaluation.metrics import metrics_for
from sixfold.evaluation.systems import TestSet
from sixfold.reports.comparison import comparison_page

REFERENCES, _ = sentences("en", seed=4, count=90)
SOURCES = [f"我们喝 {text}" if number % 3 else "茶" * (number + 1) for number, text in enumerate(REFERENCES)]
CORPORA = ["news" if number < 30 else "talks" for number in range(90)]
TEXTS = TestSet(SOURCES, REFERENCES, CORPORA, "en")
SAID = {"first": reworded(REFERENCES, 1), "second": reworded(REFERENCES, 2), "human": list(REFERENCES)}


@pytest.fixture(scope="module")
def found():
    return compare(TEXTS, SAID, metrics_for(REFERENCES, "en"), "first", samples=100)


def test_scores_are_those_of_the_whole_set(found):
    assert found.scores["second"]["BLEU"].value == pytest.approx(
        sacrebleu.corpus_bleu(SAID["second"], [REFERENCES]).score
    )
    assert found.scores["human"]["chrF"].value == pytest.approx(100)
    for scores in found.scores.values():
        for estimate in scores.values():
            assert estimate.low - 1e-9 <= estimate.value <= estimate.high + 1e-9


def test_only_the_baseline_is_compared_with_nothing(found):
    assert found.scores["first"]["BLEU"].p is None
    assert found.scores["human"]["BLEU"].p < 0.05 < found.scores["second"]["BLEU"].p
    gap = found.scores["human"]["TER"].value - found.scores["first"]["TER"].value
    assert found.scores["human"]["TER"].difference == pytest.approx(gap)


@pytest.mark.parametrize("kind", ["length", "script", "corpus"])
def test_every_sentence_is_in_one_bucket_of_each_kind(found, kind):
    assert sum(bucket.sentences for bucket in found.buckets[kind]) == 90


def test_a_bucket_is_scored_as_a_corpus_of_its_own(found):
    news = next(bucket for bucket in found.buckets["corpus"] if bucket.name == "news")
    expected = sacrebleu.corpus_bleu(SAID["first"][:30], [REFERENCES[:30]]).score
    assert news.scores["first"]["BLEU"] == pytest.approx(expected, abs=0.006)


def test_buckets_have_names_in_order(found):
    assert [bucket.name for bucket in found.buckets["length"]] == ["1–10", "11–20", "21–30", "31–50", "51 and more"]
    assert {bucket.name for bucket in found.buckets["script"]} == {"Han + Latin", "Han"}


def test_buckets_of_one_kind_only_are_left_out():
    texts = TestSet(["a b c"] * 90, REFERENCES, [""] * 90, "en")
    assert compare(texts, SAID, metrics_for(REFERENCES, "en"), "first", samples=40).buckets == {}


def test_the_worst_sentences_come_first_and_perfect_ones_not_at_all(found):
    chrf = [sentence.chrf["second"] for sentence in found.worst["second"]]
    everywhere = [sacrebleu.sentence_chrf(h, [r]).score for h, r in zip(SAID["second"], REFERENCES, strict=True)]
    assert chrf == pytest.approx(sorted(everywhere)[: len(chrf)], abs=0.006)
    assert all(sentence.chrf["human"] < 100 for sentence in found.worst["human"])


def test_sentences_are_named_by_their_line(found):
    sentence = found.improved["second"][0]
    assert (SOURCES[sentence.line - 1], SAID["second"][sentence.line - 1]) == (
        sentence.source,
        sentence.translations["second"],
    )


def test_improved_and_harmed_are_told_apart(found):
    gains = [each.chrf["second"] - each.chrf["first"] for each in found.improved["second"]]
    losses = [each.chrf["second"] - each.chrf["first"] for each in found.harmed["second"]]
    assert gains == sorted(gains, reverse=True)
    assert gains[-1] > 0
    assert losses == sorted(losses)
    assert losses[-1] < 0
    assert not any(each.line in [other.line for other in found.harmed["second"]] for each in found.improved["second"])


def test_it_is_told_what_is_counted():
    doing = []
    compare(TEXTS, SAID, metrics_for(REFERENCES, "en"), "first", 40, doing.append)
    assert doing[0] == "BLEU of first"
    assert len(doing) == 9


def test_a_word_of_chinese_is_a_character():
    assert count_words("我爱machine learning。") == 4
    assert count_words("") == 0


def test_everything_can_be_written_as_json(found):
    assert json.loads(json.dumps(found.to_dict()))["scores"]["human"]["chrF"]["value"] == pytest.approx(100)


def test_the_page_shows_every_system_measure_and_bucket(found):
    text = comparison_page("Comparison", found)
    for word in (*found.systems, *found.signatures.values(), "51 and more", "Han + Latin", "talks"):
        assert word in text
    assert text.count("<figure>") == 3 + 2 * 3


def test_the_page_of_one_system_compares_with_nobody():
    only = compare(TEXTS, {"first": SAID["first"]}, metrics_for(REFERENCES, "en"), "first", samples=40)
    text = comparison_page("Scores", only)
    assert "Most improved" not in text
    assert "Δ" not in text


def test_a_handful_of_sentences_proves_nothing():
    few = TestSet(SOURCES[:9], REFERENCES[:9], CORPORA[:9], "en")
    said = {system: translations[:9] for system, translations in SAID.items()}
    scores = compare(few, said, metrics_for(REFERENCES[:9], "en"), "first", samples=40).scores["human"]
    assert scores["BLEU"].difference > 0
    assert scores["BLEU"].p is None


def test_a_page_does_not_drown_in_a_line_without_end():
    texts = TestSet(["茶" * 100_000], ["tea " * 50_000], [""], "en")
    found = compare(
        texts, {"first": ["tea"]}, {"chrF": metrics_for(texts.references, "en")["chrF"]}, "first", samples=40
    )
    text = comparison_page("Comparison", found)
    assert "(100,000 characters)" in text
    assert len(text) < 30_000
