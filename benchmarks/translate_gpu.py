"""Decoding on one GPU: the torch engine beside `generate` of Hugging Face, same weights, same steps, alternating.

Steps: the base shape with random weights, 32 source tokens, exactly 32 target tokens, so that both do the same work.
File: with `--model`, sentences of the dev sets, repeated up to 10,000; each engine chooses its own batches.

    python benchmarks/translate_gpu.py                                   # GPU; needs transformers
    python benchmarks/translate_gpu.py --data DATA --model MODEL
    python benchmarks/translate_gpu.py --device cpu --small              # does it run?
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from translate_peers import set_positions, write_huggingface

from sixfold import modelfile
from sixfold.config import ModelConfig
from sixfold.decoding.options import SearchOptions
from sixfold.engines.gpu import GpuEngine
from sixfold.model.positions import Sinusoid
from sixfold.model.transformer import EncoderDecoder, build, load_model, weights_of
from sixfold.presets import preset

STEPS = 32
SETS = ("flores-dev", "wmt17", "tatoeba")


class Engines:
    """The two engines with the same weights."""

    def __init__(self, config: ModelConfig, model: EncoderDecoder, device: str, kind: torch.dtype) -> None:
        import transformers

        transformers.logging.set_verbosity_error()
        self.config, self.device = config, device
        with tempfile.TemporaryDirectory() as folder:
            assert write_huggingface(config, weights_of(model), Path(folder))
            self.peer = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, attn_implementation="sdpa").eval()
        table = Sinusoid(config.d_model, config.position_layout, config.position_offset)(
            torch.arange(config.max_length)
        )
        set_positions(self.peer, table.numpy())
        self.peer = self.peer.to(device, kind)
        torch_model = load_model(replace(config, dropout=0.0), weights_of(model), device=device, dtype=kind)
        assert isinstance(torch_model, EncoderDecoder)
        self.engine = GpuEngine(torch_model, config)

    def run_sixfold(self, sources: Sequence[list[int]], options: SearchOptions) -> list[list[int]]:
        return [hypotheses[0].tokens for hypotheses in self.engine.search(sources, options)]

    def run_huggingface(self, sources: Sequence[list[int]], options: SearchOptions) -> list[list[int]]:
        longest = max(map(len, sources))
        rows = [[*source, *[self.config.pad] * (longest - len(source))] for source in sources]
        tokens = torch.tensor(rows, device=self.device)
        with torch.inference_mode():
            generated = self.peer.generate(
                input_ids=tokens, attention_mask=(tokens != self.config.pad).long(), num_beams=options.beam,
                min_new_tokens=options.min_length, max_new_tokens=options.max_target_length(longest), do_sample=False,
            )  # fmt: skip
        specials = (self.config.pad, self.config.bos, self.config.eos)
        return [[token for token in row if token not in specials] for row in generated.tolist()]


def seconds(work: Callable[[], Any], device: str) -> float:
    start = time.perf_counter()
    work()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def measure_steps(engines: Engines, batches: Sequence[int], rounds: int) -> list[dict[str, Any]]:
    rows_measured = []
    for beam in (1, 4):
        for batch in batches:
            random = torch.Generator().manual_seed(batch)
            rows = torch.randint(4, engines.config.vocab, (batch, STEPS - 1), generator=random)
            sources = [[*row, engines.config.eos] for row in rows.tolist()]
            options = SearchOptions(beam=beam, min_length=STEPS, max_length=STEPS)
            contestants = {
                "sixfold": partial(engines.run_sixfold, sources, options),
                "HF": partial(engines.run_huggingface, sources, options),
            }
            outputs = {name: work() for name, work in contestants.items()}  # this also warms up
            times: dict[str, list[float]] = {name: [] for name in contestants}
            for _ in range(rounds):
                for name, work in contestants.items():
                    times[name].append(seconds(work, engines.device))
            row: dict[str, Any] = {"beam": beam, "batch": batch}
            row |= {name: 1000 * statistics.median(each) / STEPS for name, each in times.items()}
            row["same"] = share_of_equal_starts(outputs["sixfold"], outputs["HF"])
            rows_measured.append(row)
            print(
                f"beam {beam} batch {batch:4}: ms a step: sixfold {row['sixfold']:.3f}, HF {row['HF']:.3f}, "
                f"{row['HF'] / row['sixfold']:.1f} x; same first tokens {row['same']:.0%}",
                flush=True,
            )
    return rows_measured


def share_of_equal_starts(first: Sequence[list[int]], second: Sequence[list[int]]) -> float:
    """Compare the first four tokens: with random weights, outputs differ after the first near-tie."""
    return statistics.mean(float(a[:4] == b[:4]) for a, b in zip(first, second, strict=True))


def measure_file(engines: Engines, sources: Sequence[list[int]], rounds: int, batch: int) -> list[dict[str, Any]]:
    order = sorted(range(len(sources)), key=lambda index: -len(sources[index]))
    rows_measured = []
    for beam in (1, 4):
        options = SearchOptions(beam=beam, max_ratio=2.0)
        their_batch = batch if beam == 1 else batch // 4

        def run_huggingface(options: SearchOptions = options, size: int = their_batch) -> list[list[int]]:
            result: list[list[int]] = [[] for _ in sources]
            for first in range(0, len(order), size):
                indices = order[first : first + size]
                decoded = engines.run_huggingface([sources[index] for index in indices], options)
                for index, tokens in zip(indices, decoded, strict=True):
                    result[index] = tokens
            return result

        engines.run_sixfold(sources, options)  # graphs are recorded once
        times: dict[str, list[float]] = {"sixfold": [], "HF": []}
        outputs: dict[str, list[list[int]]] = {}
        for _ in range(rounds):
            contestants = {"sixfold": partial(engines.run_sixfold, sources, options), "HF": run_huggingface}
            for name, work in contestants.items():
                start = time.perf_counter()
                outputs[name] = work()  # the results are on the host, so no synchronisation is needed
                times[name].append(time.perf_counter() - start)
        sixfold, huggingface = outputs["sixfold"], outputs["HF"]
        row: dict[str, Any] = {"beam": beam, "sentences": len(sources)}
        row |= {name: len(sources) / statistics.median(each) for name, each in times.items()}
        row["tokens"] = sum(map(len, sixfold))
        row["same"] = statistics.mean(float(a == b) for a, b in zip(sixfold, huggingface, strict=True))
        rows_measured.append(row)
        print(
            f"file, beam {beam}: sentences/s: sixfold {row['sixfold']:,.0f}, HF {row['HF']:,.0f}, "
            f"{row['sixfold'] / row['HF']:.1f} x; the same text {row['same']:.1%}; {row['tokens']:,} tokens",
            flush=True,
        )
    return rows_measured


def profile(engines: Engines, beam: int, batch: int) -> None:
    """Print the kernels of a step and their times."""
    random = torch.randint(4, engines.config.vocab, (batch, STEPS - 1)).tolist()
    sources = [[*row, engines.config.eos] for row in random]
    options = SearchOptions(beam=beam, min_length=STEPS, max_length=STEPS)
    engines.run_sixfold(sources, options)
    kinds = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=kinds) as profiler:
        engines.run_sixfold(sources, options)
    rows = sorted(profiler.key_averages(), key=lambda row: -row.self_device_time_total)
    total, calls = sum(row.self_device_time_total for row in rows), sum(row.count for row in rows)
    print(f"\nbeam {beam} batch {batch}: {calls / STEPS:.0f} kernels and {total / STEPS:.0f} µs of GPU a step")
    for row in rows[:24]:
        print(f"  {row.self_device_time_total / STEPS:7.1f} µs {row.count / STEPS:6.1f} x  {row.key[:100]}")


def read_sources(model: modelfile.ModelFile, data: Path, count: int) -> list[list[int]]:
    assert model.tokenizer is not None
    files = [data / "dev" / f"{name}.{model.card['languages']['source']}" for name in SETS]
    texts = [line for file in files for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    ids = [[*each[:200], model.config.model.eos] for each in model.tokenizer.encode_batch(texts)]
    return [ids[index % len(ids)] for index in range(count)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--sentences", type=int, default=10_000)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    kind = torch.float16 if args.device == "cuda" else torch.float32
    result: dict[str, Any] = {}
    if args.model is None:
        shape = replace(preset("tiny" if args.small else "base").model, norm_position="post")
        model = build(shape).eval()
        assert isinstance(model, EncoderDecoder)
        engines = Engines(shape, model, args.device, kind)
        if args.profile:
            for beam, batch in ((1, 1), (1, 512), (4, 1), (4, 512)):
                profile(engines, beam, batch)
        result["steps"] = measure_steps(engines, (1, 4) if args.small else (1, 64, 512), args.rounds)
    else:
        file = modelfile.load(args.model)
        model = load_model(replace(file.config.model, dropout=0.0), file.weights()).eval()
        assert isinstance(model, EncoderDecoder)
        engines = Engines(file.config.model, model, args.device, kind)
        sources = read_sources(file, args.data, args.sentences)
        result["file"] = measure_file(engines, sources, args.rounds, 4 if args.small else 512)
    if args.out:
        args.out.write_text(json.dumps(result, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
