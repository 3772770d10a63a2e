"""Pairs annotated by hand, and the error rate of links against them."""

import pytest

from sixfold.errors import DataError
from sixfold.evaluation.word_alignment import alignment_error_rate, read_annotated_pairs

LINES = "# a comment\nzh-en\t这{1}本{~1}书{2}好{3}\tThis{1} book{2} is{~3} good{3}\n"


@pytest.fixture
def annotated(tmp_path):
    (tmp_path / "marked.tsv").write_text(LINES, encoding="utf-8")
    (pair,) = read_annotated_pairs(tmp_path / "marked.tsv")
    return pair


def test_labels_become_links_between_spans(annotated):
    assert (annotated.languages, annotated.source, annotated.target) == (("zh", "en"), "这本书好", "This book is good")
    assert annotated.source_words == ((0, 1), (1, 2), (2, 3), (3, 4))
    assert annotated.target_words == ((0, 4), (5, 9), (10, 12), (13, 17))
    assert annotated.sure == {(0, 0), (1, 2), (3, 3)}
    assert annotated.possible == annotated.sure | {(0, 1), (2, 3)}


def test_a_link_between_spans_links_all_words_that_they_overlap(annotated):
    assert annotated.links([((0, 4), (0, 2)), ((13, 17), (3, 4))]) == {(0, 0), (0, 1), (3, 3)}


def test_the_error_rate_counts_misses_and_wrong_links_but_not_possible_ones(annotated):
    assert alignment_error_rate([(annotated, annotated.sure)]) == 0
    assert alignment_error_rate([(annotated, annotated.possible)]) == 0
    assert alignment_error_rate([(annotated, frozenset({(0, 0), (1, 2)}))]) == pytest.approx(1 - 4 / 5)
    assert alignment_error_rate([(annotated, frozenset({(0, 3), (1, 2), (2, 3)}))]) == pytest.approx(1 - 3 / 6)
    assert alignment_error_rate([(annotated, frozenset())]) == 1
    assert alignment_error_rate([]) == 0


@pytest.mark.parametrize("line", ["zh-en\t这{1}", "zhen\t这{1}\tThis{1}", "zh-en\t这{1}本\tThis{1}"])
def test_a_line_that_cannot_be_read_is_named(line, tmp_path):
    (tmp_path / "marked.tsv").write_text(f"# a comment\n{line}\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"marked\.tsv:2: expected"):
        read_annotated_pairs(tmp_path / "marked.tsv")
