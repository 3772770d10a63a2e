"""Made-up references and what a poor system might say instead."""

import random

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "we", "like", "tea", "very", "much", ",", ".", "3.5", "it's"]
HAN = "我们喜欢在早上喝茶学习机器翻译很有趣。"


def sentences(language, seed=0, count=60):
    """References and hypotheses of all kinds: right, wrong, short, long, empty."""
    chance = random.Random(seed)
    pieces, space = (WORDS, " ") if language != "zh" else (HAN, "")
    references, hypotheses = [], []
    for number in range(count):
        reference = [chance.choice(pieces) for _ in range(chance.randint(0 if number % 9 == 0 else 1, 15))]
        hypothesis = [piece if chance.random() < 0.7 else chance.choice(pieces) for piece in reference]
        references.append(space.join(reference))
        hypotheses.append(space.join(hypothesis[: chance.randint(0, len(hypothesis)) if number % 5 == 0 else None]))
    return references, hypotheses


def reworded(references, seed):
    """As good as the hypotheses of any other seed."""
    chance = random.Random(seed)
    return [
        " ".join(word if chance.random() < 0.7 else chance.choice(WORDS) for word in reference.split())
        for reference in references
    ]
