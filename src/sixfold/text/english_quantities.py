"""Reads the quantities of an English text: $1.25 billion, twenty-one, two thirds, half past three, the 1970s."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sixfold.text.english_numbers import ONE, SCALE, SCALES, WORD_SCALE, WORD_VALUES, read_number
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

_ORDINALS = {
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9,
    **{f"{word}th": value for word, value in WORD_VALUES.items() if 10 <= value < 20 and word != "twelve"},
    "twelfth": 12, "firstly": 1, "secondly": 2, "thirdly": 3, "fourthly": 4, "fifthly": 5,
    "half": 2, "halve": 2, "quarter": 4,
    **{f"{word[:-1]}ieth": value for word, value in WORD_VALUES.items() if value >= 20},
    **{f"{word}th": scale for word, scale in SCALES.items() if scale in (100, 1000, 10**6, 10**9)},
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
    "nineties": (90, 1990), "weekend": (6, 7), "weekends": (6, 7), "secondary": (2,),
    "primary": (1,), "sole": (1,), "decade": (10, 1), "decades": (10,),
    "century": (100, 1), "centuries": (100,), "week": (7, 1), "triangle": (3,), "bilateral": (2,), "trilateral": (3,),
}  # fmt: skip
_VAGUE_UNITS = dict.fromkeys(("decade", "decades", "century", "centuries", "centenary", "bicentennial"), "year")

_ORDINAL = "|".join(sorted(_ORDINALS, key=len, reverse=True))
# The beginning of a number, or an ordinal.
_START = (
    rf"(?:{DIGITS}|\b(?:half[ -](?:an? )?|(?:a )?quarter (?:of )?an? |an? )(?=(?:{SCALE})\b)"
    rf"|\b(?:{ONE}|{WORD_SCALE})s?\b"
    rf"|\b(?:an? |one[ -])(?:{_ORDINAL})\b|\b(?:{_ORDINAL})\b)"
)
_HALF_OF_DAY = r"(?P<half> ?[ap]\.?m\b\.?)"
_ENGLISH = re.compile(
    r"(?P<skip>(?<=first |third |ourth )quarters?\b|(?<=second )quarters?\b"
    r"|\ba(?= (?:few|lot|little|bit|number|series|variety)\b)"
    r"|\b(?:no one|one another|one(?:self|'s)|each one|one by one|24/7|nine to five)\b)"
    rf"|\b(?P<weekday>{'|'.join(_WEEKDAYS)})s?\b"
    rf"|\b(?P<month>{'|'.join(name for name in _MONTHS if name not in ('March', 'May'))}"
    r"|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b(?=\.? \d)|(?:Jan|Feb|Aug|Sept?|Oct|Nov|Dec)\.(?= )"
    r"|(?<=\d )(?:March|May)|(?<=th )(?:March|May)|(?<=st )(?:March|May)|(?<=nd )(?:March|May)|(?<=rd )(?:March|May)"
    r"|(?<=mid-)(?:March|May)"
    r"|(?<=[a-z] )(?:March|May)(?!\s[a-z]*\s(?:[Tt]he|on)\b)|(?:March|May)(?=,? (?:\d|and|to|or)))\b"
    r"|(?P<date>(?<![\d./-])(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[/.]\d{1,2}[/.]\d{4})(?![\d./-]))"
    rf"|(?<![\d.:/])(?P<hour>\d{{1,2}})(?::(?P<minute>\d\d)(?![\d:%]){_HALF_OF_DAY}?"
    r"|\.(?P<point_minute>\d\d)(?P<point_half> ?[ap]\.?m\b| in the (?:morning|afternoon|evening)))"
    r"|(?<![\d.,])(?P<utc>\d{4})(?= (?:UTC|GMT|hours)\b)"
    rf"|\b(?P<past>half|(?:a )?quarter|five|ten|(?:twenty|thirty|forty|fifty)(?:[ -]{ONE})?|[1-5]?\d)(?: minutes?)?"
    rf" (?P<way>past|to(?<=minutes to)|to(?<=quarter to)|before(?<=quarter before)) (?P<past_hour>{ONE}|\d\d?)\b"
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
    rf"|{_HALF_OF_DAY}|(?<=o'clock)| (?P<tonight>tonight)"
    r"| (?:tomorrow|yesterday|this) (?P<day_part>morning|afternoon|evening)))"
    r"|(?P<scale>k|m|b)\b(?!/)"
    r"|[ -]?(?P<century>centur(?:y|ies))\b|[ -]?(?P<decades>decades?)\b"
    r"|(?: |-)?(?:(?:full|whole|more|consecutive|straight|solid|short|long|square(?= inch)) )?"
    rf"(?!won (?:an?|the|his|her|its|their|by|more)\b)(?P<unit>{_UNITS})(?![A-Za-z\d])",
    re.IGNORECASE,
)
_OF_UNITS = re.compile(rf" of (?P<unit>{_UNITS})(?![A-Za-z\d])", re.IGNORECASE)
_TENS_OF = re.compile(r"\b(tens|dozens|scores|hundreds) of \Z", re.IGNORECASE)
_MONTH = "|".join(f"{name}|{name[:3]}\\.?" for name in _MONTHS)
_MONTH_BEFORE = re.compile(rf"\b(?:{_MONTH}|Sept\.?) (?:the )?\Z")
_MONTH_AFTER = re.compile(rf" (?:of )?(?:{_MONTH}|Sept)(?![A-Za-z])")
_RANKED = re.compile(
    r"\b(?:number|no\.|step|day|chapter|page|level|round|game|class|grade|season|episode|part|week|phase|stage|lesson|"
    r"article|section|platform|gate|line|type|category|verse|act|scene|volume|unit|room|floor|track|version|"
    r"region|district|zone|disc|route|highway|figure|table|question|rule|clause|paragraph|appendix|terminal)s? \Z",
    re.IGNORECASE,
)
_AT = re.compile(r"\b(?:at|by|until|till|before|after|around|about|since|from) \Z", re.IGNORECASE)
_MINUTES = re.compile(rf"[:-]\d|[ -](?:{ONE}|to|past|and|or)\b|\.\d", re.IGNORECASE)
_AFTER_NUMBER = re.compile(rf"(?P<suffix>st|nd|rd|th)\b|[ -]?(?P<ordinal>{_ORDINAL})(?P<plural>s?)\b", re.IGNORECASE)
# What stands before and after a year of one to three digits: "in 629,", "year 742", "(618)", "48 BC", "AD 1".
_BEFORE_YEAR = re.compile(
    r"(?:\b(?:AD|A\.D\.|BC|year|circa|c\.) ?|\b(?P<preposition>in|by|since|until|from) |(?P<bracket>\())\Z", re.I
)
_AFTER_YEAR = re.compile(r"-?\d* (?:BCE?|CE|AD|B\.C|A\.D)\b")
_SHARE_OF = re.compile(r" (?:in|out of) (?:every )?(?=\w)", re.IGNORECASE)
_BOTH = re.compile(  # not "both A and B"
    r"both\b(?! (?!(?:of|were|are|have|had|\w+s)\b)(?:[^ ,.;]+ ){1,5}and\b)", re.IGNORECASE
)


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
            is_likely = match["vague"].lower() == "twice" or _BOTH.match(text, match.start())
            weight = LIKELY if is_likely else LOOSE
            unit = _vague_unit(text, match)
            quantities.append(Quantity("number", tuple(map(float, values)), match.span(), weight, unit))
        elif match["roman"]:
            quantities += _roman(match)
        elif match["noon"]:
            quantities.append(Quantity("time", (0,), match.span(), LIKELY))
            quantities.append(Quantity("number", (12, 0), match.span(), LOOSE))
    return shared_units(quantities, text)


def _index(word: str, names: list[str]) -> int:
    """Return the place, from 1, of a name in a list by its first three letters."""
    return next(at for at, name in enumerate(names, 1) if name[:3].lower() == word[:3].lower())


def _vague_unit(text: str, match: re.Match[str]) -> str:
    """Return the unit that a vague amount is measured in: "a day" is one day, and a decade is ten years."""
    word = match["vague"].lower()
    after = _AFTER.match(text, match.end()) if word in ("a", "an") else None
    unit = ENGLISH_UNITS[after["unit"].lower()] if after is not None and after["unit"] else ""
    return unit if unit in MEASURES and len(unit) > 1 else _VAGUE_UNITS.get(word, "")


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
    minutes = 30 if word == "half" else 15 if "quarter" in word else int(read_number(word, 0)[0])
    hour = int(read_number(match["past_hour"], 0)[0])
    after = _AFTER.match(text, match.end())
    half = _half_of_clock(after) if after and after["clock"] else ""
    if match["way"].lower() == "past":
        yield from clock(hour, minutes, half, match.span())
    else:
        yield from clock((hour + 11) % 12, 60 - minutes, half, match.span())


def _half_of_clock(after: re.Match[str]) -> str:
    part = (after["part"] or after["day_part"] or "").lower()
    if after["tonight"]:
        return "pm"
    return "am" if part == "morning" else "pm" if part else _half(after["half"] or "")


def _decade(match: re.Match[str]) -> Quantity:
    """Return the 1970s or the '70s as the years that the decade may start with."""
    year = int(match["decade"].lstrip("'"))
    years = (year,) if year >= 100 else (year, 1900 + year, 2000 + year, 1800 + year)
    return Quantity("year", tuple(map(float, years)), match.span())


def _number(text: str, match: re.Match[str]) -> Iterator[Quantity]:
    """Yield the number that begins where a pattern matched, with its unit."""
    sign = SIGNS.get((match["sign"] or "").strip().upper(), "")
    first = match.start("number")
    value, end, is_word = read_number(text, first)
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
        whole, whole_end, _ = read_number(text, share_of.end())
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
        if text[first:end].lower().endswith("dozen"):
            values = (*values, value / 12 * 10)  # 二十多 for two dozen
        if not unit and not is_ordinal and _is_short_year(text, start, end):
            unit = "year"
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


def _is_short_year(text: str, start: int, end: int) -> bool:
    """Return whether digits are a year by what stands beside them: in 629, (618), 48 BC."""
    if not text[start:end].isdecimal() or end - start > 4:
        return False
    if _AFTER_YEAR.match(text, end):
        return True
    before = _BEFORE_YEAR.search(text, max(0, start - 10), start)
    if before is None:
        return False
    if before["bracket"]:
        return end - start in (2, 3) and text[end : end + 1] in (")", "-")
    return not before["preposition"] or (end - start == 3 and text[end : end + 1] in (",", ".", ";", ")"))


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
        if after["scale"] == "m" and not sign and value >= 10:  # metres, or millions
            yield Quantity("number", (value, scaled), span, weight, "m")
        else:
            yield Quantity("number", (scaled,) if sign else (scaled, value), span, weight, sign)
    elif after["century"]:
        values = (value, (value - 1) * 100) if is_ordinal else (value * 100, value)
        yield Quantity("ordinal" if is_ordinal else "number", values, span, weight, "" if is_ordinal else "year")
    elif after["decades"]:
        yield Quantity("number", (value * 10, value), span, weight, "year")
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
