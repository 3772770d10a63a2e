"""Worker processes: results in order, none for small corpora, and none that outlives the process that started it."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest

from sixfold.data import workers
from sixfold.errors import DataError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")


def test_results_come_in_the_order_of_the_items():
    def halve(number):
        time.sleep(0.02 if number == 2 else 0)
        return number // 2, os.getpid()

    results = list(workers.map_in_order(halve, range(2, 30), 3))
    assert [(item, half) for item, (half, _) in results] == [(number, number // 2) for number in range(2, 30)]
    processes = {process for _, (_, process) in results}
    assert os.getpid() not in processes
    assert len(processes) <= 3


def test_an_error_in_a_worker_is_raised_here():
    with pytest.raises(ZeroDivisionError):
        list(workers.map_in_order(lambda number: 6 // number, (1, 0, 3), 2))


def test_one_process_reads_no_item_before_it_is_needed():
    numbers = iter(range(9))
    results = workers.map_in_order(lambda number: number, numbers, 1)
    assert next(results) == (0, 0)
    assert next(numbers) == 1


def test_small_corpora_other_systems_and_daemonic_processes_get_one_process(monkeypatch):
    monkeypatch.setattr(workers.os, "sched_getaffinity", lambda _: set(range(100)))
    assert workers.processes_for(workers.MIN_SHARED_BYTES) == workers.MAX_PROCESSES
    assert workers.processes_for(workers.MIN_SHARED_BYTES - 1) == 1
    with monkeypatch.context() as patch:
        patch.setattr(multiprocessing.current_process(), "_config", {"daemon": True})
        assert workers.processes_for(1 << 40) == 1
    monkeypatch.setattr(workers.sys, "platform", "darwin")
    assert workers.processes_for(1 << 40) == 1


def test_a_worker_that_is_killed_is_an_error_unless_this_process_should_stop_too():
    def fail(_):
        os.kill(os.getpid(), signal.SIGKILL)

    def check_stop():
        raise KeyboardInterrupt

    with pytest.raises(DataError, match="was killed"):
        list(workers.map_in_order(fail, (1, 2), 2))
    with pytest.raises(KeyboardInterrupt):
        list(workers.map_in_order(fail, (1, 2), 2, check_stop))


PROGRAM = """
import multiprocessing, os, sys, time
from contextlib import closing
from sixfold.data import workers

def work(number):
    os.write(1, b"%d\\n" % os.getpid())  # in one piece, beside another process that writes
    time.sleep(0.01 if number else 0.1)

multiprocessing.set_start_method("spawn")
try:
    with closing(workers.map_in_order(work, range(3000), 2)) as results:
        for _ in results:
            pass
except KeyboardInterrupt:
    sys.exit(7)
"""


@pytest.mark.parametrize("ending", ["kill", "terminate", "interrupt"])
def test_workers_end_with_the_process_that_started_them(ending):
    """Ctrl-C reaches the whole process group; the workers leave it to the process that started them."""
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        seen = set()
        while len(seen) < 2:
            seen.add(int(program.stdout.readline()))
        if ending == "interrupt":
            time.sleep(0.5)  # a KeyboardInterrupt that is raised while a process is started may be ignored by Python
            os.killpg(program.pid, signal.SIGINT)
        else:
            program.send_signal({"kill": signal.SIGKILL, "terminate": signal.SIGTERM}[ending])
        started = time.monotonic()
        _, errors = program.communicate(timeout=30)  # until the last worker has ended, too, and closed its pipes
        assert time.monotonic() - started < 10  # the work itself takes 15 s
    finally:
        program.kill()
        program.communicate()
    assert program.returncode == {"kill": -9, "terminate": -15, "interrupt": 7}[ending]
    assert errors == b""
