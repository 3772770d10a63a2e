"""Which models translate a text: its language, the direction, a pivot, and the Chinese script of the result.

The command line, Python, the server's own interface and LibreTranslate's routes all decide it here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sixfold.errors import RequestError
from sixfold.text.chinese import can_convert, chinese_variant, to_simplified, to_traditional
from sixfold.text.detection import LanguageCandidate, detect
from sixfold.text.identification import name_of
from sixfold.text.language_codes import base_language, matching_codes, normalise_code
from sixfold.text.languages import SCRIPTS, guess_language
from sixfold.text.word_lists import LISTED_LANGUAGES
from sixfold.translation.direction import Direction, Languages

NAME_LANGUAGES = "name the languages: --from and --to on the command line, source and target in Python"
PIVOT_LANGUAGE = "en"  # the first choice of a language to translate through
TRADITIONAL = "zh-Hant"  # what no model writes, but OpenCC can make of simplified Chinese
SURE = 0.5  # the confidence that a language needs to decide the direction

Directions = Mapping[Languages, Direction]


@dataclass(frozen=True)
class Route:
    """The models that translate a text one after the other, and the languages that the caller sees."""

    languages: Languages
    hops: tuple[Direction, ...]  # one, or two with a pivot language between them
    from_traditional: bool = False  # the first one reads simplified Chinese alone, and the text is traditional
    to_traditional: bool = False  # the last one writes simplified Chinese, which is converted

    def read(self, text: str) -> str:
        """Return a text in the script that the first model reads."""
        return to_simplified(text) if self.from_traditional else text

    def convert(self, text: str) -> str:
        """Return a text of the last model in the script of the target."""
        return to_traditional(text) if self.to_traditional else text


def choose_route(
    directions: Directions, text: str, source: str | None, target: str | None, pivot: bool = False
) -> Route:
    """Return the route for the languages that the caller names, or else for the language of the text.

    With `pivot`, a text may be translated through a third language if no model has the direction. RequestError is
    raised if no route or more than one fits.
    """
    source = _named(source)
    if pivot and target is not None:
        language = source or _surely_detected(directions, text)
        if language and not _matching(directions, language, target):
            hops = _pivot_hops(directions, language, target)
            if hops:
                return _route(hops, text, target)
    return _route((choose_direction(directions, text, source, target),), text, target)


def choose_direction(directions: Directions, text: str, source: str | None, target: str | None) -> Direction:
    """Return the direction for the languages that the caller names, or else for the language of the text.

    Of several directions, that of the detected language is taken if the detection is sure. Otherwise it is the only one
    whose source has the script of the text.
    """
    matching = matching_directions(directions, source, target)
    guess = guess_language([text]) if len(matching) > 1 else ""
    if not guess:  # one direction only, or nothing to translate
        return matching[0]
    candidates = detect_language(directions, text, [direction.languages[0] for direction in matching])
    fitting = [
        direction
        for candidate in candidates
        for direction in matching
        if candidate.confidence >= SURE and direction.languages[0] == candidate.language
    ]
    fitting = fitting or _directions_from(matching, guess)
    if len(fitting) != 1:
        seems = "" if fitting else f"; it seems to be in {name_of(guess)}"
        names = direction_names(directions)
        raise RequestError(f"direction: cannot tell which of {names} this text needs{seems}", NAME_LANGUAGES)
    return fitting[0]


def detect_language(
    directions: Directions, text: str, languages: Sequence[str] | None = None
) -> list[LanguageCandidate]:
    """Return the languages that a text may be in, the likeliest first; the models' profiles of languages are used.

    `languages`: the languages to expect; by default those that the models read.
    """
    if languages is None:
        languages = [source for source, _ in directions]
    profiles = {
        language: profile for direction in directions.values() for language, profile in direction.file.profiles.items()
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


def direction_names(directions: Directions) -> str:
    """Return the languages of directions for a message: zh→en, en→zh."""
    return ", ".join(f"{source}→{target}" for source, target in directions)


def matching_directions(directions: Directions, source: str | None, target: str | None) -> list[Direction]:
    """Return the directions, at least one, that fit the languages which the caller names.

    Codes are compared in full first, then without region, then by language: zh-TW fits zh if no model has zh-Hant.
    """
    matching = _matching(directions, _named(source), target)
    if matching:
        return matching
    named = " ".join(f"{side} {code}" for side, code in (("from", source), ("to", target)) if code)
    raise RequestError(
        f"direction: expected one of {direction_names(directions)}; got {named}",
        "name these languages, or another model",
    )


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


def _surely_detected(directions: Directions, text: str) -> str | None:
    best = next(iter(detect_language(directions, text)), None)
    return best.language if best is not None and best.confidence >= SURE else None


def _pivot_hops(directions: Directions, source: str, target: str) -> tuple[Direction, ...]:
    """Return two directions with a language between them, English if possible; none if there is no such language."""
    first = {direction.languages[1]: direction for direction in _matching(directions, source, None)}
    for middle in sorted(first, key=lambda language: base_language(language) != PIVOT_LANGUAGE):
        second = _matching(directions, middle, target)
        if second:
            return first[middle], second[0]
    return ()


def _route(hops: tuple[Direction, ...], text: str, target: str | None) -> Route:
    source, written = hops[0].languages[0], hops[-1].languages[1]
    # A tokeniser with a map of characters reads traditional ones as simplified ones.
    is_read = normalise_code(source) != "zh" or bool(hops[0].tokenizer.character_map)
    from_traditional = not is_read and chinese_variant(text) == "traditional" and can_convert()
    converts = target is not None and normalise_code(target) == TRADITIONAL and normalise_code(written) == "zh"
    return Route((source, TRADITIONAL if converts else written), hops, from_traditional, converts)


def _is_detectable(directions: Directions, language: str) -> bool:
    base = base_language(language)
    profiles = {base_language(code) for direction in directions.values() for code in direction.file.profiles}
    return base in LISTED_LANGUAGES or base in profiles


def _scripts(language: str) -> tuple[str, ...]:
    return tuple(SCRIPTS.get(base_language(language), ()))


def _directions_from(directions: Sequence[Direction], language: str) -> list[Direction]:
    """Return the directions whose source has the scripts of a language; if none has, those that share a script.

    Japanese and Chinese share one.
    """
    expected = tuple(SCRIPTS[language])
    pairs = [(direction, _scripts(direction.languages[0])) for direction in directions]
    same = [direction for direction, own in pairs if own == expected]
    return same or [direction for direction, own in pairs if not set(own).isdisjoint(expected)]
