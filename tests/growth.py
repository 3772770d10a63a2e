"""How CPU time grows when an input doubles: the one timing that a test may assert.

What is linear doubles and what is quadratic grows fourfold, on every machine and however busy it is.
"""

import gc
import math
import time

LEAST = 0.05  # seconds of CPU, below which the clock and the start of things say too much
MOST = 3.0  # times as long for twice the input


def assert_linear(work, make, largest=200_000):
    """`work(make(size))` takes less than three times as long for twice the size.

    The size grows until the work takes `LEAST` seconds; where `largest` characters take less than that, all is well.
    What fails is measured once more at twice the size, as chance does not fail twice and a square always does.
    """
    gc.disable()  # a full collection takes as long as all that is alive, whatever is measured
    try:
        _assert_linear(work, make, largest)
    finally:
        gc.enable()


def _assert_linear(work, make, largest):
    size = 1000
    while (took := seconds(work, make(size))) < LEAST:
        if size >= largest:
            return
        size *= 2 if took > LEAST / 4 else 4
    ratios = []
    for _ in range(2):
        value, twice = make(size), make(2 * size)
        took = min(took, *(seconds(work, value) for _ in range(2)))
        longer = math.inf
        for _ in range(3):
            longer = min(longer, seconds(work, twice))
            if longer < MOST * took:
                return
        ratios.append(longer / took)
        size, took = 2 * size, longer
    raise AssertionError(f"twice as much takes {ratios[0]:.1f} times as long, {took:.2f} s for {size:,} characters")


def seconds(work, value):
    began = time.process_time()
    work(value)
    return time.process_time() - began


def repeated(unit, before="", behind=""):
    """Makes an input of about so many characters."""
    return lambda size: before + unit * max(1, size // len(unit)) + behind


def numbered(pattern, join=" "):
    """The same with a number in each, so that no two are alike."""
    return lambda size: join.join(pattern.format(number) for number in range(max(1, size // (len(pattern) + 3))))


def nested(opening, closing, middle="x"):
    def make(size):
        depth = max(1, size // (len(opening) + len(closing)))
        return opening * depth + middle + closing * depth

    return make
