"""Random references and the translations of a poor system."""

import random

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "we", "like", "tea", "very", "much", ",", ".", "3.5", "it's"]
HAN = "我们喜欢在早上喝茶学习机器翻译很有趣。"


def sentences(language, seed=0, count=60):
    """Return references and hypotheses: right, wrong, short, long and empty ones."""
    generator = random.Random(seed)
    pieces, space = (WORDS, " ") if language != "zh" else (HAN, "")
    references, hypotheses = [], []
    for number in range(count):
        reference = [generator.choice(pieces) for _ in range(generator.randint(0 if number % 9 == 0 else 1, 15))]
        hypothesis = [piece if generator.random() < 0.7 else generator.choice(pieces) for piece in reference]
        references.append(space.join(reference))
        hypotheses.append(space.join(hypothesis[: generator.randint(0, len(hypothesis)) if number % 5 == 0 else None]))
    return references, hypotheses


def reworded(references, seed):
    """Replace random words of references; every seed gives hypotheses of the same quality."""
    generator = random.Random(seed)
    return [
        " ".join(word if generator.random() < 0.7 else generator.choice(WORDS) for word in reference.split())
        for reference in references
    ]
