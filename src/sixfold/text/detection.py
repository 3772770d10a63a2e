"""Detects the language of a text: by its script, its words and letters, and profiles of the languages of models."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from sixfold.text.chinese import Variant, chinese_variant, count_distinctive
from sixfold.text.language_codes import base_language, normalise_code
from sixfold.text.language_profiles import LanguageProfile
from sixfold.text.languages import (
    DENSE,
    LETTERS,
    LIKELY_LANGUAGE,
    SAMPLE_CHARACTERS,
    SCRIPTS,
    UNSPACED,
    count_characters,
    letters,
    prose_of,
)
from sixfold.text.word_lists import LISTED_LANGUAGES, letter_evidence, word_evidence

NO_PROFILES: Mapping[str, LanguageProfile] = {}
MIN_CONFIDENCE = 0.05  # of a candidate
KANA = ("Hiragana", "Katakana")

# A text is written in one script and may quote others. A script has the odds of its weight to the power of SHARPNESS.
# Of 1,393 Chinese sentences with words in Latin letters, one has more weight in Latin; English hardly quotes Chinese.
SHARPNESS = 3.0
DENSE_WEIGHT = 8.0  # of a Chinese, Japanese or Korean character; a Latin letter has 1
OTHER_WEIGHT = 2.0  # of a letter of any other script

# Weights of the languages of a script before a word of the text is read.
EXPECTED_WEIGHT = 15.0  # a language that the caller names
LIKELY_WEIGHT = 8.0  # the language that is written most in the script
LISTED_WEIGHT = 0.5  # any other language that is listed for the script
UNKNOWN_WEIGHT = 1.0  # all others together
ONLY_UNKNOWN_WEIGHT = 0.1  # all others together, in a script that one language is listed for, and in Han characters

WORDS_BESIDE_PROFILE = 0.8  # how much word evidence counts where a profile, which has seen these words, judges too
MAX_HAN_ODDS = 2.0  # log-odds of a profile in Han characters: they are too many, and traditional ones may be missing
KANA_ODDS = 30.0  # log-odds for Japanese of a share of kana that is larger by 1
KANA_SHARE = 0.02  # of kana at which they are no evidence: Chinese quotes some
NO_KANA_ODDS = -0.25  # log-odds for Japanese of each Han character of a text without kana
MIN_NO_KANA_ODDS = -4.0
HAN_ODDS = 2.5  # log-odds of each character that only Japanese or only Chinese has


class LanguageCandidate(NamedTuple):
    """A language that a text may be in, and the probability that it is."""

    language: str  # a code as the caller of `detect` spells it, or the base language of one that it does not name
    confidence: float  # 0 to 1; the confidences of all candidates and of an unknown language add up to 1
    variant: Variant = ""  # of Chinese: simplified, traditional, or "" where the text is neither or both


def detect(
    text: str, languages: Sequence[str] = (), profiles: Mapping[str, LanguageProfile] = NO_PROFILES
) -> list[LanguageCandidate]:
    """Return the languages that a text may be in, the likeliest first, with honest probabilities.

    `languages` are the codes of the languages that the caller expects, such as the sources of its models; `profiles`
    are those of the models, by language. Other languages are candidates too: with models of Chinese and English alone,
    German is German. What the confidences lack to 1 is the probability of a language that is not listed. A text without
    letters, or of code and addresses alone, has no candidates. Only its first SAMPLE_CHARACTERS characters are read.
    """
    totals = language_probabilities(text, languages, profiles)
    variant = chinese_variant(text[:SAMPLE_CHARACTERS]) if "zh" in totals else ""
    candidates = [
        LanguageCandidate(_code(language, languages, variant), round(total, 3), variant if language == "zh" else "")
        for language, total in totals.items()
        if language and total >= MIN_CONFIDENCE
    ]
    return sorted(candidates, key=lambda candidate: -candidate.confidence)


def language_probabilities(
    text: str, languages: Sequence[str] = (), profiles: Mapping[str, LanguageProfile] = NO_PROFILES
) -> dict[str, float]:
    """Return the probability of every base language that is listed for a script of the text, and of "", any other.

    They add up to 1, unless the text has no letters: then there are none. `detect` returns the larger ones.
    """
    sample = prose_of(text[:SAMPLE_CHARACTERS])
    counts = count_letters(sample)
    by_language = {base_language(code): profile for code, profile in profiles.items()}
    evidence = _Evidence(sample, counts, frozenset(map(base_language, languages)), by_language)
    totals: dict[str, float] = {}
    for script, share in _script_probabilities(counts).items():
        for language, probability in evidence.language_probabilities(script).items():
            totals[language] = totals.get(language, 0.0) + share * probability
    return totals


def count_letters(text: str) -> dict[str, int]:
    """Return the number of letters of each script that a text has."""
    scripts: Iterable[str] = ("Latin",) if text.isascii() else LETTERS
    return {script: count for script in scripts if (count := count_characters(_counted_letters(script), text))}


@cache
def _counted_letters(script: str) -> re.Pattern[str]:
    """Return the pattern of the letters to count; single ones of Greek and the like are symbols, as in α and β."""
    if script == "Latin" or script in DENSE or script in UNSPACED:
        return letters(script)
    return re.compile(f"[{LETTERS[script]}]{{2,}}")


def _script_probabilities(counts: Mapping[str, int]) -> dict[str, float]:
    """Return the probability of each script that a text is written in it. Kana belong to Han here."""
    weights: dict[str, float] = {}
    for script, count in counts.items():
        name = "Han" if script in KANA else script
        factor = DENSE_WEIGHT if script in DENSE else 1.0 if script == "Latin" else OTHER_WEIGHT
        weights[name] = weights.get(name, 0.0) + factor * count
    return _shares({script: SHARPNESS * math.log(weight) for script, weight in weights.items()})


def _shares(scores: Mapping[str, float]) -> dict[str, float]:
    """Return the probabilities whose logarithms are these scores, up to a constant."""
    top = max(scores.values(), default=0.0)
    odds = {name: math.exp(score - top) for name, score in scores.items()}
    total = sum(odds.values())
    return {name: each / total for name, each in odds.items()}


class _Evidence(NamedTuple):
    """What is known about a text before its language is decided."""

    text: str  # prose alone
    counts: Mapping[str, int]  # letters of each script
    expected: frozenset[str]  # base languages that the caller names
    profiles: Mapping[str, LanguageProfile]  # by base language

    def language_probabilities(self, script: str) -> dict[str, float]:
        """Return the probability of each language for a text that is written in a script; "" is any other language."""
        scores = {language: math.log(weight) for language, weight in self._weights(script).items()}
        judged = {language: self.profiles[language] for language in scores if language in self.profiles}
        for language, odds in self._odds(script).items():
            if language in scores:
                scores[language] += WORDS_BESIDE_PROFILE * odds if language in judged else odds
        for language, profile in judged.items():
            odds = profile.log_odds(self.text)
            scores[language] += max(-MAX_HAN_ODDS, min(MAX_HAN_ODDS, odds)) if script == "Han" else odds
        return _shares(scores)

    def _weights(self, script: str) -> dict[str, float]:
        """Return the weight of each language of a script before the text is read."""
        users = [language for language, scripts in SCRIPTS.items() if script in scripts]
        listed: Sequence[str] = {"Latin": LISTED_LANGUAGES, "Han": ("zh", "ja")}.get(script, users)
        expected = [
            language
            for language in sorted(self.expected)
            if language in users or (language in self.profiles and script in self.profiles[language].scripts)
        ]
        is_alone = script == "Han" or len(users) == 1
        return {
            "": ONLY_UNKNOWN_WEIGHT if is_alone else UNKNOWN_WEIGHT,
            **dict.fromkeys(listed, LISTED_WEIGHT),
            LIKELY_LANGUAGE[script]: LIKELY_WEIGHT,
            **dict.fromkeys(expected, EXPECTED_WEIGHT),
        }

    def _odds(self, script: str) -> dict[str, float]:
        """Return the log-odds of languages by words, or by letters where the script is not Latin."""
        if script == "Latin":
            return word_evidence(self.text)
        return {"ja": self._japanese_odds()} if script == "Han" else letter_evidence(self.text, script)

    def _japanese_odds(self) -> float:
        """Return the log-odds of Japanese against Chinese."""
        kana, han = sum(self.counts.get(script, 0) for script in KANA), self.counts.get("Han", 0)
        chinese, japanese = count_distinctive(self.text)
        odds = KANA_ODDS * (kana / (kana + han) - KANA_SHARE) if kana else max(MIN_NO_KANA_ODDS, NO_KANA_ODDS * han)
        return odds + HAN_ODDS * (japanese - chinese)


def _code(language: str, codes: Sequence[str], variant: Variant) -> str:
    """Return the caller's code for a base language, of several the one that fits the kind of Chinese."""
    own = [code for code in codes if base_language(code) == language]
    is_traditional = variant == "traditional"
    return min(own, key=lambda code: (normalise_code(code) == "zh-Hant") != is_traditional, default=language)
