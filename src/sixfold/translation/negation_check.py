"""Whether a translation has lost or added a negation, by its words and by the model.

A translation of "he is not rich" may say "he is poor", so that words alone cannot tell. Where one of a sentence and its
translation has more negations than the other, the model compares: if it expects the other text much rather from the
negated one without a negation, then this negation has no counterpart.

    他没有钱。   He is rich.   P(He is rich. | 他有钱。) is far above P(He is rich. | 他没有钱。): the negation is lost
    他没有钱。   He is poor.   P(He is poor. | 他有钱。) is below P(He is poor. | 他没有钱。): nothing is lost

An added negation is found in the same way: the translation is the negated text then, and the model reads it in the
other direction.
"""

from __future__ import annotations

from collections.abc import Sequence

from sixfold.text.language_codes import base_language
from sixfold.text.negation import has_negation, is_negated, may_be_negative, without_negations
from sixfold.text.sequence_format import SpecialTokens
from sixfold.translation.direction import Direction, collapse_whitespace
from sixfold.translation.joint_search import Steps, score_pairs

# The evidence that a negation has no counterpart: the gain of log-probability without it, within limits, and what the
# words tell. The values were chosen on `written` and `tatoeba` by benchmarks/guard.py.
MAX_GAIN = 5.0
PLAIN = 5.0  # the text is plainly negated
LACKING = 3.0  # the other text has no word that could render a negation
THRESHOLDS = {"zh": 8.0, "en": 3.0}  # by the language of the negated text, if the other text has no negation
MIN_GAIN = 3.0  # where both texts have negations

LOST = "the source has a negation that the translation lacks"
ADDED = "the translation has a negation that the source lacks"


def find_negation_fault(direction: Direction, source: str, translation: str) -> Steps[str | None]:
    """Return a sentence that says which of a source and its translation has a negation alone, or None."""
    first, second = map(base_language, direction.languages)
    if {first, second} != {"zh", "en"}:
        return None
    is_alone = has_negation(source, first) != has_negation(translation, second)
    in_source, in_translation = without_negations(source, first), without_negations(translation, second)
    is_lost = has_negation(source, first) if is_alone else len(in_source) > len(in_translation)
    variants = in_source if is_lost else in_translation
    if not variants or (not is_alone and len(in_source) == len(in_translation)):
        return None
    special = direction.special if is_lost else direction.reverse
    negated, other = (source, translation) if is_lost else (translation, source)
    language, other_language = (first, second) if is_lost else (second, first)
    evidence, threshold = 0.0, MIN_GAIN
    if is_alone:
        evidence = PLAIN * is_negated(negated, language) + LACKING * (not may_be_negative(other, other_language))
        threshold = THRESHOLDS[language]
    if special is None:  # the model does not read translations
        return ADDED if evidence == PLAIN + LACKING else None
    if evidence + MAX_GAIN > threshold:
        gain = yield from _gain(direction, special, negated, variants, other)
        evidence += max(-MAX_GAIN, min(MAX_GAIN, gain))
    return (LOST if is_lost else ADDED) if evidence > threshold else None


def _gain(direction: Direction, special: SpecialTokens, text: str, variants: Sequence[str], other: str) -> Steps[float]:
    """Return how much likelier the other text is after one of the variants of a text than after the text itself."""
    target = direction.encode_target(other)
    sources = [
        [*special.before_source, *direction.tokenizer.encode(collapse_whitespace(each)), *special.after_source]
        for each in (text, *variants)
    ]
    if max(map(len, (target, *sources))) >= direction.engine.config.max_length:
        return -MAX_GAIN
    means = yield from score_pairs(sources, [target] * len(sources))
    return (max(means[1:]) - means[0]) * (len(target) + 1)
