"""`sixfold clean` as a user runs it."""

import gzip
import json

import pytest
from commands import complaint, sixfold

PAIRS = [
    ("机器学习很有趣。", "Machine learning is interesting."),
    ("", "nothing"),
    ("我爱机器学习。", "I love\tmachine learning."),
    ("机器学习很有趣。", "Machine learning is interesting."),
    ("好", "A sentence that says a great deal more than a single character ever could say."),
]


def clean(*arguments):
    return sixfold("clean", *arguments)


def report(*arguments):
    result = clean(*arguments, "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture
def files(tmp_path):
    for side, name in enumerate(("raw.zh", "raw.en")):
        (tmp_path / name).write_text("".join(pair[side] + "\n" for pair in PAIRS), encoding="utf-8")
    return tmp_path / "raw.zh", tmp_path / "raw.en"


def test_two_files_become_two_files(files, tmp_path):
    result = clean(*files, "--output", tmp_path / "train")
    assert (result.returncode, result.stdout) == (0, "")
    assert "5 pairs read, 2 kept (40.0%)" in result.stderr
    assert "raw.zh:2" in result.stderr
    assert (tmp_path / "train.zh").read_text(encoding="utf-8").splitlines() == [PAIRS[0][0], PAIRS[2][0]]
    assert (tmp_path / "train.en").read_text(encoding="utf-8").splitlines() == [PAIRS[0][1], PAIRS[2][1]]


def test_two_files_become_a_table(files, tmp_path):
    facts = report(*files, "--output", tmp_path / "train.tsv")
    assert facts["dropped"] | {"empty": 1, "duplicate": 1, "ratio": 1} == facts["dropped"]
    assert facts["read"] == facts["kept"] + sum(facts["dropped"].values())
    rows = (tmp_path / "train.tsv").read_text(encoding="utf-8").splitlines()
    assert rows[1].split("\t") == ["我爱机器学习。", "I love machine learning."]


def test_a_packed_table_becomes_two_files_named_by_script(tmp_path):
    (tmp_path / "raw.tsv.gz").write_bytes(gzip.compress("机器学习\tmachine learning\n".encode()))
    report(tmp_path / "raw.tsv.gz", "--output", tmp_path / "v1.0")
    assert (tmp_path / "v1.0.zh").read_text(encoding="utf-8") == "机器学习\n"
    assert (tmp_path / "v1.0.en").read_text(encoding="utf-8") == "machine learning\n"


def test_json_lines_are_read_by_the_languages_given(tmp_path):
    (tmp_path / "raw.jsonl").write_text('{"translation": {"de": "Hallo", "en": "Hello"}}\n')
    report(tmp_path / "raw.jsonl", "--output", tmp_path / "x", "--from", "de", "--to", "en")
    assert (tmp_path / "x.de").read_text() == "Hallo\n"


def test_sides_of_one_language_get_names_of_their_own(tmp_path):
    (tmp_path / "raw.tsv").write_text("He go home.\tHe goes home.\n")
    report(tmp_path / "raw.tsv", "--output", tmp_path / "x")
    assert (tmp_path / "x.src").read_text() == "He go home.\n"
    assert (tmp_path / "x.tgt").read_text() == "He goes home.\n"


def test_filters_can_be_left_off_and_limits_changed(files, tmp_path):
    assert (
        "ratio" not in report(*files, "--output", tmp_path / "x.tsv", "--skip", "ratio", "--skip", "empty")["dropped"]
    )
    assert report(*files, "--output", tmp_path / "x.tsv", "--set", "data.max_ratio=20")["dropped"]["ratio"] == 0
    assert report(*files, "--output", tmp_path / "x.tsv", "--set", "data.max_characters=40")["dropped"]["long"] == 1


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--skip", "ratios"], ["data.skip: expected names of filters", "did you mean 'ratio'?"]),
        (["--set", "data.max_ratios=3"], ["data.max_ratios: no such setting", "did you mean 'max_ratio'?"]),
        (["--set", "data.max_characters=3"], ["none of 5 pairs is left", "'long' dropped 4", "raw.zh:1", "data.skip"]),
    ],
)
def test_mistakes_are_one_line_and_write_nothing(more, words, files, tmp_path):
    message = complaint("clean", *files, "--output", tmp_path / "x", *more)
    assert all(word in message for word in words)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["raw.en", "raw.zh"]


def test_an_input_is_never_written_over(files, tmp_path):
    before = files[0].read_bytes()
    assert "expected a file other than the input" in complaint("clean", *files, "--output", tmp_path / "raw")
    (tmp_path / "raw.tsv").write_text("猫\tcat\n", encoding="utf-8")
    assert "expected a file other than" in complaint("clean", tmp_path / "raw.tsv", "--output", tmp_path / "raw.tsv")
    (tmp_path / "link.tsv").symlink_to(tmp_path / "raw.tsv")
    assert "expected a file other than" in complaint("clean", tmp_path / "raw.tsv", "--output", tmp_path / "link.tsv")
    assert files[0].read_bytes() == before


def test_sides_that_do_not_fit_leave_nothing_behind(files, tmp_path):
    files[0].write_text("猫\n", encoding="utf-8")
    message = complaint("clean", *files, "--output", tmp_path / "x")
    assert "raw.zh: expected as many lines as" in message
    assert "(5); got 1" in message
    assert sorted(path.name for path in tmp_path.iterdir()) == ["raw.en", "raw.zh"]


def test_files_that_are_missing_or_empty_are_named(files, tmp_path):
    (tmp_path / "empty.tsv").write_bytes(b"")
    assert "no.zh: No such file" in complaint("clean", tmp_path / "no.zh", files[1], "--output", tmp_path / "x")
    assert "expected pairs of text; it is empty" in complaint(
        "clean", tmp_path / "empty.tsv", "--output", tmp_path / "x"
    )
    assert "cannot write" in complaint("clean", *files, "--output", tmp_path / "none" / "x")
    assert "one file of pairs or two files of lines" in complaint("clean", *files, files[0], "--output", tmp_path / "x")
