"""A profile of a language, learnt from text, tells text of the language from other text in the same letters."""

import json
import random

import pytest
from growth import assert_linear, numbered, repeated
from small_profiles import chinese_lines, english_lines, made_lines, profile_of

from sixfold.text import language_profiles
from sixfold.text.language_profiles import (
    LanguageProfile,
    ProfileLearner,
    learn_profile,
    profiles_from_json,
    profiles_to_json,
)

ENGLISH = "We went to the library because it was raining all day."
OTHERS = [
    "Ninapenda kusoma vitabu vipya kila siku asubuhi.",
    "Der Hund läuft über die Straße und bellt laut.",
    "Nevím, kde je nádraží, ale zeptám se.",
    "Minä en tiedä missä rautatieasema on.",
]


def test_text_of_the_language_is_likelier_than_not_and_text_of_another_is_not():
    profile = profile_of("en")
    assert profile.log_odds(ENGLISH) > 0.5
    for text in OTHERS:
        assert profile.log_odds(text) < -1, text
    assert profile.log_odds("你好 12 😀") == 0, "there are no letters of its script"


def test_letters_in_another_order_are_no_text_of_the_language():
    letters = list(ENGLISH)
    random.Random(1).shuffle(letters)
    assert profile_of("en").log_odds("".join(letters)) < -2


def test_more_text_is_stronger_evidence():
    profile = profile_of("en")
    assert 0 < profile.log_odds("machine") < profile.log_odds("the people took the machine home because it was cold")
    assert 0 > profile.log_odds("que") > profile.log_odds("que que que que que que que")
    deviations = [each.deviation for each in profile.statistics]
    assert deviations == sorted(deviations, reverse=True)


def test_text_that_is_easier_to_predict_than_usual_is_as_likely_as_usual_text():
    profile = profile_of("en")
    (easy, length), (easier, same_length) = (
        profile.mean_cost(text) for text in ("which which which", "together together")
    )
    assert easier < easy < 1.1
    assert length == same_length
    assert profile.log_odds("which which which") == profile.log_odds("together together") > 0


def test_every_tenth_text_is_held_out():
    lines = [f"{line} qqq qqq" if number % 10 == 9 else line for number, line in enumerate(made_lines(ENGLISH))]
    assert "qqq" not in learn_profile(lines, "en").costs


def test_the_statistics_are_those_of_held_out_text():
    profile = profile_of("en")
    costs = [profile.mean_cost(line)[0] for line in english_lines()[9::10] if 28 <= profile.mean_cost(line)[1] <= 40]
    mean = sum(costs) / len(costs)
    expected = next(each for each in profile.statistics if each.length == 32)
    assert mean == pytest.approx(expected.mean, abs=0.3)
    assert profile.shuffled > expected.mean + 1.5


def test_the_same_text_gives_the_same_profile_and_json_gives_it_back():
    lines = english_lines()[:1500]
    first, second = learn_profile(lines, "en"), learn_profile(lines, "en-GB")
    assert first == second == LanguageProfile.from_json(json.loads(json.dumps(first.to_json())))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_profile_takes_a_few_kilobytes(language):
    assert 2_000 < len(json.dumps(profile_of(language).to_json())) < 30_000


def test_a_language_of_no_known_script_is_learnt_in_the_letters_of_its_text():
    profile = learn_profile(made_lines("сегодня очень хорошая погода, я не знаю, OK"), "toy")
    assert profile.scripts == ("Cyrillic",)
    assert learn_profile(english_lines(), "zh") is None, "English has no Han characters"


def test_too_little_text_gives_no_profile():
    assert learn_profile(english_lines()[:50], "en") is None
    assert learn_profile([ENGLISH] * 10_000, "en") is None, "it is one text"
    assert learn_profile([], "en") is None


def test_code_and_addresses_are_not_learnt():
    profile = learn_profile(made_lines(f"https://qqq.example/qqq qqq_qqq() `qqq` {ENGLISH}"), "en")
    assert not any("qqq" in sequence for sequence in profile.costs)


@pytest.mark.parametrize(
    "change",
    [
        {"sequences": "eJw="},
        {"sequences": "not base64"},
        {"costs": ""},
        {"statistics": []},
        {"statistics": [[4, 1.0, 0.0]]},
        {"statistics": [[8, 1.0, 0.5], [4, 1.0, 0.5]]},
        {"statistics": [[4, float("nan"), 0.5]]},
        {"statistics": 3},
        {"scripts": []},
        {"scripts": ["Klingon"]},
        {"shuffled": "much"},
    ],
)
def test_a_damaged_profile_is_an_error(change):
    stored = {"en": profile_of("en").to_json() | change}
    with pytest.raises((ValueError, KeyError, TypeError)):
        profiles_from_json(json.dumps(stored))


def test_a_table_of_profiles_comes_back_without_those_of_a_newer_version():
    profiles = {"en": profile_of("en"), "zh": profile_of("zh")}
    stored = json.loads(profiles_to_json(profiles))
    assert profiles_from_json(json.dumps(stored)) == profiles
    stored["zh"] = {"version": 2, "network": "…"}
    assert profiles_from_json(json.dumps(stored)) == {"en": profiles["en"]}
    for text in ("[]", "3", '{"en": 3}', '{"en": {}}'):
        with pytest.raises((ValueError, KeyError)):
            profiles_from_json(text)


def test_profiles_of_pairs_are_learnt_while_they_pass(monkeypatch):
    monkeypatch.setattr(language_profiles, "MAX_TEXTS", 1000)
    sides = zip(chinese_lines(), english_lines(), strict=False)
    pairs = [(number, *texts) for number, texts in enumerate(sides)]
    learners = [ProfileLearner(("zh", "en")), ProfileLearner(("", "en"))]
    for learner in learners:
        assert list(learner.watch(pairs)) == pairs
    first, second = (learner.profiles() for learner in learners)
    assert set(first) == {"zh", "en"}
    assert set(second) == {"en"}, "a language without a code is not learnt"
    assert first["en"] == second["en"]
    assert first["en"].log_odds(ENGLISH) > 0


def test_the_sample_is_drawn_from_all_records(monkeypatch):
    monkeypatch.setattr(language_profiles, "MAX_TEXTS", 100)
    learner = ProfileLearner(("en",))
    for number in range(10_000):
        learner.add([str(number)])
    sample = [int(text) for (text,) in learner._sample]
    assert len(sample) == len(set(sample)) == 100
    assert 3500 < sum(sample) / 100 < 6500


@pytest.mark.parametrize("make", [repeated("the "), repeated("a"), numbered("x{}y"), repeated("ж")])
def test_time_is_in_proportion_to_the_length(make):
    assert_linear(profile_of("en").log_odds, make)
    assert_linear(lambda text: learn_profile([text], "en"), make)
