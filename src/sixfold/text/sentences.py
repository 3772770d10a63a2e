"""Splits a line of text into sentences, and joins their translations with the white space of the line."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from sixfold.text.languages import LETTERS, SCRIPTS, UNSPACED, letters

MAX_QUOTATION = 200  # characters; a longer quotation or bracket is split, because a model could not read it at once
MAX_ABBREVIATION = 24  # characters
MAX_ADDRESS = 80  # characters before a question mark that are searched for a web address
MAX_GRAPHEME = 64  # code points that are drawn as one character
VIRAMA_CLASS = 9  # the Unicode combining class of signs that join a consonant to the next

# Marks that always end a sentence, and marks that do so only before white space and the start of a sentence.
_STOPS = "。！？｡‼⁇⁈⁉।॥؟۔։።፧។៕။༎"
_MARKS = _STOPS + ".!?．…\u037e"
_CLOSERS = r"\"'”’」』）】》〉〕］｝)\]}›»"
# Some quotation marks open in one language and close in another, as in „Ja.“ and » Ja. «. The next character decides.
_END = re.compile(
    rf"(?P<run>[{_MARKS}]+)"
    rf"(?P<close>(?:[{_CLOSERS}]|[“‘«](?=[\s,;，；{_MARKS}]|$)|[ \xa0\u202f](?:»(?!\w)|[”\"](?=\s|$)))*)"
    r"(?:\[\d{1,3}\])*"
)
_STOP = re.compile(f"[{_STOPS}]")
_SPACE = re.compile(r"\s*")
_WORD_CHARACTER = re.compile(r"[^\W_]")
_CJK = letters("Han", "Hiragana", "Katakana")
_WITHOUT_STOPS = letters("Thai", "Lao")  # these scripts have no full stop: a dot is part of an abbreviation
_OPENING = re.compile(r"[\"'“‘«‹„‚「『（(【\[{<¿¡*_#>•·–—-]*[ \xa0\u202f]?")
# Characters that continue a sentence. Straight quotation marks are not among them, because they may open one.
_CONTINUING = frozenset(f",;:，；：、·・%‰～~{_MARKS}{_CLOSERS}") - frozenset("\\\"'")
_LOWER_BEGINNING = re.compile(r"[a-z](?:[A-Z]|\)\s)")  # iPhone, and the items of a list: a) b)
_DASHES = frozenset("-–—―─")

_PAIRS = dict(zip("“‘「『（(【《〈〔［｛[{«‹„", "”’」』）)】》〉〕］｝]}»›“", strict=True))
_OPENERS = {closer: opener for opener, closer in _PAIRS.items() if opener != "„"}
_BRACKETS = re.compile("[“”‘「」『』（）()【】《》〈〉〔〕［］｛｝\\[\\]{}«»‹›„]|’(?![a-zA-Z])")
_DOUBLE_QUOTES = re.compile('[“”"]')
_TITLES = frozenset("》〉")
_QUOTES = frozenset("\"'”’」』“‘»«›")

# After a quotation: the speaker at the end of a clause (“……。”他说。), or words that no sentence begins with.
_ATTRIBUTION = re.compile(
    r"[^。！？!?，；：“”「」\s]{0,30}?"
    r"(?:说|說|(?<![知报報])道|问|問|答|喊|叫|表示|称|稱|指出|强调|強調|补充|補充|解释|解釋|回应|回應|写道|寫道)"
    r"(?:[。！？…；]|，[“「])"
)
_SPEAKER = re.compile(
    r"(?:[A-Z][\w.'’-]{0,40}+ ){1,4}"
    r"(?:said|says|asked|asks|replied|answered|shouted|cried|whispered|added|called|yelled|"
    r"muttered|murmured|told|explained|repeated|continued|insisted|agreed|demanded|wondered|warned|sighed|laughed)\b"
)
_CONTINUATION = re.compile(
    r"的(?!确|確|士)|地(?!球|方|区|區|震|铁|鐵)|等(?!到|我|你|他|她)|一(?:书|書|文|词|詞|语|語|句)|之(?:类|類|后|後|前)(?!，)"
    r"|这(?:句|番|样的)|這(?:句|番|樣的)|然后|然後|随后|隨後|接着|接著|便(?!宜)|就(?!在|算|是|连|連|像)|并|並|以及|和|[与與](?!之|此)"
    r"|と(?!ても|ころ|にかく|りあえず|もに)|って|など|を"
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Abbreviations without their last full stop. The first kind never ends a sentence. The second kind ends one only before
# a word that often begins a sentence. The third kind is an abbreviation only before a number.
_NEVER_FINAL = _words(
    "Mr Mrs Ms Messrs Mx Dr Drs Prof Rev Fr Hon Gen Col Capt Lt Sgt Maj Adm Sen Rep Gov Pres Supt Insp "
    "vs v cf e.g i.e eg ie viz approx ca c resp incl "
    "z.B d.h u.a s.o s.u bzw vgl ggf evtl sog inkl Hr Fr Frl Dipl Ing "
    "M MM Mme Mlle Mgr p.ex Sra Srta Sres Dña Ud Uds Vd p.ej Sig Dott Avv Exmo Drª "
    "жа т.е т.к напр डॉ प्रो श्री"
)
_SELDOM_FINAL = _words(
    "etc al Inc Ltd Co Corp Bros Jr Sr St Ste Mt Ft Ave Blvd Rd Dept Univ Assn Est Ph.D M.Sc B.Sc D.Phil "
    "Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec Mon Tue Tues Wed Thu Thur Thurs Fri min max "
    "usw Str Tel GmbH Abt tel av EE.UU FF.AA S.A гг г ул стр тыс млн млрд"
)
_BEFORE_NUMBER = _words(
    "No Nos Nr Fig Figs Vol Vols Ch Chap Sec Sect Art Arts Eq Eqs Tab Abb Abs Kap Bd Aufl Op p pp ch vol no nr fig "
    "art sec ed cap núm pág págs vers"
)
_FIRST_WORDS = _words(
    "The This That These Those It Its He She They We You I In On At As But And Or So If When While After Before Since "
    "For From With Then There Their His Her Our My Your What Why How Who Where However Although Though Some Many Most "
    "Not No Yes By To Also Now Here All Both Each Every An A "
    "Der Die Das Ein Eine Er Sie Es Wir Ich Und Aber Im Dann Le La Les Il Elle Ils Nous Vous Un Une Et Mais Dans "
    "El Los Las Una Pero En Он Она Оно Они Мы Вы Это Но На Однако"
)
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
_NOT_WORD = re.compile(r"[^\w.=/@]")
_PUNCTUATION = re.compile(r"[^\w\s]*\s?")
_NEXT_WORD = re.compile(_PUNCTUATION.pattern + r"\w*\.?")
_NUMERAL = re.compile(r"\d|[IVXLC]{2,}\b|[VX]\b")  # but not "No. I", which ends a sentence
_ENUMERATION = re.compile(
    r"[(\[（]?(?:\d{1,3}(?:\.\d{1,3}){0,4}|[A-Za-zА-Яа-я]|[ivxIVX]{1,5}|[一二三四五六七八九十]{1,3})[)\]）]?"
)
_NOT_ADDRESS = re.compile(r"[^!-~]")
# "am 3. Oktober", "der 2. Weltkrieg": German ordinals end in a dot and stand before capitalised nouns.
_GERMAN_ORDINAL = re.compile(
    r"(?:\b(?:[Aa]m|[Dd](?:er|ie|as|en|em|es)|[Vv]om|[Zz]u[mr]|[Ii]m|[Bb]eim|[Ss]eit|[Bb]is|[Aa]b) \d{1,2})\Z"
)
_GERMAN_MONTHS = _words("Januar Jänner Februar März April Mai Juni Juli August September Oktober November Dezember")

# Where a long sentence is cut, best first: after a strong mark, after a comma, at white space. Each pattern comes
# twice: the first of the two finds the last match in a range.
_CUT_PATTERNS = [
    (re.compile(f"(?s:.*)(?:{pattern})"), re.compile(pattern))
    for pattern in (
        rf"[{_STOPS}；؛][{_CLOSERS}]*|[.!?…;][{_CLOSERS}]*(?=\s)",
        r"[，、：،፣၊།—]|[,:](?=\s)",
        r"\s(?=\S)",
    )
]
# Code points besides combining marks that are drawn together with the one before: joiners, skin tones, tags, parts of
# Hangul syllables, Thai and Lao am.
_EXTENDING = re.compile("[\u200c\u200d\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f\u1160-\u11ff\u0e33\u0eb3\uff9e\uff9f]")
_FLAGS = re.compile(r"[\U0001f1e6-\U0001f1ff]+\Z")
_LATIN = re.compile(f"[!-~{LETTERS['Latin']}]")
_SPACED_SENTENCES = re.compile("[\u0e00-\u109f\u1780-\u17ff]")


class SentenceSpan(NamedTuple):
    """A sentence without white space at its ends, and the white space after it."""

    text: str
    after: str


class SplitLine(NamedTuple):
    """The leading white space of a line and its sentences; joined together they are the line."""

    before: str
    sentences: list[SentenceSpan]


def split_sentences(line: str) -> SplitLine:
    """Split a line into sentences. No character is lost; white space at the end belongs to the last sentence.

    Closing quotation marks and brackets after the mark that ends a sentence belong to that sentence. A quotation or
    bracket of at most `MAX_QUOTATION` characters is not split. Text without a letter or digit joins a neighbour.
    """
    text = _curl_quotes(line.rstrip())
    start = len(line) - len(line.lstrip())
    if start >= len(text):
        return SplitLine(line, [])
    before, sentences = line[:start], []
    pairs = _Pairs(text)
    word = _WORD_CHARACTER.search(text, start)
    for mark in _END.finditer(text, start):
        next_start = _skip(_SPACE, text, mark.end())
        if word is None or word.start() >= mark.start() or next_start == len(text):
            continue
        if pairs.enclose(mark.end()) or not _is_end(text, start, mark, next_start, pairs):
            continue
        word = _WORD_CHARACTER.search(text, next_start)
        if word is None:
            break
        sentences.append(SentenceSpan(line[start : mark.end()], line[mark.end() : next_start]))
        start = next_start
    return SplitLine(before, [*sentences, SentenceSpan(line[start : len(text)], line[len(text) :])])


def _curl_quotes(text: str) -> str:
    """Replace straight quotation marks by opening or closing ones where the direction can be determined."""
    if '"' not in text:
        return text
    characters = list(text)
    is_straight_open = is_curly_open = False
    for match in _DOUBLE_QUOTES.finditer(text):
        at, char = match.start(), match[0]
        if char != '"':
            is_curly_open = char == "“"
            continue
        left, right = text[at - 1 : at].strip(), text[at + 1 : at + 2].strip()
        if (is_straight_open and (left or not right)) or (is_curly_open and left and left in _MARKS):
            characters[at] = "”"
            is_straight_open = is_curly_open = False
        elif right:
            characters[at] = "“"
            is_straight_open = True
    return "".join(characters)


class _Pairs:
    """The matching quotation marks and brackets of a text; `enclose` must be called from left to right."""

    def __init__(self, text: str) -> None:
        self.openings: dict[int, int] = {}  # the position of the opening mark for that of each closing mark
        unclosed: defaultdict[str, list[int]] = defaultdict(list)
        for match in _BRACKETS.finditer(text):
            at, char = match.start(), match[0]
            opener = "„" if char == "“" and unclosed["„"] else _OPENERS.get(char)
            if opener is None:
                unclosed[char].append(at)
            elif unclosed[opener]:
                self.openings[at] = unclosed[opener].pop()
        self._short_pairs = sorted((begin, end) for end, begin in self.openings.items() if end - begin <= MAX_QUOTATION)
        self._next = 0
        self._last_end = -1

    def enclose(self, position: int) -> bool:
        """Return whether a short pair encloses a position. Positions must not decrease from call to call."""
        while self._next < len(self._short_pairs) and self._short_pairs[self._next][0] < position:
            self._last_end = max(self._last_end, self._short_pairs[self._next][1])
            self._next += 1
        return self._last_end >= position


def _is_end(text: str, start: int, mark: re.Match[str], begin: int, pairs: _Pairs) -> bool:
    """Return whether a sentence that starts at `start` ends with a mark; `begin` is where the next one would start."""
    run, first = mark["run"], text[begin]
    has_space = begin > mark.end()
    if first in _CONTINUING or (first in _DASHES and not has_space):
        return False
    if mark["close"] and not _is_end_closed(text, start, mark, begin, pairs):
        return False
    if _STOP.search(run):
        return True
    ellipsis = run == "…" or (len(run) > 1 and not run.strip(".…"))
    if not has_space:
        return _is_end_unspaced(text, mark, begin, ellipsis)
    if run in ".．" and not mark["close"] and _is_abbreviation(text, start, mark.start(), begin):
        return False
    return _is_start(text, begin, ellipsis)


def _is_end_closed(text: str, start: int, mark: re.Match[str], begin: int, pairs: _Pairs) -> bool:
    """Return whether a sentence may end after a quotation or bracket that closes after the mark.

    A bracket is a sentence of its own if it opened at the start of a sentence; a title, 《……？》, never is. A quotation
    before Chinese or Japanese ends the sentence, with three exceptions: the text after it names the speaker, or begins
    with a word that begins no sentence, or the quotation is a word of its sentence, as in 一声“救命！”.
    """
    last = mark.end("close") - 1
    opening = pairs.openings.get(last)
    if text[last] in _TITLES:
        return False
    if text[last] not in _QUOTES:
        return opening is None or opening <= start
    if not _CJK.match(text, begin):
        return not _SPEAKER.match(text, begin)
    if _CONTINUATION.match(text, begin):
        return False
    if opening is None or opening <= start:
        return not _ATTRIBUTION.match(text, begin)
    return "。" in mark["run"] or not _CJK.match(text, opening - 1)


def _is_end_unspaced(text: str, mark: re.Match[str], begin: int, ellipsis: bool) -> bool:
    """Return whether a Western mark without a space after it ends a sentence of Chinese or Japanese."""
    at = mark.start()
    if not (_CJK.match(text, begin) or text[begin] in "“「『《（【"):
        return False
    if ellipsis:
        is_hesitation = at < 2 or not _CJK.fullmatch(text, at - 2, at) or text[at - 1] == text[begin]
        return not is_hesitation and not _CONTINUATION.match(text, begin)
    # A dot also separates the parts of foreign names, and a question mark is part of web addresses.
    is_address = "/" in _NOT_ADDRESS.split(text[max(at - MAX_ADDRESS, 0) : at])[-1]
    return mark["run"].strip(".．") != "" and not is_address


def _is_start(text: str, begin: int, ellipsis: bool) -> bool:
    """Return whether a sentence may start at a position after white space."""
    at = _skip(_OPENING, text, begin)
    first = text[at : at + 1]
    if (
        first != first.title()
    ):  # lower case; Georgian letters count as lower case but have no capitals, so they are accepted
        return _LOWER_BEGINNING.match(text, at) is not None and not ellipsis
    return first.isalpha() if ellipsis else first != "" and first not in _CONTINUING


def _is_abbreviation(text: str, start: int, dot: int, begin: int) -> bool:
    """Return whether a full stop belongs to an abbreviation, an initial, an ordinal or the number of a list item."""
    before = text[max(start, dot - MAX_ABBREVIATION) : dot]
    if dot - start <= MAX_ABBREVIATION and _ENUMERATION.fullmatch(before):
        return True
    word = _NOT_WORD.split(before)[-1].lstrip(".")
    following = text[_skip(_PUNCTUATION, text, begin) : _skip(_NEXT_WORD, text, begin)]
    if word in _NEVER_FINAL or _WITHOUT_STOPS.match(word):
        return True
    if word in _BEFORE_NUMBER:
        return bool(_NUMERAL.match(following))
    if word.isdecimal():
        return (following in _GERMAN_MONTHS and len(word) <= 2) or bool(_GERMAN_ORDINAL.search(before))
    is_initial = len(word) == 1 and word.isalpha() and not _CJK.match(word)
    if word in _SELDOM_FINAL or is_initial or _DOTTED.fullmatch(word):
        return following not in _FIRST_WORDS
    return False


def _skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return where the match at a position ends, or the position itself if there is none."""
    match = pattern.match(text, at)
    return match.end() if match else at


def is_spaced(language: str) -> bool:
    """Return whether a language puts spaces between words; an unknown language counts as one that does."""
    scripts = SCRIPTS.get(re.split("[-_]", language.lower())[0], ("Latin",))
    return any(script not in UNSPACED for script in scripts)


def rejoin(line: SplitLine, translations: Iterable[str], spaced: bool) -> Iterator[str]:
    """Yield a piece of a line for each of its sentences, as soon as there is a translation of it.

    `spaced`: the language of the translations puts spaces between words. A piece is the translation with the white
    space before it; the last one ends with that of the line. A blank line is one piece.

    White space at both ends of the line stays, and so does white space between sentences other than a single space.
    Otherwise two sentences have a space between them in a language with spaces, and none in one without, except that a
    space stays between two Latin sentences, and that Thai, Lao, Khmer and Burmese put spaces between sentences.
    """
    if not line.sentences:
        yield line.before
    left, after = "", ""  # the translation of the sentence before, and the white space after that sentence
    for index, (sentence, translation) in enumerate(zip(line.sentences, translations, strict=True)):
        if index == 0:
            space = line.before
        elif after not in ("", " "):
            space = after
        else:
            space = " " if left and (spaced or _needs_space(left, translation, after)) else ""
        end = sentence.after if index == len(line.sentences) - 1 else ""
        yield space + translation + end
        left, after = translation, sentence.after


def _needs_space(left: str, right: str, after: str) -> bool:
    """Return whether two sentences of a language without spaces between words still have one between them."""
    # Thai, Lao, Khmer, Burmese and Tibetan have spaces between clauses and sentences only.
    if _SPACED_SENTENCES.match(left[-1:]) or _SPACED_SENTENCES.match(right[:1]):
        return True
    return after == " " and bool(_LATIN.match(left[-1:]) and _LATIN.match(right[:1]))


def cut_to_fit(sentence: str, fits: Callable[[str], bool]) -> list[str]:
    """Cut a sentence in two, and its halves again, until every piece fits.

    A cut is as near to the middle as possible: within the middle half of the text after the strongest punctuation,
    else at any white space, else between two characters. White space belongs to the piece before it. A single
    character is a piece even if it does not fit.
    """
    if len(sentence) < 2 or fits(sentence):
        return [sentence]
    at = _cut_position(sentence)
    return [*cut_to_fit(sentence[:at], fits), *cut_to_fit(sentence[at:], fits)]


def _cut_position(text: str) -> int:
    """Return the best position to cut a text of two or more characters in two."""
    middle, quarter = len(text) // 2, len(text) // 4
    for (last, first), distance in zip(_CUT_PATTERNS, (quarter, quarter, middle), strict=True):
        before = last.match(text, middle - distance, middle + 1)
        after = first.search(text, middle, len(text) - middle + distance)
        # White space stays with the first piece, so that the next one begins with a word.
        positions = [_skip(_SPACE, text, match.end()) for match in (before, after) if match]
        inner = [position for position in positions if 0 < position < len(text)]
        if inner:
            return min(inner, key=lambda position: abs(position - middle))
    nearby = (at for step in range(MAX_GRAPHEME) for at in (middle - step, middle + step) if 0 < at < len(text))
    return next((at for at in nearby if not _is_grapheme(text, at)), middle)


def _is_grapheme(text: str, at: int) -> bool:
    """Return whether the code points on both sides of a position are drawn as one: an accent, an emoji, a flag."""
    before, after = text[at - 1], text[at]
    if unicodedata.category(after)[0] == "M" or _EXTENDING.match(after) or before + after == "\r\n":
        return True
    if before == "\u200d" or unicodedata.combining(before) == VIRAMA_CLASS:
        return True
    flags = _FLAGS.search(text, max(0, at - 2 * MAX_GRAPHEME), at) if _FLAGS.match(after) else None
    return flags is not None and len(flags[0]) % 2 == 1
