"""Lost and added negations are found by the shipped model, and negations that other words render are left alone."""

from dataclasses import replace

import pytest

from sixfold.translation.guard import check, find_faults
from sixfold.translation.joint_search import search_jointly
from sixfold.translation.negation_check import ADDED, LOST
from sixfold.translation.translator import Translator

ZH_EN, EN_ZH = ("zh", "en"), ("en", "zh")


@pytest.fixture(scope="module")
def shipped():
    with Translator(device="cpu") as translator:
        yield translator


def _messages(direction, pairs):
    results = search_jointly(direction.engine, [check(direction, *pair) for pair in pairs])
    return [[fault.message for fault in faults] for faults, _ in results]


FAULTY = [
    (ZH_EN, "他没有钱。", "He is rich.", LOST),
    (ZH_EN, "我不认识他。", "I know him.", LOST),
    (ZH_EN, "这里不能拍照。", "You can take photos here.", LOST),
    (EN_ZH, "He did not come yesterday.", "他昨天来了。", LOST),
    (EN_ZH, "I have never seen him.", "我见过他。", LOST),
    (ZH_EN, "他昨天来了。", "He did not come yesterday.", ADDED),
    (EN_ZH, "He will be there tomorrow.", "他明天不会去那里。", ADDED),
    (EN_ZH, "I don't know why he did not come.", "我不知道他为什么来。", LOST),  # one of two
]
GOOD = [
    (ZH_EN, "他没有钱。", "He is poor."),
    (ZH_EN, "这很不容易。", "This is hard."),
    (ZH_EN, "他不但聪明，而且勤奋。", "He is both clever and diligent."),
    (ZH_EN, "你能不能帮我？", "Can you help me?"),
    (EN_ZH, "Why don't you sit down?", "请坐。"),
    (EN_ZH, "He is poor.", "他没有钱。"),
    (EN_ZH, "I did not go.", "我没去。"),
]


def test_lost_and_added_negations_are_found(shipped):
    for languages, source, translation, message in FAULTY:
        assert _messages(shipped.direction("", *languages), [(source, translation)]) == [[message]], source
        assert find_faults(source, translation, languages) == []


def test_what_other_words_render_is_left_alone(shipped):
    for languages in (ZH_EN, EN_ZH):
        pairs = [pair for of_pair, *pair in GOOD if of_pair == languages]
        assert _messages(shipped.direction("", *languages), pairs) == [[]] * len(pairs)


def test_a_model_of_one_direction_judges_an_added_negation_by_words(shipped):
    direction = replace(shipped.direction("", *EN_ZH), reverse=None)
    pairs = [("He will be there tomorrow.", "他明天不会去那里。"), ("He is poor.", "他没有钱。"), ("Hm.", "不过")]
    assert _messages(direction, pairs) == [[ADDED], [], []]


def test_other_languages_and_texts_too_long_for_the_model_raise_no_alarm(shipped):
    french = replace(shipped.direction("", *EN_ZH), languages=("en", "fr"))
    assert _messages(french, [("He did not come.", "Il est venu.")]) == [[]]
    direction = shipped.direction("", *ZH_EN)
    assert _messages(direction, [("他没有钱。" * 500, "He is rich, they say. " * 300)]) == [[]]


def test_a_batch_is_judged_like_its_sentences_alone(shipped):
    direction = shipped.direction("", *ZH_EN)
    pairs = [tuple(pair) for languages, *pair, _ in FAULTY if languages == ZH_EN]
    assert _messages(direction, pairs) == [_messages(direction, [pair])[0] for pair in pairs]
