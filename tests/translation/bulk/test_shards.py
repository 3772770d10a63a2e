"""Shards are cut into blocks and joined again, whichever process is killed at whatever time."""

import json
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from small_translators import pair

from sixfold import modelfile
from sixfold.errors import ConfigError, DataError, ModelFileError
from sixfold.files import atomic_write
from sixfold.translation.bulk import shards
from sixfold.translation.bulk.json_lines import text_of, with_translation
from sixfold.translation.bulk.shards import ShardJob, cut_into_blocks, read_block
from sixfold.translation.bulk.workers import JobSummary, WorkerOptions, translate_in_threads
from sixfold.translation.request import TranslationRequest

SETTINGS = {"model": ["sha256:1"], "beam": 4}

# A process kills itself before its n-th operation on a file of the output, for every n, and another continues.
EVERY_KILL = """
import os, signal, sys
from pathlib import Path
from sixfold.files import atomic_write
from sixfold.translation.bulk import shards

shards.BLOCK_LINES = 3
inputs, work = [Path(name) for name in sys.argv[2:]], Path(sys.argv[1])

def run(out):
    job = shards.ShardJob(inputs, out)
    with job.claim({"beam": 4}):
        for block in job.remaining_blocks({}):
            with atomic_write(job.parts / block.shard.name / str(block.number)) as file:
                file.write(b"".join(shards.read_block(block)).upper())
            job.finish(block.shard.name, block.number)

def run_until(fatal, out):
    count = 0
    def count_operations(event, arguments):
        nonlocal count
        if event in ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir") and str(out) in str(arguments[0]):
            count += 1
            if count == fatal:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(count_operations)
    run(out)

fatal, killed = 0, True
while killed:
    fatal += 1
    out = work / str(fatal)
    child = os.fork()
    if not child:
        run_until(fatal, out)
        os._exit(0)
    killed = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    child = os.fork()
    if not child:
        run(out)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    for path in inputs:
        assert (out / path.name).read_bytes() == path.read_bytes().upper(), (fatal, path)
    assert sorted(path.name for path in out.iterdir()) == sorted([".parts", *(path.name for path in inputs)]), fatal
    assert sorted(path.name for path in (out / ".parts").iterdir()) == [".lock", ".made-from.json"], fatal
print(fatal)
"""


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(shards, "BLOCK_LINES", 3)


def lines_of(count):
    return b"".join(b"line %d\n" % number for number in range(count))


def written(path, raw):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(raw)
    return path


def translate(job, blocks):
    """Write each block in capitals, in the place of a translation."""
    for block in blocks:
        with atomic_write(job.parts / block.shard.name / str(block.number)) as file:
            file.write(b"".join(read_block(block)).upper())
        job.finish(block.shard.name, block.number)


def refusal_of(job, facts):
    with pytest.raises(ConfigError) as refusal, job.claim(facts):
        pass
    return refusal.value


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    "raw",
    [b"", b"\n", b"one", b"one\n", b"\n\n\n\n", lines_of(9), lines_of(10), lines_of(8) + b"end", b"a\r\nb\rc\r\n"],
)
def test_blocks_hold_every_line_once(tmp_path, raw):
    shard = written(tmp_path / "s", raw)
    blocks = list(cut_into_blocks(shard))
    assert b"".join(line for block in blocks for line in read_block(block)) == raw
    assert [block.number for block in blocks] == list(range(len(blocks)))
    assert sum(block.lines for block in blocks) == len(raw.split(b"\n")) - raw.endswith(b"\n") - (not raw)
    assert all(block.lines == 3 for block in blocks[:-1])
    assert [block.first for block in blocks] == [1 + 3 * number for number in range(len(blocks))]


def test_nothing_of_the_user_is_deleted_in_the_folder_for_translations(tmp_path):
    shard = written(tmp_path / "in" / "s", b"a\n")
    users_files = [
        written(tmp_path / "out" / name, b"theirs")
        for name in (".s.x1.part", ".thesis.part", "mine/.s.x1.sixfold-part")
    ]
    half = written(tmp_path / "out" / ".s.x1.sixfold-part", b"half")
    job = ShardJob([shard], tmp_path / "out")
    with job.claim(SETTINGS):
        translate(job, job.remaining_blocks({}))
    assert (tmp_path / "out" / "s").read_bytes() == b"A\n"
    assert all(path.read_bytes() == b"theirs" for path in users_files)
    assert not half.exists()


def test_a_folder_of_parts_that_nobody_recorded_is_left_alone(tmp_path):
    users_files = written(tmp_path / "out" / ".parts" / "s" / "notes", b"theirs")
    job = ShardJob([written(tmp_path / "in" / "s", b"a\n")], tmp_path / "out")
    assert "nothing says what it was made from" in str(refusal_of(job, SETTINGS))
    assert users_files.read_bytes() == b"theirs"


def test_long_lines_make_blocks_of_fewer(tmp_path):
    raw = [b"a" * (shards.BLOCK_BYTES // 2) + b"\n", b"b\n", b"c" * 2 * shards.BLOCK_BYTES + b"\n", b"d\n"]
    blocks = list(cut_into_blocks(written(tmp_path / "s", b"".join(raw))))
    assert [block.lines for block in blocks] == [2, 1, 1]
    assert [line for block in blocks for line in read_block(block)] == raw


@pytest.mark.parametrize("now", [b"", b"a\nb\nc", b"a\nbbccc", b"a\nb\n\n\n\n"])
def test_a_shard_that_changes_meanwhile_is_noticed(tmp_path, now):
    (block,) = cut_into_blocks(written(tmp_path / "s", b"a\nb\nccc"))
    written(tmp_path / "s", now)
    with pytest.raises(DataError, match="expected 3 lines from line 1; got ") as refusal:
        read_block(block)
    assert "has changed" in refusal.value.hint


@pytest.mark.usefixtures("small_blocks")
def test_shards_are_finished_one_by_one_and_leave_no_parts(tmp_path):
    inputs = [written(tmp_path / name, raw) for name, raw in [("a", lines_of(7)), ("b", b""), ("c", b"x\r\ny")]]
    job = ShardJob(inputs, tmp_path / "out")
    with job.claim(SETTINGS):
        blocks = job.remaining_blocks({})
        assert [(block.shard.name, block.number) for block in blocks] == [("a", 0), ("a", 1), ("a", 2), ("c", 0)]
        assert (job.out / "b").read_bytes() == b""
        translate(job, reversed(blocks[:3]))
        assert (job.out / "a").read_bytes() == lines_of(7).upper()
        assert not (job.out / "c").exists()
        translate(job, blocks[3:])
        translate(job, [])
        assert (job.out / "c").read_bytes() == b"X\r\nY"
    assert sorted(path.name for path in job.parts.iterdir()) == [".lock", ".made-from.json"]


@pytest.mark.usefixtures("small_blocks")
def test_a_restart_does_what_is_not_yet_done_and_looks_at_no_line_again(tmp_path):
    inputs = [written(tmp_path / name, lines_of(10)) for name in ("a", "b")]
    seen = []
    check = {"a": lambda raw, where: seen.append((raw, where))}
    job = ShardJob(inputs, tmp_path / "out")
    with job.claim(SETTINGS):
        blocks = job.remaining_blocks(check)
        translate(job, [*blocks[1:3], *blocks[4:]])
    assert (len(seen), seen[4]) == (10, (b"line 4\n", f"{inputs[0]}:5"))
    again = ShardJob(inputs, tmp_path / "out")
    with again.claim(SETTINGS):
        assert again.remaining_blocks(check) == [blocks[0], blocks[3]]
        translate(again, [blocks[0], blocks[3]])
        assert again.remaining_blocks(check) == []
    assert len(seen) == 10
    assert (tmp_path / "out" / "a").read_bytes() == lines_of(10).upper()


@pytest.mark.usefixtures("small_blocks")
def test_other_settings_are_refused_once_there_is_something(tmp_path):
    shard = written(tmp_path / "a", lines_of(10))
    job = ShardJob([shard], tmp_path / "out")
    with job.claim(SETTINGS):
        job.remaining_blocks({})
    with job.claim({**SETTINGS, "beam": 1}):  # nothing was translated: nothing is mixed
        translate(job, job.remaining_blocks({})[:1])
    refusal = refusal_of(job, SETTINGS)
    assert str(refusal).endswith("out: was begun with other settings: beam: 1 → 4")
    assert "choose another --output" in refusal.hint
    many = {str(number): number for number in range(9)}
    assert str(refusal_of(job, {**SETTINGS, **many, "to": "zh"})).endswith("; and 6 more")
    written(shard, lines_of(9))
    assert "bytes of a: 70 → 63" in str(refusal_of(job, {**SETTINGS, "beam": 1}))


def test_files_of_unknown_origin_stay(tmp_path):
    shard, there = written(tmp_path / "a", b"x\n"), written(tmp_path / "out" / "a", b"mine\n")
    assert "nothing says what it was made from" in str(refusal_of(ShardJob([shard], tmp_path / "out"), SETTINGS))
    assert there.read_bytes() == b"mine\n"
    assert "expected a folder; got a file" in str(refusal_of(ShardJob([shard], there), SETTINGS))


def test_a_folder_whose_shards_are_done_is_not_begun_with_others(tmp_path):
    one, other = (written(tmp_path / name, b"x\n") for name in ("a", "b"))
    job = ShardJob([one], tmp_path / "out")
    with job.claim(SETTINGS):
        translate(job, job.remaining_blocks({}))
    refusal = refusal_of(ShardJob([other], tmp_path / "out"), SETTINGS)
    assert "bytes of a: 2 → not set; bytes of b: not set → 2" in str(refusal)


def test_one_process_at_a_time(tmp_path):
    job = ShardJob([written(tmp_path / "a", b"x\n")], tmp_path / "out")
    with job.claim(SETTINGS):
        assert "another process is translating there" in str(refusal_of(job, SETTINGS))
    with job.claim(SETTINGS):
        pass


def test_names_that_would_get_in_each_others_way_are_refused(tmp_path):
    one, other, hidden = (written(tmp_path / name, b"x\n") for name in ("1/a", "2/a", ".a"))
    with pytest.raises(ConfigError, match="a: 2 files have this name"):
        ShardJob([one, other], tmp_path / "out")
    with pytest.raises(ConfigError, match="does not begin with a dot"):
        ShardJob([hidden], tmp_path / "out")
    with pytest.raises(ConfigError, match="expected another folder than that of"):
        ShardJob([one], tmp_path / "1")


def test_no_kill_between_two_operations_on_files_costs_a_line(tmp_path):
    inputs = [written(tmp_path / name, raw) for name, raw in [("a", lines_of(7)), ("b", b""), ("c", b"x\r\ny")]]
    command = [sys.executable, "-c", EVERY_KILL, tmp_path / "work", *inputs]
    process = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert process.returncode == 0, process.stderr
    assert int(process.stdout) > 50  # operations there were


@pytest.mark.parametrize(
    ("line", "text", "becomes"),
    [
        ('{"id": 1.50, "text": "a\\u00e9", "z": null}\n', "aé",
         '{"id": 1.50, "text": "a\\u00e9", "z": null, "translation": "“b”"}\n'),
        (' {"text":"}"} \r\n', "}", ' {"text":"}", "translation": "“b”"} \r\n'),
        ('{"text": "\\ud800x"}', "\ufffdx", '{"text": "\\ud800x", "translation": "“b”"}'),
        (" \r\n", "", " \r\n"),
    ],
)  # fmt: skip
def test_a_record_gets_its_translation_and_keeps_every_byte(line, text, becomes):
    assert text_of(line, "text", "s:1") == text
    assert with_translation(line, "“b”", []) == becomes
    if text:
        assert list(json.loads(becomes)) == [*json.loads(line), "translation"]
        warned = json.loads(with_translation(line, "“b”", ["loop", "cut"]))
        assert (warned["translation"], warned["warnings"]) == ("“b”", ["loop", "cut"])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": "a"', "s:7: not valid JSON: "),
        ("[" * 100_000, "s:7: not valid JSON: "),
        ('["a"]', r"s:7: expected a JSON object; got '\[\"a\"\]'"),
        ('{"body": "a", "id": 1}', "s:7: expected a string in the field 'text'; got only body, id"),
        ("{}", "s:7: expected a string in the field 'text'; got only an empty object"),
        ('{"text": 3}', "s:7: expected a string in the field 'text'; got 3"),
        ('{"text": null}', "s:7: expected a string in the field 'text'; got None"),
        ('{"text": "a", "translation": "b"}', "s:7: has a field 'translation' already"),
        ('{"text": "a", "warnings": []}', "s:7: has a field 'warnings' already"),
    ],
)
def test_what_is_wrong_with_a_record_is_said_with_its_line(line, message):
    with pytest.raises(DataError, match=message):
        text_of(line, "text", "s:7")


def worker_options(models, out, **wanted):
    path = models["zh-en"]
    return WorkerOptions(out, ((path, modelfile.load(path).checksum),), TranslationRequest(), "int8", "cpu", **wanted)


def translate_all(job, options, threads):
    summary = JobSummary()
    with job.claim(options.settings()):
        for result in translate_in_threads(options, job.remaining_blocks(options.line_checks()), threads):
            summary.add(job, result)
    return summary


def test_as_many_threads_as_one_likes_write_the_same_bytes(tmp_path, models, monkeypatch):
    monkeypatch.setattr(shards, "BLOCK_LINES", 7)
    rng = random.Random(3)
    texts = ["。".join(pair(rng)[0] for _ in range(rng.randint(1, 9))) for _ in range(80)]
    inputs = [written(tmp_path / f"{name}.txt", "\n".join(texts).encode()) for name in "ab"]
    for threads in (1, 3):
        job = ShardJob(inputs, tmp_path / str(threads))
        assert translate_all(job, worker_options(models, job.out), threads).lines == 160
    for name in ("a.txt", "b.txt"):
        translation = (tmp_path / "1" / name).read_text(encoding="utf-8").split("\n")
        assert len(translation) == 80
        assert len(set(translation)) > 40
        assert (tmp_path / "3" / name).read_bytes() == (tmp_path / "1" / name).read_bytes()


def test_bytes_that_are_no_text_are_counted_and_a_mark_at_the_start_is_kept(tmp_path, models):
    plain = written(tmp_path / "a", b"\xef\xbb\xbf\xe6\x88\x91\xe7\x88\xb1\xe7\x8c\xab\n\xff\xfe\r\n\n")
    records = written(tmp_path / "b.jsonl", b'\xef\xbb\xbf{"text": "\xe6\x88\x91"}\r\n{"text": "\xff", "n": 1}\n')
    job = ShardJob([plain, records], tmp_path / "out")
    summary = translate_all(job, worker_options(models, job.out, records=frozenset({"b.jsonl"})), 1)
    translation = (job.out / "a").read_bytes().split(b"\n")
    assert translation[0] == b"\xef\xbb\xbfI love cats"
    assert translation[1].endswith(b"\r")
    assert translation[2:] == [b"", b""]
    first, second, end = (job.out / "b.jsonl").read_bytes().split(b"\n")
    assert first.startswith(b"\xef\xbb\xbf{")
    assert json.loads(first) == {"text": "我", "translation": "I"}
    assert (first[-1:], end) == (b"\r", b"")
    assert list(json.loads(second))[:3] == ["text", "n", "translation"]
    assert summary.invalid_bytes == 3
    assert re.fullmatch(
        r".*:[12]: 3 bytes from here on are not UTF-8 and became U\+FFFD", next(summary.warning_lines())
    )


def test_a_model_that_differs_where_a_worker_is_is_refused(tmp_path, models):
    job = ShardJob([written(tmp_path / "a", b"x\n")], tmp_path / "out")
    options = replace(worker_options(models, job.out), models=((models["zh-en"], "sha256:0"),))
    with pytest.raises(ModelFileError, match="is not the same here as where the work was begun"):
        translate_all(job, options, 1)


def test_killed_at_random_it_goes_on_and_writes_the_same_bytes(tmp_path, models):
    rng = random.Random(5)
    texts = ["".join(f"{pair(rng)[0]}\n" for _ in range(1500)) for _ in "ab"]
    inputs = [written(tmp_path / f"{name}.txt", text.encode()) for name, text in zip("ab", texts, strict=True)]
    program = "from sixfold.translation.bulk import shards; shards.BLOCK_LINES = 10\n"
    program += "from sixfold.cli.main import main; main()"
    command = [sys.executable, "-c", program, "translate", "--model", models["zh-en"], *inputs, "--output"]
    subprocess.run([*command, tmp_path / "calm"], check=True, capture_output=True, timeout=120)
    kills = 0
    while True:
        process = subprocess.Popen([*command, tmp_path / "out"], stderr=subprocess.PIPE)
        before, wanted = count_parts(tmp_path / "out"), rng.randint(1, 60)
        while process.poll() is None and kills < 5 and count_parts(tmp_path / "out") < before + wanted:
            time.sleep(0.001)
        if kills < 5:
            process.kill()
        process.communicate(timeout=120)
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL
        kills += 1
    assert kills >= 3
    for path in inputs:
        assert (tmp_path / "out" / path.name).read_bytes() == (tmp_path / "calm" / path.name).read_bytes()


def count_parts(out):
    """Count the translated blocks, those of finished shards too."""
    parts = sum(path.name.isdecimal() for path in out.glob(".parts/*/*"))
    return parts + 150 * sum(path.suffix == ".txt" for path in out.glob("[ab].txt"))
