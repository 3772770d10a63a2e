"""Text that is written in capitals alone, as a model reads it: in sentence case.

Models see few such sentences in training, and their tokenisers cut "WHERE ARE YOU?" into single letters. Each word is
written in the form that the tokeniser knows best, so names and abbreviations have capitals: "NASA flies to London".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from sixfold.text.tokenizer import Tokenizer

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_BETWEEN_SENTENCES = re.compile(r"[.!?…]\W*\Z")
_ONLY_WORD = 5  # letters that the only word of a text must have: a shorter one is probably an abbreviation
_FIRST_PERSON = re.compile(r"i(?:['’](?:m|d|ll|ve))?")


def in_sentence_case(text: str, tokenizer: Tokenizer) -> str:
    """Return a text of capitals in sentence case, and any other text as it is; the length does not change.

    It stays in capitals if the tokeniser does not need fewer tokens for sentence case: then the model knows capitals. A
    text with letters that have no case, as 他在IBM工作 has, is not written in capitals.
    """
    if text != text.upper() or text == text.lower() or any(_has_no_case(char) for char in text):
        return text
    words = [match for match in _WORD.finditer(text) if match[0].lower() != match[0]]
    long = [match for match in words if len(match[0]) > 1]
    if len(long) < 2 and not any(len(match[0]) >= _ONLY_WORD for match in long):
        return text
    pieces, position = [], 0
    for match, form in zip(words, _best_forms([match[0] for match in words], tokenizer), strict=True):
        between = text[position : match.start()]
        starts_sentence = _BETWEEN_SENTENCES.search(between) or not (position or any(map(str.isalnum, between)))
        pieces += [between, form[0].upper() + form[1:] if starts_sentence else form]
        position = match.end()
    written = "".join([*pieces, text[position:]])
    old, new = tokenizer.encode_batch([text, written])
    return written if len(written) == len(text) and len(new) < len(old) else text


def _has_no_case(char: str) -> bool:
    return char.isalpha() and char.lower() == char.upper()


def _best_forms(words: Sequence[str], tokenizer: Tokenizer) -> list[str]:
    """Return each word in the form of the fewest tokens: in lower case, else with a capital, else in capitals."""
    forms = [form for word in words for form in (word.lower(), word[0] + word[1:].lower(), word)]
    counts = [len(ids) for ids in tokenizer.encode_batch(forms)]
    best = []
    for begin, end in pairwise(range(0, len(forms) + 1, 3)):
        form = min(zip(counts[begin:end], range(3), forms[begin:end], strict=True))[2]
        best.append(form[0].upper() + form[1:] if _FIRST_PERSON.fullmatch(form) else form)
    return best


def in_capitals(text: str) -> str:
    """Return a text in capitals, of the same length: a letter whose capital is two letters, such as ß, stays."""
    return "".join(char.upper() if len(char.upper()) == 1 else char for char in text)
