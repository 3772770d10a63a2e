"""Words that a translation must use: where it does not, the model goes on from a beginning that does.

Search that is constrained needs a decoder that can be told; every engine can be told how a translation begins. So the
place of a term is looked for among the words that look at it in the source, the translation is kept up to there, the
term is written, and the model says the rest.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from sixfold.decoding.options import Hypothesis
from sixfold.text.sentences import is_spaced
from sixfold.translation.decode import Wish, mean_scores, with_room
from sixfold.translation.direction import Direction
from sixfold.translation.documents.units import Span
from sixfold.translation.explain import group_into_words, piece_spans
from sixfold.translation.guard import Fault
from sixfold.translation.options import TranslateOptions
from sixfold.translation.pair_files import Pair, is_turned, read_pairs, turned_about

PLACES = 4  # of a translation that are tried for a term
TWICE = 5.0  # what it costs, in log-probability, to say a term and the word that it is to replace


Term = Pair  # what must be said for what


@dataclass(frozen=True, eq=False)
class Glossary:
    """The terms of one direction; where several share characters of a sentence, the longest counts.

    What it is searched by is built once, when it is first used; so keep a glossary rather than make it again.
    """

    terms: tuple[Term, ...]
    languages: tuple[str, str] | None = None  # that it is for; None: whatever it is used for

    @classmethod
    def read(cls, path: Path) -> Glossary:
        """Two columns separated by tabs; a first line of two language codes, such as `en	zh`, says the direction."""
        return cls(*read_pairs(path, "a term"))

    def toward(self, languages: tuple[str, str]) -> Glossary:
        """The terms for a direction: its own, or turned about."""
        turned = is_turned(self.languages, languages)
        if turned is None:
            return Glossary((), languages)
        return self._turned if turned else self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Glossary) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @cached_property
    def digest(self) -> str:
        """A name for the terms and their direction, of a fixed length however many terms there are."""
        return hashlib.sha256(json.dumps([self.languages, self.terms]).encode()).hexdigest()

    @cached_property
    def _turned(self) -> Glossary:
        return Glossary(turned_about(self.terms), self.languages and (self.languages[1], self.languages[0]))

    @cached_property
    def _ranked(self) -> dict[str, tuple[int, Term]]:
        """The terms by their sources, folded, each with its rank: the longer one comes first."""
        found: dict[str, tuple[int, Term]] = {}
        for rank, term in enumerate(sorted(self.terms, key=lambda term: -len(term.source))):
            found.setdefault(folded(term.source.strip())[0], (rank, term))
        return found

    @cached_property
    def _lengths(self) -> dict[str, list[int]]:
        """How long terms are that begin with a character."""
        found: dict[str, set[int]] = {}
        for source in filter(None, self._ranked):
            found.setdefault(source[0], set()).add(len(source))
        return {first: sorted(lengths) for first, lengths in found.items()}

    def found(self, sentence: str, language: str) -> list[tuple[Span, Term]]:
        """Where terms stand in a source, from left to right: whatever their case, and as whole words in a language
        that has spaces between words.

        At each place there is a look-up for each length of a term that begins with the character there, however many
        terms there are.
        """
        text, places = folded(sentence)
        whole_words = is_spaced(language)
        found = []
        for start, first in enumerate(text):
            if whole_words and first.isalnum() and _is_wordy(text[start - 1 : start]):
                continue
            for length in self._lengths.get(first, ()):
                end = start + length
                if end > len(text):
                    break
                known = self._ranked.get(text[start:end])
                if known and not (whole_words and text[end - 1].isalnum() and _is_wordy(text[end : end + 1])):
                    rank, term = known
                    found.append((rank, (places[start], places[end - 1] + 1), term))
        taken: list[tuple[Span, Term]] = []
        is_taken = bytearray(len(sentence))
        for _, (start, end), term in sorted(found):
            if is_taken.find(1, start, end) < 0:
                is_taken[start:end] = b"\1" * (end - start)
                taken.append(((start, end), term))
        return sorted(taken)


def folded(text: str) -> tuple[str, list[int]]:
    """A text in lower case, with a single space for each run of white space, and where each character of it was."""
    characters: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        is_space = character.isspace()
        if is_space and characters and characters[-1] == " ":
            continue
        lower = character.casefold()  # of some letters this is two
        characters.append(" " if is_space else lower if len(lower) == 1 else character)
        places.append(place)
    return "".join(characters), places


def _is_wordy(character: str) -> bool:
    return character.isalnum() or character == "_"


def _pattern(term: str, language: str) -> re.Pattern[str]:
    """As it is written, whatever the case; whole words, where words are told by spaces."""
    words = r"\s+".join(map(re.escape, term.split()))
    if not is_spaced(language):
        return re.compile(words, re.I)
    before, behind = (r"(?<!\w)" if term[0].isalnum() else ""), (r"(?!\w)" if term[-1].isalnum() else "")
    return re.compile(f"{before}{words}{behind}", re.I)


def has_term(said: str, term: Term, language: str) -> bool:
    return _pattern(term.target, language).search(said) is not None


def honour(
    direction: Direction,
    sentence: str,
    ids: Sequence[int],
    best: Hypothesis,
    wanted: Sequence[tuple[Span, Term]],
    options: TranslateOptions,
) -> tuple[Hypothesis, list[Term]]:
    """The translation with the terms that stand in its sentence, and those that could not be had."""
    target = direction.languages[1]
    settled = 0  # up to where the translation stays as it is: the end of the last term that was put into it
    given_up: set[Term] = set()
    for _ in range(len(wanted)):  # an attempt for each: what is said anew may lose what was there
        said = direction.decode_target(best.tokens)
        missing = [(span, term) for span, term in wanted if term not in given_up and not has_term(said, term, target)]
        if not missing:
            break
        # From left to right in the translation, as all that follows is said anew.
        places = _places(direction, sentence, best, missing, settled)
        term = min(places, key=lambda term: places[term][0])
        fine = [
            each
            for each in _with_term(direction, ids, best, term, places[term][:PLACES], options)
            if has_term(direction.decode_target(each.tokens)[settled:], term, target)
        ]
        if not fine:
            given_up.add(term)
            continue
        best = fine[0]
        found = _pattern(term.target, target).search(direction.decode_target(best.tokens), settled)
        settled = found.end() if found else settled
    said = direction.decode_target(best.tokens)
    asked = dict.fromkeys(term for _, term in wanted)
    return best, [term for term in asked if not has_term(said, term, target)]


def honour_all(
    direction: Direction,
    ids: Mapping[str, Sequence[int]],
    found: dict[Wish, list[Hypothesis]],
    faults: dict[Wish, list[Fault]],
    glossary: Glossary,
    options: TranslateOptions,
) -> None:
    """Every sentence that has a term: its best translation is replaced, and what could not be had is a fault."""
    for wish, its in found.items() if glossary.terms else ():
        sentence, begun = wish
        wanted = [] if begun else glossary.found(sentence, direction.languages[0])
        if not wanted:
            continue
        best, lost = honour(direction, sentence, ids[sentence], its[0], wanted, options)
        found[wish] = [best, *its[1:]]
        told = [Fault("glossary", f"{term.source}: {term.target!r} could not be used") for term in lost]
        if told:
            faults[wish] = [*faults.get(wish, []), *told]


def _with_term(
    direction: Direction,
    ids: Sequence[int],
    best: Hypothesis,
    term: Term,
    places: Sequence[Span],
    options: TranslateOptions,
) -> list[Hypothesis]:
    """Translations that have the term, the likeliest first."""
    said = direction.decode_target(best.tokens)
    spaced = is_spaced(direction.languages[1])
    beginnings = []
    for at, _ in places:
        before = said[:at].rstrip()
        joint = " " if spaced and before and not before.endswith(("(", "“", '"', "-")) else ""
        beginnings.append(direction.encode_target(f"{before}{joint}{term.target}"))
    source = direction.encoder_input(ids)
    search = replace(options, beam=max(PLACES, options.beam), n_best=PLACES).search(direction.max_target_tokens)
    found = []
    for begun in dict.fromkeys(map(tuple, beginnings)):
        (answers,) = direction.engine.decode([source], with_room(search, [source], begun), [list(begun)])
        found += [each.tokens for each in answers]  # in some of them the term is but the beginning of a word
    scores = mean_scores(direction, ids, found)
    # By the sum: the mean would be for saying it in both ways, the term and what it is to replace.
    old = said[slice(*places[0])]
    totals = [
        score * (len(tokens) + 1) - (TWICE if old in direction.decode_target(tokens).replace(term.target, "") else 0.0)
        for score, tokens in zip(scores, found, strict=True)
    ]
    order = sorted(range(len(found)), key=lambda number: -totals[number])
    return [Hypothesis(found[number], scores[number]) for number in order]


def _places(
    direction: Direction, sentence: str, best: Hypothesis, terms: Sequence[tuple[Span, Term]], since: int
) -> dict[Term, list[Span]]:
    """Words of a translation that each term may take the place of: those that look at its source most, best first."""
    encoding = direction.tokenizer.encode_with_offsets(sentence)
    said = direction.decode_target(best.tokens)
    spans = piece_spans(direction.tokenizer, best.tokens, said)
    words = [pieces for pieces in group_into_words(said, spans) if since <= spans[pieces[0]][0] < spans[pieces[-1]][1]]
    if not words or not encoding.ids:
        return {term: [(len(said), len(said))] for _, term in terms}
    (looks,) = direction.engine.align([direction.encoder_input(encoding.ids)], [best.tokens])
    looks = looks[:, len(direction.tag) : len(direction.tag) + len(encoding.ids)]
    found = {}
    for span, term in terms:
        inside = [place for place, (start, end) in enumerate(encoding.offsets) if start < span[1] and span[0] < end]
        weights = [float(looks[pieces][:, inside].sum(axis=1).mean()) for pieces in words]
        ranked = sorted(range(len(words)), key=lambda number: -weights[number])
        # A term of several words begins where the first of the words that look at it does.
        first = min(number for number in ranked[:PLACES] if weights[number] >= 0.5 * weights[ranked[0]])
        order = dict.fromkeys([first, *ranked])
        found[term] = [(spans[words[number][0]][0], spans[words[number][-1]][1]) for number in order]
    return found
