"""What the server counts, in the text format that Prometheus reads."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

METHODS = frozenset(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"])
STATIC = "/static/"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
TEXTS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)


def method_label(method: str) -> str:
    """The method of a request; all that clients invent are counted together."""
    return method if method in METHODS else "other"


def route_label(route: str) -> str:
    """The route of a request; the files of the page are counted together."""
    return STATIC if route.startswith(STATIC) else route


class Histogram:
    """How many values were at most so large."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self, name: str) -> Iterator[str]:
        so_far = 0
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            so_far += count
            yield f'{name}_bucket{{le="{bound}"}} {so_far}'
        yield f"{name}_sum {self.total:.6f}"
        yield f"{name}_count {so_far}"


class Metrics:
    """Of one server since it was started."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()  # method, route, status
        self.latency = Histogram(SECONDS)
        self.batch = Histogram(TEXTS)
        self.counts: Counter[str] = Counter()
        self.levels: dict[str, float] = {}

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        self.requests[method, route, status] += 1
        self.latency.add(seconds)

    def text(self) -> str:
        """All of it."""
        lines = ["# TYPE sixfold_requests_total counter"]
        for (method, route, status), count in sorted(self.requests.items()):
            labels = f'method="{method}",route="{route}",status="{status}"'
            lines.append(f"sixfold_requests_total{{{labels}}} {count}")
        for name, histogram in (("request_seconds", self.latency), ("batch_texts", self.batch)):
            lines += [f"# TYPE sixfold_{name} histogram", *histogram.lines(f"sixfold_{name}")]
        for name, count in sorted(self.counts.items()):
            lines += [f"# TYPE sixfold_{name}_total counter", f"sixfold_{name}_total {count}"]
        for name, level in sorted(self.levels.items()):
            lines += [f"# TYPE sixfold_{name} gauge", f"sixfold_{name} {level:g}"]
        return "\n".join(lines) + "\n"
