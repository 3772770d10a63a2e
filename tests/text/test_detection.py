"""The language of a text is detected with honest probabilities: of known languages, of others, and of none."""

import pytest
from growth import assert_linear, numbered, repeated
from hypothesis import given
from hypothesis import strategies as st
from small_profiles import made_lines, profile_of

from sixfold.text.detection import detect, language_probabilities
from sixfold.text.language_profiles import learn_profile
from sixfold.text.languages import SAMPLE_CHARACTERS

CODES = ("zh", "en")


@pytest.fixture(scope="module", params=["with profiles", "without profiles"])
def profiles(request):
    return {language: profile_of(language) for language in CODES} if request.param == "with profiles" else {}


def top(text, profiles, languages=CODES):
    """Return the likeliest language and its confidence; ("", 0) if there is no candidate."""
    return detect(text, languages, profiles)[0][:2] if detect(text, languages, profiles) else ("", 0.0)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("We went to the library because it was raining all day.", "en"),
        ("我们昨天去了图书馆。", "zh"),
        ("Guten Tag, wie geht es Ihnen?", "de"),
        ("Je ne sais pas où est la gare.", "fr"),
        ("No sé dónde está la estación.", "es"),
        ("今日はとても天気がいいですね。", "ja"),
        ("駅がどこにあるのか分かりません。", "ja"),
        ("オープン", "ja"),
        ("오늘은 날씨가 아주 좋습니다.", "ko"),
        ("Я не знаю, где находится вокзал, мы были бы рады.", "ru"),
        ("Я не знаю, де її вокзал, а їжа є смачною.", "uk"),
        ("Не зная къде е гарата, но ще попитам някого.", "bg"),
        ("Δεν ξέρω πού είναι ο σταθμός.", "el"),
        ("วันนี้อากาศดีมาก", "th"),
        ("الطقس جميل جدا اليوم، أليس كذلك؟", "ar"),
        ("نمی‌دانم ایستگاه کجاست، چه کسی می‌داند؟", "fa"),
        ("在 Kubernetes 集群中使用 Docker 容器", "zh"),
        ("《となりのトトロ》是宫崎骏导演的一部著名动画电影", "zh"),
        ("Сервер nginx запускает Docker, мы использовали бы Kubernetes", "ru"),
    ],
)
def test_a_sentence_is_named(text, language, profiles):
    detected, confidence = top(text, profiles)
    assert detected == language
    assert confidence > 0.5


@pytest.mark.parametrize("text", ["你好", "中文", "机", "我爱北京天安门"])
def test_a_few_chinese_characters_are_enough(text, profiles):
    assert top(text, profiles)[0] == "zh"
    assert top(text, profiles)[1] > 0.9


def test_one_word_is_detected_with_moderate_confidence(profiles):
    language, confidence = top("hello", profiles)
    assert language == "en"
    assert 0.4 < confidence < 0.9
    assert top("danke", profiles)[0] == "de"
    assert top("danke", profiles)[1] < 0.9


@pytest.mark.parametrize(
    "text",
    ["", " \n", "12345", "3.14 + 2 = 5,14", "😀👍", "…?!", "https://de.wikipedia.org/wiki/Das_ist_ein_Test",
     "name@example.org", "`der die das und ist nicht`", "x_1={a: 2};", "α"],
)  # fmt: skip
def test_a_text_without_words_has_no_candidate(text, profiles):
    assert detect(text, CODES, profiles) == []
    assert language_probabilities(text, CODES, profiles) == {}


def test_german_is_not_english_though_only_english_is_loaded(profiles):
    text = "Der Hund läuft über die Straße und bellt."
    assert language_probabilities(text, CODES, profiles)["en"] < 0.01
    assert [candidate.language for candidate in detect(text, CODES, profiles)] == ["de"]


def test_a_language_that_nothing_here_lists_is_unknown_where_the_profile_of_english_does_not_fit():
    text = "Ninapenda kusoma vitabu vipya kila siku asubuhi"
    english = {"en": profile_of("en")}
    assert all(candidate.confidence < 0.5 for candidate in detect(text, CODES, english))
    probabilities = language_probabilities(text, CODES, english)
    assert probabilities[""] > 0.5 > 5 * probabilities["en"]
    assert sum(probabilities.values()) == pytest.approx(1)


def test_a_profile_recognises_english_without_function_words():
    text = "Large models, short sentences, longer texts."
    without, with_profile = (top(text, own) for own in ({}, {"en": profile_of("en")}))
    assert without[0] == with_profile[0] == "en"
    assert with_profile[1] > without[1]


def test_a_profile_is_used_for_a_language_that_no_list_has():
    words = "mtu huyu anapenda kusoma vitabu vipya na kuandika barua ndefu kila siku asubuhi mjini"
    profile = learn_profile(made_lines(words), "sw")
    assert top("anapenda kusoma barua ndefu", {"sw": profile}, ("sw", "en"))[0] == "sw"
    assert top("This is what they said about it", {"sw": profile}, ("sw", "en"))[0] == "en"


def test_the_kind_of_chinese_is_said(profiles):
    for text, variant in (("这是简体中文", "simplified"), ("這是繁體中文", "traditional"), ("中文", "")):
        (candidate,) = detect(text, CODES, profiles)
        assert (candidate.language, candidate.variant) == ("zh", variant)
    assert detect("hello there", CODES, profiles)[0].variant == ""


def test_codes_are_spelt_as_the_caller_spells_them(profiles):
    assert top("Não sei onde fica a estação, mas vou perguntar.", profiles, ["pt-BR", "en"])[0] == "pt-BR"
    assert top("我们昨天去了图书馆", profiles, ["ZH-cn"])[0] == "ZH-cn"
    assert top("這是繁體中文", profiles, ["zh", "zh-Hant"])[0] == "zh-Hant"
    assert top("这是简体中文", profiles, ["zh_TW", "zh"])[0] == "zh"
    assert top("這是繁體中文", profiles, ["zh", "en"])[0] == "zh"


def test_han_characters_alone_are_japanese_only_where_japanese_is_expected_or_shown():
    assert top("東京", {}, ["zh", "en"])[0] == "zh"
    assert top("東京", {}, ["ja", "en"])[0] == "ja"
    assert top("駅前広場", {}, [])[0] == "ja"
    assert top("这东京", {}, ["ja", "en"])[0] == "zh"


def test_letters_of_a_language_are_evidence_without_a_word_of_its_list(profiles):
    assert top("Příliš žluťoučký kůň", profiles)[0] == "cs"
    assert top("Fließbänder dröhnen", profiles)[0] == "de"


@pytest.mark.parametrize("text", ["Iron Man, Spider Man, Mad Men", "Ben Affleck, Ben Stiller", "Al Pacino, Al Gore"])
def test_words_that_english_texts_have_in_names_are_weak_evidence(text):
    assert top(text, {})[0] == "en"


def test_a_long_text_of_two_languages_has_both_as_candidates():
    english, french = "We went to the house and it was good. " * 10, "Je ne sais pas où est la gare des enfants. " * 14
    assert {candidate.language for candidate in detect(english + french, CODES)} >= {"en", "fr"}


def test_kana_and_han_characters_are_one_script():
    assert top("《となりのトトロ》是宫崎骏导演的一部著名动画电影", {})[1] > 0.95
    assert top("東京都知事は駅前広場を視察した", {})[1] > 0.95
    assert top("日本語の文章", {})[0] == "ja"


def test_a_profile_of_chinese_is_evidence_for_chinese():
    text = "机器学习"
    with_profile, without = (
        language_probabilities(text, ("ja", "zh"), profiles)["zh"] for profiles in ({"zh": profile_of("zh")}, {})
    )
    assert with_profile > without


def test_a_mixture_has_both_languages():
    candidates = dict(candidate[:2] for candidate in detect("我爱 machine learning", CODES))
    assert candidates.keys() >= {"zh", "en"}
    assert top("Machine learning 学", {})[0] == "en"


def test_expected_languages_come_before_others_of_their_script():
    assert top("Привет", {}, ["uk"])[0] == "uk"
    assert top("Привет", {}, [])[0] == "ru"
    assert top("hello", {}, ["de"])[1] < 0.9


def test_only_the_beginning_is_read(profiles):
    beginning = "We went to the library because it was raining. " * 50
    assert len(beginning) >= SAMPLE_CHARACTERS
    assert detect(beginning + "我" * 10_000, CODES, profiles) == detect(beginning, CODES, profiles)


@given(st.text(st.characters(codec=None) | st.sampled_from("aeß机器の한я. "), max_size=60))
def test_every_text_has_candidates_in_order_whose_confidences_are_probabilities(text):
    profiles = {language: profile_of(language) for language in CODES}
    candidates = detect(text, CODES, profiles)
    confidences = [candidate.confidence for candidate in candidates]
    assert confidences == sorted(confidences, reverse=True)
    assert all(0 < confidence <= 1 for confidence in confidences)
    assert sum(confidences) <= 1.001 * len(confidences) ** 0
    total = sum(language_probabilities(text, CODES, profiles).values())
    assert total == pytest.approx(1) or total == 0


@pytest.mark.parametrize(
    "make",
    [repeated("the "), repeated("é"), repeated("我a"), repeated("`"), repeated("a.b"), repeated("{"), numbered("x{}"),
     repeated("你好，"), repeated("a\u0301"), repeated("Ж ")],
)  # fmt: skip
def test_detection_takes_time_in_proportion_to_the_length(make):
    profiles = {language: profile_of(language) for language in CODES}
    assert_linear(lambda text: detect(text, CODES, profiles), make)
