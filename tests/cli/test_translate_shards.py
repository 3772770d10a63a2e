"""`sixfold translate` for many files, in one process."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import complaint, sixfold

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import toy_translation as toy

PAIRS = toy.sentences()[:30]
SOURCES, TARGETS = zip(*PAIRS, strict=True)


@pytest.fixture
def shards(tmp_path):
    """Plain lines, and JSON lines of the same."""
    plain, records = tmp_path / "a.txt", tmp_path / "b.jsonl"
    plain.write_text("\n".join(SOURCES), encoding="utf-8")
    objects = [{"id": number, "text": text, "tags": ["x"]} for number, text in enumerate(SOURCES)]
    records.write_text("".join(json.dumps(each, ensure_ascii=False) + "\n" for each in objects), encoding="utf-8")
    return [plain, records]


def translate(model, *arguments):
    result = sixfold("translate", "--model", model, *arguments)
    assert result.returncode == 0, result.stderr
    assert result.stdout == ""
    return result.stderr


def test_every_file_becomes_one_of_its_name(model, shards, tmp_path):
    errors = translate(model, *shards, "--output", tmp_path / "deep" / "out")
    out = tmp_path / "deep" / "out"
    assert errors.startswith("60 lines in ")
    assert (out / "a.txt").read_text(encoding="utf-8") == "\n".join(TARGETS)
    records = [json.loads(line) for line in (out / "b.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [list(record) for record in records] == [["id", "text", "tags", "translation"]] * 30
    assert [record["translation"] for record in records] == list(TARGETS)
    assert translate(model, *shards, "--output", out).startswith("0 lines in ")


def test_plain_lines_become_what_they_become_alone(model, shards, tmp_path):
    shards[0].write_bytes("  我爱音乐 \r\n\r\n我爱\udcff数学\r\n我们需要数学".encode(errors="surrogateescape"))
    errors = translate(model, *shards, "--output", tmp_path / "out")
    translate(model, shards[0], "--output", tmp_path / "alone.txt")
    assert (tmp_path / "out" / "a.txt").read_bytes() == (tmp_path / "alone.txt").read_bytes()
    assert f"warning: {shards[0]}:3: 1 bytes from here on are not UTF-8" in errors


def test_a_field_is_named_and_one_file_will_do(model, shards, tmp_path):
    shards[1].write_text('{"body": "我爱音乐"}\n', encoding="utf-8")
    translate(model, shards[1], "--field", "body", "--output", tmp_path / "out")
    record = json.loads((tmp_path / "out" / "b.jsonl").read_text(encoding="utf-8"))
    assert record == {"body": "我爱音乐", "translation": toy_translation_of("我爱音乐")}


def toy_translation_of(text):
    return dict(toy.sentences())[text]


def test_warnings_are_kinds_in_the_record(model, shards, tmp_path):
    shards[1].write_text('{"text": "我爱数学 12345 67890"}\n{"text": "我爱音乐"}\n', encoding="utf-8")
    errors = translate(model, *shards, "--output", tmp_path / "out")
    first, second = map(json.loads, (tmp_path / "out" / "b.jsonl").read_text(encoding="utf-8").splitlines())
    assert "numbers" in first["warnings"]
    assert "warnings" not in second
    assert f"warning: {shards[1]}:1: figures are missing: 12345, 67890\n" in errors


def test_format_text_takes_json_for_text(model, shards, tmp_path):
    shards[1].write_text("我爱音乐\n", encoding="utf-8")
    translate(model, *shards, "--format", "text", "--output", tmp_path / "out")
    assert (tmp_path / "out" / "b.jsonl").read_text(encoding="utf-8") == f"{toy_translation_of('我爱音乐')}\n"


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("{", "not valid JSON"),
        ("[1]", "expected a JSON object"),
        ('{"id": 1}', "expected a string in the field 'text'; got only id"),
        ('{"text": 1}', "expected a string in the field 'text'; got 1"),
    ],
)
def test_a_bad_record_is_told_before_anything_is_translated(bad, message, model, shards, tmp_path):
    good = shards[1].read_text(encoding="utf-8")
    shards[1].write_text(good + bad + "\n", encoding="utf-8")
    error = complaint("translate", "--model", model, *shards, "--output", tmp_path / "out")
    assert f"{shards[1].resolve()}:31: " in error
    assert message in error
    assert not list((tmp_path / "out").glob("[ab].*"))
    shards[1].write_text(good, encoding="utf-8")  # and may be put right
    translate(model, *shards, "--output", tmp_path / "out")


def test_strictly_a_language_that_the_model_does_not_read_is_refused_with_its_line(model, shards, tmp_path):
    shards[0].write_text("我爱音乐\n今日はとても天気がいいですね。\n", encoding="utf-8")
    command = ("translate", "--model", model, *shards, "--output", tmp_path / "out")
    for start in ("first", "second"):
        message = complaint(*command, "--strict")
        assert f"error: {shards[0]}:2: the text seems to be in Japanese; the model reads Chinese" in message, start
        assert not (tmp_path / "out" / "a.txt").exists()
    assert "seems to be in Japanese" in translate(*command[2:])  # and without --strict the same folder is finished
    assert (tmp_path / "out" / "a.txt").exists()


def test_mistakes_are_one_line(model, shards, tmp_path):
    page, packed, out = tmp_path / "page.html", tmp_path / "c.txt", tmp_path / "out"
    page.write_text("<p>我爱音乐</p>", encoding="utf-8")
    packed.write_bytes(b"\x1f\x8b\x08\x00 and so on")
    (tmp_path / "folder").mkdir()

    def message(*arguments):
        return complaint("translate", "--model", model, *arguments)

    assert "'hello' is not a file\nhint: put quotes around the text" in complaint("translate", "hello", "world")
    assert "'-' is not a file" in message(shards[0], "-", "--output", out)
    assert "--workers, --field: expected files" in message("--workers", "ray")
    assert "--workers: expected ray or nothing; got 'dask'" in message(*shards, "--output", out, "--workers", "dask")
    assert "--output: expected a folder" in message(*shards)
    assert "--output: " in message(*shards, "--output", shards[0])
    assert "expected another folder than that of" in message(*shards, "--output", tmp_path)
    assert "a document of the format html" in message(shards[0], page, "--output", out, "--field", "text")
    assert "got a file compressed with gzip" in message(shards[0], packed, "--output", out)
    assert "got a folder" in message(shards[0], tmp_path / "folder", "--output", out, "--field", "text")
    assert "2 files have this name" in message(shards[0], shards[0], "--output", out)
    assert "expected none of --json" in message(*shards, "--output", out, "--json")
    assert "and --columns\n" in message(*shards, "--output", out, "--columns", "1")
    assert "--alternatives: expected a text" in message(*shards, "--output", out, "--alternatives")
    assert "expected one of" in message(*shards, "--output", out, "--to", "xx")
    assert not list(out.glob("[!.]*"))


def test_other_settings_are_refused_and_named(model, shards, tmp_path):
    translate(model, *shards, "--output", tmp_path / "out", "--beam", "1")
    errors = complaint(
        "translate", "--model", model, *shards, "--output", tmp_path / "out", "--beam", "2", "--no-guard"
    )
    assert "was begun with other settings: beam: 1 → 2; guard: True → False\n" in errors
    assert "choose another --output" in errors


def test_without_ray_the_extra_is_named(model, shards, tmp_path):
    program = "import sys; sys.modules['ray'] = None\nfrom sixfold.cli.main import main; main(sys.argv[1:])"
    command = [
        sys.executable,
        "-c",
        program,
        "translate",
        "--model",
        model,
        *shards,
        "--workers",
        "ray",
        "--output",
        "o",
    ]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr == "error: --workers ray: ray is not installed\nhint: pip install 'sixfold[ray]'\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_says_how_to_go_on(number, model, shards, tmp_path):
    shards[0].write_text(
        "".join(f"{source}{number}\n" for number in range(300) for source in SOURCES), encoding="utf-8"
    )
    program = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    program += (
        "from sixfold.translation.bulk import shards; shards.LINES = 50\nfrom sixfold.cli.main import main; main()"
    )
    command = [sys.executable, "-c", program, "translate", "--model", model, *shards, "--output", tmp_path / "out"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + 60
        while not list((tmp_path / "out").glob(".parts/a.txt/[0-9]*")):
            assert time.monotonic() < end
            time.sleep(0.02)
        os.kill(process.pid, number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.splitlines()[-1].endswith(" lines; run the same command to continue")
