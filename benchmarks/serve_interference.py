"""How long short requests wait while another client has a long text and a large document translated.

For each tree a server is started. Then, in this order:

1. Short requests are sent one after the other, to an idle server, for a while.
2. A client at 127.0.0.1 sends a text of 100,000 characters and an HTML document of 10 MB, whose sentences are all
   different. If one ends, it is sent again. Meanwhile two clients send short requests one after the other: one from
   another address, and one from the same address. A request without a response at the end counts with its time so far.
3. The client with the long text and the document closes its connections. The time until the queue is empty, by the
   server's metrics, and until the process uses hardly any CPU is measured.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import lzma
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from serve_load import LOCAL, Samples, ServerProcess, parse_metrics, request_head, send_texts, waiting

OTHER_ADDRESS = "127.0.0.2"
TEXT_CHARACTERS = 100_000
DOCUMENT_BYTES = 10_000_000
SHORT_CHARACTERS = (5, 40)  # of a short request, at least and at most
IDLE_SHARE = 0.05  # of a core that an idle server may use
IDLE_SECONDS = 300.0  # that are waited for an idle server
STREAM_FILE = "/api/v1/translate_file/stream"
SETTINGS = {
    "cache": 0, "max_connections": 4000, "max_body": 20_000_000, "max_file": 20_000_000, "max_bodies": 200_000_000,
    "max_characters": 20_000_000, "deadline": 36_000, "queue": 100_000_000,
}  # fmt: skip


def long_lines(data: Path) -> Iterator[str]:
    """Yield lines of encyclopedia articles in Chinese, none of them twice."""
    with lzma.open(data / "mono" / "zhwiki.zh.xz", "rt", encoding="utf-8") as file:
        for line in distinct(file):
            yield line.rstrip("\n")


def short_lines(data: Path) -> Iterator[str]:
    """Yield short spoken sentences in Chinese, none of them twice."""
    least, most = SHORT_CHARACTERS
    with lzma.open(data / "mono" / "commonvoice.zh.xz", "rt", encoding="utf-8") as file:
        yield from (line.strip() for line in distinct(file) if least <= len(line.strip()) <= most)


def distinct(lines: Iterator[str]) -> Iterator[str]:
    """Yield each line once."""
    seen: set[str] = set()
    for line in lines:
        if line not in seen:
            seen.add(line)
            yield line


def take_text(lines: Iterator[str], characters: int) -> str:
    """Return the next lines as a text of exactly this many characters."""
    parts, size = list[str](), 0
    while size < characters:
        parts.append(next(lines) + "\n")
        size += len(parts[-1])
    return "".join(parts)[:characters]


def take_document(lines: Iterator[str], size: int) -> bytes:
    """Return the next lines as the paragraphs of an HTML document of at most this many bytes."""
    parts, total = list[bytes](), 0
    for line in lines:
        escaped = line.replace("&", "&amp;").replace("<", "&lt;")
        parts.append(f"<p>{escaped}</p>\n".encode())
        total += len(parts[-1])
        if total > size:
            return b"".join(parts[:-1])
    raise SystemExit(f"mono/zhwiki.zh.xz: expected more than {size:,} bytes of text")


@dataclass
class LongRequest:
    """What became of a long request: its status, or `cancelled` while it was running."""

    kind: str
    status: str = "cancelled"
    seconds: float = 0.0
    progress: str = ""  # sentences that are done, of how many, if the server tells


@dataclass
class Interference:
    """What was measured with one server."""

    tree: str
    idle: Samples = field(default_factory=Samples)  # short requests to an idle server
    other_address: Samples = field(default_factory=Samples)
    same_address: Samples = field(default_factory=Samples)
    long_requests: list[LongRequest] = field(default_factory=list)
    queue_seconds: float | None = None  # after the cancellation, until the queue was empty; None: not in time
    cpu_seconds: float | None = None  # the same, until hardly any CPU was used
    peak_memory: int = 0  # bytes

    def to_dict(self) -> dict[str, Any]:
        """Return all values for JSON."""
        summaries = {name: getattr(self, name).summary() for name in ("idle", "other_address", "same_address")}
        long_requests = [vars(each) for each in self.long_requests]
        after = {"queue_seconds": self.queue_seconds, "cpu_seconds": self.cpu_seconds, "peak_memory": self.peak_memory}
        return {"tree": self.tree, **summaries, "long_requests": long_requests, **after}


async def send_long(server: ServerProcess, path: str, body: bytes, kind: str, result: LongRequest) -> None:
    """Send a long request and read its response to the end; if the caller cancels it, the connection is closed."""
    start = time.perf_counter()
    reader, writer = await asyncio.open_connection(LOCAL, server.port, limit=2**24)
    try:
        writer.write(request_head(server.port, path, len(body), kind, "Connection: close\r\n") + body)
        head = await reader.readuntil(b"\r\n\r\n")
        end = b""
        while chunk := await reader.read(2**16):
            end = (end + chunk)[-1000:]
            if counts := re.findall(rb'"done": (\d+), "total": (\d+)', end):
                result.progress = b" of ".join(counts[-1]).decode()
        result.status = head[9:12].decode()
        if result.status != "200" or b"event: error" in end:
            result.status += " " + end.decode("utf-8", "replace").strip()[-200:]
    except (OSError, EOFError) as error:
        result.status = type(error).__name__
    finally:
        result.seconds = time.perf_counter() - start
        writer.close()


def long_requests(lines: Iterator[str], streams: bool) -> dict[str, tuple[str, bytes, str]]:
    """Return path, body and content type of the long text and of the document."""
    text = take_text(lines, TEXT_CHARACTERS)
    fields = {**({"texts": [text]} if streams else {"q": text}), "source": "zh", "target": "en"}
    body = json.dumps(fields, ensure_ascii=False).encode()
    path = "/api/v1/translate/stream" if streams else "/translate"
    file_path = STREAM_FILE if streams else "/translate_file"
    return {
        "text": (path, body, "application/json"),
        "document": (file_path, *file_form(take_document(lines, DOCUMENT_BYTES))),
    }


async def keep_sending(
    server: ServerProcess, kind: str, request: tuple[str, bytes, str], results: list[LongRequest]
) -> None:
    """Send a long request again and again. The server has no cache, so that each costs the same."""
    while True:
        results.append(LongRequest(kind))
        await send_long(server, *request, results[-1])
        await asyncio.sleep(1.0)


def file_form(document: bytes) -> tuple[bytes, str]:
    """Return a form with an HTML file, and its content type."""
    fields = {"source": "zh", "target": "en"}
    parts = [f'--edge\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{fields[name]}\r\n' for name in fields]
    head = '--edge\r\nContent-Disposition: form-data; name="file"; filename="a.html"\r\n\r\n'
    return "".join([*parts, head]).encode() + document + b"\r\n--edge--\r\n", "multipart/form-data; boundary=edge"


async def run_for(seconds: float, *work: Any) -> None:
    """Run coroutines at the same time, and cancel them after a while."""
    tasks = [asyncio.ensure_future(each) for each in work]
    await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    for task in tasks:
        task.cancel()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(outcome, Exception):
            raise outcome


async def wait_until_idle(server: ServerProcess, result: Interference) -> None:
    """Measure the time until the queue is empty, and until the process is idle for half a second."""
    start, busy_until = time.perf_counter(), 0.0
    used = server.cpu_seconds()
    while (now := time.perf_counter() - start) < IDLE_SECONDS:
        metrics: dict[str, float] = {}
        with suppress(OSError):
            metrics = parse_metrics(await asyncio.to_thread(server.get, "/metrics"))
        if result.queue_seconds is None and metrics and not waiting(metrics):
            result.queue_seconds = time.perf_counter() - start
        await asyncio.sleep(0.5)
        previous, used = used, server.cpu_seconds()
        if used - previous > IDLE_SHARE * (time.perf_counter() - start - now):
            busy_until = time.perf_counter() - start
        elif result.queue_seconds is not None:
            result.cpu_seconds = busy_until
            return


async def measure(server: ServerProcess, name: str, data: Path, seconds: float, offset: int) -> Interference:
    """Measure one server; `offset` short lines are skipped, so that no other round has the same."""
    result = Interference(name)
    streams = STREAM_FILE in server.get("/openapi.json")
    short = itertools.islice(short_lines(data), offset, None)
    requests = long_requests(long_lines(data), streams)
    await run_for(min(20.0, seconds), send_texts(server.port, short, result.idle, OTHER_ADDRESS))
    await run_for(
        seconds,
        *(keep_sending(server, kind, request, result.long_requests) for kind, request in requests.items()),
        send_texts(server.port, short, result.other_address, OTHER_ADDRESS),
        send_texts(server.port, short, result.same_address),
    )
    await wait_until_idle(server, result)
    result.peak_memory = server.peak_memory()
    return result


def table(results: list[Interference]) -> Iterator[str]:
    """Yield the lines of a table, and what became of the long requests."""
    columns = " ".join(f"{name:>8}" for name in ("p50 ms", "p90 ms", "p99 ms", "max ms"))
    yield f"{'tree':6} {'short requests':20} {'count':>6} {columns}  failures"
    for result in results:
        for name, samples in (
            ("idle server", result.idle),
            ("another address", result.other_address),
            ("the same address", result.same_address),
        ):
            values = samples.summary()
            figures = " ".join(f"{values[column]:8.0f}" for column in ("p50", "p90", "p99", "max"))
            failures = dict(samples.failures) or "none"
            unfinished = ", the last without a response" if samples.unfinished and name != "idle server" else ""
            yield f"{result.tree:6} {name:20} {values['requests']:6} {figures}  {failures}{unfinished}"
    for result in results:
        for each in result.long_requests:
            yield f"{result.tree}: {each.kind}: {each.status} after {each.seconds:.0f} s {each.progress}".rstrip()
        empty, idle = (
            "never" if value is None else f"{value:.1f} s" for value in (result.queue_seconds, result.cpu_seconds)
        )
        yield f"{result.tree}: cancelled; the queue is empty after {empty}, no CPU is used after {idle}"
        yield f"{result.tree}: at most {result.peak_memory / 1e6:.0f} MB of memory"
