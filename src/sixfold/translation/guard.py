"""Evident faults of a translation, found by comparing it with its source, and a second search that avoids them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import NamedTuple

from sixfold.decoding.options import Hypothesis, SearchOptions
from sixfold.text.chinese_quantities import chinese_quantities
from sixfold.text.english_quantities import english_quantities
from sixfold.text.language_codes import base_language
from sixfold.text.languages import LETTERS, SCRIPTS, UNSPACED, letters
from sixfold.text.numbers import numbers, numbers_differ
from sixfold.text.quantities import Difference, Quantity, find_difference
from sixfold.translation.direction import Direction
from sixfold.translation.documents.units import NO_CHARACTER, Span
from sixfold.translation.joint_search import Steps, search
from sixfold.translation.negation_check import find_negation_fault
from sixfold.translation.protection import protected_spans, remove_protected
from sixfold.translation.string_search import find_strings

# Measured by benchmarks/guard.py: with these values the guard finds 94% or more of what is cut, copied or repeated.
MIN_LENGTH_RATIO, MAX_LENGTH_RATIO = 0.3, 3.2  # the length of a translation over that of its source, see `text_length`
# Of 26,000 pairs of train/ and dev/ one in a thousand is shorter. A Chinese text of n characters has a length of 3n.
MIN_LENGTH_RATIOS = {("zh", "en"): 0.62, ("en", "zh"): 0.4}
MIN_RELIABLE_LENGTH = 50  # shorter sources have translations of any length
LONG_SOURCE, MIN_LONG_RATIO = 250, 0.35  # a long source has a shorter translation
MIN_SOURCE_LENGTH = 24  # of shorter sources the length says nothing about the translation
MIN_DIGITS = 3  # numbers with fewer digits are often written in words
MIN_NAME_SIMILARITY = 0.8  # ratio of difflib, of two spellings of one name
RETRY_BEAM = 8  # the beam of the second search, as wide as the beam of the first search for a short sentence
MAX_NAMES = 50  # names of a sentence that are looked for in its translation; a sentence with more is a list

_UNSPACED_LETTERS = letters(*UNSPACED)
_HAN_RUN = re.compile(f"[{LETTERS['Han']}]{{2,}}")
_NUMBER_WORDS = re.compile(r"[一二三四五六七八九十百千万萬两兩零〇]{2,}|\b(?:hundred|thousand|million|dozen)", re.I)
_LABEL = re.compile(r"\W*\d{1,2}[.、)）]\s*(?!\d)")  # the number of a list item
_READERS: dict[str, Callable[[str], list[Quantity]]] = {"zh": chinese_quantities, "en": english_quantities}
_LOWER_CASE_WORD = re.compile(r"(?<!\S)[a-z]{2,}(?!\S)")
_ENGLISH_RUN = re.compile(r"(?<![\w`/.-])[a-z]+(?: [a-z]+){3,}(?![\w`/.-])")
_MIXED_CASE_NAME = re.compile(  # GPT4, iPhone, JavaScript; names in capitals are often translated
    r"(?<![A-Za-z\d.-])(?!(?:Ma?c|De|Di|Du|La|Le|Fitz|Van)[A-Z]|PhD|k?m[23]\b|G[78]\b|G20\b|(?:USD|EUR|GBP|AUD|CAD|HKD|CNY|RMB)\d)"
    r"(?:[A-Za-z]+\d[A-Za-z\d]*|[a-z]+[A-Z][A-Za-z\d]*|[A-Z][a-z]+[A-Z][A-Za-z\d]*)(?![A-Za-z\d-])"
)
# Symbols of units and substances, and characters of what Chinese writes for them: 千瓦, 二氧化碳.
_SYMBOLS = (
    (
        re.compile(r"[kMGTmcdn]?(?:Wh?|Hz|V|A|Pa|J|eV|cal|bps|B|b|m[23])|kt|pH"),
        re.compile("[瓦赫伏安帕焦卡特节方吨酸]"),
    ),
    (
        re.compile(r"(?=.*\d)(?:(?:[HCNOSPF]|Si|Cl|Na|Ca|Fe|Cu|Al|Mg|Ag|Pb|Zn|Mn|Ti|Br|Hg|Th|Cd)\d?)+"),
        re.compile("[氢碳氮氧硫磷氟硅氯钠钙铁铜铝镁银铅锌锰钛溴汞钍镉水臭]"),
    ),
)
_LATIN_NAME = re.compile(r"(?<![A-Za-z\d.-])[A-Z][A-Za-z]{2,}(?![A-Za-z\d-])")
_NAME_BESIDE_HAN = re.compile(r"(?<![A-Za-z\d.-])[A-Z][A-Za-z]{3,}(?![A-Za-z\d-])")
_WORDS_IN_BRACKETS = re.compile(r"[(（]([A-Za-z][A-Za-z.'-]* [A-Za-z .'-]{1,80})[)）]")
_LATIN_ORIGINAL = re.compile(r"(?<=[\u4e00-\u9fff]) ?[(（][A-Z][A-Za-zÀ-ž .,'&-]*[)）]")  # of a name before it
_SENTENCE_END = re.compile(r"[.。!！?？…．][\"'”’」』)）\]】*_]*\s*\Z")
_PUNCTUATION_END = re.compile(r"[^\w\s][\"'”’」』)）\]】*_]*\s*\Z")
_UNFINISHED_END = re.compile(r"(?:[、，,·(（“‘「『《〈【-]|[^.。!！?？…．\"'”’」』*_][)）])\s*\Z")
_BRACKET_END = re.compile(r"[)）\]】]\W*\Z")


class Fault(NamedTuple):
    """A fault of a translation: a kind for programs, and a sentence for people."""

    kind: str
    message: str
    span: Span | None = None  # in the translation


def find_faults(source: str, translation: str, languages: tuple[str, str]) -> list[Fault]:
    """Return the faults of the translation of one sentence.

    Copies, numbers and names are compared only in translations without other faults.
    """
    if not any(char.isalpha() for char in source):
        return []
    if not translation.strip():
        return [Fault("empty", "the model returned no translation for a sentence")]
    faults = [
        *_loops(source, translation),
        *_damage(source, translation),
        *_wrong_length(source, translation, languages),
        *_wrong_script(source, translation, languages),
    ]
    if not faults:
        faults = [
            *_copies(source, translation, languages),
            *_different_numbers(source, translation, languages),
            *_different_names(source, translation, languages),
        ]
    return faults


def check(direction: Direction, source: str, translation: str) -> Steps[list[Fault]]:
    """Return the faults of a translation: those of `find_faults`, or else a negation that one of the texts lacks."""
    faults = find_faults(source, translation, direction.languages)
    if not faults:
        message = yield from find_negation_fault(direction, source, translation)
        faults = [Fault("negation", message)] if message else []
    return faults


def _loops(source: str, translation: str) -> Iterator[Fault]:
    span = find_repetition(translation)
    if span is not None and find_repetition(source) is None:
        yield Fault("loop", "the translation repeats the same words again and again", span)


def _damage(source: str, translation: str) -> Iterator[Fault]:
    """Yield a fault for U+FFFD: rare characters are decoded from bytes, and some bytes make no character."""
    index = translation.find(NO_CHARACTER)
    if index >= 0 and NO_CHARACTER not in source:
        yield Fault("damaged", "the translation has bytes that make no character", (index, index + 1))


def find_repetition(text: str) -> Span | None:
    """Return the span where a text repeats a run of one to twelve words or characters; None if it repeats none.

    A run of one must occur six times, one of two or three four times, a longer one three times. If the second half of a
    text repeats the first, its span is returned.
    """
    words = [match.span() for match in re.finditer(r"\S+", text)]
    characters = [(index, index + 1) for index, char in enumerate(text) if not char.isspace()]
    for spans in (words, characters):
        units = [text[slice(*span)].casefold() for span in spans]
        for size in range(1, 13):
            times = 6 if size == 1 else 4 if size < 4 else 3
            same = 0  # units in a row that equal the unit `size` before them
            for index in range(len(units) - size):
                same = same + 1 if units[index] == units[index + size] else 0
                if same >= size * (times - 1) and any(char.isalpha() for char in "".join(units[index : index + size])):
                    return spans[index + 1 - same][0], spans[index + size][1]
    alphanumeric = [index for index, _ in characters if text[index].isalnum()]
    middle = len(alphanumeric) // 2
    if (
        middle >= 6
        and len(alphanumeric) % 2 == 0
        and all(
            text[first].casefold() == text[second].casefold()
            for first, second in zip(alphanumeric[:middle], alphanumeric[middle:], strict=True)
        )
    ):
        return alphanumeric[middle], len(text)
    return None


def text_length(text: str) -> int:
    """Return the length of a text in characters; a letter of a script without spaces counts as three."""
    return len(text) + 2 * sum(map(len, _UNSPACED_LETTERS.findall(text)))


def _wrong_length(source: str, translation: str, languages: tuple[str, str]) -> Iterator[Fault]:
    length, source_length = text_length(translation), text_length(_LATIN_ORIGINAL.sub("", source))
    if length < _min_ratio(source_length, languages) * source_length and source_length >= MIN_SOURCE_LENGTH:
        yield Fault("short", "the translation is much shorter than its source")
    elif length > MAX_LENGTH_RATIO * max(source_length, MIN_SOURCE_LENGTH):
        yield Fault("long", "the translation is much longer than its source")
    elif _SENTENCE_END.search(source) and source_length >= MIN_SOURCE_LENGTH and not _is_finished(source, translation):
        span = max(0, len(translation) - 1), len(translation)
        yield Fault("cut", "the translation ends in the middle of a sentence", span)


def _min_ratio(source_length: int, languages: tuple[str, str]) -> float:
    """Return how long a translation is at least, as a ratio of the lengths of the texts."""
    first, second = map(base_language, languages)
    ratio = MIN_LENGTH_RATIOS.get((first, second), MIN_LENGTH_RATIO)
    if source_length < MIN_RELIABLE_LENGTH:
        return MIN_LENGTH_RATIO
    return min(ratio, MIN_LONG_RATIO) if source_length >= LONG_SOURCE else ratio


def _is_finished(source: str, translation: str) -> bool:
    """Return whether a translation ends as a sentence may: not in a word, with a comma, or in front of a bracket."""
    if not _PUNCTUATION_END.search(translation):
        return False
    return not _UNFINISHED_END.search(translation) or bool(_BRACKET_END.search(source))


def _wrong_script(source: str, translation: str, languages: tuple[str, str]) -> Iterator[Fault]:
    """Yield a fault if the translation is not in the target's script, or has words in the source's."""
    target_scripts, source_scripts = (_scripts(language) for language in reversed(languages))
    if not target_scripts or not source_scripts or not set(target_scripts).isdisjoint(source_scripts):
        return
    if not letters(*target_scripts).search(translation) and (
        letters(*source_scripts).search(source) if source_scripts != ("Latin",) else _has_lower_case_words(source)
    ):
        yield Fault("script", "the translation is not in the target's script", (0, len(translation)))
    elif "Han" in source_scripts:
        yield from _untranslated_words(source, translation, _HAN_RUN)
    elif source_scripts == ("Latin",):
        yield from _untranslated_words(source, translation, _ENGLISH_RUN)


def _untranslated_words(source: str, translation: str, run: re.Pattern[str]) -> Iterator[Fault]:
    """Yield a fault for the first run of words in a translation that its source has too."""
    for match in run.finditer(translation):
        if match[0] in source:
            yield Fault("script", "words of the source are left in the translation", match.span())
            return


def _has_lower_case_words(source: str) -> bool:
    return len(_LOWER_CASE_WORD.findall(source)) >= 4


def _scripts(language: str) -> tuple[str, ...]:
    return SCRIPTS.get(re.split("[-_]", language.lower())[0], ())


def _copies(source: str, translation: str, languages: tuple[str, str]) -> Iterator[Fault]:
    """Yield a fault for a copy of the source, between languages of one script; for others the script tells."""
    is_copy = source.split() == translation.split()
    if languages[0] != languages[1] and is_copy and len(_LOWER_CASE_WORD.findall(source)) >= 3:
        yield Fault("copied", "the translation is the same as its source", (0, len(translation)))


def number_difference(source: str, translation: str, languages: tuple[str, str]) -> Difference | None:
    """Return the quantities that differ between a Chinese and an English text; None for other languages."""
    readers = [_READERS.get(base_language(language)) for language in languages]
    if readers[0] is None or readers[1] is None or readers[0] is readers[1]:
        return None
    return find_difference(readers[0](_blank_protected(source)), readers[1](_blank_protected(translation)))


def _different_numbers(source: str, translation: str, languages: tuple[str, str]) -> Iterator[Fault]:
    """Yield a fault for numbers that differ: by value between Chinese and English, else by digits."""
    difference = number_difference(source, translation, languages)
    if difference is None:
        yield from _different_digits(source, translation)
        return
    missing, extra = (
        ", ".join(text[slice(*quantity.span)].strip() for quantity in quantities)
        for text, quantities in ((source, difference.missing), (translation, difference.extra))
    )
    span = difference.extra[0].span if difference.extra else None
    if missing and extra:
        yield Fault("numbers", f"figures differ: {missing} / {extra}", span)
    elif missing:
        yield Fault("numbers", f"figures are missing: {missing}")
    elif extra:
        yield Fault("numbers", f"figures are not in the source: {extra}", span)


def _blank_protected(text: str) -> str:
    """Return a text of the same length with spaces in place of what a translation must copy and of a list number."""
    for start, end in [*protected_spans(text), *(match.span() for match in [_LABEL.match(text)] if match)]:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def _different_digits(source: str, translation: str) -> Iterator[Fault]:
    """Yield a fault for numbers in digits that differ, or that are missing where they are seldom written in words."""
    if difference := numbers_differ(source, translation):
        yield Fault("numbers", f"figures differ: {difference}")
        return
    expected = numbers(source)
    digits = "".join(filter(str.isdecimal, unicodedata.normalize("NFKC", translation)))
    missing = [number for number in expected if not _may_be_words(number) and number.rstrip("0") not in digits]
    if missing and not _NUMBER_WORDS.search(translation):
        yield Fault("numbers", f"figures are missing: {', '.join(missing)}")


def _may_be_words(number: str) -> bool:
    """Return whether a number is often written in words, as twelve and five million are."""
    return len(number) < MIN_DIGITS or (len(number.rstrip("0")) == 1 and len(number) > MIN_DIGITS + 1)


def _different_names(source: str, translation: str, languages: tuple[str, str]) -> Iterator[Fault]:
    """Yield a fault for placeholders and names in Latin letters that only one of the texts has."""
    placeholders = [source[slice(*span)] for span in protected_spans(source)]
    positions = find_strings(translation, placeholders)
    missing = [placeholder for placeholder in placeholders if not positions[placeholder]]
    is_latin = "Latin" in _scripts(languages[0]) or not _scripts(languages[0])
    prose = remove_protected(source)
    mixed = [name for name in _MIXED_CASE_NAME.findall(prose) if not _is_in_words(name, translation)]
    names = [*mixed, *([] if is_latin else _LATIN_NAME.findall(prose))]
    distinct = list(dict.fromkeys(names))[:MAX_NAMES]
    folded = _fold(translation) if distinct else ""
    missing += [name for name in distinct if not _has_name(folded, _fold(name))]
    if missing:
        yield Fault("names", f"missing in the translation: {', '.join(missing)}")
    elif is_latin and "Han" in _scripts(languages[1]):
        yield from _added_names(source, translation)


def _is_in_words(name: str, translation: str) -> bool:
    """Return whether a name is a symbol, and a Chinese translation may have it in words."""
    return any(symbol.fullmatch(name) and words.search(translation) for symbol, words in _SYMBOLS)


def _added_names(source: str, translation: str) -> Iterator[Fault]:
    """Yield a fault for the first name in Latin letters, beside Han characters, that is not in its source.

    Several words in brackets may be the original of a translated name.
    """
    prose = remove_protected(translation)
    if not _NAME_BESIDE_HAN.search(prose):
        return
    folded = _fold(source)

    def without_original(match: re.Match[str]) -> str:
        return match[0] if any(_has_name(folded, word) for word in _fold(match[1]).split()) else ""

    for name in _NAME_BESIDE_HAN.findall(_WORDS_IN_BRACKETS.sub(without_original, prose)):
        if not _has_name(folded, _fold(name)):
            yield Fault("names", f"not in the source: {name}", _find_span(translation, name))
            return


def _find_span(text: str, part: str) -> Span | None:
    start = text.find(part)
    return (start, start + len(part)) if start >= 0 else None


def _fold(text: str) -> str:
    """Return a text without case and accents."""
    folded = unicodedata.normalize("NFKD", text).casefold()
    return "".join(char for char in folded if not unicodedata.combining(char))


def _has_name(translation: str, name: str) -> bool:
    """Return whether a translation has a name: letter by letter, in another spelling, or abbreviated with dots."""
    singular = name.rstrip("s") if len(name) > 4 else name
    if singular in translation or name in translation.replace(".", ""):
        return True
    words = re.findall(r"\w+", translation)
    return len(name) > 4 and bool(get_close_matches(name, words, n=1, cutoff=MIN_NAME_SIMILARITY))


def search_without_faults(
    direction: Direction, sentence: str, ids: Sequence[int], faults: Sequence[Fault], options: SearchOptions
) -> Steps[list[Hypothesis]]:
    """Search again with constraints against the faults, and return the hypotheses, those with fewest faults first."""
    kinds = {fault.kind for fault in faults}
    retry = replace(options, beam=max(RETRY_BEAM, options.beam), n_best=RETRY_BEAM, ignore_shortlist=True)
    if "loop" in kinds or "long" in kinds:
        retry = replace(retry, no_repeat=4)
    if "damaged" in kinds:
        retry = replace(retry, banned=direction.target_tokenizer.byte_ids)
    if kinds & {"short", "cut", "empty"}:
        retry = replace(retry, min_length=min(retry.max_length, max(3, len(ids) // 2)))

    def count_faults(hypotheses: Sequence[Hypothesis]) -> Steps[list[int]]:
        counts = []
        for hypothesis in hypotheses:
            faults = yield from check(direction, sentence, direction.decode_target(hypothesis.tokens))
            counts.append(len(faults))
        return counts

    source = direction.encoder_input(ids)
    hypotheses = yield from search(source, retry)
    counts = yield from count_faults(hypotheses)
    if retry.no_repeat and all(counts):  # a word of one token loops without any run of four
        more = yield from search(source, replace(retry, no_repeat=2))
        hypotheses, counts = [*hypotheses, *more], [*counts, *(yield from count_faults(more))]
    return [hypotheses[index] for index in sorted(range(len(hypotheses)), key=counts.__getitem__)]
