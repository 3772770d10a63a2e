"""Training runs in processes of their own, for tests that kill them."""

import os
import subprocess
import sys
import time

from sixfold import modelfile

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}


def start(arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "sixfold", *arguments], env=ENVIRONMENT, stderr=subprocess.PIPE, text=True
    )


def finish(arguments):
    process = start(arguments)
    _, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    return errors


def wait_for_step(process, run, wanted):
    """Until the log holds that step, or the process has ended."""
    log = run / "metrics.jsonl"
    while process.poll() is None:
        if log.exists() and log.read_text(encoding="utf-8").count("gradient_norm") >= wanted:
            return
        time.sleep(0.002)


def tensors(path):
    return {name: (tensor.dtype, tensor.data.tobytes()) for name, tensor in modelfile.load(path).tensors.items()}
