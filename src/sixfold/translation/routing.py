"""Which models translate a text: its language, the direction, a pivot, and the Chinese script of the result.

The command line, Python, the server's own interface and LibreTranslate's routes all decide it here.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, NamedTuple

from sixfold.errors import RequestError
from sixfold.text.chinese import can_convert, chinese_variant, to_simplified, to_traditional
from sixfold.text.detection import LanguageCandidate, detect
from sixfold.text.identification import name_of
from sixfold.text.language_codes import base_language, matching_codes, normalise_code
from sixfold.text.languages import SCRIPTS, guess_language
from sixfold.text.word_lists import LISTED_LANGUAGES
from sixfold.translation.direction import Direction, Languages, language_notices, quality_from_card
from sixfold.translation.result import Notice

NAME_LANGUAGES = "name the languages: --from and --to on the command line, source and target in Python"
PIVOT_LANGUAGE = "en"  # the first choice of a language to translate through
TRADITIONAL = "zh-Hant"  # what no model writes, but OpenCC can make of simplified Chinese
SURE = 0.5  # the confidence that a language needs to decide the direction
MAX_LISTED = 40  # directions in a message
UNLIKELY = 0.1  # the confidence of the languages that are translated, below which a text in another one stays as it is

Directions = Mapping[Languages, Direction]


@dataclass(frozen=True)
class Route:
    """The models that translate a text one after the other, and the languages that the caller sees."""

    languages: Languages
    hops: tuple[Direction, ...]  # one, or two with a pivot language between them
    from_traditional: bool = False  # the first one reads simplified Chinese alone, and the text is traditional
    to_traditional: bool = False  # the last one writes simplified Chinese, which is converted
    # The text stays as it is: it is in the target language already, or no model translates its language (`direction`).
    unchanged: Literal["", "same-language", "direction"] = ""

    def read(self, text: str) -> str:
        """Return a text in the script that the first model reads."""
        return to_simplified(text) if self.from_traditional else text

    def convert(self, text: str) -> str:
        """Return a text of the last model in the script of the target."""
        return to_traditional(text) if self.to_traditional else text

    def notices(self, text: str) -> list[Notice]:
        """Return the notices about the language of a text; they need no translation."""
        if self.unchanged == "direction":
            target = name_of(base_language(self.languages[1]))
            return [Notice("direction", f"no model translates this text into {target}; it stays as it is")]
        return language_notices(self.read(text), self.hops[0].languages)


class SourceChoice(NamedTuple):
    """The language that a text is translated from, as its detection decides."""

    language: (
        str  # as a model spells it; "" if the text is not translated, since it is in the target or another language
    )
    confidence: float = 0.0  # from 0 to 1
    is_sure: bool = True  # False: several languages fit, and this is the likeliest
    detected: LanguageCandidate | None = None  # the likeliest language, whether models translate it or not


def choose_route(
    directions: Directions, text: str, source: str | None, target: str | None, pivot: bool = False
) -> Route:
    """Return the route for the languages that the caller names, or else for the language of the text.

    With `pivot`, a text may be translated through a third language if no model has the direction. A text whose language
    is detected stays as it is if it is in the target language already, or in one that no model translates into it.
    RequestError is raised if no route or more than one fits.
    """
    source = _named(source)
    sources = _readable(tuple(directions), source, target, pivot)
    chosen = sources[0]
    is_open = len(sources) > 1 or (source is None and len(directions) > 1)
    if is_open and guess_language([text]):
        choice = choose_source(directions, text, source, target, pivot)
        if not choice.language and target is not None:
            is_foreign = choice.detected is not None and not _is_same_language(choice.detected.language, target)
            route = _route((_matching(directions, None, target)[0],), text, target)
            unchanged: Literal["same-language", "direction"] = "direction" if is_foreign else "same-language"
            return replace(route, from_traditional=False, to_traditional=False, unchanged=unchanged)
        if not choice.language or not choice.is_sure:
            raise _undecided(directions, "" if choice.language else guess_language([text]))
        chosen = choice.language
    direct = _matching(directions, chosen, target)
    if len(direct) > 1 and guess_language([text]):
        raise _undecided(directions)
    return _route((direct[0],) if direct else _pivot_hops(directions, chosen, target or ""), text, target)


def choose_direction(directions: Directions, text: str, source: str | None, target: str | None) -> Direction:
    """Return the direction for the languages that the caller names, or else for the language of the text."""
    return choose_route(directions, text, source, target).hops[0]


def choose_source(
    directions: Directions, text: str, source: str | None, target: str | None, pivot: bool = False
) -> SourceChoice:
    """Return the language that a text is translated from: one that fits the named source and reaches the target.

    1. The detected language is taken if its detection is sure.
    2. If that is the target, or a language that is translated into others only, the text is not translated.
    3. Otherwise the language is taken whose script the text has: the only model of a script reads all its languages.
    4. A text in another script is not translated, unless a small part of it is in a language that is.
    """
    source = _named(source)
    sources = _readable(tuple(directions), source, target, pivot)
    known = [*sources, *([] if source else [each for each, _ in directions]), *([] if target is None else [target])]
    guess = guess_language([text])
    candidates = detect_language(directions, text, known) if guess else []
    best = next(iter(candidates), None)
    confidences = {
        code: next((each.confidence for each in candidates if _is_same_language(each.language, code)), 0.0)
        for code in sources
    }
    likeliest = max(sources, key=confidences.__getitem__)
    is_unlikely = confidences[likeliest] < UNLIKELY
    if best is not None and best.confidence >= SURE:
        own = [code for code in sources if _is_same_language(best.language, code)]
        if own:
            return SourceChoice(best.language if best.language in own else own[0], best.confidence, detected=best)
        if source is None and is_unlikely and best.language in known:
            return SourceChoice("", detected=best)
    fitting = _with_script(sources, guess) if guess else []
    if fitting or not is_unlikely:
        chosen = max(fitting or [likeliest], key=confidences.__getitem__)
        return SourceChoice(chosen, confidences[chosen], len(fitting) <= 1, best)
    return SourceChoice("", detected=best)


def detect_language(
    directions: Directions, text: str, languages: Sequence[str] | None = None
) -> list[LanguageCandidate]:
    """Return the languages that a text may be in, the likeliest first; the models' profiles of languages are used.

    `languages`: the languages to expect; by default those that the models read.
    """
    if languages is None:
        languages = [source for source, _ in directions]
    profiles = {
        language: profile
        for direction in directions.values()
        for language, profile in direction.header.profiles.items()
    }
    return detect(text, list(dict.fromkeys(languages)), profiles)


def check_languages(directions: Directions, source: str | None, target: str | None, pivot: bool = False) -> None:
    """Raise RequestError if no route fits, or if no text could tell which one.

    A text cannot tell between languages of one script that there is neither a list of words nor a profile of.
    """
    source = _named(source)
    if pivot and source and target and _pivot_hops(directions, source, target):
        return
    matching = matching_directions(directions, source, target)
    sources = dict.fromkeys(direction.languages[0] for direction in matching)
    unknown = [language for language in sources if not _is_detectable(directions, language)]
    scripts = {_scripts(language) for language in sources}
    if len(matching) > 1 and (len(sources) == 1 or (unknown and len(scripts) == 1)):
        shared = "as their source languages share a script" if len(sources) > 1 else "as they have the same source"
        raise RequestError(
            f"direction: cannot tell which of {direction_names(directions)} a text needs, {shared}", NAME_LANGUAGES
        )


def direction_names(pairs: Iterable[Languages]) -> str:
    """Return the languages of directions for a message: zh→en, en→zh. Of very many, the first are listed."""
    names = [f"{source}→{target}" for source, target in pairs]
    more = len(names) - MAX_LISTED
    return ", ".join(names[:MAX_LISTED]) + (f" and {more:,} more" if more > 0 else "")


def matching_directions(directions: Directions, source: str | None, target: str | None) -> list[Direction]:
    """Return the directions, at least one, that fit the languages which the caller names.

    Codes are compared in full first, then without region, then by language: zh-TW fits zh if no model has zh-Hant.
    """
    matching = _matching(directions, _named(source), target)
    if matching:
        return matching
    raise _unknown(directions, source, target)


def targets_of(pairs: Iterable[Languages], source: str, pivot: bool = False) -> list[str]:
    """Return the languages that a language can be translated into, by the rules of `choose_route`."""
    return TargetFinder(pairs).targets(source, pivot)


class TargetFinder:
    """Finds the languages that languages can be translated into. A model may have tens of thousands of pairs."""

    def __init__(self, pairs: Iterable[Languages]) -> None:
        self._by_source: dict[str, list[tuple[int, str]]] = {}
        for number, (source, target) in enumerate(pairs):
            self._by_source.setdefault(source, []).append((number, target))
        self._by_code: dict[str, list[str]] = {}
        for source in self._by_source:
            self._by_code.setdefault(normalise_code(source), []).append(source)
        self._all = {target for targets in self._by_source.values() for _, target in targets}
        self._direct: dict[str, list[str]] = {}

    def targets(self, source: str, pivot: bool = False) -> list[str]:
        """Return the targets of a language, in the order of the pairs; those through a pivot language come last."""
        found = list(dict.fromkeys(self._directly(source)))
        if not pivot or self._all <= {*found, source}:
            return found
        through = (each for middle in found for each in self._directly(middle) if not _is_same_language(each, source))
        return list(dict.fromkeys([*found, *through]))

    def _directly(self, code: str) -> list[str]:
        if code not in self._direct:
            fitting = self._by_code.get(normalise_code(code)) or matching_codes(code, self._by_source)
            self._direct[code] = [
                target for _, target in sorted(pair for each in fitting for pair in self._by_source[each])
            ]
        return self._direct[code]


@lru_cache(maxsize=256)
def _readable(pairs: tuple[Languages, ...], source: str | None, target: str | None, pivot: bool) -> list[str]:
    """Return the languages that fit a named source and reach the target; those without a pivot language come first."""
    sources = dict.fromkeys(each for each, _ in pairs)
    fitting = list(sources) if source is None else matching_codes(source, sources)
    finder = TargetFinder(pairs)
    own: dict[str, list[str]] = {}
    for each, target_code in pairs:
        own.setdefault(each, []).append(target_code)

    def reaches_target(code: str, pivot: bool) -> bool:
        targets = finder.targets(code, pivot) if pivot else own.get(code, [])
        return bool(targets if target is None else matching_codes(target, targets))

    found = [each for through in (False, True)[: 1 + pivot] for each in fitting if reaches_target(each, through)]
    if not found:
        raise _unknown(pairs, source, target)
    return list(dict.fromkeys(found))


def _unknown(pairs: Collection[Languages], source: str | None, target: str | None) -> RequestError:
    if not pairs:
        return RequestError("no model that translates is open", "name one with --model")
    named = " ".join(f"{side} {code}" for side, code in (("from", source), ("to", target)) if code)
    return RequestError(
        f"direction: expected one of {direction_names(pairs)}; got {named}", "name these languages, or another model"
    )


def _undecided(pairs: Iterable[Languages], guess: str = "") -> RequestError:
    """Return the error for a text that fits several directions, or none."""
    seems = f"; it seems to be in {name_of(guess)}" if guess else ""
    message = f"direction: cannot tell which of {direction_names(pairs)} this text needs{seems}"
    return RequestError(message, NAME_LANGUAGES)


def _named(source: str | None) -> str | None:
    """Return the source that a caller names; `auto` in any case is none."""
    return None if source is None or normalise_code(source) == "auto" else source


def _matching(directions: Directions, source: str | None, target: str | None) -> list[Direction]:
    """Return the directions that fit. The codes of the target are compared for the sources that fit."""
    sources = [each for each, _ in directions]
    fitting_sources = sources if source is None else matching_codes(source, sources)
    pairs = [pair for pair in directions if pair[0] in fitting_sources]
    fitting_targets = (
        [pair[1] for pair in pairs] if target is None else matching_codes(target, [pair[1] for pair in pairs])
    )
    return [directions[pair] for pair in pairs if pair[1] in fitting_targets]


def _is_same_language(first: str, second: str) -> bool:
    """Return whether two codes differ at most by region and script."""
    return base_language(first) == base_language(second)


def _pivot_hops(directions: Directions, source: str, target: str) -> tuple[Direction, ...]:
    """Return two directions with a language between them; none if there is no such language.

    If cards declare the quality of both directions of several routes, the one with the largest product is taken, else
    the one through English if possible.
    """
    if _is_same_language(source, target):
        return ()
    first = {direction.languages[1]: direction for direction in _matching(directions, source, None)}
    routes = []
    for middle in sorted(first, key=lambda language: base_language(language) != PIVOT_LANGUAGE):
        second = _matching(directions, middle, target)
        if second:
            routes.append((first[middle], second[0]))
    return max(routes, key=_declared_quality, default=())  # of equal ones the first


def _declared_quality(hops: tuple[Direction, ...]) -> float:
    """Return the product of the qualities that the cards of models declare; 0 if one declares none."""
    return math.prod(quality_from_card(hop.header.card, hop.languages) for hop in hops)


def _route(hops: tuple[Direction, ...], text: str, target: str | None) -> Route:
    source, written = hops[0].languages[0], hops[-1].languages[1]
    # A tokeniser with a map of characters reads traditional ones as simplified ones.
    is_read = normalise_code(source) != "zh" or hops[0].reads_traditional
    from_traditional = not is_read and chinese_variant(text) == "traditional" and can_convert()
    converts = target is not None and normalise_code(target) == TRADITIONAL and normalise_code(written) == "zh"
    return Route((source, TRADITIONAL if converts else written), hops, from_traditional, converts)


def _is_detectable(directions: Directions, language: str) -> bool:
    base = base_language(language)
    profiles = {base_language(code) for direction in directions.values() for code in direction.header.profiles}
    return base in LISTED_LANGUAGES or base in profiles


def _scripts(language: str) -> tuple[str, ...]:
    return tuple(SCRIPTS.get(base_language(language), ()))


def _with_script(languages: Sequence[str], language: str) -> list[str]:
    """Return the languages with the scripts of another one; if none has them all, those that share a script.

    Japanese and Chinese share one.
    """
    expected = SCRIPTS[language]
    same = [each for each in languages if _scripts(each) == expected]
    return same or [each for each in languages if not set(_scripts(each)).isdisjoint(expected)]
