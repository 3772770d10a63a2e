"""`sixfold doctor` as a user runs it, and `sixfold clean` with its findings."""

import json
import subprocess
import sys
import time

import numpy as np
import pytest
from commands import complaint, sixfold
from small_pairs import pairs

from sixfold.audit.audit import audit_corpus
from sixfold.cli import doctor
from sixfold.config import DataConfig
from sixfold.data.corpus import Corpus


def facts_of(*arguments):
    result = sixfold("doctor", *arguments, "--device", "cpu", "--json")
    assert result.returncode == 0, result.stderr
    facts = json.loads(result.stdout)
    return facts, {fact["name"]: fact for fact in facts["findings"]}


def write(folder, rows, end="\n"):
    for side, name in enumerate(("raw.zh", "raw.en")):
        (folder / name).write_bytes("".join(row[side] + end for row in rows).encode())
    return folder / "raw.zh", folder / "raw.en"


ROWS = [*pairs(40), ("", "nothing"), pairs(1)[0], (pairs(3)[2][0] + "！", pairs(3)[2][1] + "!!")]


def test_a_person_reads_what_is_wrong_and_where(tmp_path):
    result = sixfold("doctor", *write(tmp_path, ROWS), "--device", "cpu")
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0] == "43 pairs, zh→en; 3 (7.0%) are better left out"
    assert any(line.startswith("empty: 1 (2.3%)") for line in lines)
    assert "    raw.zh:41:  | nothing" in lines
    assert any(line.startswith("    raw.zh:43 (line 3): ") for line in lines)
    assert lines[-1].startswith("training on the 40 good pairs, estimated: preset tiny, ")


def test_a_program_reads_all_of_it(tmp_path):
    facts, findings = facts_of(*write(tmp_path, ROWS))
    assert (facts["pairs"], facts["condemned"], facts["languages"]) == (43, 3, ["zh", "en"])
    assert findings["empty"]["lines"] == [41]
    assert findings["duplicate"]["lines"] == [42]
    assert findings["near-duplicate"]["lines"] == [43]
    assert findings["near-duplicate"]["notes"] == ["line 3"]
    assert facts["training"]["preset"] == "tiny"
    assert facts["training"]["hours"] > 0


def test_crlf_and_other_forms_of_a_corpus_give_the_same_findings(tmp_path):
    _, expected = facts_of(*write(tmp_path, ROWS))
    _, crlf = facts_of(*write(tmp_path, ROWS, "\r\n"))
    (tmp_path / "x.zh-en.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in ROWS), encoding="utf-8")
    _, table = facts_of(tmp_path / "x.zh-en.tsv")
    for actual in (crlf, table):
        assert {name: fact["lines"] for name, fact in actual.items()} == {
            name: fact["lines"] for name, fact in expected.items()
        }


def test_leaked_sentences_are_named_by_file_and_line(tmp_path):
    files = write(tmp_path, ROWS)
    test = tmp_path / "test.en"
    test.write_text(f"unseen\n{ROWS[4][1].upper()}\n", encoding="utf-8")
    _, findings = facts_of(*files, "--against", test)
    assert (findings["leaked"]["lines"], findings["leaked"]["notes"]) == ([5], ["test.en:2"])
    assert "expected a test set; got the corpus itself" in complaint("doctor", *files, "--against", files[1])
    assert "No such file" in complaint("doctor", *files, "--against", tmp_path / "none.en")


def test_the_page_holds_everything_and_escapes_the_text(tmp_path):
    files = write(tmp_path, [*ROWS, ("你好世界", "<p>hello <script>alert(1)</script></p>")])
    result = sixfold("doctor", *files, "--output", tmp_path / "a" / "report", "--device", "cpu")
    assert result.returncode == 0, result.stderr
    assert "doctor.html" in result.stderr
    page = (tmp_path / "a" / "report" / "doctor.html").read_text(encoding="utf-8")
    facts = json.loads((tmp_path / "a" / "report" / "doctor.json").read_text(encoding="utf-8"))
    assert "&lt;script&gt;" in page
    assert "<script" not in page
    for fact in facts["findings"]:
        assert (f">{fact['name']}</td>" in page) == (fact["count"] > 0)
    assert page.count("<svg") >= 4


def test_clean_drops_what_the_doctor_condemns(tmp_path):
    files = write(tmp_path, ROWS)
    sixfold("doctor", *files, "--output", tmp_path)
    using = ("--using", tmp_path / "doctor.json")
    result = sixfold("clean", *files, "--output", tmp_path / "good", *using, "--json")
    report = json.loads(result.stdout)
    assert (report["read"], report["kept"]) == (43, 40)
    assert report["dropped"] | {"near-duplicate": 1, "duplicate": 1, "empty": 1} == report["dropped"]
    assert report["examples"]["near-duplicate"] == ["raw.zh:43"]
    assert len((tmp_path / "good.zh").read_text(encoding="utf-8").splitlines()) == 40
    result = sixfold("clean", *files, "--output", tmp_path / "good", *using, "--keep", "near-duplicate", "--json")
    assert json.loads(result.stdout)["kept"] == 41


def test_clean_refuses_the_doctor_of_another_corpus(tmp_path):
    files = write(tmp_path, ROWS)
    sixfold("doctor", *files, "--output", tmp_path)
    using = ("--using", tmp_path / "doctor.json")
    assert "did you mean 'leaked'?" in complaint("clean", *files, "--output", tmp_path / "x", *using, "--keep", "leakd")
    write(tmp_path, ROWS[:-1])
    assert "was made from another corpus (raw.zh, raw.en)" in complaint(
        "clean", *files, "--output", tmp_path / "x", *using
    )
    assert "expected only together with --using" in complaint(
        "clean", *files, "--output", tmp_path / "x", "--keep", "leaked"
    )
    assert "No such file" in complaint("clean", *files, "--output", tmp_path / "x", "--using", tmp_path / "none.json")
    assert not (tmp_path / "x.zh").exists()


@pytest.mark.parametrize(
    ("rows", "lines"), [([], 0), ([("你好", "hello")], 1), ([("好" * 200_000, "long " * 100_000)], 1), ([("", "")], 1)]
)
def test_odd_corpora_are_examined_or_refused_in_one_line(tmp_path, rows, lines):
    files = write(tmp_path, rows)
    if lines:
        facts, _ = facts_of(*files)
        assert facts["pairs"] == lines
    else:
        assert "the file is empty" in complaint("doctor", *files)


def test_bytes_that_are_no_utf8_are_found(tmp_path):
    files = write(tmp_path, ROWS)
    lines = [source.encode("gb18030" if number > 30 else "utf-8") for number, (source, _) in enumerate(ROWS)]
    files[0].write_bytes(b"".join(line + b"\n" for line in lines))
    _, findings = facts_of(*files)
    assert findings["encoding"]["count"] == len([line for line in lines[31:] if line])


def test_a_corpus_in_another_encoding_is_refused_by_its_name(tmp_path):
    files = write(tmp_path, [("我们昨天在图书馆里看了一整天的书", "We read in the library all day yesterday")] * 9)
    files[0].write_bytes(files[0].read_text(encoding="utf-8").encode("gbk"))
    message = complaint("doctor", *files)
    assert f"{files[0]}: expected text in UTF-8; got text in GBK" in message
    assert f"iconv -f GBK -t UTF-8 {files[0]}" in message


def test_mistakes_are_told_in_one_line(tmp_path):
    source, target = write(tmp_path, ROWS)
    assert "No such file" in complaint("doctor", source, tmp_path / "none.en")
    target.write_text("one line\n", encoding="utf-8")
    assert "expected as many lines" in complaint("doctor", source, target)
    assert "expected auto, cpu or cuda" in complaint("doctor", source, target, "--device", "tpu")
    write(tmp_path, ROWS)
    assert "expected a folder" in complaint("doctor", source, target, "--output", source)


def test_a_reader_that_goes_away_gets_no_complaint(tmp_path):
    files = write(tmp_path, ROWS)
    command = [sys.executable, "-m", "sixfold", "doctor", *map(str, files), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) in (0, 1)  # typer says 1 where it notices first


def test_a_busy_machine_does_not_change_the_estimate_of_hours(monkeypatch):
    """Another process may hold the core for 50 times as long as a product takes; the core is not slower for that."""
    quiet = doctor.core_speed()
    product = np.matmul

    def disturbed(*arguments):
        time.sleep(0.02)
        return product(*arguments)

    monkeypatch.setattr(np, "matmul", disturbed)
    assert quiet / 3 < doctor.core_speed(runs=4, seconds=0.002) < 3 * quiet


def test_hours_are_a_range_that_follows_from_the_measured_speed(tmp_path, monkeypatch):
    corpus = Corpus("raw", tuple(write(tmp_path, ROWS)))
    audit = audit_corpus(corpus, ("zh", "en"), DataConfig(), None, lambda _: None)
    monkeypatch.setattr(doctor, "core_speed", lambda: 1e9)
    monkeypatch.setattr(doctor, "cores", lambda: 2)
    slow = doctor.estimate(audit, "cpu")
    low, high = slow["hours_range"]
    assert low < high == slow["hours"]
    assert "hours (2 cores, whose matrix products were just measured at 1 GFLOP/s each by CPU time)" in slow["says"]
    monkeypatch.setattr(doctor, "cores", lambda: 4)
    assert doctor.estimate(audit, "cpu")["hours"] == pytest.approx(high / 2, rel=0.01)
    assert "at least" in doctor.estimate(audit, "cuda")["says"]
