"""Terms that a translation must use: where one is missing, the model continues from a prefix that ends in the term.

Constrained search needs a decoder that supports it, but every engine can continue a prefix. So a missing term is put in
as follows:
1. Find the words of the translation that are aligned with the source of the term.
2. Keep the translation up to there, and write the term.
3. Let the model continue to the end.
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from sixfold.decoding.options import Hypothesis
from sixfold.text.sentences import is_spaced
from sixfold.translation.direction import Direction
from sixfold.translation.documents.units import Span
from sixfold.translation.explain import group_into_words, piece_spans
from sixfold.translation.joint_search import Steps, align, score, search
from sixfold.translation.options import TranslateOptions
from sixfold.translation.pair_files import Pair, is_reversed, read_pairs, swap_sides

MAX_POSITIONS = 4  # positions in a translation that are tried for a term
REPETITION_PENALTY = 5.0  # log-probability, for a translation with both the term and the word that it should replace


Term = Pair  # a word of the source, and the word that its translation must use


@dataclass(frozen=True, eq=False)
class Glossary:
    """The terms of one direction. Where terms overlap in a sentence, the longest is used.

    An index of the terms is built when it is first needed. So keep a glossary rather than build it again.
    """

    terms: tuple[Term, ...]
    languages: tuple[str, str] | None = None  # the direction of the terms; None: the direction it is used with

    @classmethod
    def read(cls, path: Path) -> Glossary:
        """Read two columns separated by tabs; a first line of two language codes (`en	zh`) is the direction."""
        return cls(*read_pairs(path, "a term"))

    def toward(self, languages: tuple[str, str]) -> Glossary:
        """Return the terms for a direction: as they are, with their sides swapped, or none."""
        swapped = is_reversed(self.languages, languages)
        if swapped is None:
            return Glossary((), languages)
        return self._swapped if swapped else self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Glossary) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the terms and their direction."""
        return hashlib.sha256(json.dumps([self.languages, self.terms]).encode()).hexdigest()

    @cached_property
    def _swapped(self) -> Glossary:
        return Glossary(swap_sides(self.terms), self.languages and (self.languages[1], self.languages[0]))

    @cached_property
    def _ranked(self) -> dict[str, tuple[int, Term]]:
        """The terms by their normalised sources, each with its rank; longer terms come first."""
        terms: dict[str, tuple[int, Term]] = {}
        for rank, term in enumerate(sorted(self.terms, key=lambda term: -len(term.source))):
            terms.setdefault(normalise(term.source.strip())[0], (rank, term))
        return terms

    @cached_property
    def _lengths(self) -> dict[str, list[int]]:
        """The lengths of the terms that start with each character."""
        lengths: dict[str, set[int]] = {}
        for source in filter(None, self._ranked):
            lengths.setdefault(source[0], set()).add(len(source))
        return {first: sorted(of_first) for first, of_first in lengths.items()}

    def find_terms(self, sentence: str, language: str) -> list[tuple[Span, Term]]:
        """Return the terms in a source sentence and their spans, from left to right.

        Case does not matter. In a language with spaces between words, only whole words count. At each position there is
        one lookup for each length of the terms that start with the character there, however many terms there are.
        """
        text, positions = normalise(sentence)
        whole_words = is_spaced(language)
        matches = []
        for start, first in enumerate(text):
            if whole_words and first.isalnum() and _is_word_character(text[start - 1 : start]):
                continue
            for length in self._lengths.get(first, ()):
                end = start + length
                if end > len(text):
                    break
                entry = self._ranked.get(text[start:end])
                if entry and not (whole_words and text[end - 1].isalnum() and _is_word_character(text[end : end + 1])):
                    rank, term = entry
                    matches.append((rank, (positions[start], positions[end - 1] + 1), term))
        terms: list[tuple[Span, Term]] = []
        is_used = bytearray(len(sentence))
        for _, (start, end), term in sorted(matches):
            if is_used.find(1, start, end) < 0:
                is_used[start:end] = b"\1" * (end - start)
                terms.append(((start, end), term))
        return sorted(terms)

    def found(self, sentence: str, language: str) -> list[tuple[Span, Term]]:
        """Call `find_terms`, which is the name of this method now."""
        warnings.warn("Glossary.found is now Glossary.find_terms", DeprecationWarning, stacklevel=2)
        return self.find_terms(sentence, language)


def normalise(text: str) -> tuple[str, list[int]]:
    """Return a text in lower case with a single space for each run of white space, and where each character was."""
    characters: list[str] = []
    positions: list[int] = []
    for position, character in enumerate(text):
        is_space = character.isspace()
        if is_space and characters and characters[-1] == " ":
            continue
        lower = character.casefold()  # two characters for some letters, which stay as they are
        characters.append(" " if is_space else lower if len(lower) == 1 else character)
        positions.append(position)
    return "".join(characters), positions


def _is_word_character(character: str) -> bool:
    return character.isalnum() or character == "_"


def _pattern(term: str, language: str) -> re.Pattern[str]:
    """Return a pattern for a term in any case; whole words in a language with spaces between words."""
    words = r"\s+".join(map(re.escape, term.split()))
    if not is_spaced(language):
        return re.compile(words, re.I)
    before, after = (r"(?<!\w)" if term[0].isalnum() else ""), (r"(?!\w)" if term[-1].isalnum() else "")
    return re.compile(f"{before}{words}{after}", re.I)


def has_term(translation: str, term: Term, language: str) -> bool:
    """Return whether a translation uses a term."""
    return _pattern(term.target, language).search(translation) is not None


def apply_terms(
    direction: Direction,
    sentence: str,
    ids: Sequence[int],
    best: Hypothesis,
    terms: Sequence[tuple[Span, Term]],
    options: TranslateOptions,
) -> Steps[tuple[Hypothesis, list[Term]]]:
    """Return a translation of a sentence with the terms in it, and the terms that could not be used."""
    target = direction.languages[1]
    fixed_end = 0  # the end of the last term that was put in; the translation does not change before it
    failed: set[Term] = set()
    for _ in range(len(terms)):  # one attempt for each term, since a new ending may lose a term that was there
        translation = direction.decode_target(best.tokens)
        missing = [
            (span, term) for span, term in terms if term not in failed and not has_term(translation, term, target)
        ]
        if not missing:
            break
        # From left to right in the translation, since everything after the term is decoded again.
        positions = yield from _term_positions(direction, sentence, best, missing, fixed_end)
        term = min(positions, key=lambda term: positions[term][0])
        hypotheses = yield from _decode_with_term(direction, ids, best, term, positions[term][:MAX_POSITIONS], options)
        with_term = [
            hypothesis
            for hypothesis in hypotheses
            if has_term(direction.decode_target(hypothesis.tokens)[fixed_end:], term, target)
        ]
        if not with_term:
            failed.add(term)
            continue
        best = with_term[0]
        match = _pattern(term.target, target).search(direction.decode_target(best.tokens), fixed_end)
        fixed_end = match.end() if match else fixed_end
    translation = direction.decode_target(best.tokens)
    distinct = dict.fromkeys(term for _, term in terms)
    return best, [term for term in distinct if not has_term(translation, term, target)]


def _decode_with_term(
    direction: Direction,
    ids: Sequence[int],
    best: Hypothesis,
    term: Term,
    positions: Sequence[Span],
    options: TranslateOptions,
) -> Steps[list[Hypothesis]]:
    """Return translations with the term at one of some positions, the likeliest first."""
    translation = direction.decode_target(best.tokens)
    spaced = is_spaced(direction.languages[1])
    prefixes = []
    for start, _ in positions:
        before = _without_beginning(translation[:start].rstrip(), term.target, spaced)
        space = " " if spaced and before and not before.endswith(("(", "“", '"', "-")) else ""
        prefixes.append(direction.encode_target(f"{before}{space}{term.target}"))
    source = direction.encoder_input(ids)
    beam = max(MAX_POSITIONS, options.beam)
    wide = replace(options, beam=beam, n_best=MAX_POSITIONS).search(direction.max_target_tokens)
    targets = []
    for prefix in dict.fromkeys(map(tuple, prefixes)):
        hypotheses = yield from search(source, wide, prefix)
        # In some of them the term is only the beginning of a word.
        written = [direction.decode_target(hypothesis.tokens) for hypothesis in hypotheses]
        undoubled = [without_doubled_ending(text, term.target, spaced) for text in written]
        targets += [
            hypothesis.tokens if after == before else direction.encode_target(after)
            for hypothesis, before, after in zip(hypotheses, written, undoubled, strict=True)
        ]
    targets = [list(tokens) for tokens in dict.fromkeys(map(tuple, targets))]
    scores = yield from score(source, targets)
    # Ranked by the sum: the mean would favour translations with both the term and the word that it should replace.
    replaced = translation[slice(*positions[0])]
    totals = [
        mean * (len(tokens) + 1)
        - (REPETITION_PENALTY if replaced in direction.decode_target(tokens).replace(term.target, "") else 0.0)
        for mean, tokens in zip(scores, targets, strict=True)
    ]
    order = sorted(range(len(targets)), key=lambda index: -totals[index])
    return [Hypothesis(targets[index], scores[index]) for index in order]


def without_doubled_ending(text: str, term: str, spaced: bool) -> str:
    """Return a text without the end of a term that is written once more behind it, as in 安格拉·默克尔克尔.

    The model may go on with the end of a name that it would have divided into other tokens than the prefix has. In a
    language with spaces, the end is whole words or 's.
    """
    position = text.find(term)
    while position >= 0:
        end = position + len(term)
        rest = text[end:]
        for ending in _endings(term, spaced):
            if rest.startswith(ending) and not (spaced and _is_word_character(rest[len(ending) : len(ending) + 1])):
                text = text[:end] + rest[len(ending) :]
                break
        else:
            position = text.find(term, end)
    return text


def _endings(term: str, spaced: bool) -> list[str]:
    """Return the ends of a term that may be written twice, the longest first."""
    if not spaced:
        return [term[start:] for start in range(len(term) - 1)]
    words = term.split()
    endings = [" " + " ".join(words[start:]) for start in range(len(words))]
    return endings + [ending for ending in ("'s", "’s") if term.endswith(ending)]


def _without_beginning(before: str, term: str, spaced: bool) -> str:
    """Return a text without the beginning of a term at its end, which the whole term will follow."""
    for length in range(len(term), 1, -1):
        start = len(before) - length
        if before.endswith(term[:length]):
            is_whole = not spaced or not (_is_word_character(before[start - 1 : start]) if start else False)
            ends_inside = _is_word_character(term[length - 1]) and _is_word_character(term[length : length + 1])
            if is_whole and not (spaced and ends_inside):
                return before[:start].rstrip()
    return before


def _term_positions(
    direction: Direction, sentence: str, best: Hypothesis, terms: Sequence[tuple[Span, Term]], start: int
) -> Steps[dict[Term, list[Span]]]:
    """Return the words of a translation, from `start` on, that each term may replace, the best first.

    They are ranked by their attention to the source of the term.
    """
    encoding = direction.tokenizer.encode_with_offsets(sentence)
    translation = direction.decode_target(best.tokens)
    spans = piece_spans(direction.target_tokenizer, best.tokens, translation)
    words = [
        pieces for pieces in group_into_words(translation, spans) if start <= spans[pieces[0]][0] < spans[pieces[-1]][1]
    ]
    if not words or not encoding.ids:
        return {term: [(len(translation), len(translation))] for _, term in terms}
    attention = yield from align(direction.encoder_input(encoding.ids), best.tokens)
    attention = attention[:, len(direction.tag) : len(direction.tag) + len(encoding.ids)]
    positions = {}
    for span, term in terms:
        pieces_of_term = [
            index for index, (first, end) in enumerate(encoding.offsets) if first < span[1] and span[0] < end
        ]
        weights = [float(attention[pieces][:, pieces_of_term].sum(axis=1).mean()) for pieces in words]
        ranked = sorted(range(len(words)), key=lambda index: -weights[index])
        # A term of several words starts at the leftmost of the words with much attention to it.
        leftmost = min(index for index in ranked[:MAX_POSITIONS] if weights[index] >= 0.5 * weights[ranked[0]])
        order = dict.fromkeys([leftmost, *ranked])
        positions[term] = [(spans[words[index][0]][0], spans[words[index][-1]][1]) for index in order]
    return positions
