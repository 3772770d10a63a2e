"""`sixfold serve` under load: sentences/s and latency by the number of clients, beside the engine and LibreTranslate.

    python benchmarks/serve.py DATA [--model MODEL] [--clients 1 8 64 512] [--lines 512] [--libre PYTHON]

Each client sends one sentence of DATA/dev/wmt17.zh after another, none twice, over a connection that it keeps. The
bulk figure is `Translator.translate_batch` over the same lines. PYTHON: of an environment with libretranslate and
tokenizers; its own server then gets the same weights (libre_server.py), as it comes and with the best threads for it.
Servers take turns, in an order that changes; medians over the rounds. Nothing is cached, the guard is on, beam 4.
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
    """One connection, one request after another, as plain as can be: it shares the cores with the server."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for text in texts:
        body = json.dumps({"q": text, "source": "zh", "target": "en"}).encode()
        head = f"{HEAD}Content-Length: {len(body)}\r\n\r\n"
        began = time.perf_counter()
        writer.write(head.encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", answer)
        assert length is not None, answer
        said = await reader.readexactly(int(length[1]))
        assert answer.startswith(b"HTTP/1.1 200"), (answer, said)
        seconds.append(time.perf_counter() - began)
        if b"connection: close" in answer.lower():
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.close()


def load(port: int, lines: list[str], clients: int) -> tuple[float, float, float]:
    """Sentences a second, and the median and the 99th percentile of milliseconds."""

    async def run() -> tuple[float, list[float]]:
        shared, seconds = iter(lines), list[float]()
        began = time.perf_counter()
        await asyncio.gather(*(client(port, shared, seconds) for _ in range(clients)))
        return time.perf_counter() - began, seconds

    total, seconds = asyncio.run(run())
    ordered = sorted(seconds)
    return len(lines) / total, 1000 * statistics.median(ordered), 1000 * ordered[int(0.99 * (len(ordered) - 1))]


@contextmanager
def started(command: list[str], port: int, **environment: str) -> Iterator[int]:
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


def made_for_libre(model: Path, folder: Path) -> None:
    file = modelfile.load(model)
    assert file.tokenizer is not None
    (folder / "model").mkdir()
    for name, data in convert(file, [str(each) for each in range(file.config.model.vocab)]).items():
        (folder / "model" / name).write_bytes(data)
    (folder / "tokenizer.json").write_text(file.tokenizer.to_json(), encoding="utf-8")
    tags = {name: file.tokenizer.tag(name) for name in file.tokenizer.tags}
    about = {"eos": file.config.model.eos, "tags": tags, "reserved": sorted(file.tokenizer.reserved)}
    (folder / "about.json").write_text(json.dumps(about), encoding="utf-8")


def bulk(model: Path, lines: list[str]) -> float:
    with Translator(model, "cpu") as translator:
        translator.translate_batch(lines[:20], "zh", "en")
        began = time.perf_counter()
        translator.translate_batch(lines, "zh", "en", TranslateOptions(beam=4))
        return len(lines) / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--clients", type=int, nargs="*", default=[1, 8, 64, 512])
    parser.add_argument("--lines", type=int, default=512, help="to send; fewer from one client")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--libre", type=Path)
    args = parser.parse_args()
    model = args.model or shipped_models()[0]
    lines = (args.data / "dev" / "wmt17.zh").read_text(encoding="utf-8").splitlines()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "serve.toml").write_text("cache = 0\nmax_connections = 4000\n", encoding="utf-8")
        ours = [sys.executable, "-m", "sixfold", "serve", "--model", str(model), "--config", str(folder / "serve.toml")]
        servers: dict[str, tuple[list[str], dict[str, str]]] = {"sixfold": (ours, {})}
        if args.libre:
            made_for_libre(model, folder)
            theirs = [str(args.libre), str(HERE / "libre_server.py")]
            servers["LibreTranslate"] = (theirs, {})
            best = {"ARGOS_INTER_THREADS": str(os.cpu_count()), "ARGOS_INTRA_THREADS": "1"}
            servers["LibreTranslate, best threads"] = (theirs, best)
        found: dict[tuple[str, int], list[tuple[float, float, float]]] = {}
        whole = []
        for number in range(args.rounds):
            whole.append(bulk(model, lines[: args.lines]))
            names = list(servers)
            for name in names if number % 2 == 0 else reversed(names):
                command, environment = servers[name]
                port = 5600 + 10 * number + names.index(name)
                where = ["--port", str(port)] if name == "sixfold" else [str(port), str(folder)]
                with started([*command, *where], port, **environment):
                    load(port, lines[-40:], 4)
                    for clients in args.clients:
                        count = min(args.lines, 64) if clients == 1 else args.lines
                        if name != "sixfold":
                            count = min(count, 2 * max(clients, 64))  # they are slower, and time is short
                        found.setdefault((name, clients), []).append(load(port, lines[:count], clients))
    print(f"bulk: {statistics.median(whole):.1f} sentences/s")
    for (name, clients), its in found.items():
        rate, middle, late = (statistics.median(each) for each in zip(*its, strict=True))
        print(f"{name:30} {clients:4} clients: {rate:7.1f} sentences/s, p50 {middle:7.0f} ms, p99 {late:7.0f} ms")


if __name__ == "__main__":
    main()
