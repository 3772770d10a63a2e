"""Counters, gauges and histograms of the server, in the text format that Prometheus reads."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

METHODS = frozenset(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"])
STATIC_ROUTE = "/static/"
# Upper bounds of the histograms' buckets.
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
SENTENCES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
TOKENS = (16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 4096.0)


def method_label(method: str) -> str:
    """Return the method of a request; methods that clients invent share the label `other`."""
    return method if method in METHODS else "other"


def route_label(route: str) -> str:
    """Return the route of a request; the files of the web page share one label."""
    return STATIC_ROUTE if route.startswith(STATIC_ROUTE) else route


class Histogram:
    """Counts values by the first of the upper bounds that is not below them."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self, name: str) -> Iterator[str]:
        """Yield the lines of the text format: cumulative counts, the sum, and the number of values."""
        cumulative = 0
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            cumulative += count
            yield f'{name}_bucket{{le="{bound}"}} {cumulative}'
        yield f"{name}_sum {self.total:.6f}"
        yield f"{name}_count {cumulative}"


class Metrics:
    """The metrics of one server since its start."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()  # method, route, status
        self.latency = Histogram(SECONDS)
        self.batch_sentences = Histogram(SENTENCES)
        self.batch_tokens = Histogram(TOKENS)
        self.counts: Counter[str] = Counter()
        self.gauges: dict[str, float] = {}

    def record_request(self, method: str, route: str, status: int, seconds: float) -> None:
        self.requests[method, route, status] += 1
        self.latency.add(seconds)

    def record_batch(self, sentences: int, tokens: int) -> None:
        self.batch_sentences.add(sentences)
        self.batch_tokens.add(tokens)

    def text(self) -> str:
        """Return all metrics in Prometheus's text format."""
        lines = ["# TYPE sixfold_requests_total counter"]
        for (method, route, status), count in sorted(self.requests.items()):
            labels = f'method="{method}",route="{route}",status="{status}"'
            lines.append(f"sixfold_requests_total{{{labels}}} {count}")
        histograms = {
            "request_seconds": self.latency,
            "batch_sentences": self.batch_sentences,
            "batch_tokens": self.batch_tokens,
        }
        for name, histogram in histograms.items():
            lines += [f"# TYPE sixfold_{name} histogram", *histogram.lines(f"sixfold_{name}")]
        for name, count in sorted(self.counts.items()):
            lines += [f"# TYPE sixfold_{name}_total counter", f"sixfold_{name}_total {count}"]
        for name, value in sorted(self.gauges.items()):
            lines += [f"# TYPE sixfold_{name} gauge", f"sixfold_{name} {value:g}"]
        return "\n".join(lines) + "\n"
