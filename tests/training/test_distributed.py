"""Several processes train as one would; one may die; another number of them may go on."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import small_checkpoints as checkpoints
import torch
from commands import run_here
from safetensors.torch import load_file
from steps_of_ranks import STEPS, make

from sixfold import modelfile, tensorfile
from sixfold.cli.main import main
from sixfold.interop.sources import read_source
from sixfold.training.distributed import SINGLE_PROCESS

HERE = Path(__file__).parent
ENVIRONMENT = {
    **os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore",
    "PYTHONPATH": os.pathsep.join([str(HERE.parent), *sys.path]),
}  # fmt: skip


def torchrun(ranks, *arguments):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", *arguments]
    return subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ended(process, status=0):
    _, errors = process.communicate(timeout=120)
    assert process.returncode == status, errors
    return errors


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_steps_of_many_are_steps_of_one(ranks, tmp_path):
    """With ragged batches, dropout, and a last step that has nothing for some: DDP, FSDP2, packed rows, documents."""
    files = [str(tmp_path / f"{name}.safetensors") for name in ("ddp", "fsdp", "packed", "text")]
    command = [sys.executable, str(HERE.parent / "steps_of_ranks.py"), str(ranks), *files]
    subprocess.run(command, env=ENVIRONMENT, check=True, timeout=120)
    alone, tokens = make(SINGLE_PROCESS)
    assert len(tokens) == STEPS
    assert min(tokens) < 0.9 * max(tokens)
    packed, text = (make(SINGLE_PROCESS, **{name: True})[0] for name in ("packed", "is_text"))
    for file, expected in zip(files, (alone, alone, packed, text), strict=True):
        for name, weight in load_file(file).items():
            assert weight.dtype == torch.float64
            torch.testing.assert_close(weight, expected[name], rtol=0, atol=1e-10, msg=f"{file} {name}")


def wait_for_step(run, wanted):
    log = run / "metrics.jsonl"
    deadline = time.monotonic() + 60
    while not (log.exists() and log.read_text(encoding="utf-8").count("gradient_norm") >= wanted):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def children(process):
    """The ranks that torchrun started."""
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(number) for number in listed]


def losses(run):
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return {each["step"]: each["loss"] for each in map(json.loads, lines) if "loss" in each}


READS_COUNTED = """
import os, sys
from sixfold.data import corpus
from sixfold.cli.main import main

honest = corpus.open_file

def counted(path, *rest):
    with open(os.environ["READS"], "a") as file:
        print(os.environ["RANK"], path.name, file=file)
    return honest(path, *rest)

corpus.open_file = counted
main(sys.argv[1:])
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for the ranks in /proc")
def test_one_dies_all_end_and_another_number_goes_on_as_if_nothing_had_happened(command, pairs, monkeypatch):
    """Two ranks until one is killed, then four until they are asked to stop, then one: as two that never stopped.

    Of those two, only the leader reads the corpora; the other maps the tokens that it has stored.
    """
    same = ("--set", "model.dropout=0.0", "--set", "training.subword_sampling=0.0", "--set", "model.bias=false")
    (pairs / "program.py").write_text(READS_COUNTED)
    monkeypatch.setitem(ENVIRONMENT, "READS", str(pairs / "reads"))
    ended(torchrun(2, str(pairs / "program.py"), *command(*same, steps=150, out="whole")))
    assert sorted((pairs / "reads").read_text().splitlines()) == ["0 train.en"] * 3 + ["0 train.zh"] * 3
    run = pairs / "moved"
    process = torchrun(2, "-m", "sixfold", *command(*same, steps=150, out="moved"))
    wait_for_step(run, 15)
    os.kill(children(process)[1], signal.SIGKILL)
    killed = time.monotonic()
    assert "the same command goes on from the last checkpoint" in ended(process, status=1)
    assert time.monotonic() - killed < 60
    for path in (run / "checkpoints").glob("step-*.safetensors"):
        tensorfile.read(path, verify=True)
    process = torchrun(4, "-m", "sixfold", *command(*same, steps=150, out="moved"))
    wait_for_step(run, 30)
    process.send_signal(signal.SIGTERM)
    assert "going on from step" in process.communicate(timeout=60)[1]
    done = subprocess.run(
        [sys.executable, "-m", "sixfold", *command(*same, steps=150, out="moved")],
        env=ENVIRONMENT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    going_on = next(line for line in done.stderr.splitlines() if line.startswith("going on from step"))
    assert 30 <= int(going_on.split()[-1]) < 150, "it was stopped on the way, and had saved"
    whole, moved = losses(pairs / "whole"), losses(run)
    assert whole.keys() == moved.keys() == set(range(1, 151))
    np.testing.assert_allclose([moved[step] for step in whole], list(whole.values()), rtol=1e-4)
    expected = modelfile.load(pairs / "whole" / "model.safetensors").weights()
    for name, weight in modelfile.load(run / "model.safetensors").weights().items():
        # Other sums of float32 round differently, and Adam makes a whole step of a gradient that is nearly 0.
        np.testing.assert_allclose(weight, expected[name], rtol=0, atol=1e-3, err_msg=name)
        assert np.abs(weight - expected[name]).mean() < 1e-5, name


def test_two_processes_fine_tune_a_model_with_two_tokenisers_as_one_does(tmp_path, pairs, capsys):
    """The other process gets the tokenisers from the leader, and leaves the file of the finished model to it."""
    checkpoints.marian(tmp_path / "checkpoint", separate=True)
    file = read_source(str(tmp_path / "checkpoint" / "model"))
    modelfile.save(
        tmp_path / "m.safetensors", file.config, file.weights(), file.tokenizer, file.card,
        target_tokenizer=file.target_tokenizer, sequence_format=file.sequence_format,
    )  # fmt: skip
    settings = (
        "training.steps=4", "training.batch_tokens=512", "training.micro_tokens=128", "model.dropout=0.0",
        "data.source=zh", "data.target=en", "data.dev_pairs=4",
    )  # fmt: skip
    words = [word for setting in settings for word in ("--set", setting)]
    words = ["finetune", tmp_path / "m.safetensors", pairs / "train.zh", pairs / "train.en", *words, "--output"]
    run_here(capsys, *words, tmp_path / "one")
    ended(torchrun(2, "-m", "sixfold", *map(str, words), str(tmp_path / "two")))
    one, two = (modelfile.load(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    assert two.target_tokenizer.to_json() == one.target_tokenizer.to_json() == file.target_tokenizer.to_json()
    alone, together = losses(tmp_path / "one"), losses(tmp_path / "two")
    assert alone.keys() == together.keys() == set(range(1, 5))
    np.testing.assert_allclose([together[step] for step in alone], list(alone.values()), rtol=1e-4)


def test_what_only_the_first_finds_out_is_said_once_and_ends_all(command):
    """That a dev set would be larger than the corpus shows when the corpus has been cleaned, which the first does."""
    same = ("--set", "data.max_characters=1", "--set", 'data.skip=["ratio"]')
    errors = ended(torchrun(2, "-m", "sixfold", *command(*same)), status=1)
    assert errors.count("error: ") == 1
    assert "none of 336 pairs" in errors


def test_sharding_means_nothing_to_one_process(command, pairs, capsys):
    with pytest.raises(SystemExit) as done:
        main(command("--set", "training.sharded=true", steps=3))
    assert done.value.code == 0, capsys.readouterr().err
    assert (pairs / "run" / "model.safetensors").exists()
