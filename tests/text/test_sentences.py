"""Lines are split into sentences, and joined again around translations."""

import unicodedata

import pytest
from growth import assert_linear, repeated
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sixfold.text.sentences import (
    MAX_QUOTATION,
    SentenceSpan,
    SplitLine,
    cut_to_fit,
    is_spaced,
    rejoin,
    split_sentences,
)

# Of every sort that the rules distinguish, so that random texts exercise the rules.
PARTS = [
    "他说", "我来了", "然后", "の", "Hello", "world", "Mr", "U.S", "e.g", "3", "14", "a", "A", "é", "ß", "ა", "ไทย",
    "。", "！", "？", "…", "……", "...", ".", "!", "?", "।", "؟", "。”", "，", "；", ",", ":", "—", "-", "[1]", "1.",
    "“", "”", "‘", "’", "「", "」", "《", "》", "（", "）", "(", ")", '"', "'", "«", "»", "„", "[", "]", "/",
    " ", "  ", "\t", "\r", "\u3000", "\xa0", "\x1c", "\x85", "\0", "\u200b", "\ufeff", "👩‍👩‍👧", "🇨🇳", "e\u0301",
    "\ud800",
]  # fmt: skip
TEXTS = st.one_of(st.text(), st.lists(st.sampled_from(PARTS)).map("".join))


def sentences(text):
    return [sentence.text for sentence in split_sentences(text).sentences]


def joined_line(line):
    return line.before + "".join(text + after for text, after in line.sentences)


# Each | is a boundary, between or beside white space.
RULES = {
    "Chinese marks and their runs": [
        "你好。|我是小明！|你呢？",
        "真的吗？！|是的……|好吧。",
        "他走了。。。|我来了。",
        "今天很热；明天很冷，后天呢？|不知道。",
        "我想想……|你先走。",
        "第一。 |第二。",
        "你好!|我是小明?|是的。",
        "乔治.布什来了。",
        "用 Python 3.11。|Java 也行。",
        "我不信！——她喊。",
        "怎么A/B都行?|好的。",
    ],
    "hesitation ends no sentence": ["我……我不知道。", "苹果、梨……等水果。", "他只说，……还有别的。", "我……不去。"],
    "closing marks belong to the sentence": [
        "他说：“我来了。”|她走了。",
        "（他来了。）|我走了。",
        "“走！”|“去哪儿？”",
        "“来了。”。|好。",
        '他说："我来了。"|她走了。|"好。"|他也走了。',
        '他说：“我来了。"|她走了。',
        'He said "Go. Now. " |Then he left. |"Good."',
        "「いいえ。」|彼は帰った。",
        'He said "Go!" |Then he left.',
        "(He left.) |Then I came.",
        "„Ja.“ |Dann ging er.",
        "« Oui. » |Il part.",
        "It ends.[1] |It begins.[2][3] |Good.",
    ],
    "a quotation is a part of its sentence": [
        "他说：“我来了。”然后走了。",
        "“我来了。”他说。|“你呢？”她问道。",
        "“我来了。”老朋友王先生笑着说，“你呢？”",
        "“我来了。”|他知道。",
        "“我来了。”|他说：“你呢？”",
        "他喊了一声“救命！”跑了。",
        "他大叫“救命！”的时候我走了。",
        "他说：“我来了。我看见了。我走了。”|然而没有人信。",
        "我读了《怎么办？》这本书。",
        "《怎么办？》是一本书。",
        "他（我的朋友！）走了。",
        "「はい。」と言った。",
        'She said, "I came. I saw. I left," and left.',
        'A 5" pipe broke. |It leaked. |A 6" pipe did not.',
        'The 5"-pipe broke. |He said, "I came. I saw," and left. |She did.',
        "He came (at last! They waited.) and left.",
        "He (a), she (b) and they (late. They slept) left. |Good.",
    ],
    "Western marks before white space and a beginning": [
        "I came. |I saw! |Did you? |Yes.",
        "It is so. |42 is the answer. |“Quite.” |(Really.) |¿Qué? |¡Hola!",
        "Это так. |Он пришёл. |Да.",
        "안녕하세요. |저는 밥입니다.",
        "გამარჯობა. |როგორ ხარ?",
        "Hello. |你好。",
        "Is it so? said he. |Oh! yes.",
        "It is out. |iPhone sales rose. |eBay too.",
        "Costs rose. |$5 is a lot. |- So it is.",
        "Hello!|你好。",
        "One.  |Two.\t|Three.\u3000|Four.",
    ],
    "abbreviations": [
        "Mr. Smith and Dr. Jones met Prof. Lee vs. Mrs. Kim.",
        "Fruit, e.g. Apples, i.e. The best, etc. Boxes.",
        "Fruit etc. |The rest is no. |It is fine.",
        "See Fig. 3 and No. 5 in Vol. II. |No. |I will not.",
        "Foo Inc. Bar opened on Jan. 5 in St. Petersburg. |Good.",
        "Das ist z.B. Unsinn, d.h. Quatsch, bzw. Mist, usw. |Der Mann Nr. 5 kam.",
        "M. Dupont et Mme. Curie. |M. Le Pen.",
        "El Sr. López y la Sra. García. |Bien.",
        "He left at 5 p.m. Monday. |She left at 6 p.m. |They met.",
        "She has a Ph.D. |She is proud.",
        "Smith et al. |The others.",
        "ดร. สมชาย พ.ศ. 2560",
    ],
    "initials": [
        "J. R. R. Tolkien wrote it. |C. S. Lewis read it.",
        "J.R.R. Tolkien wrote it.",
        "The U.S. Government paid. |It is in the U.S. |The end.",
        "Take vitamin C. |It helps. |So do I. |We all do.",
        "А. С. Пушкин писал. |Да.",
    ],
    "numbers, versions and addresses": [
        "Pi is 3.14. |Use 2.0.1 of it. |He was 23. |She too.",
        "See www.example.com/a?b=C. |Mail me@example.org! |Open report.txt. |Done.",
        "见 http://a.example/c?查询=1 和 http://a.example/!好。|完。",
        "Er kam am 3. Oktober. |Der 2. Weltkrieg war vorbei.",
    ],
    "ellipsis before a capital": ["Well... |He left.", "Well... he left.", "Well… |He left… and so on… 5 times."],
    "enumerations": [
        "1. Foo bar. |2. Bar foo.",
        "a) foo bar. |b) bar foo. |(2) Bar foo.",
        "IV. Foo. |1.2. Bar. |（3）好。|三. 好的。",
        "1. 苹果。|２． 梨。",
    ],
    "other scripts": [
        "यह है। |वह है॥ |हाँ।",
        "هل أنت هنا؟ |نعم۔ |حسنا.",
        "Բարեւ։ |Ես։",
        "ሰላም። |እኔ።",
        "ខ្ញុំ។ |អ្នក។",
        "ကျွန်။ |သူ။",
    ],
    "what has no letters goes to a neighbour": [
        "...你好。|好。",
        "Great! |Next. !!! :)",
        "Hi! ??? |Bye.",
        "！！！好。",
        "。。。 。。 。",
        "好。 ★★★",
        "?! . ! …",
    ],
}


@pytest.mark.parametrize(("rule", "marked"), [(rule, marked) for rule, cases in RULES.items() for marked in cases])
def test_the_rules(rule, marked):
    assert sentences(marked.replace("|", "")) == [part.strip() for part in marked.split("|")], rule


def test_a_long_quotation_is_split():
    inside = "我来了。" * (MAX_QUOTATION // 4)
    assert len(sentences(f"他说：“{inside[4:-4]}”")) == 1
    assert len(sentences(f"他说：“{inside}”")) == MAX_QUOTATION // 4


def test_a_quotation_that_is_never_closed_is_split():
    assert sentences("“我来了。我看见了。") == ["“我来了。", "我看见了。"]
    assert sentences('A 5" pipe. It broke. (And so.') == ['A 5" pipe.', "It broke.", "(And so."]


def test_white_space_at_the_ends_is_kept_apart():
    assert split_sentences("\t 你好。 Hello. \r\n") == SplitLine(
        "\t ", [SentenceSpan("你好。", " "), SentenceSpan("Hello.", " \r\n")]
    )
    assert split_sentences("") == SplitLine("", [])
    assert split_sentences(" \u3000\r") == SplitLine(" \u3000\r", [])


@settings(max_examples=500, deadline=None)
@given(text=TEXTS)
@example(text="\x1c。\x1d a。\x1e")
def test_nothing_is_lost_and_sentences_have_no_white_space_at_their_ends(text):
    line = split_sentences(text)
    assert joined_line(line) == text
    assert line.before.strip() == ""
    for sentence in line.sentences:
        assert sentence.text
        assert sentence.text == sentence.text.strip()
        assert sentence.after.strip() == ""
    if len(line.sentences) > 1:
        assert all(any(char.isalnum() for char in sentence.text) for sentence in line.sentences)


@settings(max_examples=300, deadline=None)
@given(text=TEXTS)
def test_a_text_is_itself_again_where_its_spacing_is_that_of_its_language(text):
    line = split_sentences(text)
    gaps = {after for _, after in line.sentences[:-1]}
    texts = [sentence.text for sentence in line.sentences]
    if "" not in gaps:
        assert "".join(rejoin(line, texts, spaced=True)) == text
    if " " not in gaps and not any("\u0e00" <= char <= "\u109f" for char in text):
        assert "".join(rejoin(line, texts, spaced=False)) == text


@pytest.mark.parametrize(
    ("text", "translations", "spaced", "joined"),
    [
        ("  你好。我来了。\r", ["Hello.", "I came."], True, "  Hello. I came.\r"),
        ("\tHello. I came.  ", ["你好。", "我来了。"], False, "\t你好。我来了。  "),
        ("Hello.  I came.\tBye.", ["你好。", "我来了。", "再见。"], False, "你好。  我来了。\t再见。"),
        ("你好。\u3000我来了。", ["Hello.", "I came."], True, "Hello.\u3000I came."),
        ("Hello. I came.", ["Hello.", "I came."], False, "Hello. I came."),
        ("Hello. I came.", ["Hello.", "我来了。"], False, "Hello.我来了。"),
        ("你好。Élan。", ["OK.", "Élan."], False, "OK.Élan."),
        ("Hello. Élan.", ["OK.", "Élan."], False, "OK. Élan."),
        ("你好。我来了。", ["สวัสดี", "ฉันมาแล้ว"], False, "สวัสดี ฉันมาแล้ว"),
        ("你好。我来了。", ["OK!", "ฉันมาแล้ว"], False, "OK! ฉันมาแล้ว"),
        ("Hello. I came.", ["សួស្តី។", "ខ្ញុំមក។"], False, "សួស្តី។ ខ្ញុំមក។"),
        ("一。二。三。", ["One.", "", "Three."], True, "One. Three."),
        (" \t", [], True, " \t"),
    ],
)
def test_translations_take_the_place_of_sentences(text, translations, spaced, joined):
    assert "".join(rejoin(split_sentences(text), translations, spaced)) == joined


def test_a_translation_too_few_is_refused():
    with pytest.raises(ValueError, match="shorter"):
        list(rejoin(split_sentences("一。二。"), ["One."], spaced=True))


def test_which_languages_put_spaces_between_words():
    assert not any(map(is_spaced, ("zh", "yue", "ja", "th", "lo", "km", "my", "bo", "zh-CN", "zh_Hant", "ZH")))
    assert all(map(is_spaced, ("en", "de", "ko", "ru", "ar", "hi", "en-GB", "xx", "")))


def fits_within(size):
    return lambda piece: len(piece) <= size


@settings(max_examples=500, deadline=None)
@given(text=TEXTS, size=st.integers(1, 30))
def test_pieces_fit_and_join(text, size):
    pieces = cut_to_fit(text, fits_within(size))
    assert "".join(pieces) == text
    assert all(len(piece) <= size for piece in pieces)
    assert text == "" or all(pieces)


@pytest.mark.parametrize(
    ("text", "size", "pieces"),
    [
        ("short", 5, ["short"]),
        ("他来了，我走了；他哭了，我笑了", 10, ["他来了，我走了；", "他哭了，我笑了"]),
        ("他来了、我走了，你", 8, ["他来了、", "我走了，你"]),
        ("“我来了。我看见了。”他说", 10, ["“我来了。", "我看见了。”他说"]),
        ("one two, three four five", 20, ["one two, ", "three four five"]),
        ("a, this one has many words", 20, ["a, this one ", "has many words"]),
        ("1,000,000,000:30", 10, ["1,000,00", "0,000:30"]),
        ("word " + "x" * 20, 12, ["word ", "x" * 10, "x" * 10]),
        ("one   two", 8, ["one   ", "two"]),
        ("e\u0301e\u0301e\u0301", 4, ["e\u0301", "e\u0301e\u0301"]),
        ("👩‍👩‍👧👩‍👩‍👧👩‍👩‍👧", 12, ["👩‍👩‍👧", "👩‍👩‍👧👩‍👩‍👧"]),
        ("🇨🇳🇩🇪🇫🇷", 4, ["🇨🇳", "🇩🇪🇫🇷"]),
        ("👍🏽👍🏽👍🏽", 5, ["👍🏽", "👍🏽👍🏽"]),
        ("👩‍👩‍👧", 3, ["👩‍", "👩‍👧"]),
    ],
)
def test_a_long_sentence_is_cut_at_the_best_position(text, size, pieces):
    assert cut_to_fit(text, fits_within(size)) == pieces


def test_pieces_are_nearly_equal_and_fits_is_called_rarely():
    calls = 0

    def fits(piece):
        nonlocal calls
        calls += 1
        return len(piece) <= 300

    pieces = cut_to_fit("字" * 1_000_000, fits)
    assert max(map(len, pieces)) - min(map(len, pieces)) <= 1
    assert calls < 2 * len(pieces)


def test_what_never_fits_comes_as_single_characters():
    assert cut_to_fit("a b字", lambda _: False) == ["a", " ", "b", "字"]


def test_no_letter_loses_its_accents():
    text = unicodedata.normalize("NFD", "Việt Nam rất đẹp và tiếng Việt cũng thế") * 20
    pieces = cut_to_fit(text.replace(" ", ""), fits_within(10))
    assert not any(unicodedata.combining(piece[0]) for piece in pieces)


UNITS = [
    ".", "。", "…", " ", "x", "字", "(", ")", "“", '"', "a ", "A. ", "1. ", "。a", ". ", "。 ", "(.)", "“。”他", ".[1]",
    ". «", '." ', "\u0301", "🇨", "a, ", ",", "字字字…", "/a?字", ". (", "e.g. ", "am 3. ", "。”", "“字。”说", "-", "_",
    "’", ";",
]  # fmt: skip


@pytest.mark.parametrize("unit", UNITS)
def test_long_lines_take_linear_time(unit):
    def work(text):
        assert joined_line(split_sentences(text)) == text
        assert "".join(cut_to_fit(text, fits_within(300))) == text

    assert_linear(work, repeated(unit, prefix="字"))
