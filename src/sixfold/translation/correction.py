"""Wrong numbers of a translation, corrected: the model goes on from a prefix that ends in the right number.

The guard says which quantity of the source the translation lacks, and which one stands in its place. The translation is
kept up to there, the right quantity is written as the target language has it, and the model continues; or the right one
takes the place of the wrong one and the rest stays. The likeliest result without any fault is the correction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sixfold.decoding.options import Hypothesis, SearchOptions
from sixfold.text.language_codes import base_language
from sixfold.text.number_forms import quantity_forms
from sixfold.text.quantities import Quantity
from sixfold.text.sentences import is_spaced
from sixfold.translation.direction import Direction
from sixfold.translation.glossary import Term, apply_terms
from sixfold.translation.guard import Fault, find_faults, number_difference
from sixfold.translation.joint_search import Steps, score, search
from sixfold.translation.options import TranslateOptions

MAX_ROUNDS = 3  # wrong numbers of one sentence that are corrected
MAX_CONTINUATIONS = 4  # the hypotheses of each continuation
MAX_LOSS = 2.0  # mean log-probability of a token that a correction may cost, chosen with benchmarks/number_values.py


def correct_numbers(
    direction: Direction, sentence: str, ids: Sequence[int], first: Hypothesis, options: TranslateOptions,
    is_allowed: Callable[[Hypothesis], bool],
) -> Steps[Hypothesis | None]:  # fmt: skip
    """Return a translation with the numbers of its sentence and without any other fault, or None if none is found."""
    wide = options.search(direction.max_target_tokens)
    wide = replace(wide, beam=max(MAX_CONTINUATIONS, wide.beam), n_best=MAX_CONTINUATIONS, ignore_shortlist=True)
    best = first
    for _ in range(MAX_ROUNDS):
        targets = yield from _corrections(direction, sentence, ids, best, options, wide)
        if not targets:
            return None
        scores = yield from score(direction.encoder_input(ids), [first.tokens, *targets])
        lowest = scores[0] - MAX_LOSS
        ranked = sorted(zip(scores[1:], targets, strict=True), key=lambda pair: -pair[0])
        hypotheses = [Hypothesis(tokens, mean) for mean, tokens in ranked if mean >= lowest]
        hypotheses = [one for one in hypotheses if is_allowed(one)]
        if not hypotheses:
            return None
        faults = [_faults(direction, sentence, one) for one in hypotheses]
        if [] in faults:
            return hypotheses[faults.index([])]
        best = hypotheses[0]
    return None


def _faults(direction: Direction, sentence: str, hypothesis: Hypothesis) -> list[Fault]:
    return find_faults(sentence, direction.decode_target(hypothesis.tokens), direction.languages)


def _corrections(
    direction: Direction, sentence: str, ids: Sequence[int], best: Hypothesis, options: TranslateOptions,
    wide: SearchOptions,
) -> Steps[list[list[int]]]:  # fmt: skip
    """Return the tokens of translations in which one missing quantity stands in the place of a wrong one."""
    translation = direction.decode_target(best.tokens)
    difference = number_difference(sentence, translation, direction.languages)
    if difference is None or not difference.missing:
        return []
    missing = difference.missing[0]
    wrong = next((one for one in difference.extra if one.group == missing.group), None)
    forms = quantity_forms(missing, base_language(direction.languages[1]))
    if wrong is None:
        source = sentence[slice(*missing.span)]
        terms = [((missing.span), Term(source, form)) for form in forms[:1]]
        if not terms:
            return []
        hypothesis, unused = yield from apply_terms(direction, sentence, ids, best, terms, options)
        return [] if unused else [hypothesis.tokens]
    source_tokens = direction.encoder_input(ids)
    targets: list[list[int]] = []
    for form in forms:
        before, after = _around(translation, wrong, form, is_spaced(direction.languages[1]))
        targets.append(direction.encode_target(f"{before}{after}"))
        prefix = direction.encode_target(before)
        hypotheses = yield from search(source_tokens, wide, prefix)
        targets += [hypothesis.tokens for hypothesis in hypotheses]
    return [list(tokens) for tokens in dict.fromkeys(map(tuple, targets)) if len(tokens) <= direction.max_target_tokens]


def _around(translation: str, wrong: Quantity, form: str, spaced: bool) -> tuple[str, str]:
    """Return a translation up to the right quantity, which ends it, and what stands behind the wrong one."""
    start, end = wrong.span
    before, after = translation[:start], translation[end:]
    if spaced and before[-1:].isalnum():
        before += " "
    return before + form, after
