"""A line of text as its sentences and the white space between them, put together again around their translations."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sixfold.text.languages import LETTERS, SCRIPTS, UNSPACED, letters

QUOTED = 200  # characters; what stands in a longer quotation or bracket is split, as a model would not hold it
WORD = 24  # characters; nothing longer is an abbreviation
ADDRESS = 80  # characters before a question mark that tell an address from a question
GRAPHEME = 64  # characters; what is drawn as one is not longer
VIRAMA = 9  # the combining class of signs that tie a consonant to the next

# Marks that end a sentence by themselves, and marks that do so only before white space and a beginning.
_STOPS = "。！？｡‼⁇⁈⁉।॥؟۔։።፧។៕။༎"
_MARKS = _STOPS + ".!?．…\u037e"
_CLOSERS = r"\"'”’」』）】》〉〕］｝)\]}›»"
# Some quotation marks open in one language and close in another: „Ja.“ and » Ja. «; what follows them tells.
_END = re.compile(
    rf"(?P<run>[{_MARKS}]+)"
    rf"(?P<close>(?:[{_CLOSERS}]|[“‘«](?=[\s,;，；{_MARKS}]|$)|[ \xa0\u202f](?:»(?!\w)|[”\"](?=\s|$)))*)"
    r"(?:\[\d{1,3}\])*"
)
_STOP = re.compile(f"[{_STOPS}]")
_SPACE = re.compile(r"\s*")
_WORDY = re.compile(r"[^\W_]")
_CJK = letters("Han", "Hiragana", "Katakana")
_UNMARKED = letters("Thai", "Lao")  # no full stops: a dot is part of an abbreviation
_OPENING = re.compile(r"[\"'“‘«‹„‚「『（(【\[{<¿¡*_#>•·–—-]*[ \xa0\u202f]?")
# What goes on with a sentence wherever it stands. A straight quotation mark may open as well.
_GOES_ON = frozenset(f",;:，；：、·・%‰～~{_MARKS}{_CLOSERS}") - frozenset("\\\"'")
_LOWER_BEGINNING = re.compile(r"[a-z](?:[A-Z]|\)\s)")  # iPhone, and the items of a list: a) b)
_DASHES = frozenset("-–—―─")

_PAIRS = dict(zip("“‘「『（(【《〈〔［｛[{«‹„", "”’」』）)】》〉〕］｝]}»›“", strict=True))
_OPENERS = {closer: opener for opener, closer in _PAIRS.items() if opener != "„"}
_BRACKETS = re.compile("[“”‘「」『』（）()【】《》〈〉〔〕［］｛｝\\[\\]{}«»‹›„]|’(?![a-zA-Z])")
_DOUBLE = re.compile('[“”"]')
_TITLES = frozenset("》〉")
_QUOTES = frozenset("\"'”’」』“‘»«›")

# After a quotation: who said it, at the end of a clause (“……。”他说。), or words that no sentence begins with.
_ATTRIBUTION = re.compile(
    r"[^。！？!?，；：“”「」\s]{0,30}?"
    r"(?:说|說|(?<![知报報])道|问|問|答|喊|叫|表示|称|稱|指出|强调|強調|补充|補充|解释|解釋|回应|回應|写道|寫道)"
    r"(?:[。！？…；]|，[“「])"
)
_SAID = re.compile(
    r"(?:[A-Z][\w.'’-]{0,40}+ ){1,4}"
    r"(?:said|says|asked|asks|replied|answered|shouted|cried|whispered|added|called|yelled|"
    r"muttered|murmured|told|explained|repeated|continued|insisted|agreed|demanded|wondered|warned|sighed|laughed)\b"
)
_CONTINUATION = re.compile(
    r"的(?!确|確|士)|地(?!球|方|区|區|震|铁|鐵)|等(?!到|我|你|他|她)|一(?:书|書|文|词|詞|语|語|句)|之(?:类|類|后|後|前)(?!，)"
    r"|这(?:句|番|样的)|這(?:句|番|樣的)|然后|然後|随后|隨後|接着|接著|便(?!宜)|就(?!在|算|是|连|連|像)|并|並|以及|和|[与與](?!之|此)"
    r"|と(?!ても|ころ|にかく|りあえず|もに)|って|など|を"
)


def _words(written: str) -> frozenset[str]:
    return frozenset(written.split())


# Abbreviations as they are written, without the last full stop. No sentence ends in the first kind; the second ends
# one only before a word that often begins one; the third is an abbreviation only before a number.
_NEVER = _words(
    "Mr Mrs Ms Messrs Mx Dr Drs Prof Rev Fr Hon Gen Col Capt Lt Sgt Maj Adm Sen Rep Gov Pres Supt Insp "
    "vs v cf e.g i.e eg ie viz approx ca c resp incl "
    "z.B d.h u.a s.o s.u bzw vgl ggf evtl sog inkl Hr Fr Frl Dipl Ing "
    "M MM Mme Mlle Mgr p.ex Sra Srta Sres Dña Ud Uds Vd p.ej Sig Dott Avv Exmo Drª "
    "жа т.е т.к напр डॉ प्रो श्री"
)
_SELDOM = _words(
    "etc al Inc Ltd Co Corp Bros Jr Sr St Ste Mt Ft Ave Blvd Rd Dept Univ Assn Est Ph.D M.Sc B.Sc D.Phil "
    "Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec Mon Tue Tues Wed Thu Thur Thurs Fri min max "
    "usw Str Tel GmbH Abt tel av EE.UU FF.AA S.A гг г ул стр тыс млн млрд"
)
_NUMBERED = _words(
    "No Nos Nr Fig Figs Vol Vols Ch Chap Sec Sect Art Arts Eq Eqs Tab Abb Abs Kap Bd Aufl Op p pp ch vol no nr fig "
    "art sec ed cap núm pág págs vers"
)
_BEGINNERS = _words(
    "The This That These Those It Its He She They We You I In On At As But And Or So If When While After Before Since "
    "For From With Then There Their His Her Our My Your What Why How Who Where However Although Though Some Many Most "
    "Not No Yes By To Also Now Here All Both Each Every An A "
    "Der Die Das Ein Eine Er Sie Es Wir Ich Und Aber Im Dann Le La Les Il Elle Ils Nous Vous Un Une Et Mais Dans "
    "El Los Las Una Pero En Он Она Оно Они Мы Вы Это Но На Однако"
)
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
_NOT_WORD = re.compile(r"[^\w.=/@]")
_NO_LETTERS = re.compile(r"[^\w\s]*\s?")
_NEXT_WORD = re.compile(_NO_LETTERS.pattern + r"\w*\.?")
_NUMERAL = re.compile(r"\d|[IVXLC]{2,}\b|[VX]\b")  # "No. I" is an answer
_ENUMERATION = re.compile(
    r"[(\[（]?(?:\d{1,3}(?:\.\d{1,3}){0,4}|[A-Za-zА-Яа-я]|[ivxIVX]{1,5}|[一二三四五六七八九十]{1,3})[)\]）]?"
)
_NOT_ADDRESS = re.compile(r"[^!-~]")
# "am 3. Oktober", "der 2. Weltkrieg": German writes ordinals so, before nouns that have capitals.
_GERMAN_ORDINAL = re.compile(
    r"(?:\b(?:[Aa]m|[Dd](?:er|ie|as|en|em|es)|[Vv]om|[Zz]u[mr]|[Ii]m|[Bb]eim|[Ss]eit|[Bb]is|[Aa]b) \d{1,2})\Z"
)
_GERMAN_MONTHS = _words("Januar Jänner Februar März April Mai Juni Juli August September Oktober November Dezember")

# Where a long sentence is cut, best first: after what ends a part, after a comma, at white space. Each pattern comes
# twice: the first finds the last such place of a stretch.
_PLACES = [
    (re.compile(f"(?s:.*)(?:{place})"), re.compile(place))
    for place in (
        rf"[{_STOPS}；؛][{_CLOSERS}]*|[.!?…;][{_CLOSERS}]*(?=\s)",
        r"[，、：،፣၊།—]|[,:](?=\s)",
        r"\s(?=\S)",
    )
]
# Drawn with what is before them, besides marks: joiners, skin tones, tags, parts of Hangul syllables, Thai and Lao am.
_EXTENDING = re.compile("[\u200c\u200d\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f\u1160-\u11ff\u0e33\u0eb3\uff9e\uff9f]")
_FLAGS = re.compile(r"[\U0001f1e6-\U0001f1ff]+\Z")
_LATIN = re.compile(f"[!-~{LETTERS['Latin']}]")
_APART = re.compile("[\u0e00-\u109f\u1780-\u17ff]")


class Sentence(NamedTuple):
    """A sentence without white space at either end, and the white space that followed it."""

    text: str
    after: str


class Line(NamedTuple):
    """Leading white space and the sentences; all of it, one after another, is the line."""

    before: str
    sentences: list[Sentence]


def split(line: str) -> Line:
    """The sentences of a line; white space that ends it belongs to the last one. Never loses a character.

    A mark that ends a sentence takes the quotation marks and brackets that close after it. In a quotation or bracket of
    at most `QUOTED` characters nothing is split. What has no letter and no digit goes to a neighbour.
    """
    text = _turn_quotes(line.rstrip())
    start = len(line) - len(line.lstrip())
    if start >= len(text):
        return Line(line, [])
    before, sentences = line[:start], []
    pairs = _Pairs(text)
    wordy = _WORDY.search(text, start)
    for mark in _END.finditer(text, start):
        begin = _past(_SPACE, text, mark.end())
        if wordy is None or wordy.start() >= mark.start() or begin == len(text):
            continue
        if pairs.enclose(mark.end()) or not _ends(text, start, mark, begin, pairs):
            continue
        wordy = _WORDY.search(text, begin)
        if wordy is None:
            break
        sentences.append(Sentence(line[start : mark.end()], line[mark.end() : begin]))
        start = begin
    return Line(before, [*sentences, Sentence(line[start : len(text)], line[len(text) :])])


def _turn_quotes(text: str) -> str:
    """The text with its straight quotation marks turned the way they face, where that can be told."""
    if '"' not in text:
        return text
    turned = list(text)
    opened = curly = False  # whether a straight one waits for its end, and whether a curly one does
    for found in _DOUBLE.finditer(text):
        at, char = found.start(), found[0]
        if char != '"':
            curly = char == "“"
            continue
        left, right = text[at - 1 : at].strip(), text[at + 1 : at + 2].strip()
        if (opened and (left or not right)) or (curly and left and left in _MARKS):
            turned[at] = "”"
            opened = curly = False
        elif right:
            turned[at] = "“"
            opened = True
    return "".join(turned)


class _Pairs:
    """The quotation marks and brackets of a text that belong together; asked from left to right."""

    def __init__(self, text: str) -> None:
        self.opened: dict[int, int] = {}  # where each closing one was opened
        waiting: defaultdict[str, list[int]] = defaultdict(list)
        for found in _BRACKETS.finditer(text):
            at, char = found.start(), found[0]
            opener = "„" if char == "“" and waiting["„"] else _OPENERS.get(char)
            if opener is None:
                waiting[char].append(at)
            elif waiting[opener]:
                self.opened[at] = waiting[opener].pop()
        self._short = sorted((begin, end) for end, begin in self.opened.items() if end - begin <= QUOTED)
        self._next = 0
        self._furthest = -1

    def enclose(self, place: int) -> bool:
        """Whether a short pair opens before this place and closes behind it. Places must not go back."""
        while self._next < len(self._short) and self._short[self._next][0] < place:
            self._furthest = max(self._furthest, self._short[self._next][1])
            self._next += 1
        return self._furthest >= place


def _ends(text: str, start: int, mark: re.Match[str], begin: int, pairs: _Pairs) -> bool:
    """Whether a sentence that began at `start` ends with this mark, where `begin` is what comes next."""
    run, first = mark["run"], text[begin]
    spaced = begin > mark.end()
    if first in _GOES_ON or (first in _DASHES and not spaced):
        return False
    if mark["close"] and not _ends_closed(text, start, mark, begin, pairs):
        return False
    if _STOP.search(run):
        return True
    ellipsis = run == "…" or (len(run) > 1 and not run.strip(".…"))
    if not spaced:
        return _ends_unspaced(text, mark, begin, ellipsis)
    if run in ".．" and not mark["close"] and _abbreviated(text, start, mark.start(), begin):
        return False
    return _begins(text, begin, ellipsis)


def _ends_closed(text: str, start: int, mark: re.Match[str], begin: int, pairs: _Pairs) -> bool:
    """Whether a sentence may end where a quotation or bracket has closed after the mark.

    A bracket is a sentence of its own where it opened as one; a title, 《……？》, never is. A quotation before Chinese
    or Japanese ends the sentence, unless what follows says who spoke or begins with a word that begins no sentence,
    or the quotation is a mere word of its sentence: 一声“救命！”.
    """
    last = mark.end("close") - 1
    opened = pairs.opened.get(last)
    if text[last] in _TITLES:
        return False
    if text[last] not in _QUOTES:
        return opened is None or opened <= start
    if not _CJK.match(text, begin):
        return not _SAID.match(text, begin)
    if _CONTINUATION.match(text, begin):
        return False
    if opened is None or opened <= start:
        return not _ATTRIBUTION.match(text, begin)
    return "。" in mark["run"] or not _CJK.match(text, opened - 1)


def _ends_unspaced(text: str, mark: re.Match[str], begin: int, ellipsis: bool) -> bool:
    """Whether a mark of Western writing ends a sentence of Chinese or Japanese, which goes on without a space."""
    at = mark.start()
    if not (_CJK.match(text, begin) or text[begin] in "“「『《（【"):
        return False
    if ellipsis:
        hesitant = at < 2 or not _CJK.fullmatch(text, at - 2, at) or text[at - 1] == text[begin]
        return not hesitant and not _CONTINUATION.match(text, begin)
    # A dot stands between the parts of foreign names, a question mark in addresses.
    address = "/" in _NOT_ADDRESS.split(text[max(at - ADDRESS, 0) : at])[-1]
    return mark["run"].strip(".．") != "" and not address


def _begins(text: str, begin: int, ellipsis: bool) -> bool:
    """Whether a sentence may begin here, after white space."""
    at = _past(_OPENING, text, begin)
    first = text[at : at + 1]
    if first != first.title():  # lower case, but for Georgian, which is so called and has no capitals
        return _LOWER_BEGINNING.match(text, at) is not None and not ellipsis
    return first.isalpha() if ellipsis else first != "" and first not in _GOES_ON


def _abbreviated(text: str, start: int, dot: int, begin: int) -> bool:
    """Whether a full stop belongs to an abbreviation, an initial, an ordinal or the number of an item."""
    near = text[max(start, dot - WORD) : dot]
    if dot - start <= WORD and _ENUMERATION.fullmatch(near):
        return True
    word = _NOT_WORD.split(near)[-1].lstrip(".")
    following = text[_past(_NO_LETTERS, text, begin) : _past(_NEXT_WORD, text, begin)]
    if word in _NEVER or _UNMARKED.match(word):
        return True
    if word in _NUMBERED:
        return bool(_NUMERAL.match(following))
    if word.isdecimal():
        return (following in _GERMAN_MONTHS and len(word) <= 2) or bool(_GERMAN_ORDINAL.search(near))
    initial = len(word) == 1 and word.isalpha() and not _CJK.match(word)
    if word in _SELDOM or initial or _DOTTED.fullmatch(word):
        return following not in _BEGINNERS
    return False


def _past(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Where a match that begins here ends; here, if there is none."""
    found = pattern.match(text, at)
    return found.end() if found else at


def is_spaced(language: str) -> bool:
    """Whether a language puts spaces between words; one that is not known is taken to."""
    scripts = SCRIPTS.get(re.split("[-_]", language.lower())[0], ("Latin",))
    return any(script not in UNSPACED for script in scripts)


def rejoin(line: Line, translations: Sequence[str], spaced: bool) -> str:
    """The layout of a line with its sentences replaced; `spaced` is whether the language they are in puts spaces.

    The white space at both ends stays, and so does what says more than "next sentence" between two: several spaces, a
    tab. Elsewhere two sentences have a space between them in a language with spaces. In one without they have none,
    except that a space stays between two that are Latin, and that Thai and its neighbours part sentences by spaces.
    """
    pieces = [line.before]
    for index, (sentence, translation) in enumerate(zip(line.sentences, translations, strict=True)):
        pieces.append(translation)
        if sentence.after not in ("", " ") or index == len(translations) - 1:
            pieces.append(sentence.after)
        elif translation and (spaced or _set_apart(translation, translations[index + 1], sentence.after)):
            pieces.append(" ")
    return "".join(pieces)


def _set_apart(left: str, right: str, after: str) -> bool:
    """Whether two sentences of a language without spaces have one between them all the same."""
    # Thai, Lao, Khmer, Burmese and Tibetan have no spaces between words, but between clauses and sentences.
    if _APART.match(left[-1:]) or _APART.match(right[:1]):
        return True
    return after == " " and bool(_LATIN.match(left[-1:]) and _LATIN.match(right[:1]))


def cut(sentence: str, fits: Callable[[str], bool]) -> list[str]:
    """Pieces that fit, of a sentence that does not: its halves, and the halves of those that do not fit.

    A half ends at the place nearest to the middle: in the middle half of the text after the strongest punctuation
    there is, else at any white space, else between two characters. White space goes with what is before it. Where a
    single character does not fit, it is a piece all the same.
    """
    if len(sentence) < 2 or fits(sentence):
        return [sentence]
    at = _place(sentence)
    return [*cut(sentence[:at], fits), *cut(sentence[at:], fits)]


def _place(text: str) -> int:
    """Where a text of two characters or more is best cut in two."""
    middle, quarter = len(text) // 2, len(text) // 4
    for (last, first), reach in zip(_PLACES, (quarter, quarter, middle), strict=True):
        found = last.match(text, middle - reach, middle + 1), first.search(text, middle, len(text) - middle + reach)
        # White space is left behind, so that the next piece begins with a word.
        places = [_past(_SPACE, text, match.end()) for match in found if match]
        inner = [place for place in places if 0 < place < len(text)]
        if inner:
            return min(inner, key=lambda place: abs(place - middle))
    nearby = (at for step in range(GRAPHEME) for at in (middle - step, middle + step) if 0 < at < len(text))
    return next((at for at in nearby if not _joined(text, at)), middle)


def _joined(text: str, at: int) -> bool:
    """Whether the characters on both sides of a place are drawn as one: a letter and its accent, an emoji, a flag."""
    before, after = text[at - 1], text[at]
    if unicodedata.category(after)[0] == "M" or _EXTENDING.match(after) or before + after == "\r\n":
        return True
    if before == "\u200d" or unicodedata.combining(before) == VIRAMA:
        return True
    flags = _FLAGS.search(text, max(0, at - 2 * GRAPHEME), at) if _FLAGS.match(after) else None
    return flags is not None and len(flags[0]) % 2 == 1
