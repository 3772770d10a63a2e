"""A profile of a language: its frequent letter sequences, learnt from text, and how well they predict new text."""

from __future__ import annotations

import base64
import json
import math
import random
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice, pairwise
from typing import Any, TypeVar

from sixfold.text.language_codes import base_language
from sixfold.text.languages import (
    DENSE,
    LETTERS,
    SAMPLE_CHARACTERS,
    SCRIPTS,
    count_characters,
    letters,
    prose_of,
    weighted_length,
)

Texts = TypeVar("Texts", bound=Sequence[Any])  # a record, whose last values are texts

VERSION = 1
MAX_TEXTS = 20_000  # that a profile is learnt from
MAX_ORDER = 4  # letters of the longest sequence
MAX_SEQUENCES = 8000
MAX_DENSE_SEQUENCES = 5000  # of a language with thousands of characters, each of which takes more room in a file
MAX_UNPACKED_BYTES = 2**20  # of a stored profile
MIN_SCRIPT_SHARE = 0.1  # of the letters that a language of no known script is learnt from
HELD_OUT = 10  # every tenth text is not learnt from: it shows how well the profile predicts new text
MIN_HELD_OUT = 5  # samples of a length whose mean and spread are believed
MIN_LETTERS = 20_000  # that a profile is learnt from; a character of Chinese counts as three
HALF_TRUSTED_LETTERS = 200_000  # a profile of so many letters counts half: it takes other subjects for other languages
LENGTHS = (4, 8, 16, 32, 64, 128)  # letters of the samples of held-out text
COST_STEP = 0.05  # nats of one step of a stored cost
BACKOFF_COST = 0.5  # nats for each letter by which a sequence is shorter than it could be
UNSEEN_COST = 9.0  # nats of a letter that was never seen; no letter costs more

# The mean cost of text in another language of the same script lies between that of the language itself (0) and that of
# its letters in random order (1), at this share and with this standard deviation. Eleven languages were compared with
# twenty others each: the means were 0.71 to 0.89. Close relatives, such as Norwegian of Danish, are at 0.3 to 0.5.
FOREIGN_SHARE = 0.5
FOREIGN_SPREAD = 0.25
OWN_SPREAD = 0.2  # of texts of other subjects than those that were learnt from, in the same unit
MAX_LOG_ODDS = 8.0


@dataclass(frozen=True)
class LengthStatistics:
    """Mean and standard deviation of the cost of a letter in held-out text of a length."""

    length: int  # letters, with one space between words
    mean: float
    deviation: float


@dataclass(frozen=True)
class LanguageProfile:
    """How much the letters of a text cost in a language, in nats, and what they usually cost.

    The cost of a letter is the negative logarithm of its probability after the three letters before it. Only letters of
    the scripts of the language count, and a space between words.
    """

    scripts: tuple[str, ...]
    costs: Mapping[str, float]  # of the last letter of a sequence, given the letters before it
    statistics: Sequence[LengthStatistics]  # of held-out text, by length
    shuffled: float  # mean cost of a letter, if the letters of held-out text are put in random order
    letters: int  # that it was learnt from; a character of Chinese counts as three

    def mean_cost(self, text: str) -> tuple[float, int]:
        """Return the mean cost of a letter of a text, and how many letters and spaces were counted."""
        return _mean_cost(self.costs, letters_of(text, self.scripts))

    def log_odds(self, text: str) -> float:
        """Return the logarithm of how much likelier a text is in this language than in others of its scripts.

        0 says nothing: the text has no letters of these scripts.
        """
        cost, length = self.mean_cost(text)
        if not length:
            return 0.0
        mean, deviation = self._usual(length)
        gap = max(self.shuffled - mean, 0.1)
        own_deviation = math.hypot(deviation, OWN_SPREAD * gap)
        foreign_deviation = math.hypot(deviation, FOREIGN_SPREAD * gap)
        cost = max(cost, mean)  # a few frequent letters are easy to predict, but no better evidence than usual text
        own = ((cost - mean) / own_deviation) ** 2 / 2 + math.log(own_deviation)
        foreign = ((cost - mean - FOREIGN_SHARE * gap) / foreign_deviation) ** 2 / 2 + math.log(foreign_deviation)
        trust = self.letters / (self.letters + HALF_TRUSTED_LETTERS)
        return trust * max(-MAX_LOG_ODDS, min(MAX_LOG_ODDS, foreign - own))

    def _usual(self, length: int) -> tuple[float, float]:
        """Return mean and standard deviation of the cost of a letter in text of a length."""
        first, last = self.statistics[0], self.statistics[-1]
        if length <= first.length:
            return first.mean, first.deviation * math.sqrt(first.length / length)
        for shorter, longer in pairwise(self.statistics):
            if length <= longer.length:
                share = math.log(length / shorter.length) / math.log(longer.length / shorter.length)
                return (
                    shorter.mean + share * (longer.mean - shorter.mean),
                    shorter.deviation + share * (longer.deviation - shorter.deviation),
                )
        return last.mean, last.deviation

    def to_json(self) -> dict[str, Any]:
        """Return the profile as a table of JSON, of 10 to 30 KB."""
        ordered = sorted(self.costs, key=lambda sequence: (len(sequence), sequence))
        # Sorted sequences of one length, written column by column, have long runs of the same letter.
        columns = [["".join(column) for column in zip(*group, strict=True)] for _, group in groupby(ordered, key=len)]
        steps = bytes(min(255, round(self.costs[sequence] / COST_STEP)) for sequence in ordered)
        return {
            "version": VERSION,
            "scripts": list(self.scripts),
            "sequences": _pack("\n".join(column for group in columns for column in group).encode()),
            "costs": _pack(steps),
            "statistics": [[each.length, round(each.mean, 3), round(each.deviation, 3)] for each in self.statistics],
            "shuffled": round(self.shuffled, 3),
            "letters": self.letters,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> LanguageProfile:
        """Return a profile from the result of `to_json`; raise ValueError, KeyError or TypeError if it is damaged."""
        columns = iter(_unpack(stored["sequences"]).decode().split("\n"))
        sequences: list[str] = []
        order = 1
        while group := list(islice(columns, order)):
            sequences += map("".join, zip(*group, strict=True))
            order += 1
        steps = _unpack(stored["costs"])
        costs = {sequence: step * COST_STEP for sequence, step in zip(sequences, steps, strict=True)}
        statistics = [
            LengthStatistics(int(length), float(mean), float(deviation))
            for length, mean, deviation in stored["statistics"]
        ]
        scripts = tuple(stored["scripts"])
        lengths = [each.length for each in statistics]
        is_valid = scripts and set(scripts) <= LETTERS.keys() and lengths and lengths == sorted(set(lengths))
        shuffled = float(stored["shuffled"])
        is_finite = all(map(math.isfinite, [shuffled, *(each.mean for each in statistics)]))
        if not is_valid or not is_finite or lengths[0] < 1 or not all(each.deviation > 0 for each in statistics):
            raise ValueError("the profile of a language is damaged")
        return cls(scripts, costs, statistics, shuffled, max(0, int(stored["letters"])))


class ProfileLearner:
    """Learns the profiles of the languages of records from a random sample of them, in constant memory."""

    def __init__(self, languages: Sequence[str]) -> None:
        self._languages = languages
        self._generator = random.Random(0)
        self._seen = 0
        self._sample: list[tuple[str, ...]] = []

    def watch(self, records: Iterable[Texts]) -> Iterator[Texts]:
        """Yield every record, which has a text in each language, and keep a uniform sample of them."""
        for record in records:
            self.add(record[-len(self._languages) :])
            yield record

    def add(self, texts: Sequence[str]) -> None:
        """Add a record to the sample by chance; one that is kept takes the place of another when there are enough."""
        self._seen += 1
        slot = len(self._sample) if self._seen <= MAX_TEXTS else self._generator.randrange(self._seen)
        if slot < MAX_TEXTS:
            self._sample[slot : slot + 1] = [tuple(text[:SAMPLE_CHARACTERS] for text in texts)]

    def profiles(self) -> dict[str, LanguageProfile]:
        """Return the profile of each language that has a code and enough text."""
        learnt = {
            language: learn_profile((texts[column] for texts in self._sample), language)
            for column, language in enumerate(self._languages)
            if language
        }
        return {language: profile for language, profile in learnt.items() if profile is not None}


def learn_profile(texts: Iterable[str], language: str) -> LanguageProfile | None:
    """Learn a profile from texts, which are best a sample of all that a model will read; None if they are too few.

    Twenty thousand lines take a few seconds. The same texts in the same order give the same profile.
    """
    samples = [prose_of(text).lower() for text in dict.fromkeys(texts)]
    scripts = SCRIPTS.get(base_language(language)) or _scripts_of(samples)
    samples = [sample for text in samples if (sample := _spaced(text, scripts))]
    learnt = [sample for number, sample in enumerate(samples) if number % HELD_OUT != HELD_OUT - 1]
    count = sum(map(weighted_length, learnt))
    if count < MIN_LETTERS:
        return None
    costs = _costs(learnt, MAX_SEQUENCES if set(scripts).isdisjoint(DENSE) else MAX_DENSE_SEQUENCES)
    statistics, shuffled = _measure(costs, samples[HELD_OUT - 1 :: HELD_OUT])
    if not statistics:
        return None
    # Through JSON once, so that a new profile equals a loaded one to the last digit.
    return LanguageProfile.from_json(LanguageProfile(scripts, costs, statistics, shuffled, count).to_json())


def letters_of(text: str, scripts: Sequence[str]) -> str:
    """Return the words of a text, in small letters of these scripts, with a space before and after each; "" if none."""
    return _spaced(prose_of(text[:SAMPLE_CHARACTERS]).lower(), scripts)


def _spaced(text: str, scripts: Sequence[str]) -> str:
    runs = letters(*scripts).findall(text)
    return f" {' '.join(runs)} " if runs else ""


def _scripts_of(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the scripts of texts whose language has none here, the most frequent first."""
    counts = {script: sum(count_characters(letters(script), text) for text in texts) for script in LETTERS}
    total = sum(counts.values())
    frequent = [script for script, count in counts.items() if count and count >= MIN_SCRIPT_SHARE * total]
    return tuple(sorted(frequent, key=lambda script: -counts[script])) or ("Latin",)


def _costs(samples: Sequence[str], size: int) -> dict[str, float]:
    """Return the costs of the `size` most frequent sequences, rounded as they are stored."""
    counts: Counter[str] = Counter()
    for order in range(1, MAX_ORDER + 1):
        for sample in samples:
            counts.update(sample[first : first + order] for first in range(len(sample) - order + 1))
        counts = Counter(dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:size]))
    total = sum(count for sequence, count in counts.items() if len(sequence) == 1)
    return {
        sequence: round(-math.log(count / (counts[sequence[:-1]] if sequence[1:] else total)) / COST_STEP) * COST_STEP
        for sequence, count in counts.items()
    }


def _mean_cost(costs: Mapping[str, float], sample: str) -> tuple[float, int]:
    """Return the mean cost of the letters after the first of a sample, which is a space, and how many they are."""
    total = 0.0
    for end in range(2, len(sample) + 1):
        backoff = 0.0
        for first in range(max(0, end - MAX_ORDER), end):
            cost = costs.get(sample[first:end])
            if cost is not None:
                total += min(cost + backoff, UNSEEN_COST)
                break
            backoff += BACKOFF_COST
        else:
            total += UNSEEN_COST
    return total / max(1, len(sample) - 1), max(0, len(sample) - 1)


def _measure(costs: Mapping[str, float], samples: Sequence[str]) -> tuple[list[LengthStatistics], float]:
    """Return what letters of held-out text cost at each length, and what they cost in random order."""
    generator = random.Random(0)
    statistics: list[LengthStatistics] = []
    shuffled = 0.0
    for length in LENGTHS:
        parts = [part for sample in samples if (part := _part(sample, length, generator))]
        if len(parts) < MIN_HELD_OUT:
            continue
        values = [_mean_cost(costs, part)[0] for part in parts]
        mean = sum(values) / len(values)
        variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
        statistics.append(LengthStatistics(length, mean, max(COST_STEP, math.sqrt(variance))))
        mixed = ["".join(generator.sample(part, len(part))) for part in parts]
        shuffled = sum(_mean_cost(costs, f" {part} ")[0] for part in mixed) / len(mixed)
    return statistics, shuffled


def _part(sample: str, length: int, generator: random.Random) -> str:
    """Return about `length` letters of a sample from the beginning of a word on; "" if there are not so many."""
    begins = [place for place, letter in enumerate(sample[: len(sample) - length]) if letter == " "]
    if not begins:
        return ""
    begin = generator.choice(begins)
    end = sample.find(" ", begin + length)
    return sample[begin : end + 1] if end <= begin + 2 * length else sample[begin : begin + length]


def profiles_to_json(profiles: Mapping[str, LanguageProfile]) -> str:
    """Return the profiles of languages as JSON, for a model file."""
    return json.dumps({language: profile.to_json() for language, profile in profiles.items()})


def profiles_from_json(text: str) -> dict[str, LanguageProfile]:
    """Return profiles from the result of `profiles_to_json`; raise ValueError, KeyError or TypeError if it is damaged.

    Profiles of a newer version are left out: a model works without them.
    """
    stored = json.loads(text)
    if not isinstance(stored, dict) or not all(isinstance(profile, dict) for profile in stored.values()):
        raise ValueError("expected a table of profiles")
    return {
        language: LanguageProfile.from_json(profile)
        for language, profile in stored.items()
        if profile["version"] == VERSION
    }


def _pack(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 9)).decode()


def _unpack(text: str) -> bytes:
    unpacker = zlib.decompressobj()
    try:
        data = unpacker.decompress(base64.b64decode(text, validate=True), MAX_UNPACKED_BYTES)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if not unpacker.eof:
        raise ValueError("the profile of a language is cut off or too large")
    return data
