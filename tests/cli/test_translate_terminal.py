"""`sixfold translate` on a terminal: a prompt, a bar, and the sentences of a text as they are translated."""

import sys
from pathlib import Path

import pytest
from commands import run_here, sixfold
from small_translators import shared_models
from terminal import on_a_terminal

from sixfold.translation.translator import Translator

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import toy_translation as toy

COMMAND = [sys.executable, "-m", "sixfold", "translate"]
SOURCES, TARGETS = zip(*toy.sentences()[:40], strict=True)
# The warning is about `pty.fork`; the child does nothing but `exec`.
pytestmark = pytest.mark.filterwarnings("ignore:.*forkpty:DeprecationWarning")


@pytest.fixture(scope="module")
def both_ways(tmp_path_factory):
    """A model for Chinese and English, in both directions; its translations do not matter."""
    return shared_models(tmp_path_factory)["tagged"]


def printed(model, text):
    """Return what the command prints where standard output is a pipe."""
    return sixfold("translate", "--model", model, text).stdout


@pytest.mark.parametrize("leave", [b"\x04", b"\x03"])
def test_a_terminal_gets_a_prompt_that_is_left_cleanly(leave, model):
    typed = [f"{text}\n".encode() for text in SOURCES[:2]]
    screen, status = on_a_terminal([*COMMAND, "--model", model], [*typed, leave])
    assert "zh→toy: type a line and press Enter; Ctrl-D ends" in screen
    assert all(target in screen for target in TARGETS[:2])
    assert status == 0
    assert "Traceback" not in screen


def test_a_terminal_sees_how_far_a_file_is(model, tmp_path):
    source, output = tmp_path / "in.zh", tmp_path / "out.toy"
    source.write_text("".join(f"{text}\n" for text in SOURCES), encoding="utf-8")
    screen, status = on_a_terminal([*COMMAND, "--model", model, source, "--output", output], [])
    assert status == 0
    assert "40 lines" in screen
    assert output.read_text(encoding="utf-8") == "".join(f"{text}\n" for text in TARGETS)


def test_a_terminal_shows_the_sentences_of_a_text_then_a_line_end_and_the_warnings(model, both_ways):
    text = f"{SOURCES[0]}。{SOURCES[1]}。\n\n{SOURCES[2]}"
    screen, status = on_a_terminal([*COMMAND, "--model", model, text], [])
    assert (screen.replace("\r\n", "\n"), status) == (printed(model, text), 0)
    german = "Ich habe heute leider keine Zeit für dich."
    screen, status = on_a_terminal([*COMMAND, "--model", both_ways, german], [])
    shown, *warnings = screen.removesuffix("\r\n").split("\r\n")
    assert (f"{shown}\n", status) == (printed(both_ways, german), 0)
    assert warnings[0].startswith("warning: the text seems to be in German")
    assert all(line.startswith("warning: ") for line in warnings)


def test_a_terminal_shows_a_sentence_before_the_next_is_translated(model, capsys, monkeypatch):
    shown = []
    stream_request = Translator.stream_request

    def watched(*arguments):
        for part in stream_request(*arguments):
            shown.append(capsys.readouterr().out)  # what has been printed when the next part comes
            yield part

    monkeypatch.setattr(Translator, "stream_request", watched)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    rest = run_here(capsys, "translate", "-m", model, f"{SOURCES[0]}。\n{SOURCES[1]}。").out
    expected = printed(model, f"{SOURCES[0]}。\n{SOURCES[1]}。")
    first, second = expected.splitlines(keepends=True)
    assert shown == ["", first, second.removesuffix("\n")]
    assert rest == "\n"


@pytest.mark.parametrize(
    ("text", "more", "words"),
    [
        ("Ich habe heute leider keine Zeit für dich.", [], "the text seems to be in German"),
        ("我们昨天去了图书馆。", ["--to", "zh"], "the text is in Chinese already"),
        ("Я люблю", ["--to", "en"], "no model translates this text into English"),
    ],
)
def test_a_terminal_shows_nothing_of_a_text_that_is_strictly_refused(text, more, words, both_ways):
    screen, status = on_a_terminal([*COMMAND, "--model", both_ways, text, *more, "--strict"], [])
    assert screen.startswith(f"error: {words}")
    assert status == 2
