"""Tells whether a text is clearly in another language than expected, and what languages are called."""

from __future__ import annotations

from collections.abc import Mapping

from sixfold.text.detection import NO_PROFILES, count_letters, language_probabilities
from sixfold.text.language_codes import base_language
from sixfold.text.language_profiles import LanguageProfile
from sixfold.text.languages import DENSE, SAMPLE_CHARACTERS, SCRIPTS
from sixfold.text.word_lists import LISTED_LANGUAGES, has_listed_word, latin_words

MAX_EXPECTED_PROBABILITY = 0.1  # of the expected language, for a text that is clearly in another
MIN_WORDS = 4  # a text in Latin letters needs, for its words to decide
MIN_LETTERS = 4  # a text in any other script needs
MIN_SCRIPT_SHARE = 0.8  # of one script in all letters; a text with less is a mixture and stays undecided

NAMES = {
    "en": "English", "zh": "Chinese", "de": "German", "fr": "French", "es": "Spanish", "it": "Italian",
    "pt": "Portuguese", "nl": "Dutch", "sv": "Swedish", "da": "Danish", "nb": "Norwegian", "cs": "Czech",
    "pl": "Polish", "ro": "Romanian", "hu": "Hungarian", "fi": "Finnish", "tr": "Turkish", "vi": "Vietnamese",
    "id": "Indonesian", "ja": "Japanese", "ko": "Korean",
}  # fmt: skip


def name_of(language: str) -> str:
    """Return the English name of a language; one that has no name here is described by its script."""
    if language in NAMES:
        return NAMES[language]
    scripts = SCRIPTS.get(language, ())
    return f"a language in {scripts[0]} letters" if scripts else language


def other_language(text: str, expected: str, profiles: Mapping[str, LanguageProfile] = NO_PROFILES) -> str:
    """Return the language of a text if it is clearly not the expected one, and "" otherwise.

    Short texts, names, code and mixtures are never clear. Among languages in Latin letters, an expected language that
    has neither a word list nor a profile is not told from others.
    """
    expected, sample = base_language(expected), text[:SAMPLE_CHARACTERS]
    probabilities = language_probabilities(sample, (expected,), profiles)
    language = max(filter(None, probabilities), key=probabilities.__getitem__, default="")
    if not SCRIPTS.get(expected) or probabilities.get(expected, 0.0) > MAX_EXPECTED_PROBABILITY:
        return ""
    script = _main_script(sample)
    if script != "Latin":
        is_clear = script and script not in SCRIPTS[expected]
        return language if language and (is_clear or (script == "Han" and language != expected)) else ""
    has_list = "Latin" not in SCRIPTS[expected] or expected in LISTED_LANGUAGES
    has_profile = any(base_language(code) == expected for code in profiles)
    words = latin_words(sample)
    is_clear = len(words) >= MIN_WORDS and has_listed_word(words, language) and (has_list or has_profile)
    return language if is_clear else ""


def _main_script(text: str) -> str:
    """Return the script of nearly all letters of a text, with kana as Han, or "" if they are few or mixed."""
    counts = count_letters(text)
    weights: dict[str, int] = {}
    for script, count in counts.items():
        name = "Han" if script in ("Hiragana", "Katakana") else script
        weights[name] = weights.get(name, 0) + count * (3 if script in DENSE else 1)
    main = max(weights, key=weights.__getitem__, default="")
    is_main = main and weights[main] >= MIN_SCRIPT_SHARE * sum(weights.values())
    return main if is_main and weights[main] >= MIN_LETTERS * (3 if main in DENSE else 1) else ""
