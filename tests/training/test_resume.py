"""A run that is killed, at any moment and any number of times, ends as if nothing had happened."""

import json
import random
import signal
import subprocess
import sys
import time

import pytest
from killed_runs import ENVIRONMENT, finish, start, tensors, wait_for_step

from sixfold import tensorfile


@pytest.mark.parametrize("most", [3, pytest.param(10, marks=pytest.mark.slow)])
def test_kills_change_no_byte_of_the_weights(command, pairs, most):
    finish(command(steps=160, out="whole"))
    pick = random.Random(5)
    kills = 0
    while kills < most:
        process = start(command(steps=160, out="killed"))
        wait_for_step(process, pairs / "killed", 14 * kills + pick.randint(1, 14))
        time.sleep(pick.random() * 0.05)
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL, "the run ended before it was killed so often"
        kills += 1
        for path in (pairs / "killed" / "checkpoints").glob("step-*.safetensors"):
            tensorfile.read(path, verify=True)
    messages = finish(command(steps=160, out="killed"))
    assert "going on from step" in messages
    whole, killed = (tensors(pairs / out / "model.safetensors") for out in ("whole", "killed"))
    assert whole == killed
    logs = [(pairs / out / "metrics.jsonl").read_text(encoding="utf-8").splitlines() for out in ("whole", "killed")]
    losses = [[(each["step"], each["loss"]) for each in map(json.loads, log) if "loss" in each] for log in logs]
    assert losses[0] == losses[1]
    assert [step for step, _ in losses[0]] == list(range(1, 161))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_finishes_the_step_saves_and_says_how_to_go_on(command, pairs, number):
    process = start(command(steps=100_000))
    wait_for_step(process, pairs / "run", 7)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "the same command goes on from there" in errors.splitlines()[-1]
    last = sorted((pairs / "run" / "checkpoints").iterdir())[-1]
    _, metadata = tensorfile.read(last)
    assert f"stopped at step {int(metadata['step']):,}" in errors
    assert int(metadata["step"]) >= 7


def test_a_full_disk_loses_nothing(command, pairs):
    """No file may grow beyond what the small ones need: the second checkpoint cannot be written."""
    finish(command(steps=12, out="whole"))
    limited = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY));"
        "from sixfold.cli.main import main; main(sys.argv[1:])"
    )
    arguments = command(steps=12, out="full")
    process = start(arguments)
    wait_for_step(process, pairs / "full", 6)
    process.kill()
    process.communicate()
    done = subprocess.run(
        [sys.executable, "-c", limited, *arguments], env=ENVIRONMENT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("error:")
    assert "cannot write: File too large" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    finish(arguments)
    assert tensors(pairs / "full" / "model.safetensors") == tensors(pairs / "whole" / "model.safetensors")
