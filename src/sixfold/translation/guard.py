"""What is plainly wrong with a translation, told from both texts: found, asked for once more, and else reported."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import NamedTuple

from sixfold.decoding.options import Hypothesis, SearchOptions
from sixfold.text.languages import LETTERS, SCRIPTS, UNSPACED, letters
from sixfold.text.numbers import numbers, numbers_differ
from sixfold.translation.direction import Direction
from sixfold.translation.documents.units import NO_CHARACTER, PLACEHOLDER, Span
from sixfold.translation.string_search import occurrences

# Measured by benchmarks/guard.py: what finds nine of ten planted faults and cries wolf on one good line in a hundred.
SHORTEST, LONGEST = 0.3, 3.2  # lengths of a translation, over its source's
LONG_ENOUGH = 24  # of a source, for its length to say something
FIGURES = 3  # digits of a number that nobody spells
SPELLING = 0.8  # how alike two spellings of a name are
BEAM = 8  # of the second attempt, as wide as that of a short sentence at first
MOST_NAMES = 50  # of a sentence that are looked for in its translation; one with more is a list

_DENSE = letters(*UNSPACED)
_HAN_RUN = re.compile(f"[{LETTERS['Han']}]{{2,}}")
_SPELT = re.compile(r"[一二三四五六七八九十百千万萬两兩零〇]{2,}|\b(?:hundred|thousand|million|dozen)", re.I)
_DECADE = re.compile(r"(\d{1,2}) ?世纪 ?(\d)0 ?年代")
_PLAIN_WORDS = re.compile(r"(?<!\S)[a-z]{2,}(?!\S)")
_ENGLISH_RUN = re.compile(r"(?<![\w`/.-])[a-z]+(?: [a-z]+){3,}(?![\w`/.-])")
_COPIED = re.compile(  # GPT4, iPhone, JavaScript; what is all capitals is often translated
    r"(?<![A-Za-z\d.-])(?!Ma?c[A-Z])(?:[A-Za-z]+\d[A-Za-z\d]*|[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*)(?![\w-])"
)
_LATIN_NAME = re.compile(r"(?<![A-Za-z\d.-])[A-Z][A-Za-z]{2,}(?![A-Za-z\d-])")
_ENDS = re.compile(r"[.。!！?？…．][\"'”’」』)）\]】*_]*\s*\Z")
_MARKED = re.compile(r"[^\w\s][\"'”’」』)）\]】*_]*\s*\Z")


class Fault(NamedTuple):
    """A kind that programs know, where it is in the translation, and a sentence for people."""

    kind: str
    message: str
    span: Span | None = None


def check(source: str, said: str, languages: tuple[str, str]) -> list[Fault]:
    """The faults of a translation of one sentence."""
    if not any(char.isalpha() for char in source):
        return []
    if not said.strip():
        return [Fault("empty", "the model had nothing to say for a sentence")]
    found = [*_loops(source, said), *_damaged(source, said), *_lengths(source, said), *_script(source, said, languages)]
    if not found:
        found = [*_copied(source, said, languages), *_numbers(source, said), *_names(source, said, languages)]
    return found


def _loops(source: str, said: str) -> Iterator[Fault]:
    span = repeated(said)
    if span is not None and repeated(source) is None:
        yield Fault("loop", "the translation says the same again and again", span)


def _damaged(source: str, said: str) -> Iterator[Fault]:
    """Rare characters are spelt in bytes, and not all bytes make one."""
    at = said.find(NO_CHARACTER)
    if at >= 0 and NO_CHARACTER not in source:
        yield Fault("damaged", "the translation has bytes that make no character", (at, at + 1))


def repeated(text: str) -> Span | None:
    """Where a text says one to twelve words, or characters, again and again; or all of it twice."""
    words = [match.span() for match in re.finditer(r"\S+", text)]
    characters = [(at, at + 1) for at, char in enumerate(text) if not char.isspace()]
    for spans in (words, characters):
        units = [text[slice(*span)].casefold() for span in spans]
        for size in range(1, 13):
            times = 6 if size == 1 else 4 if size < 4 else 3
            same = 0
            for place in range(len(units) - size):
                same = same + 1 if units[place] == units[place + size] else 0
                if same >= size * (times - 1) and any(char.isalpha() for char in "".join(units[place : place + size])):
                    return spans[place + 1 - same][0], spans[place + size][1]
    said = [at for at, _ in characters if text[at].isalnum()]
    middle = len(said) // 2
    if (
        middle >= 6
        and len(said) % 2 == 0
        and all(
            text[one].casefold() == text[other].casefold()
            for one, other in zip(said[:middle], said[middle:], strict=True)
        )
    ):
        return said[middle], len(text)
    return None


def weight(text: str) -> int:
    """The length of a text; a letter of a script without spaces says as much as three others."""
    return len(text) + 2 * sum(map(len, _DENSE.findall(text)))


def _lengths(source: str, said: str) -> Iterator[Fault]:
    ours, theirs = weight(said), weight(source)
    if ours < SHORTEST * theirs and theirs >= LONG_ENOUGH:
        yield Fault("short", "the translation is much shorter than its source")
    elif ours > LONGEST * max(theirs, LONG_ENOUGH):
        yield Fault("long", "the translation is much longer than its source")
    elif _ENDS.search(source) and theirs >= LONG_ENOUGH and not _MARKED.search(said):
        yield Fault("cut", "the translation ends in the middle of a sentence", (max(0, len(said) - 1), len(said)))


def _script(source: str, said: str, languages: tuple[str, str]) -> Iterator[Fault]:
    wanted, written = (_scripts(language) for language in reversed(languages))
    if not wanted or not written or not set(wanted).isdisjoint(written):
        return
    read = letters(*wanted)
    if not read.search(said) and (letters(*written).search(source) if written != ("Latin",) else _many(source)):
        yield Fault("script", "the translation is not in the target's script", (0, len(said)))
    elif "Han" in written:
        for left in _HAN_RUN.finditer(said):
            if left[0] in source:
                yield Fault("script", "words of the source are left in the translation", left.span())
                return
    elif written == ("Latin",):
        for left in _ENGLISH_RUN.finditer(said):
            if left[0] in source:
                yield Fault("script", "words of the source are left in the translation", left.span())
                return


def _many(source: str) -> bool:
    return len(_PLAIN_WORDS.findall(source)) >= 4


def _scripts(language: str) -> tuple[str, ...]:
    return SCRIPTS.get(re.split("[-_]", language.lower())[0], ())


def _copied(source: str, said: str, languages: tuple[str, str]) -> Iterator[Fault]:
    """Between languages of one script; between others, the script tells."""
    if languages[0] != languages[1] and source.split() == said.split() and len(_PLAIN_WORDS.findall(source)) >= 3:
        yield Fault("copied", "the translation is its source", (0, len(said)))


def _numbers(source: str, said: str) -> Iterator[Fault]:
    source, said = (_DECADE.sub(_year, text) for text in (source, said))
    if difference := numbers_differ(source, said):
        yield Fault("numbers", f"figures differ: {difference}")
        return
    there, here = numbers(source), "".join(filter(str.isdecimal, unicodedata.normalize("NFKC", said)))
    lost = [number for number in there if not _is_spelt(number) and number.rstrip("0") not in here]
    if lost and not _SPELT.search(said):
        yield Fault("numbers", f"figures are missing: {', '.join(lost)}")


def _is_spelt(number: str) -> bool:
    """Whether many would write it in words: twelve, five million."""
    return len(number) < FIGURES or (len(number.rstrip("0")) == 1 and len(number) > FIGURES + 1)


def _year(decade: re.Match[str]) -> str:
    """20 世纪 70 年代 is 1970."""
    return f"{int(decade[1]) - 1:02}{decade[2]}0"


def _names(source: str, said: str, languages: tuple[str, str]) -> Iterator[Fault]:
    placeholders = PLACEHOLDER.findall(source)
    places = occurrences(said, placeholders)
    lost = [each for each in placeholders if not places[each]]
    latin = "Latin" in _scripts(languages[0]) or not _scripts(languages[0])
    bare = PLACEHOLDER.sub(" ", source)
    names = [*_COPIED.findall(bare), *([] if latin else _LATIN_NAME.findall(bare))]
    wanted = list(dict.fromkeys(names))[:MOST_NAMES]
    kept = _bare(said) if wanted else ""
    lost += [name for name in wanted if not _is_kept(_bare(name), kept)]
    if lost:
        yield Fault("names", f"missing in the translation: {', '.join(lost)}")


def _bare(text: str) -> str:
    """Without case and accents."""
    folded = unicodedata.normalize("NFKD", text).casefold()
    return "".join(char for char in folded if not unicodedata.combining(char))


def _is_kept(name: str, said: str) -> bool:
    """Word for word, in another spelling, or in an abbreviation with dots."""
    if name in said or name.rstrip("s") in said or name in said.replace(".", ""):
        return True
    return len(name) > 4 and bool(get_close_matches(name, re.findall(r"\w+", said), n=1, cutoff=SPELLING))


def mend(
    direction: Direction, sentence: str, ids: Sequence[int], faults: Sequence[Fault], search: SearchOptions
) -> list[Hypothesis]:
    """What the model says when it is asked once more, and may not do what it did."""
    kinds = {fault.kind for fault in faults}
    again = replace(search, beam=max(BEAM, search.beam), n_best=BEAM, ignore_shortlist=True)
    if "loop" in kinds or "long" in kinds:
        again = replace(again, no_repeat=4)
    if "damaged" in kinds:
        again = replace(again, banned=direction.tokenizer.byte_ids)
    if kinds & {"short", "cut", "empty"}:
        again = replace(again, min_length=min(again.max_length, max(3, len(ids) // 2)))

    def faults_of(each: Hypothesis) -> int:
        return len(check(sentence, direction.decode_target(each.tokens), direction.languages))

    (found,) = direction.engine.decode([direction.encoder_input(ids)], again)
    if again.no_repeat and all(map(faults_of, found)):  # a word of one piece loops without any run of four
        found += direction.engine.decode([direction.encoder_input(ids)], replace(again, no_repeat=2))[0]
    return sorted(found, key=faults_of)
