"""Random translations: words in two scripts, in sentences with opposite word order."""

import random

LETTERS = "bdfgklmnprstvz"
VOWELS = "aeiou"


def dictionary(size: int = 400) -> list[tuple[str, str]]:
    """Return words as pairs of two Han characters and a Latin word."""
    generator = random.Random(1)
    words = [f"{first}{vowel}{second}" for first in LETTERS for vowel in VOWELS for second in LETTERS]
    generator.shuffle(words)
    return [(chr(0x4E00 + 2 * n) + chr(0x4E01 + 2 * n), words[n]) for n in range(size)]


def pairs(count: int, seed: int = 1) -> list[tuple[str, str]]:
    """Return sentences of 6 to 14 words with Zipf frequencies; the target has them in reverse order."""
    generator = random.Random(seed)
    words = dictionary()
    weights = [1 / (n + 5) for n in range(len(words))]
    result = []
    for _ in range(count):
        chosen = generator.choices(words, weights, k=generator.randint(6, 14))
        result.append(
            ("".join(word[0] for word in chosen) + "。", " ".join(word[1] for word in reversed(chosen)) + ".")
        )
    return result
