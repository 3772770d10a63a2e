"""Each filter takes what it is for, leaves good pairs alone, and every pair is counted once."""

from itertools import pairwise
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sixfold.config import DataConfig, Filter
from sixfold.data import cleaning
from sixfold.data.cleaning import FILTERS, Cleaner, CleaningReport, HashSet, hash_record
from sixfold.data.corpus import Corpus, Pair

CORPUS = Corpus("x", (Path("x.tsv"),))
GOOD = ("机器学习很有趣。", "Machine learning is interesting.")


def run(pairs, languages=("zh", "en"), **settings):
    """What is kept of pairs, and the report."""
    cleaner = Cleaner(DataConfig(**settings), languages)
    kept = cleaner.clean(CORPUS, [Pair(line, *pair) for line, pair in enumerate(pairs, start=1)])
    return [tuple(pair[1:]) for pair in kept], cleaner.report


BAD = [
    ("empty", "", "hello"),
    ("empty", "你好", ""),
    ("encoding", "你好\ufffd", "hello"),
    ("encoding", "你好", "hello \ud83d"),
    ("control", "你好\x00", "hello"),
    ("control", "你好", "hello\x9d"),
    ("control", "你\u200b好", "hello"),
    ("control", "你好", "hel\u200blo"),
    ("control", "你好", "\u202ehello"),
    ("control", "你好", "hello \ufeffworld"),
    ("control", "你\n好", "hello"),
    ("markup", "你好", "&quot;hello&quot;"),
    ("markup", "你好&nbsp;", "hello"),
    ("markup", "你好&amp;lt;", "hello"),
    ("markup", "你好", "hello &#39;world&#x27;"),
    ("markup", "你好，世界", "hello, world.</p>"),
    ("markup", "你好，世界", 'hello, <a href="x.html">world</a>'),
    ("markup", "你好<br/>世界", "hello, world"),
    ("markup", "你好，世界", "hello, {{lang|en|world}}"),
    ("markup", "你好，世界", "hello, [[Earth|world]]"),
    ("long", "很" * 400, "very " * 201),
    ("ratio", "好", "The whole of this long sentence cannot be said in one character of any language."),
    ("ratio", "这个句子很长，说了很多的事情，不可能只用一个词就翻译完。", "Yes."),
    ("script", "This sentence was never translated.", "This sentence is the original one."),
    ("script", "机器学习很有趣", "这不是英文，这是中文"),
    ("script", "Это предложение на русском языке", "This is a sentence in English"),
    ("script", "すべてひらがなでかいたぶん 文", "All of it is written in kana"),
    ("copied", "Docker", "docker"),
    ("copied", "Mac OS X", "MacOS X"),
]
FINE = [
    GOOD,
    ("猫", "cat"),
    ("３＋４＝７", "3 + 4 = 7"),
    ("2024-01-01", "2024-01-01"),
    ("在 Kubernetes 中使用 PodDisruptionBudget", "Using a PodDisruptionBudget in Kubernetes"),
    ("使用 kubectl create deployment hello-node --image=registry.k8s.io/e2e-test-images/agnhost:2.39 命令",
     "Run kubectl create deployment hello-node --image=registry.k8s.io/e2e-test-images/agnhost:2.39"),
    ("Delete: 删除当前分割线", "Delete: deletes the current dividing line"),
    ("URLSearchParams.values()", "the method values()"),
    ("用 <b> 标签把文字加粗", "Use the <b> tag to make text bold"),
    ("实体 &nbsp; 是不换行空格", "The entity &nbsp; is a space that does not break"),
    ("把 <file> 换成文件名", "Replace the placeholder with the name of the file"),
    ("若 a < b 且 b > c，R&D 部门", "If a < b and b > c, the department of R&D"),
    ("该代理的内部方法抛出异常", "The proxy's [[Call]] internal method throws"),
    ("其中 α 和 Ω 是常数", "where α and Ω are constants"),
    ("α", "α_0"),
    ("家庭 👨‍👩‍👧 表情", "The family emoji 👨‍👩‍👧"),
    ("全角　空格", "A wide\u00a0space"),
    ("“好”字的写法", "How to write the character 好 (hǎo)"),
    ("约翰·史密斯——作家", "John Smith, a writer"),
    ("捶背", "to massage sb's back lightly with one's fists"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "source", "target"), BAD)
def test_a_bad_pair_is_dropped_unless_its_filter_is_off(name, source, target):
    kept, report = run([(source, target)])
    assert kept == []
    assert {key: value for key, value in report.dropped.items() if value} == {name: 1}
    assert report.examples == {name: ["x.tsv:1"]}
    kept, report = run([(source, target)], skip=(name,))
    assert name not in report.dropped
    assert not kept or kept == [(source, target)]


def test_the_filters_can_be_left_off_all_at_once():
    pairs = 2 * [(source, target) for _, source, target in BAD]
    kept, report = run(pairs, skip=get_args(Filter))
    assert kept == pairs
    assert report.dropped == {}


@pytest.mark.parametrize("pair", FINE)
def test_a_good_pair_is_kept_in_either_direction(pair):
    assert run([pair])[0] == [pair]
    assert run([pair[::-1]], languages=("en", "zh"))[0] == [pair[::-1]]


@pytest.mark.parametrize(
    ("languages", "pair"),
    [
        (("fa", "en"), ("می\u200cخواهم", "I want")),
        (("hi", "en"), ("क्\u200dष है", "it is ksha")),
        (("he", "en"), ("שלום \u200eSixfold\u200e", "Hello Sixfold")),
        (("th", "en"), ("การ\u200bเรียนรู้", "learning")),
        (("sr", "en"), ("Машинско учење", "Machine learning")),
        (("sr", "en"), ("Mašinsko učenje", "Machine learning")),
        (("xx", "en"), ("ꦧꦱꦗꦮ", "Javanese")),
        (("", ""), ("a text in whatever language", "還有一種不知道的語言的文字")),
        (("de", "en"), ("Übergrößenträger", "wearer of large sizes")),
        (("en", "en"), ("A text to correct.", "A text to correct.")),
    ],
)
def test_what_a_language_needs_is_no_fault_in_it(languages, pair):
    assert run([pair], languages)[0] == [pair]


def test_the_table_has_every_filter_in_order():
    assert tuple(FILTERS) == get_args(Filter)


def test_limits_come_from_the_settings():
    long = ("很长" * 50, "very long " * 20)
    assert run([long])[0] == [long]
    assert run([long], max_characters=150)[1].dropped["long"] == 1
    uneven = ("一二三四五六七八九十", "one two three four five six seven eight nine ten and so on")
    assert run([uneven])[0] == [uneven]
    assert run([uneven], max_ratio=1.5)[1].dropped["ratio"] == 1


def test_duplicates_differ_in_case_and_space_only():
    pairs = [("你好", "Hello  World"), ("你好", "hello world"), ("你好", "hello worlds"), (" 你好", "HELLO\u00a0WORLD")]
    kept, report = run(pairs)
    assert kept == [pairs[0], pairs[2]]
    assert report.dropped["duplicate"] == 2
    assert report.examples["duplicate"] == ["x.tsv:2", "x.tsv:4"]
    assert run(pairs, skip=("duplicate",))[0] == pairs


def test_a_pair_is_hashed_with_its_sides_apart():
    assert hash_record("a b", "c") != hash_record("a", "b c")
    assert hash_record("a", "b") != hash_record("b", "a")
    assert len(hash_record("\ud83d", "x")) == 8


def test_a_pair_of_an_earlier_corpus_is_a_duplicate():
    cleaner = Cleaner(DataConfig(), ("zh", "en"))
    assert len(list(cleaner.clean(CORPUS, [Pair(1, *GOOD)]))) == 1
    assert list(cleaner.clean(Corpus("y", (Path("y.tsv"),)), [Pair(7, *GOOD)])) == []
    assert cleaner.report.examples == {"duplicate": ["y.tsv:7"]}


def test_order_is_kept_and_counts_add_up_over_chunks(monkeypatch):
    monkeypatch.setattr(cleaning, "PAIRS_PER_CHUNK", 7)
    good = [(f"第{number}个句子", f"sentence number {number}") for number in range(50)]
    pairs = [pair for number, fine in enumerate(good) for pair in (fine, BAD[number % len(BAD)][1:], good[number // 2])]
    kept, report = run(pairs)
    assert kept == good
    assert report.read == len(pairs) == report.kept + sum(report.dropped.values())
    assert report.dropped["duplicate"] == 50
    assert all(len(examples) <= 3 for examples in report.examples.values())


def test_pairs_stream_through_a_chunk_at_a_time(monkeypatch):
    monkeypatch.setattr(cleaning, "PAIRS_PER_CHUNK", 10)
    asked = []

    def endless():
        while True:
            asked.append(1)
            yield Pair(len(asked), f"第{len(asked)}句", f"sentence {len(asked)}")

    kept = Cleaner(DataConfig(), ("zh", "en")).clean(CORPUS, endless())
    assert next(kept).line == 1
    assert len(asked) == 10


def test_cleaning_goes_on_where_it_was_left():
    first = Cleaner(DataConfig(), ("zh", "en"))
    list(first.clean(CORPUS, [Pair(1, *GOOD), Pair(2, "", "x")]))
    report = CleaningReport.from_dict(first.report.to_dict())
    again = Cleaner(DataConfig(), ("zh", "en"), HashSet(first.seen.hashes()), report)
    assert list(again.clean(CORPUS, [Pair(3, *GOOD), Pair(4, "猫", "cat")])) == [Pair(4, "猫", "cat")]
    assert (again.report.read, again.report.kept) == (4, 2)
    assert again.report.dropped["empty"] == again.report.dropped["duplicate"] == 1


def test_nothing_to_clean_is_nothing_cleaned():
    kept, report = run([])
    assert kept == []
    assert report.lines() == ["0 pairs read, 0 kept (0.0%)"]


def test_a_long_line_is_dropped_quickly():
    assert run([("长" * 10**6, "x" * 10**6), ("<" * 10**6, "{{" * 10**6)])[1].dropped["long"] == 2


def test_the_report_says_what_where_and_how_much():
    _, report = run([GOOD, ("", "x"), ("猫", "cat"), ("猫", "Cat")])
    head, *table = report.lines()
    assert head == "4 pairs read, 2 kept (50.0%)"
    assert [row.split() for row in table] == [
        ["empty", "1", "25.0%", "x.tsv:2"],
        ["duplicate", "1", "25.0%", "x.tsv:4"],
    ]


@pytest.mark.parametrize("languages", [("zh", "en"), ("en", "zh")])
def test_a_mix_of_both_kinds_of_chinese_is_reported(languages):
    step = 1 if languages[0] == "zh" else -1
    pairs = [(f"这是第{n}个", f"this is number {n}")[::step] for n in range(60)]
    pairs.append(("這個是繁體", "this one is traditional")[::step])
    _, report = run(pairs, languages)
    assert (report.simplified, report.traditional) == (60, 1)
    assert report.lines()[-1] == "Chinese of both kinds: 98.4% simplified, 1.6% traditional"
    report.simplified = 200
    assert "kinds" not in report.lines()[-1]


def test_reports_add_up():
    _, one = run([GOOD, *[("", "x")] * 2])
    _, two = run([GOOD, *[("", "y")] * 4, ("copy", "copy")], skip=("duplicate",))
    one.merge(two)
    assert (one.read, one.kept, one.simplified) == (9, 2, 2)
    assert (one.dropped["empty"], one.dropped["copied"], one.dropped["duplicate"]) == (6, 1, 0)
    assert one.examples == {"empty": ["x.tsv:2", "x.tsv:3", "x.tsv:2"], "copied": ["x.tsv:6"]}
    assert two.examples["empty"] == ["x.tsv:2", "x.tsv:3", "x.tsv:4"]


hashes = st.integers(0, 40) | st.integers(2**64 - 5, 2**64 - 1)


@given(st.lists(st.lists(hashes, max_size=30), max_size=20))
def test_what_was_seen_is_a_set(batches):
    seen, known = HashSet(), set()
    for batch in batches:
        expected = [value not in known and not known.add(value) for value in batch]
        assert seen.add(np.array(batch, np.uint64)).tolist() == expected
    assert seen.hashes().tolist() == sorted(known)
    assert HashSet(seen.hashes()).hashes().tolist() == sorted(known)


def test_what_was_seen_takes_eight_bytes_each_in_few_arrays():
    seen, random = HashSet(), np.random.default_rng(1)
    for _ in range(300):
        seen.add(random.integers(0, 2**64, 1000, np.uint64))
    assert seen.hashes().nbytes == 8 * 300_000
    lengths = [len(level) for level in seen._levels]
    assert len(lengths) <= 10
    assert all(longer >= 2 * shorter for longer, shorter in pairwise(lengths))
