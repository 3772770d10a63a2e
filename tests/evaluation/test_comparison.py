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
TRANSLATIONS = {"first": reworded(REFERENCES, 1), "second": reworded(REFERENCES, 2), "human": list(REFERENCES)}


@pytest.fixture(scope="module")
def comparison():
    return compare(TEXTS, TRANSLATIONS, metrics_for(REFERENCES, "en"), "first", samples=100)


def test_scores_are_those_of_the_complete_set(comparison):
    assert comparison.scores["second"]["BLEU"].value == pytest.approx(
        sacrebleu.corpus_bleu(TRANSLATIONS["second"], [REFERENCES]).score
    )
    assert comparison.scores["human"]["chrF"].value == pytest.approx(100)
    for scores in comparison.scores.values():
        for estimate in scores.values():
            assert estimate.low - 1e-9 <= estimate.value <= estimate.high + 1e-9


def test_only_the_baseline_has_no_difference(comparison):
    assert comparison.scores["first"]["BLEU"].p is None
    assert comparison.scores["human"]["BLEU"].p < 0.05 < comparison.scores["second"]["BLEU"].p
    gap = comparison.scores["human"]["TER"].value - comparison.scores["first"]["TER"].value
    assert comparison.scores["human"]["TER"].difference == pytest.approx(gap)


@pytest.mark.parametrize("kind", ["length", "script", "corpus"])
def test_every_sentence_is_in_one_bucket_of_each_kind(comparison, kind):
    assert sum(bucket.sentences for bucket in comparison.buckets[kind]) == 90


def test_a_bucket_is_scored_as_a_corpus_of_its_own(comparison):
    news = next(bucket for bucket in comparison.buckets["corpus"] if bucket.name == "news")
    expected = sacrebleu.corpus_bleu(TRANSLATIONS["first"][:30], [REFERENCES[:30]]).score
    assert news.scores["first"]["BLEU"] == pytest.approx(expected, abs=0.006)


def test_buckets_have_names_in_order(comparison):
    assert [bucket.name for bucket in comparison.buckets["length"]] == [
        "1–10",
        "11–20",
        "21–30",
        "31–50",
        "51 and more",
    ]
    assert {bucket.name for bucket in comparison.buckets["script"]} == {"Han + Latin", "Han"}


def test_buckets_of_one_kind_only_are_left_out():
    texts = TestSet(["a b c"] * 90, REFERENCES, [""] * 90, "en")
    assert compare(texts, TRANSLATIONS, metrics_for(REFERENCES, "en"), "first", samples=40).buckets == {}


def test_the_worst_sentences_come_first_and_perfect_ones_not_at_all(comparison):
    chrf = [sentence.chrf["second"] for sentence in comparison.worst["second"]]
    all_scores = [
        sacrebleu.sentence_chrf(h, [r]).score for h, r in zip(TRANSLATIONS["second"], REFERENCES, strict=True)
    ]
    assert chrf == pytest.approx(sorted(all_scores)[: len(chrf)], abs=0.006)
    assert all(sentence.chrf["human"] < 100 for sentence in comparison.worst["human"])


def test_sentences_are_named_by_their_line(comparison):
    sentence = comparison.improved["second"][0]
    assert (SOURCES[sentence.line - 1], TRANSLATIONS["second"][sentence.line - 1]) == (
        sentence.source,
        sentence.translations["second"],
    )


def test_improved_and_harmed_sentences_are_separate(comparison):
    gains = [sentence.chrf["second"] - sentence.chrf["first"] for sentence in comparison.improved["second"]]
    losses = [sentence.chrf["second"] - sentence.chrf["first"] for sentence in comparison.harmed["second"]]
    assert gains == sorted(gains, reverse=True)
    assert gains[-1] > 0
    assert losses == sorted(losses)
    assert losses[-1] < 0
    harmed_lines = {sentence.line for sentence in comparison.harmed["second"]}
    assert harmed_lines.isdisjoint(sentence.line for sentence in comparison.improved["second"])


def test_progress_names_each_count():
    activities = []
    compare(TEXTS, TRANSLATIONS, metrics_for(REFERENCES, "en"), "first", 40, activities.append)
    assert activities[0] == "BLEU of first"
    assert len(activities) == 9


def test_a_word_of_chinese_is_a_character():
    assert count_words("我爱machine learning。") == 4
    assert count_words("") == 0


def test_everything_can_be_written_as_json(comparison):
    assert json.loads(json.dumps(comparison.to_dict()))["scores"]["human"]["chrF"]["value"] == pytest.approx(100)


def test_the_page_shows_every_system_measure_and_bucket(comparison):
    text = comparison_page("Comparison", comparison)
    for word in (*comparison.systems, *comparison.signatures.values(), "51 and more", "Han + Latin", "talks"):
        assert word in text
    assert text.count("<figure>") == 3 + 2 * 3


def test_the_page_of_one_system_has_no_differences():
    only = compare(TEXTS, {"first": TRANSLATIONS["first"]}, metrics_for(REFERENCES, "en"), "first", samples=40)
    text = comparison_page("Scores", only)
    assert "Most improved" not in text
    assert "Δ" not in text


def test_few_sentences_have_no_p_value():
    test_set = TestSet(SOURCES[:9], REFERENCES[:9], CORPORA[:9], "en")
    first_nine = {system: translations[:9] for system, translations in TRANSLATIONS.items()}
    scores = compare(test_set, first_nine, metrics_for(REFERENCES[:9], "en"), "first", samples=40).scores["human"]
    assert scores["BLEU"].difference > 0
    assert scores["BLEU"].p is None


def test_a_page_shortens_a_very_long_line():
    texts = TestSet(["茶" * 100_000], ["tea " * 50_000], [""], "en")
    comparison = compare(
        texts, {"first": ["tea"]}, {"chrF": metrics_for(texts.references, "en")["chrF"]}, "first", samples=40
    )
    text = comparison_page("Comparison", comparison)
    assert "(100,000 characters)" in text
    assert len(text) < 30_000
