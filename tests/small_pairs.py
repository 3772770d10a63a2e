"""Made-up translations: a thousand words with a name in each of two scripts, in sentences that share no order."""

import random

LETTERS = "bdfgklmnprstvz"
VOWELS = "aeiou"


def dictionary(size: int = 400) -> list[tuple[str, str]]:
    """Two characters, and the word that stands for them."""
    chance = random.Random(1)
    words = [f"{first}{vowel}{second}" for first in LETTERS for vowel in VOWELS for second in LETTERS]
    chance.shuffle(words)
    return [(chr(0x4E00 + 2 * n) + chr(0x4E01 + 2 * n), words[n]) for n in range(size)]


def pairs(count: int, seed: int = 1) -> list[tuple[str, str]]:
    """Sentences of six to fourteen words, drawn as Zipf would have them; the target says them backwards."""
    chance = random.Random(seed)
    words = dictionary()
    weights = [1 / (n + 5) for n in range(len(words))]
    made = []
    for _ in range(count):
        chosen = chance.choices(words, weights, k=chance.randint(6, 14))
        made.append(("".join(word[0] for word in chosen) + "。", " ".join(word[1] for word in reversed(chosen)) + "."))
    return made
