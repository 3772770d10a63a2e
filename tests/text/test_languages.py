"""Languages by script and by file name."""

import re
import unicodedata
from pathlib import Path

import pytest

from sixfold.text.chinese import chinese_variant
from sixfold.text.languages import (
    LETTERS,
    LIKELY_LANGUAGE,
    SCRIPTS,
    count_characters,
    guess_language,
    language_of,
    languages_of,
    letters,
    weighted_length,
)


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("train.zh", "zh"),
        ("train.en.gz", "en"),
        ("zh.txt", "zh"),
        ("corpus.zh-en.zh", "zh"),
        ("news.de.xz", "de"),
        ("Train.EN.txt.zst", "en"),
        ("train.zh-CN", "zh"),
        ("train.zh_Hans.gz", "zh"),
        ("train.es-es", "es"),
        ("corpus.zh-en", ""),
        ("train.src", ""),
        ("train.txt", ""),
        ("en-route", ""),
        ("fiction", ""),
        (".gz", ""),
    ],
)
def test_the_language_is_read_from_the_name_of_a_file(name, language):
    assert language_of(Path("en") / name) == language


@pytest.mark.parametrize(
    ("name", "languages"),
    [
        ("x.zh-en.tsv.xz", ("zh", "en")),
        ("zh-en.jsonl", ("zh", "en")),
        ("tatoeba-de_fr.tsv", ("de", "fr")),
        ("pairs.tsv", ("", "")),
        ("first-draft.tsv", ("", "")),
        ("zh.tsv", ("", "")),
    ],
)
def test_both_languages_are_read_from_the_name_of_a_file_of_pairs(name, languages):
    assert languages_of(Path(name)) == languages


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("我爱机器学习", "zh"),
        ("在 Kubernetes 集群中使用 Docker 容器", "zh"),
        ("機械学習はとても面白い", "ja"),
        ("コンピュータ", "ja"),
        ("기계 학습은 재미있다", "ko"),
        ("Машинное обучение", "ru"),
        ("Machine learning 学", "en"),
        ("Ünïcödé", "en"),
        ("μηχανική μάθηση", "el"),
        ("تعلم الآلة", "ar"),
        ("למידת מכונה", "he"),
        ("मशीन लर्निंग", "hi"),
        ("การเรียนรู้", "th"),
        ("12 + 34 = 46", ""),
        ("", ""),
    ],
)
def test_the_likeliest_language_follows_from_the_script(text, language):
    assert guess_language([text]) == language


def test_texts_are_judged_together():
    assert guess_language(["OK", "机器学习很有趣", "1"]) == "zh"
    assert guess_language(["中文里有一个の字", "其余都是中文，一个假名不算什么，因为这里的汉字多得多"]) == "zh"
    assert guess_language([]) == ""


@pytest.mark.parametrize(
    ("text", "variant"),
    [
        ("这是简体中文", "simplified"),
        ("這是繁體中文", "traditional"),
        ("他引用了“這”字，但其余都说简体", "simplified"),
        ("中文", ""),
        ("嫏嬛囧", ""),
        ("English — “quoted” · café ～ ￥", ""),
        ("这這", ""),
        ("", ""),
    ],
)
def test_the_kind_of_chinese_follows_from_characters_of_one_kind(text, variant):
    assert chinese_variant(text) == variant


def test_every_script_has_letters_and_a_likely_language():
    assert {script for scripts in SCRIPTS.values() for script in scripts} == set(LETTERS) == set(LIKELY_LANGUAGE)
    assert set(LIKELY_LANGUAGE.values()) <= set(SCRIPTS)
    assert len(SCRIPTS) >= 60


@pytest.mark.parametrize("script", LETTERS)
def test_the_letters_of_a_script_are_letters_of_that_script_alone(script):
    everything = "".join(map(chr, range(0x33000)))
    matched = "".join(letters(script).findall(everything))
    names = {"Han": "CJK|IDEOGRAPHIC", "Latin": "LATIN|FULLWIDTH|FEMININE|MASCULINE"}.get(script, script.upper())
    assigned = [char for char in matched if unicodedata.category(char) != "Cn"]
    assert all(re.search(names, unicodedata.name(char)) for char in assigned)
    assert not any(set(matched) & set(letters(name).findall(matched)) for name in LETTERS if name != script)


def test_runs_are_counted_by_their_characters():
    assert count_characters(letters("Han"), "机器 learning 学") == 3
    assert count_characters(letters("Han", "Latin"), "机器 learning 学") == 11
    assert count_characters(letters("Greek"), "机器") == 0


def test_a_han_character_is_as_long_as_three_letters():
    assert weighted_length("machine") == 7
    assert weighted_length("机器, ok") == 10
    assert weighted_length("が가ア") == 9
    assert weighted_length("café") == 4
