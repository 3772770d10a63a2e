"""Measures `sixfold serve` under load: sentences per second and latency, compared with the engine and LibreTranslate.

    python benchmarks/serve.py DATA [--model MODEL] [--clients 1 8 64 512] [--lines 512] [--libre PYTHON]

Each client sends sentences of DATA/dev/wmt17.zh one after another over one connection; no sentence is sent twice. The
bulk figure is `Translator.translate_batch` on the same lines. PYTHON is an interpreter with libretranslate and
tokenizers; LibreTranslate's server then gets the same weights (libre_server.py), with its default threads and with
the best ones. The order of the servers changes from round to round, and medians are printed. No cache, guard, beam 4.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sixfold import TranslateOptions, Translator, modelfile
from sixfold.interop.ctranslate2 import convert
from sixfold.translation.loading import shipped_models

HERE = Path(__file__).parent
HEAD = "POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


async def client(port: int, texts: Iterator[str], seconds: list[float]) -> None:
    """Send requests one after another over one connection. The code is minimal, as the server needs the cores."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for text in texts:
        body = json.dumps({"q": text, "source": "zh", "target": "en"}).encode()
        head = f"{HEAD}Content-Length: {len(body)}\r\n\r\n"
        start = time.perf_counter()
        writer.write(head.encode() + body)
        response_head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", response_head)
        assert length is not None, response_head
        response_body = await reader.readexactly(int(length[1]))
        assert response_head.startswith(b"HTTP/1.1 200"), (response_head, response_body)
        seconds.append(time.perf_counter() - start)
        if b"connection: close" in response_head.lower():
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.close()


def load(port: int, lines: list[str], clients: int) -> tuple[float, float, float]:
    """Return sentences per second, and the median and the 99th percentile of the latency in milliseconds."""

    async def run() -> tuple[float, list[float]]:
        shared, seconds = iter(lines), list[float]()
        start = time.perf_counter()
        await asyncio.gather(*(client(port, shared, seconds) for _ in range(clients)))
        return time.perf_counter() - start, seconds

    total, seconds = asyncio.run(run())
    ordered = sorted(seconds)
    return len(lines) / total, 1000 * statistics.median(ordered), 1000 * ordered[int(0.99 * (len(ordered) - 1))]


@contextmanager
def running(command: list[str], port: int, **environment: str) -> Iterator[int]:
    """Run a server until the end of the context; wait until it answers."""
    process = subprocess.Popen(
        command, env=os.environ | environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1).close()
                break
            except OSError:
                assert process.poll() is None, command
                time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.wait(30)


def convert_for_libretranslate(model: Path, folder: Path) -> None:
    """Write a model to a folder in the form that libre_server.py reads."""
    file = modelfile.load(model)
    assert file.tokenizer is not None
    (folder / "model").mkdir()
    for name, data in convert(file, [str(token) for token in range(file.config.model.vocab)]).items():
        (folder / "model" / name).write_bytes(data)
    (folder / "tokenizer.json").write_text(file.tokenizer.to_json(), encoding="utf-8")
    tags = {name: file.tokenizer.tag(name) for name in file.tokenizer.tags}
    about = {"eos": file.config.model.eos, "tags": tags, "reserved": sorted(file.tokenizer.reserved)}
    (folder / "about.json").write_text(json.dumps(about), encoding="utf-8")


def bulk_speed(model: Path, lines: list[str]) -> float:
    """Return sentences per second of the engine without a server."""
    with Translator(model, "cpu") as translator:
        translator.translate_batch(lines[:20], "zh", "en")
        start = time.perf_counter()
        translator.translate_batch(lines, "zh", "en", TranslateOptions(beam=4))
        return len(lines) / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--clients", type=int, nargs="*", default=[1, 8, 64, 512])
    parser.add_argument("--lines", type=int, default=512, help="sentences to send; fewer with one client")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--libre", type=Path)
    args = parser.parse_args()
    model = args.model or shipped_models()[0]
    lines = (args.data / "dev" / "wmt17.zh").read_text(encoding="utf-8").splitlines()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "serve.toml").write_text("cache = 0\nmax_connections = 4000\n", encoding="utf-8")
        sixfold = [
            sys.executable,
            "-m",
            "sixfold",
            "serve",
            "--model",
            str(model),
            "--config",
            str(folder / "serve.toml"),
        ]
        servers: dict[str, tuple[list[str], dict[str, str]]] = {"sixfold": (sixfold, {})}
        if args.libre:
            convert_for_libretranslate(model, folder)
            libretranslate = [str(args.libre), str(HERE / "libre_server.py")]
            servers["LibreTranslate"] = (libretranslate, {})
            best_threads = {"ARGOS_INTER_THREADS": str(os.cpu_count()), "ARGOS_INTRA_THREADS": "1"}
            servers["LibreTranslate, best threads"] = (libretranslate, best_threads)
        results: dict[tuple[str, int], list[tuple[float, float, float]]] = {}
        bulk_speeds = []
        for number in range(args.rounds):
            bulk_speeds.append(bulk_speed(model, lines[: args.lines]))
            names = list(servers)
            for name in names if number % 2 == 0 else reversed(names):
                command, environment = servers[name]
                port = 5600 + 10 * number + names.index(name)
                address = ["--port", str(port)] if name == "sixfold" else [str(port), str(folder)]
                with running([*command, *address], port, **environment):
                    load(port, lines[-40:], 4)
                    for clients in args.clients:
                        count = min(args.lines, 64) if clients == 1 else args.lines
                        if name != "sixfold":
                            count = min(count, 2 * max(clients, 64))  # it is slower, and would take too long
                        results.setdefault((name, clients), []).append(load(port, lines[:count], clients))
    print(f"bulk: {statistics.median(bulk_speeds):.1f} sentences/s")
    for (name, clients), rounds in results.items():
        rate, median, p99 = (statistics.median(values) for values in zip(*rounds, strict=True))
        print(f"{name:30} {clients:4} clients: {rate:7.1f} sentences/s, p50 {median:7.0f} ms, p99 {p99:7.0f} ms")


if __name__ == "__main__":
    main()
