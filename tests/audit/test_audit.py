"""Faults that were planted are found on their lines, good pairs are left alone, and clean drops the faulty lines."""

import json
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_pairs import pairs

from sixfold.audit import audit as audit_module
from sixfold.audit import near_duplicates
from sixfold.audit.audit import Sample, audit_corpus
from sixfold.audit.findings import KINDS, faulty_lines
from sixfold.audit.leaks import HeldOut
from sixfold.audit.text_arrays import TextArrays
from sixfold.config import DataConfig
from sixfold.data.cleaning import FILTERS
from sixfold.data.corpus import Corpus, Pair
from sixfold.errors import ConfigError, DataError
from sixfold.text.encodings import is_mojibake
from sixfold.text.numbers import numbers_differ

LANGUAGES = ("zh", "en")
SHARE = 60  # faults of each kind among 4,000 pairs


def corpus_of(folder, rows):
    path = folder / "pairs.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in rows), encoding="utf-8", newline="\n")
    return Corpus("pairs", (path,))


def audit(folder, rows, held_out=None):
    return audit_corpus(corpus_of(folder, rows), LANGUAGES, DataConfig(), held_out, lambda size: None)


# What is done to a good pair, what it must be found as, and the least recall.
FAULTS = {
    "swapped": (lambda source, target: (target, source), ("swapped",), 1.0),
    "truncated": (
        lambda source, target: (source, target[: len(target) // 4]),
        ("lopsided", "misaligned", "ratio"),
        0.8,
    ),
    "copied": (lambda source, target: (source, source), ("script", "copied"), 1.0),
    "untranslated": (lambda source, target: ("so " + target, target), ("script", "untranslated"), 1.0),
    "mojibake": (lambda source, target: (source.encode().decode("latin-1"), target), ("mojibake",), 1.0),
    "replacement": (lambda source, target: (source, "\ufffd" + target), ("encoding",), 1.0),
    "number": (lambda source, target: (source + "35", target + " 78"), ("numbers",), 1.0),
    "markup": (lambda source, target: (source, f"<p>{target}</p>"), ("markup",), 1.0),
    "control": (lambda source, target: (source + "\x08", target), ("control",), 1.0),
    "empty": (lambda source, target: (source, ""), ("empty",), 1.0),
    "duplicate": (None, ("duplicate",), 1.0),
    "near-duplicate": (None, ("near-duplicate",), 0.8),
    "shuffled": (None, ("misaligned",), 0.8),
    "leaked": (None, ("leaked",), 1.0),
}


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """An audit of pairs with faults, and the lines of each fault."""
    folder = tmp_path_factory.mktemp("planted")
    rows = pairs(4000)
    order = random.Random(1).sample(range(2000, 4000), 2000)
    at = {fault: [order.pop() for _ in range(SHARE)] for fault in FAULTS}
    good = list(rows)
    for fault, (make, _, _) in FAULTS.items():
        for index, row in enumerate(at[fault]):
            if fault == "shuffled":
                rows[row] = (good[row][0], good[at[fault][index - 1]][1])
            elif fault.endswith("duplicate"):
                rows[row] = (
                    good[index]
                    if fault == "duplicate"
                    else (good[100 + index][0] + "！", good[100 + index][1] + " bab")
                )
            elif make is not None:
                rows[row] = make(*good[row])
    test = folder / "test.en"
    test.write_text("".join(good[row][1].upper() + "!\n" for row in at["leaked"]), encoding="utf-8")
    report = audit(folder, rows, HeldOut.of([test], LANGUAGES))
    return report, {fault: {row + 1 for row in chosen} for fault, chosen in at.items()}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(planted, fault):
    report, at = planted
    _, kinds, recall = FAULTS[fault]
    flagged = {line for kind in kinds for line in report.findings[kind].lines}
    assert len(flagged & at[fault]) >= recall * SHARE


def test_good_pairs_are_left_alone(planted):
    report, at = planted
    faulty = set().union(*at.values())
    for finding in report.findings.values():
        assert len(set(finding.lines) - faulty) <= 20  # half a percent
    assert report.alignment["area"] > 0.97


@pytest.mark.parametrize("share", [0.0, 0.2, 0.4])
def test_shuffled_pairs_are_found_and_counted_in_the_summary(tmp_path, share):
    rows = pairs(4000)
    shuffled_rows = random.Random(1).sample(range(4000), int(share * 4000))
    shuffled = list(rows)
    for index, row in enumerate(shuffled_rows):
        shuffled[row] = (rows[row][0], rows[shuffled_rows[index - 1]][1])
    report = audit(tmp_path, shuffled)
    flagged = {line - 1 for line in report.findings["misaligned"].lines}
    assert len(flagged - set(shuffled_rows)) <= 0.05 * (4000 - len(shuffled_rows))
    assert len(flagged & set(shuffled_rows)) >= 0.7 * len(shuffled_rows)
    assert report.alignment["trusted"]
    assert report.alignment["unrelated"] == pytest.approx(share, abs=0.03)
    if shuffled_rows:
        assert f"{len(flagged):,} of them as misaligned" in report.lines()[0]


def test_every_finding_says_where_and_why(planted):
    report, at = planted
    for name, finding in report.findings.items():
        assert len(finding.lines) == len(finding.scores) == len(finding.notes)
        assert finding.lines == sorted(set(finding.lines))
        assert len(finding.examples) == min(3, len(finding.lines)), name
    assert all(example.startswith("pairs.tsv:") for example in report.findings["mojibake"].examples)
    assert set(report.findings["leaked"].notes) == {f"test.en:{line}" for line in range(1, SHARE + 1)}
    assert set(report.findings["numbers"].notes) == {"35 / 78"}
    like = dict(zip(report.findings["near-duplicate"].lines, report.findings["near-duplicate"].notes, strict=True))
    assert {like[line] for line in at["near-duplicate"] & like.keys()} <= {f"line {101 + row}" for row in range(SHARE)}


def test_the_report_is_plain_json_that_counts_every_pair_once(planted):
    report, _ = planted
    facts = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert [fact["name"] for fact in facts["findings"]] == list(KINDS)
    assert facts["condemned"] == len({line for fact in facts["findings"] for line in fact["lines"]})
    for name, histogram in facts["histograms"].items():
        assert len(histogram["edges"]) == len(histogram["counts"]) + 1
        if "alignment" not in name:
            assert sum(histogram["counts"]) == facts["pairs"] == 4000
    assert 1200 < facts["words"] < 2000  # 800 characters, 400 words, and what the faults left of them


def test_a_corpus_whose_sides_are_swapped_is_reported(tmp_path):
    report = audit(tmp_path, [(target, source) for source, target in pairs(50)])
    assert len(report.findings["swapped"].lines) == 50
    assert any("swapped" in remark for remark in report.remarks())


def test_both_kinds_of_chinese_are_noticed(tmp_path):
    report = audit(tmp_path, [("这个国家", "this country"), ("這個國家", "that country")] * 3)
    assert any("50.0% simplified, 50.0% traditional" in remark for remark in report.remarks())


def test_few_pairs_are_not_judged_by_their_words(tmp_path):
    report = audit(tmp_path, [*pairs(50), ("你好", "something else entirely")])
    assert report.findings["misaligned"].lines == []
    assert any("too few pairs" in remark for remark in report.remarks())


def test_a_first_pair_that_is_dropped_does_not_take_its_double_along(tmp_path):
    source, target = pairs(1)[0]
    report = audit(tmp_path, [(source, f"<p>{target}</p>"), (source, target), (source, target + " !")])
    assert report.findings["markup"].lines == [1]
    assert report.findings["near-duplicate"].lines == [3]


def test_two_translations_of_one_sentence_are_no_duplicates(tmp_path):
    (source, target), (other_source, other_target) = pairs(2)
    report = audit(tmp_path, [(source, target), (source, other_target), (other_source, target)])
    assert report.findings["near-duplicate"].lines == []


def test_a_sample_comes_from_all_over_the_corpus(monkeypatch):
    monkeypatch.setattr(audit_module, "SAMPLE_PAIRS", 100)
    sample = Sample.of(Pair(line, "a", "b") for line in range(1, 1001))
    assert sample.stride == 16
    assert [pair.line for pair in sample.pairs] == list(range(1, 1001, 16))


def test_an_audit_does_not_depend_on_its_chunks(tmp_path, monkeypatch):
    rows = [*pairs(300), *pairs(10), ("你好", "")]
    expected = audit(tmp_path, rows).to_dict()
    monkeypatch.setattr(audit_module, "PAIRS_PER_CHUNK", 7)
    assert audit(tmp_path, rows).to_dict() == expected


DAMAGED = [
    "cafÃ©",
    "itâ€™s",
    "Â£5",
    "CafÃƒÂ©",
    "你好，世界".encode().decode("latin-1"),
    "Привет".encode().decode("cp1252", "ignore"),
    "你好世界".encode("gb2312").decode("latin-1"),
    "你好，这是中文。".encode().decode("gb18030", "replace"),
    "锟斤拷",
]
SOUND = [
    "café",
    "« voilà\u00a0»",
    "«\u00a0café\u00a0»",
    "NÃO",
    "它是",
    "½ × ¼",
    "ÄÖÜ äöü ß",
    "°°°°",
    "naïve—“quoted”",
    "鏄",
    "",
]


@pytest.mark.parametrize("text", DAMAGED)
def test_text_decoded_with_the_wrong_encoding_is_recognised(text):
    assert is_mojibake(text)


@pytest.mark.parametrize("text", SOUND)
def test_sound_text_is_not_taken_for_damaged(text):
    assert not is_mojibake(text)


DIFFERENT = [("共 35 人", "78 people"), ("３５ 人，９ 天", "35 people, 8 days"), ("1.5 亿", "160 million")]
EQUAL = [
    ("1.5 亿人", "150 million people"),
    ("3万", "30,000"),
    ("1,234.5", "1.234,5"),
    ("2019年3月5日", "March 5, 2019"),
    ("三十五人", "35 people"),
    ("２０世纪", "20th century"),
    ("3月11号", "11 March"),
    ("2、开始", "Begin"),
    ("1 000 人", "1,000 people"),
    ("2024-01-05", "05/01/2024"),
    ("没有数字", "no figures"),
    ("007", "7"),
]


@pytest.mark.parametrize(("source", "target"), DIFFERENT)
def test_numbers_that_differ_are_found(source, target):
    assert numbers_differ(source, target)


@pytest.mark.parametrize(("source", "target"), EQUAL)
def test_numbers_written_in_another_way_are_the_same(source, target):
    assert numbers_differ(source, target) == ""


def test_texts_that_differ_in_case_digits_punctuation_or_spaces_are_alike():
    texts = ["Hello, World 12!", "hello world   99", "HELLO WORLD 34.", "hello word 12"]
    signatures = near_duplicates.signatures(TextArrays.of(texts))
    assert near_duplicates.similarity(signatures[0], signatures[1:]).round(1).tolist() == [1.0, 1.0, 0.0]


def test_similarity_estimates_the_share_of_common_shingles():
    chance = random.Random(1)
    errors = []
    for _ in range(100):
        letters = [chr(chance.randrange(0x4E00, 0x9000)) for _ in range(200)]
        cut = chance.randrange(0, 200)
        texts = "".join(letters), "".join(letters[:cut]) + "".join(reversed(letters[cut:]))
        sets = [
            {
                text[at : at + near_duplicates.SHINGLE_LETTERS]
                for at in range(len(text) - near_duplicates.SHINGLE_LETTERS + 1)
            }
            for text in texts
        ]
        estimate = near_duplicates.similarity(*near_duplicates.signatures(TextArrays.of(texts)))
        errors.append(estimate - len(sets[0] & sets[1]) / len(sets[0] | sets[1]))
    assert abs(np.mean(errors)) < 0.03
    assert np.std(errors) < 0.15


@given(st.lists(st.text(alphabet="ab 1。你", max_size=12), max_size=12))
def test_every_text_finds_itself_and_nothing_earlier_is_later(texts):
    lines = TextArrays.of(texts)
    signatures = near_duplicates.signatures(lines)
    match, alike = near_duplicates.Index.of(lines).look_up(signatures)
    says_something = lines.lengths() > 0
    assert ((match >= 0) == says_something).all()
    assert (alike[says_something] == 1).all()
    like = near_duplicates.find_earlier(signatures, signatures)
    assert (like < np.arange(len(texts))).all()


def test_held_out_sets_are_lines_or_pairs(tmp_path):
    (tmp_path / "a.txt").write_text("first line\nsecond line\n", encoding="utf-8")
    (tmp_path / "b.tsv").write_text("第一行\tthird line\n", encoding="utf-8")
    (tmp_path / "c.jsonl").write_text('{"zh": "第二行", "en": "fourth line"}\n', encoding="utf-8")
    held_out = HeldOut.of([tmp_path / name for name in ("a.txt", "b.tsv", "c.jsonl")], LANGUAGES)
    assert held_out.locations == ["a.txt:1", "a.txt:2", "b.tsv:1", "b.tsv:1", "c.jsonl:1", "c.jsonl:1"]
    (tmp_path / "empty.en").write_bytes(b"")
    with pytest.raises(DataError, match="the file is empty"):
        HeldOut.of([tmp_path / "empty.en"], LANGUAGES)


def test_faulty_lines_are_those_that_clean_does_not_find_itself(tmp_path):
    source, target = pairs(1, seed=2)[0]
    rows = [*pairs(30), ("你好", ""), pairs(1)[0], (f"{source}35", f"{target} 78")]
    report = audit(tmp_path, rows)
    path = tmp_path / "doctor.json"
    path.write_text(json.dumps(report.to_dict()), encoding="utf-8")
    assert faulty_lines(path, report.corpus, []) == {33: "numbers"}
    assert faulty_lines(path, report.corpus, ["numbers"]) == {}
    with pytest.raises(ConfigError, match="--keep: expected one of misaligned"):
        faulty_lines(path, report.corpus, ["empty"])


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1}', '{"corpus": 3, "findings": []}', "\ud800"])
def test_a_file_that_is_no_audit_is_refused(tmp_path, text):
    path = tmp_path / "doctor.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(DataError, match="expected the JSON of sixfold doctor"):
        faulty_lines(path, corpus_of(tmp_path, pairs(3)), [])


def test_every_filter_is_a_kind_of_finding():
    assert FILTERS.keys() < KINDS.keys()
