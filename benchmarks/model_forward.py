"""Training steps of this model beside torch.nn.Transformer, Hugging Face Marian and a plain SDPA model.

One step is forward, backward and a fused AdamW update on full batches without padding, the same for all. Before
anything is timed, the models that can share weights must give the same loss. Rounds alternate; medians are reported.

    python benchmarks/model_forward.py                        # CPU, float32, small shapes
    python benchmarks/model_forward.py --device cuda          # bf16, base 1024x64 and big 512x64, eager and compiled
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from peers import PEERS, SAME_WEIGHTS

from sixfold.config import ModelConfig
from sixfold.model.transformer import EncoderDecoder, build
from sixfold.presets import preset

# Marian lays its sinusoids out in halves, so that all three that share weights do here.
BASE = dataclasses.replace(preset("base").model, position_layout="halves")
BIG = dataclasses.replace(preset("big").model, position_layout="halves", dropout=0.1)
SMALL = dataclasses.replace(BASE, vocab=8000, d_model=128, heads=4, d_ff=512, encoder_layers=2, decoder_layers=2)
CPU_SHAPES = {"d128 2+2": (SMALL, 32, 25), "base": (BASE, 8, 32)}
GPU_SHAPES = {"base": (BASE, 1024, 64), "big": (BIG, 512, 64)}


def flops(config: ModelConfig, length: int) -> float:
    """Return the operations of a training step for one target token and one source token.

    These are 6 for each weight, and those of attention, half of which is causal.
    """
    d, f, layers = config.d_model, config.d_ff, config.encoder_layers
    dense = layers * (4 * d * d + 2 * d * f) + layers * (8 * d * d + 2 * d * f) + d * config.vocab
    return 6 * (dense + layers * 3 * 2 * length * d * 0.83)


def ceiling() -> float:
    """Return the TFLOP/s of a large bf16 matrix product on this GPU."""
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    seconds = seconds_per_step(lambda: a @ b, 20, "cuda")
    return 2 * 8192**3 / seconds / 1e12


def seconds_per_step(step: Callable[[], object], repeats: int, device: str) -> float:
    step()
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(repeats):
        step()
    if device == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / repeats


class Contestant:
    """A model and its optimizer, ready to train. Its memory on the device is freed with it."""

    def __init__(self, name: str, config: ModelConfig, model: EncoderDecoder, device: str, compiled: bool) -> None:
        self.device = device
        self.model = PEERS[name](config, model).to(device).train()
        self.call = torch.compile(self.model) if compiled else self.model
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True)

    def step(self, batch: tuple[torch.Tensor, ...]) -> None:
        with torch.autocast(self.device, torch.bfloat16, enabled=self.device == "cuda"):
            loss = self.call(*batch)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


def check_same_loss(config: ModelConfig, model: EncoderDecoder) -> None:
    tokens = torch.randint(4, config.vocab, (3, 2, 9))
    with torch.no_grad():
        losses = {name: PEERS[name](config, model).eval()(*tokens).item() for name in SAME_WEIGHTS}
    assert max(losses.values()) - min(losses.values()) < 1e-4, losses
    print("same loss from the same weights:", {name: round(loss, 5) for name, loss in losses.items()})


def measure(
    shape: str, config: ModelConfig, rows: int, length: int, device: str, args: argparse.Namespace
) -> list[dict]:
    model = build(config)
    batch = tuple(torch.randint(4, config.vocab, (3, rows, length), device=device))
    modes = [False, True] if args.compile else [False]
    results = []
    for compiled in modes:
        names = [name for name in PEERS if not (compiled and name == "nn.Transformer")]
        names = [name for name in names if not args.only or name in args.only]
        seconds: dict[str, list[float]] = {name: [] for name in names}
        contestants: dict[str, Contestant] = {}
        for name in names:
            torch._dynamo.reset()
            contestants[name] = Contestant(name, config, model, device, compiled)
            for _ in range(3):
                contestants[name].step(batch)
        for _ in range(args.rounds):
            for name, contestant in contestants.items():
                seconds[name].append(seconds_per_step(lambda c=contestant: c.step(batch), args.repeats, device))
        for name in names:
            median = statistics.median(seconds[name])
            results.append({"shape": shape, "rows": rows, "length": length, "model": name,
                            "compiled": compiled, "ms": median * 1e3, "tokens_per_s": rows * length / median,
                            "tflops": flops(config, length) * rows * length / median / 1e12})  # fmt: skip
            print(json.dumps(results[-1]), flush=True)
        del contestants
        if device == "cuda":
            torch.cuda.empty_cache()
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=5, help="steps timed in each round")
    parser.add_argument("--compile", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--shapes", nargs="*", default=[])
    parser.add_argument("--out", help="write the results as JSON")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = True
    check_same_loss(SMALL, build(SMALL))
    peak = ceiling() if args.device == "cuda" else None
    results = []
    for shape, (config, rows, length) in (GPU_SHAPES if args.device == "cuda" else CPU_SHAPES).items():
        if not args.shapes or shape in args.shapes:
            results += measure(shape, config, rows, length, args.device, args)
    print(f"\ntorch {torch.__version__}, {args.device}" + (f", matmul ceiling {peak:.0f} TFLOP/s" if peak else ""))
    print(
        f"{'shape':10} {'model':16} {'mode':8} {'ms/step':>9} {'target tok/s':>13} {'of plain':>9} {'of ceiling':>10}"
    )
    for row in results:
        plain = next(
            (
                r
                for r in results
                if (r["shape"], r["compiled"], r["model"]) == (row["shape"], row["compiled"], "plain SDPA")
            ),
            row,
        )
        share = f"{row['tflops'] / peak:10.1%}" if peak else ""
        mode = "compiled" if row["compiled"] else "eager"
        print(f"{row['shape']:10} {row['model']:16} {mode:8} {row['ms']:9.2f} {row['tokens_per_s']:13,.0f} "
              f"{row['tokens_per_s'] / plain['tokens_per_s']:9.2f} {share}")  # fmt: skip
    if args.out:
        with Path(args.out).open("w", encoding="utf-8") as file:
            json.dump({"torch": torch.__version__, "ceiling_tflops": peak, "results": results}, file, indent=1)


if __name__ == "__main__":
    main()
