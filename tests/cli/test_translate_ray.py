"""`sixfold translate --workers ray` on this machine, while its processes are killed."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import toy_translation as toy

pytest.importorskip("ray", reason="comes with sixfold[ray]")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")

# Blocks are cut by the driver alone.
PROGRAM = "from sixfold.translation.bulk import shards; shards.LINES = 100\nfrom sixfold.cli.main import main; main()"


@pytest.fixture
def command(model, tmp_path):
    """The command for three thousand different lines, with a translation memory; one process has translated them."""
    chance, sources = random.Random(1), [source for source, _ in toy.sentences()]
    inputs = [tmp_path / f"{name}.txt" for name in "abc"]
    for path in inputs:
        path.write_text("".join(f"{''.join(chance.choices(sources, k=3))}\n" for _ in range(1000)), encoding="utf-8")
    last = inputs[-1].read_text(encoding="utf-8").splitlines()[-1]
    (tmp_path / "memory.tsv").write_text(f"{last}\tKnown before\n", encoding="utf-8")
    local = [sys.executable, "-c", PROGRAM, "translate", "--model", model, *inputs, "--beam", "1"]
    local += ["--memory", tmp_path / "memory.tsv", "--output"]
    subprocess.run([*local, tmp_path / "calm"], check=True, capture_output=True, timeout=120)
    assert (tmp_path / "calm" / "c.txt").read_text(encoding="utf-8").endswith("\nKnown before\n")
    return [*local, tmp_path / "out", "--workers", "ray", "--threads", "2"]


@pytest.fixture
def start(command, tmp_path):
    """Return a function that starts the driver; at the end of the test, the processes of Ray are killed."""
    processes = []

    def start_driver():
        with (tmp_path / "log").open("ab") as log:
            processes.append(subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True))
        return processes[-1]

    yield start_driver
    for process in processes:
        for number in group_of(process.pid):
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        process.wait(timeout=30)


def facts_of(folder):
    """Return the session and the command of a process, or 0 and nothing if it has ended."""
    with suppress(OSError):
        state, *numbers = (folder / "stat").read_text().rpartition(")")[2].split()
        if state != "Z":
            return int(numbers[2]), (folder / "cmdline").read_bytes().decode(errors="replace")
    return 0, ""


def group_of(session):
    """Return the processes of a session by their ids."""
    processes = {int(folder.name): facts_of(folder) for folder in Path("/proc").glob("[0-9]*")}
    return {number: name for number, (owner, name) in processes.items() if owner == session}


def wait_until(find):
    end = time.monotonic() + 120
    while not (result := find()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return result


def parts(out):
    return [path for path in out.glob(".parts/*/*") if path.name.isdecimal()]


def test_a_killed_driver_is_started_anew_and_killed_workers_are_replaced(start, tmp_path):
    driver = start()
    wait_until(lambda: parts(tmp_path / "out"))
    driver.kill()
    driver.wait(timeout=30)
    inodes = {path: path.stat().st_ino for path in parts(tmp_path / "out")}
    driver = start()
    wait_until(lambda: set(parts(tmp_path / "out")) - set(inodes))
    workers = wait_until(lambda: {number for number, name in group_of(driver.pid).items() if "MapWorker" in name})
    assert all(path.stat().st_ino == number for path, number in inodes.items() if path.exists())  # not written again
    for number in workers:
        os.kill(number, signal.SIGKILL)
    assert driver.wait(timeout=120) == 0, (tmp_path / "log").read_text(encoding="utf-8")
    assert "3,000 lines in " not in (tmp_path / "log").read_text(encoding="utf-8")
    for name in ("a.txt", "b.txt", "c.txt"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "calm" / name).read_bytes()


def test_a_cluster_that_is_not_there_is_one_line(command, tmp_path):
    environment = os.environ | {"RAY_ADDRESS": "127.0.0.1:1"}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stdout) == (2, "")
    error, hint = result.stderr.splitlines()
    assert error == "error: --workers ray: RAY_ADDRESS=127.0.0.1:1: Connection refused"
    assert hint.startswith("hint: is the cluster up?")
    assert not parts(tmp_path / "out")
