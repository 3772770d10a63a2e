"""Three hundred hard cases of sentence splitting, marked by hand without using any splitter."""

from pathlib import Path

from sixfold.text.sentences import split_sentences

ROWS = [line.split("\t") for line in Path(__file__).with_name("hard_sentences.tsv").read_text("utf-8").splitlines()]


def share_correct(language):
    """Return the share of cases that are split as marked, without regard to white space at the end of a part."""
    cases = [text.split("‖") for code, text in ROWS if code == language]
    results = [[sentence.text for sentence in split_sentences("".join(parts)).sentences] for parts in cases]
    return sum(result == [part.strip() for part in parts] for result, parts in zip(results, cases, strict=True)) / len(
        cases
    )


def test_nine_of_ten_hard_cases_are_split_as_an_editor_would():
    assert len(ROWS) == len({text for _, text in ROWS}) == 300
    assert share_correct("en") >= 0.9
    assert share_correct("zh") >= 0.89
