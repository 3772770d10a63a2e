"""Measures `sixfold serve` under load, of one source tree or of two, and LibreTranslate with the same weights.

    python benchmarks/serve.py throughput DATA [--old TREE] [--new TREE] [--clients 1 8 64 512] [--libre PYTHON]
    python benchmarks/serve.py interference DATA [--old TREE] [--new TREE] [--seconds 180]
    python benchmarks/serve.py bulk DATA [--old TREE] [--new TREE] [--lines 512]

throughput: each client sends sentences of DATA/dev/wmt17.zh one after another over one connection; no sentence is sent
twice. The bulk figure is `Translator.translate_batch` of the same tree on the same lines in the same round, and the
overhead is how much longer the server takes than that. PYTHON is an interpreter with libretranslate and tokenizers;
LibreTranslate's server then gets the same weights (libre_server.py), with its default threads and with the best ones.

interference: how long short requests wait while another client has a long text and a large document translated
(serve_interference.py says how).

bulk: `Translator.translate_batch` alone, without a server, on lines of wmt17 in both directions.

The order of the servers changes from round to round, and medians are printed. No cache, guard, beam 4. Requests that
fail are counted by their status and shown. TREE is a checkout; NEW is the one of this file if it is left out.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from serve_interference import SETTINGS, Interference, measure, table
from serve_load import LOCAL, ServerProcess, Throughput, load, median_throughput, running
from tree_worker import Job, TreeWorker, tree_environment

HERE = Path(__file__).parent
WARM_UP_LINES = 40
LIBRE_LINES = 64  # sent to LibreTranslate at least, and twice as many as there are clients at most: it is slower


@dataclass(frozen=True)
class Candidate:
    """A server to measure."""

    name: str
    command: tuple[str, ...]
    environment: dict[str, str]
    root: Path | None = None  # of a source tree; None: LibreTranslate


def convert_for_libretranslate(model: Path, folder: Path) -> None:
    """Write a model to a folder in the form that libre_server.py reads."""
    from sixfold import modelfile
    from sixfold.interop.ctranslate2 import convert

    file = modelfile.load(model)
    assert file.tokenizer is not None
    (folder / "model").mkdir()
    for name, data in convert(file, [str(token) for token in range(file.config.model.vocab)]).items():
        (folder / "model" / name).write_bytes(data)
    (folder / "tokenizer.json").write_text(file.tokenizer.to_json(), encoding="utf-8")
    tags = {name: file.tokenizer.tag(name) for name in file.tokenizer.tags}
    about = {"eos": file.config.model.eos, "tags": tags, "reserved": sorted(file.tokenizer.reserved)}
    (folder / "about.json").write_text(json.dumps(about), encoding="utf-8")


def candidates(options: argparse.Namespace, model: Path, folder: Path) -> list[Candidate]:
    """Return the servers of the trees that are given, and LibreTranslate's."""
    settings = SETTINGS | {"models": [str(model)]}
    config = "".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items())
    (folder / "serve.toml").write_text(config, encoding="utf-8")
    command = (sys.executable, "-m", "sixfold", "serve", "--config", str(folder / "serve.toml"), "--port")
    roots = {name: root for name, root in (("old", options.old), ("new", options.new)) if root}
    result = [Candidate(name, command, tree_environment(root), root) for name, root in roots.items()]
    if getattr(options, "libre", None):
        convert_for_libretranslate(model, folder)
        libre = (str(options.libre), str(HERE / "libre_server.py"))
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        threads = {"ARGOS_INTER_THREADS": str(os.cpu_count()), "ARGOS_INTRA_THREADS": "1"}
        result.append(Candidate("LibreTranslate", libre, environment))
        result.append(Candidate("LibreTranslate, best threads", libre, environment | threads))
    return result


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOCAL, 0))
        return int(probe.getsockname()[1])


def start(candidate: Candidate, folder: Path) -> Any:
    """Return a context in which the server runs."""
    port = free_port()
    address = [str(port)] if candidate.root else [str(port), str(folder)]
    return running([*candidate.command, *address], port, candidate.environment, folder / f"{candidate.name}.log")


def in_turn(servers: list[Any], rounds: int) -> Iterator[tuple[int, Any]]:
    """Yield the servers of each round; every other round begins with the last one."""
    for number in range(rounds):
        yield from ((number, each) for each in (servers if number % 2 == 0 else reversed(servers)))


def line_count(candidate: Candidate, clients: int, lines: int) -> int:
    """Return how many lines a server gets from this many clients; fewer where it would take too long."""
    count = min(lines, 64) if clients == 1 else lines
    return count if candidate.root else min(count, max(2 * clients, LIBRE_LINES))


def bulk_speeds(root: Path, model: Path, lines: list[str], counts: set[int]) -> dict[int, float]:
    """Return sentences per second of a tree without a server, for several numbers of lines."""
    with TreeWorker(root, model=model) as worker:
        worker.translate(Job("zh", "en", tuple(lines[-WARM_UP_LINES:])))
        return {count: count / worker.translate(Job("zh", "en", tuple(lines[:count]))).seconds for count in counts}


@dataclass
class Row:
    """The measurements of one server with one number of clients."""

    server: str
    clients: int
    rounds: list[Throughput]
    bulk: list[float]  # sentences per second of the engine on the same lines, in the same rounds

    def to_dict(self) -> dict[str, Any]:
        """Return medians; `overhead` is the median of how much longer the server takes than the engine in bulk."""
        overheads = [bulk / each.rate - 1 for bulk, each in zip(self.bulk, self.rounds, strict=False) if each.rate]
        bulk = statistics.median(self.bulk) if self.bulk else None
        overhead = statistics.median(overheads) if overheads else None
        return {"server": self.server, "clients": self.clients, **median_throughput(self.rounds), "bulk": bulk,
                "overhead": overhead}  # fmt: skip


def measure_throughput(options: argparse.Namespace, model: Path, folder: Path) -> list[dict[str, Any]]:
    """Measure all servers with all numbers of clients."""
    lines = (options.data / "dev" / "wmt17.zh").read_text(encoding="utf-8").splitlines()
    rows: dict[tuple[str, int], Row] = {}
    for _, candidate in in_turn(candidates(options, model, folder), options.rounds):
        counts = {clients: line_count(candidate, clients, options.lines) for clients in options.clients}
        bulk = bulk_speeds(candidate.root, model, lines, set(counts.values())) if candidate.root else {}
        with start(candidate, folder) as server:
            load(server.port, lines[-WARM_UP_LINES:], 4)
            for clients, count in counts.items():
                row = rows.setdefault((candidate.name, clients), Row(candidate.name, clients, [], []))
                row.rounds.append(load(server.port, lines[:count], clients))
                row.bulk += [bulk[count]] if bulk else []
                print_row(row.to_dict(), sys.stderr)
    return [row.to_dict() for row in rows.values()]


def measure_bulk(options: argparse.Namespace, model: Path) -> list[dict[str, Any]]:
    """Measure `translate_batch` of the trees that are given in both directions, each time in a process of its own."""
    trees = [(name, root) for name, root in (("old", options.old), ("new", options.new)) if root]
    speeds: dict[tuple[str, str, str], list[float]] = {}
    for _, (name, root) in in_turn(trees, options.rounds):
        with TreeWorker(root, model=model) as worker:
            for source, target in (("zh", "en"), ("en", "zh")):
                text = (options.data / "dev" / f"wmt17.{source}").read_text(encoding="utf-8")
                lines = text.splitlines()
                worker.translate(Job(source, target, tuple(lines[-WARM_UP_LINES:])))
                seconds = worker.translate(Job(source, target, tuple(lines[: options.lines]))).seconds
                speeds.setdefault((name, source, target), []).append(options.lines / seconds)
    values = [
        {"tree": name, "from": source, "to": target, "rate": statistics.median(rates), "rounds": rates}
        for (name, source, target), rates in speeds.items()
    ]
    for value in values:
        print(f"{value['tree']:4} {value['from']}→{value['to']}: {value['rate']:6.1f} sentences/s", flush=True)
    return values


def print_row(row: dict[str, Any], file: Any = None) -> None:
    """Print the figures of a server."""
    bulk = "" if row["bulk"] is None else f", bulk {row['bulk']:.1f}/s, overhead {100 * row['overhead']:+.1f}%"
    failures = f", FAILURES {row['failures']}" if row["failures"] else ", no failures"
    times = ", ".join(f"{name} {row[name]:.0f} ms" for name in ("p50", "p90", "p99"))
    rate = f"{row['server']:30} {row['clients']:4} clients: {row['rate']:7.1f} sentences/s, {times}"
    print(f"{rate}{bulk}{failures}", file=file, flush=True)


def measure_interference(options: argparse.Namespace, model: Path, folder: Path) -> list[Interference]:
    """Measure the servers of all trees, round by round."""
    results = []
    for number, candidate in in_turn(candidates(options, model, folder), options.rounds):
        with start(candidate, folder) as server:
            assert isinstance(server, ServerProcess)
            load(server.port, warm_up_lines(options.data), 4)
            results.append(asyncio.run(measure(server, candidate.name, options.data, options.seconds, 3000 * number)))
        for line in table(results[-1:]):
            print(line, file=sys.stderr, flush=True)
    return results


def warm_up_lines(data: Path) -> list[str]:
    return (data / "dev" / "wmt17.zh").read_text(encoding="utf-8").splitlines()[-WARM_UP_LINES:]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("throughput", "interference", "bulk"):
        command = commands.add_parser(name)
        command.add_argument("data", type=Path)
        command.add_argument("--old", type=Path, metavar="TREE")
        command.add_argument("--new", type=Path, metavar="TREE", default=HERE.parent)
        command.add_argument("--model", type=Path, help="left out: the first one that NEW ships")
        command.add_argument("--rounds", type=int, default=1 if name == "interference" else 3)
        command.add_argument("--json", type=Path, metavar="FILE", help="write all figures to a file")
    throughput, interference = commands.choices["throughput"], commands.choices["interference"]
    throughput.add_argument("--clients", type=int, nargs="*", default=[1, 8, 64, 512])
    throughput.add_argument("--lines", type=int, default=512, help="sentences to send; fewer with one client")
    commands.choices["bulk"].add_argument("--lines", type=int, default=512, help="sentences to translate")
    throughput.add_argument("--libre", type=Path, metavar="PYTHON")
    interference.add_argument("--seconds", type=float, default=180.0, help="that short requests are sent for")
    return parser.parse_args()


def main() -> None:
    options = parse_arguments()
    model = (options.model or next((options.new / "src" / "sixfold" / "pretrained").glob("*.safetensors"))).resolve()
    with tempfile.TemporaryDirectory() as temporary:
        if options.command == "throughput":
            values = measure_throughput(options, model, Path(temporary))
            for row in values:
                print_row(row)
        elif options.command == "bulk":
            values = measure_bulk(options, model)
        else:
            results = measure_interference(options, model, Path(temporary))
            values = [each.to_dict() for each in results]
            print("\n".join(table(results)))
    if options.json:
        options.json.write_text(json.dumps(values, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
