"""Servers in processes of their own, clients that send requests to them, and what these measure."""

from __future__ import annotations

import asyncio
import json
import os
import re
import statistics
import subprocess
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

START_SECONDS = 120.0  # for a server to answer
LOCAL = "127.0.0.1"


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of all values do not exceed; NaN if there are none."""
    ordered = sorted(values)
    count = -(-len(ordered) * round(1000 * share) // 1000)  # rounded up
    return ordered[max(0, count - 1)] if ordered else float("nan")


@dataclass
class Samples:
    """The latencies of requests that succeeded, and the number of those that did not, by status or kind of error."""

    seconds: list[float] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)
    unfinished: int = 0  # requests without a response at the end; their time so far is among `seconds`

    def summary(self) -> dict[str, Any]:
        """Return the percentiles in milliseconds, and the counts."""
        names = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
        return {
            "requests": len(self.seconds), "failures": dict(self.failures), "unfinished": self.unfinished,
            **{name: 1000 * percentile(self.seconds, share) for name, share in names.items()},
        }  # fmt: skip


class Response(NamedTuple):
    """A status and a body."""

    status: int
    body: bytes


class Connection:
    """A connection to a server that sends one request after another; it is opened again if the server closes it."""

    def __init__(self, port: int, address: str = LOCAL) -> None:
        """Connect from a local address, by which a server without keys tells its clients apart."""
        self._port, self._address = port, address
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def post(self, path: str, body: bytes, kind: str = "application/json") -> Response:
        """Send a request and return its response. The code is minimal, because the server needs the cores."""
        if self._reader is None or self._writer is None:
            self._reader, self._writer = await asyncio.open_connection(
                LOCAL, self._port, local_addr=(self._address, 0), limit=2**20
            )
        self._writer.write(request_head(self._port, path, len(body), kind) + body)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        assert length is not None, head
        response = Response(int(head[9:12]), await self._reader.readexactly(int(length[1])))
        if b"connection: close" in head.lower():
            self.close()
        return response

    def close(self) -> None:
        """Close the connection, which cancels a request that has no response yet."""
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None


def request_head(port: int, path: str, length: int, kind: str, more: str = "") -> bytes:
    """Return the head of a POST request; `more` are whole lines."""
    lines = f"POST {path} HTTP/1.1\r\nHost: {LOCAL}:{port}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n"
    return f"{lines}{more}\r\n".encode()


async def send_texts(port: int, texts: Iterator[str], samples: Samples, address: str = LOCAL) -> None:
    """Send texts to /translate, each when the one before it has been answered, until there are no more.

    If the caller cancels it, the time of the request that is waiting counts too.
    """
    connection = Connection(port, address)
    start = time.perf_counter()
    try:
        for text in texts:
            body = json.dumps({"q": text, "source": "zh", "target": "en"}).encode()
            start = time.perf_counter()
            try:
                response = await connection.post("/translate", body)
            except (OSError, EOFError) as error:
                samples.failures[type(error).__name__] += 1
                connection.close()
                await asyncio.sleep(0.1)
                continue
            if response.status == 200:
                samples.seconds.append(time.perf_counter() - start)
            else:
                samples.failures[str(response.status)] += 1
                await asyncio.sleep(0.1)
    except asyncio.CancelledError:
        samples.unfinished += 1
        samples.seconds.append(time.perf_counter() - start)
        raise
    finally:
        connection.close()


class Throughput(NamedTuple):
    """What clients see: sentences a second that were translated, latencies, and failures."""

    rate: float
    samples: Samples


def load(port: int, lines: Sequence[str], clients: int) -> Throughput:
    """Send each line once, by this many clients at the same time."""

    async def run() -> Throughput:
        shared, samples = iter(lines), Samples()
        start = time.perf_counter()
        await asyncio.gather(*(send_texts(port, shared, samples) for _ in range(clients)))
        return Throughput(len(samples.seconds) / (time.perf_counter() - start), samples)

    return asyncio.run(run())


def parse_metrics(text: str) -> dict[str, float]:
    """Return the values of Prometheus's text format, by name and labels."""
    lines = [line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


def waiting(metrics: Mapping[str, float]) -> float:
    """Return the length of a server's queue, in whatever unit its version counts it; 0 is empty in all of them."""
    return sum(value for name, value in metrics.items() if name.startswith("sixfold_queue"))


@dataclass(frozen=True)
class ServerProcess:
    """A server that is running."""

    port: int
    pid: int

    def get(self, path: str) -> str:
        """Return the body of a response as text."""
        with urllib.request.urlopen(f"http://{LOCAL}:{self.port}{path}", timeout=60) as response:
            return str(response.read().decode())

    def cpu_seconds(self) -> float:
        """Return the CPU time that the process has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak_memory(self) -> int:
        """Return the largest resident memory that the process has had, in bytes."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
        peak = re.search(r"VmHWM:\s+(\d+) kB", status)
        assert peak is not None
        return 1024 * int(peak[1])


@contextmanager
def running(command: Sequence[str], port: int, environment: Mapping[str, str], log: Path) -> Iterator[ServerProcess]:
    """Run a server until the end of the context; wait until it answers."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    server = ServerProcess(port, process.pid)
    try:
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                server.get("/health")
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > end:
                    last = log.read_text(encoding="utf-8", errors="replace")[-2000:]
                    raise SystemExit(f"{' '.join(command)}: did not start\n{last}") from None
                time.sleep(0.1)
        yield server
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def median_throughput(rounds: Sequence[Throughput]) -> dict[str, Any]:
    """Return the medians over rounds, and the failures of all of them."""
    summaries = [each.samples.summary() for each in rounds]
    failures = sum((each.samples.failures for each in rounds), Counter[str]())
    medians = {name: statistics.median(each[name] for each in summaries) for name in ("p50", "p90", "p99")}
    return {"rate": statistics.median(each.rate for each in rounds), **medians, "failures": dict(failures)}
