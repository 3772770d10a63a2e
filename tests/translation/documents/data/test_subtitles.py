"""Cues of subtitles keep their times, numbers, settings and tags, and their lines stay readable."""

import re

import pytest
from made_documents import Turned

from sixfold.errors import DataError
from sixfold.translation.documents.steps import translate_document
from sixfold.translation.documents.wrapping import balance, display_width
from sixfold.translation.result import Translation

TIMES = "00:00:01,000 --> 00:00:02,500"


def translated(text, form="srt", translator=None):
    return translate_document(translator or Turned(), text.encode(), form)[0].decode()


def cue(text, translator=None):
    """Return what becomes of the text of a cue."""
    output = translated(f"1\n{TIMES}\n{text}\n\n2\n{TIMES}\nlast one\n", translator=translator)
    start, end = f"1\n{TIMES}\n", f"\n\n2\n{TIMES}\nONE LAST\n"
    assert output.startswith(start)
    assert output.endswith(end) or translator is not None
    return output[len(start) :].partition("\n\n2\n")[0]


class Fixed(Turned):
    """Translates every text into the same."""

    def __init__(self, translation):
        super().__init__()
        self.translation, self.texts = translation, []

    def translate(self, text, *_):
        self.texts.append(text)
        return Translation(text, self.translation, 0.0, self.languages)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one <i>two</i>", "<i>TWO</i> ONE"),
        ("{\\an8}one two", "{\\an8}TWO ONE"),
        ('<font color="#fff">one two</font>', '<font color="#fff">TWO ONE</font>'),
        ("- one two\n- three four", "- TWO ONE\n- FOUR THREE"),
        ("-One two.\n-Three four.", "-TWO. ONE\n-FOUR. THREE"),
        ("- one two\nthree", "- THREE TWO ONE"),
        ("12", "12"),
        ("one two\n\nthree four", "TWO ONE\n\nFOUR THREE"),
    ],
)
def test_tags_and_speakers_stay(text, expected):
    assert cue(text) == expected


def test_the_lines_of_a_cue_are_one_text():
    translator = Fixed("x")
    cue("The sentence that\nruns over two lines.", translator)
    assert "The sentence that runs over two lines." in translator.texts


@pytest.mark.parametrize(
    ("source", "translation", "lines"),
    [
        ("One two three.\nFour five.", "是的，我想是的。我们走吧，好吗？", ["是的，我想是的。", "我们走吧，好吗？"]),
        ("One two.", "好的。", ["好的。"]),
        ("One two.\nThree.", "好的。", ["好的。"]),
        ("One two three four.", "一" * 30, ["一" * 15, "一" * 15]),
        ("One.", "aaaa bbbb cccc dddd eeee, ffff gggg hhhh iiii", ["aaaa bbbb cccc dddd eeee,", "ffff gggg hhhh iiii"]),
        ("One.", "aaaa\n\nbbbb", ["aaaa bbbb"]),
    ],
)  # fmt: skip
def test_a_translation_has_as_many_lines_or_more_if_they_would_be_too_long(source, translation, lines):
    assert cue(source, Fixed(translation)).split("\n") == lines


def test_lines_are_no_longer_than_those_of_the_source_or_the_usual_length():
    words = "word " * 60
    for line in cue(f"{'a' * 50} b", Fixed(words)).split("\n"):
        assert len(line) <= 52
    for line in cue("a b", Fixed(words)).split("\n"):
        assert len(line) <= 42
    for line in cue("a b", Fixed("字" * 70)).split("\n"):
        assert len(line) <= 20


def test_a_tag_is_not_broken_and_takes_no_columns():
    text = "one <font color='red' size='20'>two three</font> four " * 3
    for line in balance(text, 3, 30):
        assert line.count("<") == line.count(">")
        assert display_width(re.sub("<[^>]*>", "", line)) <= 30


def test_line_ends_of_windows_stay():
    text = f"1\n{TIMES}\none two three four\nfive six seven eight\n\n2\n{TIMES}\nlast\n".replace("\n", "\r\n")
    output = translated(text)
    assert re.sub(r"\r\n", "", output).count("\n") == 0
    assert output.count("\r\n") == text.count("\r\n")


VTT = """WEBVTT - one two

NOTE one two
three

STYLE
::cue(b) { color: red }

REGION
id:one two

first cue
00:01.000 --> 00:02.000 align:start line:0
<v Ann Bell>one two</v>
<v Bob>three &amp; four

00:00:03.000 --> 00:00:04.000
one <c.red>two</c> <00:00:03.500>three
"""


def test_of_webvtt_only_the_texts_of_cues_change():
    output = translated(VTT, "vtt")
    head, cues = VTT.split("first cue\n")
    assert output.startswith(f"{head}first cue\n00:01.000 --> 00:02.000 align:start line:0\n")
    assert "<v Ann Bell>TWO ONE</v>\n<v Bob>FOUR &amp; THREE\n\n00:00:03.000 --> 00:00:04.000\n" in output
    assert sorted(re.findall("<[^>]*>", output)) == sorted(re.findall("<[^>]*>", cues))


def test_a_translation_that_would_be_another_cue_is_not_written_as_one():
    output = translated(VTT, "vtt", Fixed(f"{TIMES} a < b"))
    assert output.count("-->") == VTT.count("-->")
    assert cue("one two", Fixed(TIMES)) == TIMES.replace("-->", "→")


@pytest.mark.parametrize(
    ("form", "text", "message"),
    [
        ("srt", "one two\nthree\n", ":1: expected the number or the times of a cue; got 'one two'"),
        ("srt", "1\n00:00:01,000 -> 2\none\n", ":1: expected the number or the times of a cue; got '1'"),
        ("srt", f"1\n{TIMES}\none\n\n2\n00:0x:01,000 --> 00:00:02,000\ntwo\n", ":6: expected the times of a cue"),
        ("vtt", "00:01.000 --> 00:02.000\none\n", ":1: expected WEBVTT; got '00:01.000"),
        ("vtt", "WEBVTT\n\n00:01.000 --> end\none\n", ":3: expected the times of a cue; got '00:01.000 --> end'"),
    ],
)
def test_malformed_subtitles_are_an_error_with_their_line(form, text, message):
    with pytest.raises(DataError, match=re.escape(message)):
        translated(text, form)
