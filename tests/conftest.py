"""Shapes in signatures are checked while tests run; caches of converted models stay inside the test's own folder."""

import importlib.util
import os
import signal

import jaxtyping
import pytest
import torch
from hypothesis import settings

# Config and search options are left out: tests are about their own checks. A machine with a GPU may lack beartype.
if importlib.util.find_spec("beartype"):
    searches = [f"sixfold.decoding.{name}" for name in ("constraints", "device_beam", "sampling", "search")]
    checked = [*searches, "sixfold.explorer", "sixfold.model", "sixfold.training"]
    jaxtyping.install_import_hook(checked, "beartype.beartype")


class Checks(type(jaxtyping.config)):
    """Check shapes only in the first calls of each test: later calls repeat them, and checking all would be slow."""

    remaining = 0

    @property
    def jaxtyping_disable(self):
        self.remaining -= 1
        return self.remaining < 0


jaxtyping.config.__class__ = Checks

# The same examples every time: a failure can be repeated, and CI does not fail by lot.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

# A shell starts commands in the background with interrupts ignored, and so would be what the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Several test processes with as many threads as cores each would fight over the cores; so would what they start.
if "PYTEST_XDIST_WORKER" in os.environ:
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"


def pytest_runtest_setup():
    jaxtyping.config.remaining = 1000


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SIXFOLD_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def double_precision():
    """Compute in float64. Two equivalent computations differ by rounding in float32, which varies by CPU."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)
