"""Text as people type it in a hurry: slips of the fingers, short forms, characters of the same sound, no capitals.

Each function takes a text and a source of chance, and returns a changed text. What a text means stays clear, so that a
model can learn to translate it like the text itself.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

Noise = Callable[[str, random.Random], str]

KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
NEXT_KEYS = {key: row[max(0, at - 1) : at] + row[at + 1 : at + 2] for row in KEYS for at, key in enumerate(row)}
SHORT_FORMS = {
    "you": ("u",), "are": ("r",), "your": ("ur", "you're"), "you're": ("your", "youre", "ur"),
    "please": ("pls", "plz"), "thanks": ("thx", "tks"), "because": ("cuz", "becuase", "bc"), "going to": ("gonna",),
    "want to": ("wanna",), "do not": ("dont",), "i am": ("im", "i'm"), "i'm": ("im",), "it's": ("its",),
    "their": ("there",), "they're": ("their", "theyre"), "too": ("to",), "tomorrow": ("tomorow", "tommorow", "tmr"),
    "today": ("2day",), "tonight": ("tonite",), "okay": ("ok",), "people": ("ppl",), "definitely": ("definately",),
    "received": ("recieved",), "receive": ("recieve",), "believe": ("beleive",), "friend": ("freind",),
    "weird": ("wierd",), "separate": ("seperate",), "until": ("untill",), "really": ("realy",),
    "beautiful": ("beatiful", "beutiful"), "which": ("wich",), "restaurant": ("resturant",), "tired": ("tierd",),
    "interesting": ("intresting",), "different": ("diffrent",), "favorite": ("favorit",), "business": ("buisness",),
    "government": ("goverment",), "environment": ("enviroment",), "success": ("sucess",),
    "necessary": ("neccessary",), "address": ("adress",), "a lot": ("alot",), "would": ("wuold",),
    "should": ("shoud",), "about": ("abt",), "before": ("b4",), "message": ("msg",), "see you": ("cu", "see u"),
}  # fmt: skip
_SHORT = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(SHORT_FORMS, key=len, reverse=True)))})\b", re.IGNORECASE)
_STOPS = re.compile(r"[.。!！?？]+\Z")
WIDE_TO_PLAIN = str.maketrans("，。？！：；（）", ",.?!:;()")
PLAIN_TO_WIDE = {**{code: code + 0xFEE0 for code in range(0x21, 0x7F)}, 0x20: 0x3000}


def slip(word: str, chance: random.Random) -> str:
    """Return a word of three letters or more with two letters swapped, one dropped, doubled, wrong or too many."""
    at = chance.randrange(0 if len(word) > 4 and chance.random() < 0.15 else 1, len(word) - 1)
    before, letter, after = word[:at], word[at], word[at + 1 :]
    beside = chance.choice(NEXT_KEYS.get(letter.lower()) or letter)
    slips = (after[0] + letter + after[1:], after[0] + letter + after[1:], after, letter + letter + after,
             beside + after, letter + beside + after)  # fmt: skip
    return before + chance.choice(slips)


def with_slips(text: str, chance: random.Random) -> str:
    """Return a text with a slip in one word out of six or so, and in one at least."""
    words = text.split(" ")
    long = [
        at for at, word in enumerate(words) if len(word.strip(",.?!")) > 2 and word[:-1].isalpha() and word.isascii()
    ]
    count = max(1, sum(chance.random() < 1 / 6 for _ in long))
    for at in chance.sample(long, min(len(long), count)):
        stem = words[at].rstrip(",.?!")
        words[at] = slip(stem, chance) + words[at][len(stem) :]
    return " ".join(words)


def with_short_forms(text: str, chance: random.Random) -> str:
    """Return a text with the short forms and common misspellings of messages: "pls", "u", "recieve"."""
    return _SHORT.sub(lambda match: chance.choice(SHORT_FORMS[match[0].lower()]), text)


def without_stop(text: str, _: random.Random) -> str:
    """Return a text without its last stop, question mark or exclamation mark."""
    return _STOPS.sub("", text)


def without_apostrophes(text: str, _: random.Random) -> str:
    """Return a text without the apostrophes of "don't" and "it's"."""
    return re.sub("['’]", "", text)


def lower(text: str, _: random.Random) -> str:
    """Return a text without capitals."""
    return text.lower()


def joined(text: str, chance: random.Random) -> str:
    """Return a text in which one space between two words is missing."""
    spaces = [at for at, char in enumerate(text) if char == " "]
    at = chance.choice(spaces) if spaces else -1
    return text[:at] + text[at + 1 :] if at > 0 else text


def in_turn(*noises: Noise) -> Noise:
    """Return the noise that applies several ones in order."""

    def all_of_them(text: str, chance: random.Random) -> str:
        for noise in noises:
            text = noise(text, chance)
        return text

    return all_of_them


ENGLISH_NOISES: Sequence[Noise] = (
    lower, in_turn(lower, without_stop), in_turn(lower, without_apostrophes, without_stop), with_slips, with_slips,
    in_turn(lower, with_slips), in_turn(lower, without_stop, with_slips),
    in_turn(lower, with_short_forms, without_stop), in_turn(with_short_forms, with_slips),
    in_turn(with_slips, joined), lambda text, _: text.translate(PLAIN_TO_WIDE),
    lambda text, _: text.upper(),
)  # fmt: skip


def spaced(text: str, chance: random.Random) -> str:
    """Return a Chinese text with spaces in it: between all characters, at some places, or instead of commas."""
    kind = chance.random()
    if kind < 0.3 and len(text) <= 12:
        return " ".join(text)
    if kind < 0.6:
        return re.sub("[，、]", " ", text)
    return "".join(char + " " * (chance.random() < 0.2) for char in text).strip()


class Homophones:
    """Writes characters and words of the same sound in each other's place, the frequent ones most often."""

    def __init__(self, texts: Iterable[str], words: Iterable[str], reading: Callable[[str], str]) -> None:
        """Count the characters of texts; `words` are Chinese words, and `reading` gives the sound of a text."""
        counts = Counter(char for text in texts for char in text if "\u4e00" <= char <= "\u9fff")
        frequent = {char: count for char, count in counts.items() if count >= 50}
        self._characters = _by_sound(frequent, reading)
        self._words = _by_sound({word: 1 for word in words if len(word) == 2 and set(word) <= frequent.keys()}, reading)
        self._reading = reading

    def replace(self, text: str, chance: random.Random) -> str:
        """Return a text with one word or character replaced by another one of the same sound."""
        starts = [at for at, char in enumerate(text) if "\u4e00" <= char <= "\u9fff"]
        chance.shuffle(starts)
        for at in starts:
            size = 2 if chance.random() < 0.4 else 1
            part = text[at : at + size]
            others = (self._words if size == 2 else self._characters).get(self._reading(part), {})
            choices = [other for other in others if other != part]
            if choices:
                other = chance.choices(choices, [others[choice] for choice in choices])[0]
                return text[:at] + other + text[at + size :]
        return text


def _by_sound(counts: Mapping[str, int], reading: Callable[[str], str]) -> dict[str, dict[str, int]]:
    by_sound: dict[str, dict[str, int]] = {}
    for text, count in counts.items():
        by_sound.setdefault(reading(text), {})[text] = count
    return by_sound


def chinese_noises(homophones: Homophones) -> Sequence[Noise]:
    """Return the noises of Chinese text."""
    return (
        without_stop, lambda text, _: text.translate(WIDE_TO_PLAIN), spaced, homophones.replace, homophones.replace,
        in_turn(homophones.replace, without_stop), in_turn(spaced, without_stop),
    )  # fmt: skip
