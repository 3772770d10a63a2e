"""Dictionary entries for the Chinese ↔ English model: one English word or phrase for each Chinese word.

CC-CEDICT gives a Chinese word several glosses, in no order of frequency, with literal meanings ("lit. draw legs on a
snake") and remarks ("Jay Chou , Taiwanese pop star"). A model that learns them all writes a mixture. Here remarks and
literal meanings go, and of the other glosses the one stays that most often stands beside the word in sentence pairs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

Pair = tuple[str, str]  # Chinese, English

MAX_WORD = 8  # Chinese characters of a word that is looked for in sentences
MAX_GLOSS = 60  # characters of a gloss
_HAN = re.compile(r"[\u4e00-\u9fff·]+")
_REMARK = re.compile(r"\s*\([^()]*\)|\s*\[[^\[\]]*\]")
_EXPLANATION = re.compile(  # Jay Chou , Taiwanese pop star
    r"^((?:the )?[A-Z][\w.'’-]*(?: (?:[A-Z][\w.'’-]*|of|the|and|de|da|van|von|bin|al|la|le|du|on))*)\s*,\s+"
    r"(?:[a-z]|[A-Z]\w+ [a-z]|\d).*"
)
_UNUSABLE = re.compile(
    r"^(?:lit\.|classifier|variant|old variant|erhua|see |used in|surname|abbr\.|also |same as|equivalent|particle|"
    r"\(|\")|[;:=…]|\b(?:sb or sth|idiom|onom\.|dialect|pr\.|Tw|loanword)\b|[\u4e00-\u9fff]"
)
_ARTICLE = re.compile(r"^(?:to be |to |an? |the )")
_SHORT_FORMS = (
    (re.compile(r"\bsb's\b"), "somebody's"), (re.compile(r"\bsb\b"), "somebody"),
    (re.compile(r"\bsth\b"), "something"), (re.compile(r"^fig\. "), ""),
)  # fmt: skip


def clean_gloss(gloss: str) -> str:
    """Return a gloss as a translation, without remarks; "" if it explains the word and does not translate it.

    "Jay Chou , Taiwanese pop star" becomes "Jay Chou", "fig. to help sb out" becomes "to help somebody out".
    """
    gloss = _EXPLANATION.sub(r"\1", _REMARK.sub("", gloss).strip())
    if _UNUSABLE.search(gloss):
        return ""
    for pattern, long in _SHORT_FORMS:
        gloss = pattern.sub(long, gloss)
    gloss = gloss.strip(" .,")
    return gloss if 0 < len(gloss) <= MAX_GLOSS else ""


def one_gloss_each(entries: Iterable[Pair], sentences: Iterable[Pair]) -> Iterator[Pair]:
    """Yield each word of a dictionary with the gloss that stands most often beside it in these sentences.

    Of glosses that never do, the first is taken; a word of one character needs a gloss that does.
    """
    glosses: dict[str, list[str]] = {}
    for word, gloss in entries:
        cleaned = clean_gloss(gloss) if _HAN.fullmatch(word) else ""
        if cleaned and cleaned not in glosses.setdefault(word, []):
            glosses[word].append(cleaned)
    counts = count_together(glosses, sentences)
    for word, candidates in glosses.items():
        if not candidates:
            continue
        best = max(candidates, key=lambda gloss: counts[word, gloss])  # the first of several that are as frequent
        if len(word) > 1 or counts[word, best] >= 3:
            yield word, best


def count_together(glosses: dict[str, list[str]], sentences: Iterable[Pair]) -> Counter[Pair]:
    """Count in how many sentences a word and one of its glosses, without article or "to", stand on the two sides."""
    counts: Counter[Pair] = Counter()
    heads = {gloss: _ARTICLE.sub("", gloss).lower() for candidates in glosses.values() for gloss in candidates}
    for chinese, english in sentences:
        lowered = english.lower()
        words = {chinese[at : at + size] for at in range(len(chinese)) for size in range(1, MAX_WORD + 1)}
        for word in words & glosses.keys():
            for gloss in glosses[word]:
                counts[word, gloss] += heads[gloss] in lowered
    return counts
