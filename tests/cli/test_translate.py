"""`sixfold translate` as a user runs it: texts, files, pipes, a terminal, and a power cut."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import complaint, run_here, sixfold
from small_translators import shared_models

from sixfold import modelfile
from sixfold.cli.translate_input import input_path
from sixfold.errors import DataError

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import toy_translation as toy

COMMAND = [sys.executable, "-m", "sixfold", "translate"]
PAIRS = toy.sentences()[:40]
SOURCES, TARGETS = zip(*PAIRS, strict=True)


def translate(model, *arguments):
    result = sixfold("translate", "--model", model, *arguments)
    assert result.returncode == 0, result.stderr
    return result


def pipe(model, raw, *arguments):
    """Run the command with bytes as standard input."""
    command = [*COMMAND, "--model", model, *arguments]
    result = subprocess.run(command, input=raw, capture_output=True, timeout=60)
    assert result.returncode == 0, result.stderr
    return result


def start_translate(model, *arguments):
    """Start the command with pipes, and with the Ctrl-C handler that a terminal sets."""
    program = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    program += "from sixfold.cli.main import main; main()"
    command = [sys.executable, "-c", program, "translate", "--model", model, *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def lines(texts):
    return "".join(f"{text}\n" for text in texts)


def wait_until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture
def files(tmp_path):
    (tmp_path / "in.zh").write_text(lines(SOURCES), encoding="utf-8")
    return tmp_path / "in.zh", tmp_path / "out.txt"


def test_a_text_is_translated(model):
    result = translate(model, "我爱机器学习")
    assert (result.stdout, result.stderr) == ("I love machine learning\n", "")


def test_a_text_keeps_its_lines_and_may_be_empty(model):
    assert translate(model, f"  {SOURCES[0]}\n\n{SOURCES[1]}").stdout == f"  {TARGETS[0]}\n\n{TARGETS[1]}\n"
    assert translate(model, "").stdout == "\n"


@pytest.mark.parametrize(
    "name", ["letter.txt", "nosuch.md", "REPORT.DOCX", "train.zh", "./notes", "/etc/nosuch", "data/train.de", "笔记.md"]
)
def test_what_looks_like_a_missing_file_is_an_error_unless_it_is_said_to_be_text(name, model, tmp_path):
    out = tmp_path / "out.md"
    message = complaint("translate", "--model", model, name, "--output", out)
    assert f"error: {name}: no such file" in message
    assert "hint: to translate these words as a text, add --text" in message
    assert not out.exists()
    if name == "nosuch.md":
        assert translate(model, name, "--text", "--output", out).stdout == ""
        assert out.exists()


@pytest.mark.parametrize(
    "text",
    [
        "Hello.World",
        "e.g.",
        "and/or",
        "Node.js",
        "请打开main.py",
        "amazon.de",
        "google.ru",
        "example.org",
        "www.lemonde.fr",
        "Hello.Org",
        "amazon.de/deals",
        "https://x.org/a.md",
        "看README.md",
        "so it goes.txt",
        "我" * 300,
        "...",
    ],
)
def test_words_with_dots_and_strokes_are_no_files(text):
    assert input_path(text) is None


def test_a_path_into_a_folder_that_exists_is_a_missing_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert input_path("docs/guide") is None
    (tmp_path / "docs").mkdir()
    with pytest.raises(DataError, match="docs/guide: no such file"):
        input_path("docs/guide")


def test_several_texts_are_told_apart_from_one_without_quotes(model):
    assert "hint: put quotes around the text" in complaint("translate", "--model", model, "Hello", "world")
    quoted = complaint("translate", "--model", model, "How are you?", "I am fine.")
    assert "quotes" not in quoted
    assert "hint: translate one text at a time" in quoted
    assert "nosuch.md: no such file" in complaint("translate", "--model", model, __file__, "nosuch.md", "-o", "x")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("我们昨天在图书馆里看了一整天的书\n".encode("gbk"), "text in GBK"),
        ("我们昨天在图书馆里看了一整天的书\n".encode("utf-16"), "text in UTF-16"),
        (b"\x7fELF\x02\x01\x01" + bytes(99), "an ELF program"),
    ],
)
def test_what_is_not_utf8_text_is_refused_from_a_file_and_a_pipe(data, words, model, tmp_path):
    path, out = tmp_path / "in.txt", tmp_path / "out.txt"
    path.write_bytes(data)
    assert f"{path}: expected text in UTF-8; got {words}" in complaint("translate", "-m", model, path, "-o", out)
    document = path.rename(tmp_path / "in.md")
    assert f"{document}: expected text in UTF-8; got {words}" in complaint("translate", "-m", model, document)
    for more in ([], ["--output", out], ["--format", "markdown"]):
        result = subprocess.run([*COMMAND, "--model", model, *more], input=data, capture_output=True, timeout=60)
        assert (result.returncode, result.stdout) == (2, b"")
        assert f"standard input: expected text in UTF-8; got {words}" in result.stderr.decode()
    assert {each.name for each in tmp_path.iterdir() if each.name != "cache"} == {"in.md"}


@pytest.fixture(scope="module")
def both_ways(tmp_path_factory):
    """A model for Chinese and English, in both directions; its translations do not matter."""
    return shared_models(tmp_path_factory)["tagged"]


@pytest.mark.parametrize(
    ("text", "more", "words"),
    [
        ("Ich habe heute leider keine Zeit für dich.", [], "seems to be in German"),
        ("今日はとても天気がいいですね。", [], "seems to be in Japanese"),
        ("我们昨天去了图书馆。", ["--to", "zh"], "is in Chinese already"),
        ("We went to the library yesterday.", ["--to", "en"], "is in English already"),
    ],
)
def test_a_language_that_the_model_does_not_read_is_warned_of_and_strictly_refused(
    text, more, words, both_ways, tmp_path, capsys
):
    result = run_here(capsys, "translate", "-m", both_ways, text, *more, "--json")
    kinds = [each["kind"] for each in json.loads(result.out)["warnings"]]
    assert {"language", "same-language"} & set(kinds)
    assert f"warning: the text {words}" in result.err
    result = run_here(capsys, "translate", "-m", both_ways, text, *more, "--strict", status=2)
    assert result.out == ""
    assert f"error: the text {words}" in result.err
    path = tmp_path / "in.txt"
    path.write_text(f"42\n\n{text}\n{text}\n", encoding="utf-8")
    result = translate(both_ways, path, *more)
    assert f"warning: {path}:3: the text {words}" in result.stderr
    assert "; and 1 line more" in result.stderr
    out = tmp_path / "out.txt"
    assert f"error: {path}:3: the text {words}" in complaint(
        "translate", "-m", both_ways, path, *more, "--strict", "--output", out
    )
    document = path.rename(tmp_path / "in.md")
    assert f"warning: {document}:3: the text {words}" in translate(both_ways, document, *more).stderr
    assert f"error: {document}:3: the text {words}" in complaint(
        "translate", "-m", both_ways, document, *more, "--strict", "--output", out
    )
    assert not out.exists()


def test_many_units_of_a_document_in_the_target_language_are_one_warning_with_their_number(both_ways, tmp_path):
    page = tmp_path / "mixed.md"
    page.write_text("Where is the station?\n\n" + "我们昨天去了图书馆。\n\n" * 3, encoding="utf-8")
    errors = translate(both_ways, page, "--to", "zh").stderr
    assert (
        f"warning: {page}:3: the text is in Chinese already, the language to translate into; and 2 lines more" in errors
    )
    assert errors.count("in Chinese already") == 1


def test_a_text_as_json_has_its_tokens_and_its_alignment(model):
    facts = json.loads(translate(model, "我爱机器学习", "--json").stdout)
    assert (facts["translation"], facts["from"], facts["to"]) == ("I love machine learning", "zh", "toy")
    assert facts["tokens"][0]["text"] == "I"
    assert facts["alignment"]


def test_n_best_of_a_text_are_lines_with_scores_the_best_first(model):
    rows = [line.split("\t") for line in translate(model, "我爱机器学习", "--n-best", 3).stdout.splitlines()]
    scores = [float(score) for score, _ in rows]
    assert scores == sorted(scores, reverse=True)
    assert len({text for _, text in rows}) == 3
    assert rows[0][1] == "I love machine learning"


def test_alternatives_follow_the_prefix_and_name_the_next_word(model):
    rows = [
        line.split("\t") for line in translate(model, "我爱数学", "--alternatives", "--prefix", "I").stdout.splitlines()
    ]
    assert len({word for _, word, _ in rows}) == len(rows) > 1
    assert all(text.startswith((f"I {word}", f"I{word}")) for _, word, text in rows)
    assert rows[0][1:] == ["love", "I love mathematics"]
    rows = translate(model, "我爱数学", "--alternatives", "--n-best", 2, "--json").stdout.splitlines()
    assert json.loads(rows[0])["next"] == "I"
    assert len(rows) == 2


def test_a_prefix_is_what_the_translation_begins_with(model):
    assert translate(model, "我爱数学", "--prefix", "They").stdout.startswith("They ")


def test_a_file_becomes_as_many_lines_in_its_order(model, files):
    assert translate(model, files[0]).stdout == lines(TARGETS)


def test_more_lines_than_a_window_keep_their_order(model):
    sources = [SOURCES[index * 7 % 40] for index in range(3000)]
    result = pipe(model, lines(sources).encode(), "--beam", "1")
    assert result.stdout.decode().count("\n") == 3000
    single = dict(
        zip(SOURCES, pipe(model, lines(SOURCES).encode(), "--beam", "1").stdout.decode().splitlines(), strict=True)
    )
    assert result.stdout.decode().splitlines() == [single[text] for text in sources]


def test_white_space_blank_lines_line_ends_and_a_missing_last_one_are_kept(model):
    first, second = (text.encode() for text in SOURCES[:2])
    first_target, second_target = (text.encode() for text in TARGETS[:2])
    raw = b"\n  %b\t\n \t \n%b\r\n\r\n123\n%b" % (first, second, first)
    assert pipe(model, raw, "-").stdout == b"\n  %b\t\n \t \n%b\r\n\r\n123\n%b" % (
        first_target,
        second_target,
        first_target,
    )
    assert pipe(model, b"").stdout == b""
    assert pipe(model, b"\n").stdout == b"\n"


def test_a_byte_order_mark_is_no_text_and_stays_where_it_is(model):
    assert pipe(model, b"\xef\xbb\xbf123\n").stdout == b"\xef\xbb\xbf123\n"
    assert json.loads(pipe(model, b"\xef\xbb\xbf123\n", "--json").stdout)["translation"] == "123"


def test_bytes_that_are_not_utf8_are_replaced_and_counted_once(model):
    result = pipe(model, f"{SOURCES[0]}\n".encode() + b"1\xff\xfe2\n3\x80\n")
    assert result.stdout.decode() == f"{TARGETS[0]}\n1\ufffd\ufffd2\n3\ufffd\n"
    assert result.stderr.decode() == (
        "warning: standard input:2: 3 bytes from here on are not UTF-8 and became U+FFFD\n"
    )


def test_a_nul_is_a_character_like_others(model):
    assert pipe(model, b"1\x002\n" + SOURCES[0].encode() + b"\x00\n\x00\n").stdout.count(b"\n") == 3


def test_a_line_of_a_megabyte_is_one_line(model):
    result = pipe(model, "。".join(SOURCES * 2000).encode() + b"\nlast", "--beam", "1")
    assert result.stdout.count(b"\n") == 1


def test_a_slow_producer_has_each_line_back_before_it_writes_the_next(model):
    with start_translate(model) as process:
        for source, target in PAIRS[:3]:
            process.stdin.write(f"{source}\n".encode())
            process.stdin.flush()
            assert process.stdout.readline().decode() == f"{target}\n"
        process.stdin.close()
        assert process.wait(30) == 0


def test_json_lines_are_one_for_each_line(model, files):
    records = [json.loads(line) for line in translate(model, files[0], "--json", "--n-best", 2).stdout.splitlines()]
    assert [each["translation"] for each in records] == list(TARGETS)
    assert all(len(each["n_best"]) == 2 and "tokens" not in each for each in records)
    files[0].write_text(lines(SOURCES[:2]), encoding="utf-8")
    records = [json.loads(line) for line in translate(model, files[0], "--json", "--details").stdout.splitlines()]
    assert all(each["tokens"] for each in records)


def test_an_output_is_whole_and_nothing_is_left_beside_it(model, files, tmp_path):
    result = translate(model, files[0], "--output", files[1])
    assert (result.stdout, result.stderr) == ("", "")
    assert files[1].read_text(encoding="utf-8") == lines(TARGETS)
    translate(model, SOURCES[0], "--output", tmp_path / "text")
    assert (tmp_path / "text").read_text(encoding="utf-8") == lines(TARGETS[:1])
    assert {path.name for path in tmp_path.iterdir() if path.name != "cache"} == {"in.zh", "out.txt", "text"}


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_after_a_kill_resume_goes_on_and_gives_the_same_bytes(form, model, files, tmp_path):
    raw = lines(SOURCES).encode()
    expected = pipe(model, raw, *form).stdout
    partial = tmp_path / "out.txt.partial"
    with start_translate(model, "-", "--output", files[1], *form) as process:
        process.stdin.write(raw[: raw.index(SOURCES[10].encode()) + 3])
        process.stdin.flush()
        wait_until(lambda: partial.exists() and partial.read_bytes().count(b"\n") == 10)
        process.kill()
    assert not files[1].exists()
    with partial.open("ab") as file:
        file.write(b'{"half a li')
    with start_translate(model, "-", "--output", files[1], "--resume", *form) as process:
        process.stdin.write(raw[: raw.index(SOURCES[20].encode())])
        process.stdin.flush()
        wait_until(lambda: partial.read_bytes().count(b"\n") == 20)
        process.kill()
    pipe(model, raw, "-", "--output", files[1], "--resume", *form)
    assert files[1].read_bytes() == expected
    assert not partial.exists()


def test_resume_does_not_translate_again_what_is_there(model, files, tmp_path):
    translate(model, files[0], "--output", files[1])
    half_done(model, files, tmp_path)
    partial = tmp_path / "out.txt.partial"
    partial.write_text("kept\n" * 3 + "not", encoding="utf-8")
    translate(model, files[0], "--output", files[1], "--resume")
    assert files[1].read_text(encoding="utf-8") == lines(["kept"] * 3 + list(TARGETS[3:]))


def half_done(model, files, tmp_path, *more):
    """Leave the partial output of a run on files[0] that was killed after its first window."""
    text = files[0].read_bytes()
    os.mkfifo(tmp_path / "in.fifo")
    process = subprocess.Popen([*COMMAND, "--model", model, tmp_path / "in.fifo", "--output", files[1], *more])
    with (tmp_path / "in.fifo").open("wb", buffering=0) as fifo:
        fifo.write(text)
        wait_until(lambda: (tmp_path / "out.txt.partial").exists() and (tmp_path / "out.txt.partial").stat().st_size)
        process.kill()
        process.wait()
    (tmp_path / "in.fifo").unlink()
    facts = tmp_path / "out.txt.partial.json"
    origin = json.loads(facts.read_text(encoding="utf-8"))
    facts.write_text(json.dumps(origin | {"input": files[0].name, "bytes": len(text)}), encoding="utf-8")


def test_a_partial_is_refused_without_resume_and_with_other_settings(model, files, tmp_path):
    half_done(model, files, tmp_path)
    partial = tmp_path / "out.txt.partial"
    before = partial.read_bytes()
    start = ["translate", "--model", model, files[0], "--output", files[1]]
    assert "hint: add --resume to continue, or delete the file" in complaint(*start)
    message = complaint(*start, "--resume", "--beam", 2, "--no-split")
    assert "started with other settings: beam: 4 → 2; split: True → False" in message
    files[0].write_text("另一个\n", encoding="utf-8")
    assert "bytes: " in complaint(*start, "--resume")
    (tmp_path / "out.txt.partial.json").write_text("[]", encoding="utf-8")
    assert "it is unknown what out.txt.partial was made from" in complaint(*start, "--resume")
    assert partial.read_bytes() == before
    assert not files[1].exists()


def test_resume_with_nothing_to_resume_begins(model, files):
    translate(model, files[0], "--output", files[1], "--resume")
    assert files[1].read_text(encoding="utf-8") == lines(TARGETS)


def test_an_input_shorter_than_what_is_done_is_refused(model, files, tmp_path):
    with start_translate(model, "-", "--output", files[1]) as process:
        process.stdin.write(lines(SOURCES[:5]).encode())
        process.stdin.flush()
        wait_until(lambda: (tmp_path / "out.txt.partial").exists() and (tmp_path / "out.txt.partial").stat().st_size)
        process.kill()
    with start_translate(model, "-", "--output", files[1], "--resume") as process:
        _, message = process.communicate(lines(SOURCES[:2]).encode(), timeout=30)
    assert process.returncode == 2
    assert b"lines that are already translated; got 2" in message


def test_two_processes_do_not_write_one_output(model, files, tmp_path):
    with start_translate(model, "-", "--output", files[1]) as process:
        process.stdin.write(lines(SOURCES[:5]).encode())
        process.stdin.flush()
        wait_until(lambda: (tmp_path / "out.txt.partial").exists() and (tmp_path / "out.txt.partial").stat().st_size)
        with start_translate(model, "-", "--output", files[1], "--resume") as second:
            _, message = second.communicate(b"", timeout=30)
        assert b"another process is writing it" in message
        assert second.returncode == 2
        process.communicate(timeout=30)
    assert files[1].read_text(encoding="utf-8") == lines(TARGETS[:5])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_says_how_to_go_on(number, model, files, tmp_path):
    with start_translate(model, "-", "--output", files[1]) as process:
        process.stdin.write(lines(SOURCES[:5]).encode())
        process.stdin.flush()
        wait_until(lambda: (tmp_path / "out.txt.partial").exists() and (tmp_path / "out.txt.partial").stat().st_size)
        process.send_signal(number)
        assert process.wait(30) == 130
        message = process.stderr.read().decode()
    assert re.fullmatch(r"stopped after \d+ lines; run the same command with --resume to continue\n", message)


def test_ctrl_c_in_a_pipe_is_quiet(model):
    with start_translate(model) as process:
        process.stdin.write(f"{SOURCES[0]}\n".encode())
        process.stdin.flush()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert process.stderr.read() == b""


def test_a_reader_that_leaves_is_no_error(model):
    command = f"yes 我爱机器学习 | {sys.executable} -m sixfold translate --model {model} | head -1"
    result = subprocess.run(["bash", "-c", command], capture_output=True, timeout=60)
    assert (result.stdout, result.stderr) == (b"I love machine learning\n", b"")


def test_a_text_that_no_model_translates_is_printed_as_it_is_with_a_warning(both_ways, capsys):
    result = run_here(capsys, "translate", "-m", both_ways, "Я люблю", "--to", "en")
    assert result == ("Я люблю\n", "warning: no model translates this text into English; it stays as it is\n")


def test_a_text_a_file_and_a_document_go_through_a_third_language_with_pivot(tmp_path_factory, tmp_path, capsys):
    models = shared_models(tmp_path_factory)
    words = ["-m", models["zh-en"], "-m", models["en-de"], "--to", "de"]
    assert run_here(capsys, "translate", *words, "我爱猫", "--pivot").out == "我爱猫\n"  # this German is Chinese
    (tmp_path / "in.txt").write_text("我爱猫。我看狗。\nI love cats\n", encoding="utf-8")
    assert run_here(capsys, "translate", *words, tmp_path / "in.txt", "--pivot").out == "我爱猫。 我看狗。\n我爱猫\n"
    (tmp_path / "in.md").write_text("# 我爱猫\n", encoding="utf-8")
    assert run_here(capsys, "translate", *words, tmp_path / "in.md", "--pivot").out == "# 我爱猫\n"
    result = run_here(capsys, "translate", *words, "--from", "zh", "我爱猫", status=2)
    assert "expected one of zh→en, en→de; got from zh to de" in result.err


def test_a_line_that_no_model_reads_stays_as_it_is(model, tmp_path):
    file = modelfile.load(model)
    english = tmp_path / "english.safetensors"
    card = {"languages": {"source": "en", "target": "toy"}}
    modelfile.save(english, file.config, file.weights(), file.tokenizer, card)
    result = pipe(model, f"{SOURCES[0]}\nПривет, мир\n{SOURCES[1]}\n".encode(), "--model", english)
    assert result.stdout.decode() == f"{TARGETS[0]}\nПривет, мир\n{TARGETS[1]}\n"
    assert result.stderr.decode() == (
        "warning: standard input:2: no model reads this language; the line stays as it is\n"
    )


def test_mistakes_are_one_line(model, files, tmp_path):
    def message(*arguments):
        return complaint("translate", "--model", model, *arguments)

    assert "expected one of zh→toy; got to de" in message("你好", "--to", "de")
    assert "expected one of zh→toy; got to de" in message(files[0], "--to", "de", "--output", files[1])
    assert "--output: expected a folder" in message(tmp_path)
    assert "--n-best: expected --json" in message(files[0], "--n-best", 2)
    assert "--alternatives: expected a text" in message(files[0], "--alternatives")
    assert "--details: expected only together with --json" in message("你好", "--details")
    assert "--resume: expected" in message(files[0], "--resume")
    assert "expected a file other than the input" in message(files[0], "--output", files[0])
    assert "cannot write" in message(files[0], "--output", tmp_path / "none" / "out")
    assert "--compute: expected one of" in message("你好", "--compute", "int4")
    assert "device: expected auto, cpu or cuda" in message("你好", "--device", "tpu")
    assert "no.safetensors: No such file" in complaint("translate", "你好", "--model", tmp_path / "no.safetensors")
    assert {path.name for path in tmp_path.iterdir() if path.name != "cache"} == {"in.zh"}


def test_neither_torch_nor_rich_is_loaded_for_a_text(model):
    command = [sys.executable, "-X", "importtime", *COMMAND[1:], "--model", model, "我爱数学"]
    loaded = re.findall(r"\| +([\w.]+)$", subprocess.run(command, capture_output=True, text=True).stderr, re.M)
    assert "sixfold.translation.translator" in loaded
    assert not {"torch", "rich", "rich.progress"} & set(loaded)
