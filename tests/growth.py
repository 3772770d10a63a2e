"""How CPU time grows when an input doubles: the one timing that a test may assert.

Linear time doubles and quadratic time grows fourfold, on every machine, busy or not.
"""

import gc
import math
import time

MIN_SECONDS = 0.05  # of CPU; shorter times depend too much on the clock and on fixed costs
MAX_RATIO = 3.0  # of the times for an input of twice the size


def assert_linear(work, make, largest=200_000):
    """Assert that `work(make(size))` takes less than MAX_RATIO times as long for twice the size.

    The size grows until the work takes MIN_SECONDS; if `largest` characters take less, the assertion holds. A failure
    is measured again at twice the size: chance rarely fails twice, quadratic time always does.
    """
    gc.disable()  # the time of a full collection depends on all live objects
    try:
        _assert_linear(work, make, largest)
    finally:
        gc.enable()


def _assert_linear(work, make, largest):
    size = 1000
    while (shorter := seconds(work, make(size))) < MIN_SECONDS:
        if size >= largest:
            return
        size *= 2 if shorter > MIN_SECONDS / 4 else 4
    ratios = []
    for _ in range(2):
        value, double = make(size), make(2 * size)
        shorter = min(shorter, *(seconds(work, value) for _ in range(2)))
        longer = math.inf
        for _ in range(3):
            longer = min(longer, seconds(work, double))
            if longer < MAX_RATIO * shorter:
                return
        ratios.append(longer / shorter)
        size, shorter = 2 * size, longer
    raise AssertionError(f"twice as much takes {ratios[0]:.1f} times as long, {shorter:.2f} s for {size:,} characters")


def seconds(work, value):
    """Return the CPU seconds of `work(value)`."""
    start = time.process_time()
    work(value)
    return time.process_time() - start


def repeated(unit, prefix="", suffix=""):
    """Return a function from a size to a text of about that many characters that repeats `unit`."""
    return lambda size: prefix + unit * max(1, size // len(unit)) + suffix


def numbered(pattern, join=" "):
    """Return such a function whose repeated patterns differ by a number."""
    return lambda size: join.join(pattern.format(number) for number in range(max(1, size // (len(pattern) + 3))))


def nested(opening, closing, middle="x"):
    """Return such a function that nests pairs of marks."""

    def make(size):
        depth = max(1, size // (len(opening) + len(closing)))
        return opening * depth + middle + closing * depth

    return make
