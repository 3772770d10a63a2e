"""Reads the quantities of an English text: $1.25 billion, twenty-one, two thirds, half past three, the 1970s."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sixfold.text.quantities import (
    DIGITS,
    LIKELY,
    LOOSE,
    NAME_BEFORE,
    PAIRED,
    SURE,
    Quantity,
    clock,
    day_of_month,
    digit_values,
    numeric_date,
    plain,
    ratio,
    rounded,
    shared_units,
)  # fmt: skip
from sixfold.text.units import ENGLISH_UNITS, MEASURES, PERCENT, SIGNS, is_currency

_ONES = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_VALUES = {word: value for value, word in enumerate(_ONES)} | {word: 10 * at for at, word in enumerate(_TENS, 2)}
_SCALES = {
    "dozen": 12, "hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12,
    "mn": 10**6, "mln": 10**6, "bn": 10**9, "tn": 10**12, "lakh": 10**5, "crore": 10**7,
}  # fmt: skip
_ORDINALS = {
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9,
    **{f"{word}th": value for word, value in _VALUES.items() if 10 <= value < 20 and word != "twelve"},
    "twelfth": 12, "half": 2, "halve": 2, "quarter": 4,
    **{f"{word[:-1]}ieth": value for word, value in _VALUES.items() if value >= 20},
    **{f"{word}th": scale for word, scale in _SCALES.items() if scale in (100, 1000, 10**6, 10**9)},
}  # fmt: skip
_MONTHS = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
]  # fmt: skip
_WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
# Words that stand for a number, or that Chinese expresses with one; a translation need not have it.
_VAGUE_WORDS = {
    "a": (1,), "an": (1,), "once": (1,), "single": (1,), "twice": (2,), "both": (2,), "pair": (2,), "pairs": (2,),
    "couple": (2,), "couples": (2,), "double": (2, 1), "doubled": (2, 1), "doubling": (2, 1), "doubles": (2, 1),
    "twin": (2,), "twins": (2,), "triple": (3, 2), "tripled": (3, 2), "trio": (3,), "thrice": (3,), "triplets": (3,),
    "quadruple": (4, 3), "quadrupled": (4, 3), "quartet": (4,), "quintuple": (5,), "either": (2,), "neither": (2,),
    "duo": (2,), "treble": (3, 2), "trebled": (3, 2), "tripling": (3, 2), "half": (0.5, 30), "halves": (0.5, 2),
    "halved": (0.5, 50), "halving": (0.5, 50), "quarterfinal": (4, 8), "quarterfinals": (4, 8), "semifinal": (4, 2),
    "bicentennial": (200,), "centenary": (100,), "bimonthly": (2,), "biweekly": (2,), "fortnight": (2, 14, 15),
    "weekly": (1,), "tens": (10,), "dozens": (10, 12), "hundreds": (100, 200), "thousands": (1000,), "scores": (20, 10),
    "millions": (10**6, 100 * 10**4, 10**7), "billions": (10**9, 10**8), "teens": (10, 13), "teenage": (10, 13),
    "teenager": (10, 13), "teenagers": (10, 13), "twenties": (20, 1920), "thirties": (30, 1930), "forties": (40, 1940),
    "fifties": (50, 1950), "sixties": (60, 1960), "seventies": (70, 1970), "eighties": (80, 1980),
    "nineties": (90, 1990), "weekend": (6, 7), "weekends": (6, 7), "secondary": (2,), "secondly": (2,), "firstly": (1,),
    "primary": (1,), "thirdly": (3,), "fourthly": (4,), "sole": (1,), "decade": (10, 1),
    "century": (100, 1), "week": (7, 1), "triangle": (3,), "bilateral": (2,), "trilateral": (3,),
}  # fmt: skip

_ONE = "|".join(sorted(_VALUES, key=len, reverse=True))
_SCALE = "|".join(_SCALES)
_WORD_SCALE = "|".join(name for name in _SCALES if len(name) > 3)
_ORDINAL = "|".join(sorted(_ORDINALS, key=len, reverse=True))
# The beginning of a number, or an ordinal.
_START = (
    rf"(?:{DIGITS}|\b(?:half[ -](?:an? )?|(?:a )?quarter (?:of )?an? |an? )(?=(?:{_SCALE})\b)"
    rf"|\b(?:{_ONE}|{_WORD_SCALE})s?\b"
    rf"|\b(?:an? |one[ -])(?:{_ORDINAL})\b|\b(?:{_ORDINAL})\b)"
)
_HALF_OF_DAY = r"(?P<half> ?[ap]\.?m\b\.?)"
_ENGLISH = re.compile(
    r"(?P<skip>(?<=first |third |ourth )quarters?\b|(?<=second )quarters?\b"
    r"|\b(?:no one|one another|one(?:self|'s)|each one|one by one|24/7|nine to five)\b)"
    rf"|\b(?P<weekday>{'|'.join(_WEEKDAYS)})s?\b"
    rf"|\b(?P<month>{'|'.join(name for name in _MONTHS if name not in ('March', 'May'))}"
    r"|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b(?=\.? \d)|(?:Jan|Feb|Aug|Sept?|Oct|Nov|Dec)\.(?= )"
    r"|(?<=\d )(?:March|May)|(?<=th )(?:March|May)|(?<=st )(?:March|May)|(?<=nd )(?:March|May)|(?<=rd )(?:March|May)"
    r"|(?<=[a-z] )(?:March|May)(?!\s[a-z]*\s(?:[Tt]he|on)\b)|(?:March|May)(?=,? (?:\d|and|to|or)))\b"
    r"|(?P<date>(?<![\d./-])(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[/.]\d{1,2}[/.]\d{4})(?![\d./-]))"
    rf"|(?<![\d.:/])(?P<hour>\d{{1,2}})(?::(?P<minute>\d\d)(?![\d:%]){_HALF_OF_DAY}?"
    r"|\.(?P<point_minute>\d\d)(?P<point_half> ?[ap]\.?m\b| in the (?:morning|afternoon|evening)))"
    r"|(?<![\d.,])(?P<utc>\d{4})(?= (?:UTC|GMT|hours)\b)"
    rf"|\b(?P<past>half|(?:a )?quarter|five|ten|(?:twenty|thirty|forty|fifty)(?:[ -]{_ONE})?|[1-5]?\d)(?: minutes?)?"
    rf" (?P<way>past|to(?<=minutes to)|to(?<=quarter to)) (?P<past_hour>{_ONE}|\d\d?)\b"
    r"|(?P<ratio>(?<![\d./,])\d{1,4}/\d{1,4}(?![\d/]|[.,]\d))"
    r"|(?<![A-Za-z\d'])(?P<decade>(?:\d\d)?\d0|'\d0)'?s\b"
    rf"|(?P<sign>(?:{'|'.join(map(re.escape, sorted(SIGNS, key=len, reverse=True)))}) ?)?(?P<number>{_START})"
    rf"|\b(?P<vague>{'|'.join(sorted(_VAGUE_WORDS, key=len, reverse=True))})\b"
    r"|\b(?P<roman>[IVXLC]{2,}|[VX])\b"
    r"|\b(?P<noon>noon|midday|midnight)\b",
    re.IGNORECASE,
)
_UNITS = "|".join(re.escape(word) for word in sorted(ENGLISH_UNITS, key=len, reverse=True))
_AFTER = re.compile(
    r"(?P<clock>(?: o'clock)?(?: in the (?:early )?(?P<part>morning|afternoon|evening)| at (?P<night>night)"
    rf"|{_HALF_OF_DAY}|(?<=o'clock)))"
    r"|(?P<scale>k|m|b)\b(?!/)"
    r"|[ -]?(?P<century>centur(?:y|ies))\b|[ -]?(?P<decades>decades?)\b"
    r"|(?: |-)?(?:(?:full|whole|more|consecutive|straight|solid|short|long|square(?= inch)) )?"
    rf"(?P<unit>{_UNITS})(?![A-Za-z\d])",
    re.IGNORECASE,
)
_OF_UNITS = re.compile(rf" of (?P<unit>{_UNITS})(?![A-Za-z\d])", re.IGNORECASE)
_TENS_OF = re.compile(r"\b(tens|dozens|scores|hundreds) of \Z", re.IGNORECASE)
_TOKEN = re.compile(
    r"[ -]and[ -](?:a|one)[ -](?P<share>half|third|quarter)\b"
    rf"|(?P<joint>[ -]?|[ -]and[ -])(?:(?P<digits>{DIGITS})|(?P<word>{_ONE})\b|(?P<scale>{_SCALE})s?\b"
    r"|(?P<article>half(?: an?)?|(?:a )?quarter (?:of )?an?|an?)(?=[ -]))"
    r"|[ -]point(?P<places>(?: (?:zero|oh|one|two|three|four|five|six|seven|eight|nine)\b)++)",
    re.IGNORECASE,
)
_MONTH = "|".join(f"{name}|{name[:3]}\\.?" for name in _MONTHS)
_MONTH_BEFORE = re.compile(rf"\b(?:{_MONTH}|Sept\.?) (?:the )?\Z")
_MONTH_AFTER = re.compile(rf" (?:of )?(?:{_MONTH}|Sept)(?![A-Za-z])")
_RANKED = re.compile(
    r"\b(?:number|no\.|step|day|chapter|page|level|round|game|class|grade|season|episode|part|week|phase|stage|lesson|"
    r"article|section|platform|gate|line|type|category|verse|act|scene|volume|unit|room|floor|track|version) \Z",
    re.IGNORECASE,
)
_AT = re.compile(r"\b(?:at|by|until|till|before|after|around|about|since|from) \Z", re.IGNORECASE)
_MINUTES = re.compile(rf"[:-]\d|[ -](?:{_ONE}|to|past|and|or)\b|\.\d", re.IGNORECASE)
_AFTER_NUMBER = re.compile(rf"(?P<suffix>st|nd|rd|th)\b|[ -]?(?P<ordinal>{_ORDINAL})(?P<plural>s?)\b", re.IGNORECASE)
_SHARE_OF = re.compile(r" (?:in|out of) (?:every )?(?=\w)", re.IGNORECASE)
_SHARES = {"half": 1 / 2, "third": 1 / 3, "quarter": 1 / 4}


def english_quantities(text: str) -> list[Quantity]:
    """Return the quantities of an English text, from left to right."""
    text = plain(text)
    quantities: list[Quantity] = []
    position = 0
    while match := _ENGLISH.search(text, position):
        position = match.end()
        if match["weekday"]:
            quantities.append(Quantity("weekday", (_index(match["weekday"], _WEEKDAYS),), match.span()))
        elif match["month"]:
            quantities += _month(match)
        elif match["date"]:
            quantities += numeric_date(match["date"], match.start())
        elif match["hour"]:
            minute, half = match["minute"] or match["point_minute"], match["half"] or match["point_half"] or ""
            quantities += clock(int(match["hour"]), int(minute), _half(half), match.span())
        elif match["utc"]:
            quantities += clock(int(match["utc"][:2]), int(match["utc"][2:]), "", match.span())
        elif match["past"]:
            quantities += _past(text, match)
        elif match["ratio"]:
            quantities += ratio(match["ratio"], match.start())
        elif match["decade"]:
            quantities.append(_decade(match))
        elif match["number"]:
            read = list(_number(text, match))
            position = max([position, *(quantity.span[1] for quantity in read)])
            quantities += read
        elif match["vague"]:
            values = _VAGUE_WORDS[match["vague"].lower()]
            weight = LIKELY if match["vague"].lower() in ("both", "twice") else LOOSE
            quantities.append(Quantity("number", tuple(map(float, values)), match.span(), weight))
        elif match["roman"]:
            quantities += _roman(match)
        elif match["noon"]:
            quantities.append(Quantity("time", (0,), match.span(), LOOSE))
            quantities.append(Quantity("number", (12, 0), match.span(), LOOSE))
    return shared_units(quantities, text)


def _index(word: str, names: list[str]) -> int:
    """Return the place, from 1, of a name in a list by its first three letters."""
    return next(at for at, name in enumerate(names, 1) if name[:3].lower() == word[:3].lower())


def _month(match: re.Match[str]) -> Iterator[Quantity]:
    if match["month"][0].isupper():
        month = _index(match["month"], _MONTHS)
        yield Quantity("month", (month,), match.span())
        yield Quantity("number", (month,), match.span(), LOOSE)


def _half(text: str) -> str:
    """Return am, pm or nothing."""
    first = text.strip()[:1].lower()
    return f"{first}m" if first in ("a", "p") else ""


def _roman(match: re.Match[str]) -> Iterator[Quantity]:
    """Yield XIV as 14, which Chinese writes with digits."""
    if match["roman"].isupper():
        values = [{"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}[letter] for letter in match["roman"]]
        total = sum(-value if value < after else value for value, after in zip(values, [*values[1:], 0], strict=True))
        yield Quantity("ordinal", (total,), match.span(), LIKELY if total > 2 else LOOSE)


def _past(text: str, match: re.Match[str]) -> Iterator[Quantity]:
    """Yield half past three, a quarter to five or ten past six."""
    word = match["past"].lower()
    minutes = 30 if word == "half" else 15 if "quarter" in word else int(_read_number(word, 0)[0])
    hour = int(_read_number(match["past_hour"], 0)[0])
    after = _AFTER.match(text, match.end())
    half = _half_of_clock(after) if after and after["clock"] else ""
    if match["way"].lower() == "past":
        yield from clock(hour, minutes, half, match.span())
    else:
        yield from clock((hour + 11) % 12, 60 - minutes, half, match.span())


def _half_of_clock(after: re.Match[str]) -> str:
    part = (after["part"] or "").lower()
    return "am" if part == "morning" else "pm" if part else _half(after["half"] or "")


def _decade(match: re.Match[str]) -> Quantity:
    """Return the 1970s or the '70s as the years that the decade may start with."""
    year = int(match["decade"].lstrip("'"))
    years = (year, year % 100) if year >= 100 else (year, 1900 + year, 2000 + year)
    return Quantity("year", tuple(map(float, years)), match.span())


def _number(text: str, match: re.Match[str]) -> Iterator[Quantity]:
    """Yield the number that begins where a pattern matched, with its unit."""
    sign = SIGNS.get((match["sign"] or "").strip().upper(), "")
    first = match.start("number")
    value, end, is_word = _read_number(text, first)
    if end > first and (text[end - 1] == "s" or text[first:end].lower() in ("a dozen", "dozen")):  # dozens, thousands
        yield from _vague_amount(text, match.start(), value, end)
        return
    start = match.start()
    ordinal = _AFTER_NUMBER.match(text, max(end, first))
    is_ordinal = False
    if ordinal is not None:
        word = (ordinal["ordinal"] or "").lower()
        rank = _ORDINALS.get(word, 0)
        if ordinal["suffix"]:
            is_ordinal, end = True, ordinal.end()
        elif end == first:  # third
            is_ordinal, value, end = True, float(rank), ordinal.end()
        elif is_word and value >= 20 and rank < value and value % 10 == 0 and not ordinal["plural"]:
            is_ordinal, value, end = True, value + rank, ordinal.end()  # twenty-first
        elif rank >= 2 and word != "second" and (value == 1 or ordinal["plural"]):
            share = rounded(value / rank)
            shares = (share, float(rank)) if value == 1 else (share,)
            yield Quantity("fraction", shares[:1], (start, ordinal.end()), LIKELY if value == 1 else PAIRED, sign)
            yield Quantity("number", shares, (start, ordinal.end()), LOOSE)
            is_share = word in ("half", "halve", "quarter") or text.startswith(" of ", ordinal.end())
            if value == 1 and not is_share and not sign:  # a third one
                yield Quantity("ordinal", (float(rank),), (start, ordinal.end()), LIKELY)
            return
    share_of = _SHARE_OF.match(text, end) if value < 100 else None
    if share_of is not None and not is_ordinal:
        whole, whole_end, _ = _read_number(text, share_of.end())
        if value < whole <= 100:  # one in ten
            yield Quantity("fraction", (rounded(value / whole),), (start, whole_end), LIKELY)
            yield from (Quantity("number", (part,), (start, whole_end), LOOSE) for part in (value, whole))
            return
    weight = _weight(text, first, end, value, is_ordinal)
    after = _AFTER.match(text, end)
    if after is None and not is_ordinal and value % 1 == 0 and _RANKED.search(text, max(0, start - 12), start):
        yield Quantity("ordinal", (value,), (start, end), max(weight, LIKELY))
        return
    is_day = 1 <= value <= 31 and (after is None or is_ordinal)
    if is_day and (_MONTH_BEFORE.search(text, max(0, start - 12), start) or _MONTH_AFTER.match(text, end)):
        yield from day_of_month(value, (start, end))
        return
    if after is None and 1 <= value <= 12 and not is_ordinal and _is_hour(text, start, end):
        yield Quantity("time", (value % 12 * 60,), (start, end), LIKELY)
    if after is None or (is_ordinal and not after["century"]):
        values = (value, rounded(1 / value)) if is_ordinal and value else digit_values(text[first:end], value)
        unit = ENGLISH_UNITS[after["unit"].lower()] if after is not None and after["unit"] else ""
        unit = unit if unit in MEASURES and MEASURES[unit][0] == "duration" else ""
        yield Quantity("ordinal" if is_ordinal else "number", values, (start, end), weight, sign or unit)
        return
    yield from _with_unit(value, (start, after.end()), weight, sign, after, is_ordinal)


def _vague_amount(text: str, start: int, value: float, end: int) -> Iterator[Quantity]:
    """Yield dozens or thousands, which are likely to have a counterpart only with a unit: "thousands of years"."""
    times = _TENS_OF.search(text, max(0, start - 14), start)
    value *= {"t": 10, "d": 10, "s": 10, "h": 100}[times[1][0].lower()] if times else 1
    measured = _OF_UNITS.match(text, end)
    if measured is None:
        yield Quantity("number", (value, 10.0), (start, end), LOOSE)
    else:
        unit = ENGLISH_UNITS[measured["unit"].lower()]
        yield Quantity("number", (value, 10.0), (start, measured.end()), LIKELY, unit)


def _is_hour(text: str, start: int, end: int) -> bool:
    """Return whether a small number may be an hour, as in "at three"."""
    return bool(_AT.search(text, max(0, start - 9), start)) and not _MINUTES.match(text, end)


def _with_unit(
    value: float, span: tuple[int, int], weight: int, sign: str, after: re.Match[str], is_ordinal: bool
) -> Iterator[Quantity]:
    """Yield a number with what stands behind it."""
    if after["clock"]:
        yield from clock(int(value), 0, _half_of_clock(after), span)
    elif after["scale"]:
        scale = {"k": 1e3, "m": 1e6, "b": 1e9}[after["scale"].lower()]
        scaled = rounded(value * scale)
        yield Quantity("number", (scaled,) if sign else (scaled, value), span, weight, sign)
    elif after["century"]:
        values = (value, (value - 1) * 100) if is_ordinal else (value * 100, value)
        yield Quantity("ordinal" if is_ordinal else "number", values, span, weight)
    elif after["decades"]:
        yield Quantity("number", (value * 10, value), span, weight)
    else:
        unit = ENGLISH_UNITS[after["unit"].lower()]
        if is_currency(unit) or unit == PERCENT:
            weight = max(weight, PAIRED)
        values_of_unit = (value, rounded(value / 100)) if unit == PERCENT else (value,)
        yield Quantity("number", values_of_unit, span, weight, sign or unit)


def _weight(text: str, start: int, end: int, value: float, is_ordinal: bool) -> int:
    """Return how surely a translation has a number."""
    behind = text[end : end + 1]
    if text[start].isdigit():
        if NAME_BEFORE.search(text, max(0, start - 20), start) or (behind.isalpha() and behind.isupper()):
            return LOOSE
        return SURE if end - start > 1 else PAIRED if value > 1 else LIKELY
    if is_ordinal:
        return LOOSE if value <= 1 else LIKELY if value <= 12 else PAIRED
    return LOOSE if value <= 1 else PAIRED


def _read_number(text: str, position: int) -> tuple[float, int, bool]:
    """Return the value of the number at a position, its end, and whether it is written in words.

    "two hundred and five" is one number; "two hundred and three hundred" has two.
    """
    parts: list[float] = []
    last = ""  # the kind of the last word: digits, ones, tens, scale or share
    while token := _TOKEN.match(text, position):
        joint = token["joint"] or ""
        if token["share"]:
            if last not in ("digits", "ones", "tens"):
                break
            parts.append(_SHARES[token["share"].lower()])
            kind = "share"
        elif token["places"]:
            if last not in ("ones", "tens"):
                break
            digits = "".join(str(_VALUES.get(word, 0)) for word in token["places"].lower().split())
            parts.append(float(f"0.{digits}"))
            kind = "share"
        elif token["scale"]:
            scale = _SCALES[token["scale"].lower()]
            if "and" in joint or (last == "scale" and parts[-1] >= scale):
                break
            _multiply(parts, scale)
            kind = "scale"
        elif token["article"]:
            if parts:
                break
            article = token["article"].lower()
            parts.append(0.5 if "half" in article else 0.25 if "quarter" in article else 1.0)
            kind = "ones"
        else:
            value = float((token["digits"] or "").replace(",", "") or _VALUES[token["word"].lower()])
            kind = "digits" if token["digits"] else "tens" if value >= 20 else "ones"
            is_year = last in ("ones", "tens") and joint in (" ", "-") and 13 <= parts[0] <= 20 <= 2 * value
            if _continues(parts, last, value, kind, joint) and not _begins_another(text, token.end(), parts[-1]):
                parts.append(value)
            elif is_year and kind != "digits":
                parts = [parts[0] * 100 + value]  # nineteen ninety-eight
            elif parts:
                break
            else:
                parts = [value]
        last, position = kind, token.end()
    return rounded(sum(parts)), position, last not in ("", "digits")


def _continues(parts: list[float], last: str, value: float, kind: str, joint: str) -> bool:
    """Return whether a word or digits add to the number before them, as in "two hundred and five" or "forty-two"."""
    if last == "scale":
        return value < parts[-1]
    return last == "tens" and kind == "ones" and 0 < value < 10 and "and" not in joint


def _multiply(parts: list[float], scale: float) -> None:
    """Multiply the last parts that are smaller than a scale by it: [100, 25] and thousand give [125000]."""
    below = 0.0
    while parts and parts[-1] < scale:
        below += parts.pop()
    parts.append((below or 1.0) * scale)


def _begins_another(text: str, position: int, before: float) -> bool:
    """Return whether what follows a word is a scale that begins another number, as in "one hundred and two hundred"."""
    token = _TOKEN.match(text, position)
    scale = _SCALES[token["scale"].lower()] if token and token["scale"] else 0
    return scale == 100 if before < 1000 else before < 1000 * scale >= 10**6
