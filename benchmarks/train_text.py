"""Training a decoder-only model: this project beside a plain loop, which learns the same shape from the same tokens.

The plain loop is what a short script does: the documents as one stream, random windows of one length, the whole model
compiled, AdamW and autocast. It calls the same modules, so that the two differ in data, loss, masks and optimizer only.

Quality: both learn for the same number of steps of as many tokens, with one schedule, and are judged by bits per byte
of the same held-out documents. Speed: tokens per second over full rows, rounds in turn, and the share of the ceiling.

    python benchmarks/train_text.py quality TEXT… --work DIR --steps 1500       # GPU, about 50M weights
    python benchmarks/train_text.py speed --shapes 124M 1B                      # GPU
    python benchmarks/train_text.py quality TEXT… --work DIR --small --device cpu --steps 60
    python benchmarks/train_text.py speed --shapes small --device cpu --steps 5
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from model_forward import ceiling
from torch import Tensor

from sixfold.config import ModelConfig, TrainingConfig
from sixfold.data.examples import Examples
from sixfold.data.loader import BatchPlan, Loader
from sixfold.model.precision import autocast, library_settings
from sixfold.model.transformer import DecoderOnly, build
from sixfold.presets import preset
from sixfold.recipe import CorpusConfig, Recipe
from sixfold.tasks.causal_lm_validation import CausalValidator
from sixfold.tasks.loss import TokenLoss
from sixfold.tasks.task import Batch
from sixfold.tasks.text_batches import TextBatch
from sixfold.training.display import Display
from sixfold.training.distributed import Group
from sixfold.training.interrupt import Interrupt
from sixfold.training.loop import train
from sixfold.training.schedule import learning_rate
from sixfold.training.session import TrainingInputs
from sixfold.training.state import State
from sixfold.training.text_inputs import find_sources, prepare_inputs

LLAMA = preset("decoder-base").model
SHAPES = {
    "small": replace(LLAMA, vocab=2000, d_model=64, heads=4, d_ff=128, decoder_layers=2, max_length=128, dropout=0.0),
    "50M": replace(LLAMA, vocab=16000, d_model=576, heads=9, d_ff=1536, decoder_layers=11, dropout=0.0),
    "124M": replace(preset("gpt2").model, dropout=0.0),
    "1B": replace(
        LLAMA, d_model=2048, heads=32, kv_heads=4, d_ff=5632, decoder_layers=22, max_length=2048, dropout=0.0
    ),
}  # fmt: skip
WARM_UP_STEPS = 6  # that are not timed


def weights(shape: ModelConfig) -> int:
    """Return the number of weights of a shape."""
    with torch.device("meta"):
        return sum(weight.numel() for weight in DecoderOnly(shape).parameters())


def flops(shape: ModelConfig, length: int) -> float:
    """Return the operations of a training step for one token: 6 for each weight of a product, and causal attention.

    A tied embedding counts as the output projection that it is; recomputed activations do not count.
    """
    tables = (shape.vocab if not shape.tie_output else 0) + (shape.max_length if shape.positions == "learned" else 0)
    products = weights(shape) - tables * shape.d_model
    return 6 * products + 6 * shape.decoder_layers * shape.heads * shape.d_head * length


# --- the two contestants --------------------------------------------------------------------------------------------


def sixfold_losses(
    shape: ModelConfig, config: TrainingConfig, batches: Iterator[Sequence[Batch]], device: torch.device
) -> Iterator[tuple[Tensor, int, DecoderOnly]]:
    """Train with Sixfold; yield the loss and the tokens of each step, and the model."""
    is_compiled = device.type == "cuda"
    loss = TokenLoss(config.label_smoothing, config.rdrop, is_compiled)
    model = build(shape).to(device)
    assert isinstance(model, DecoderOnly)
    state = State(model, config, loss, fixed_shapes=True, compiled=is_compiled)
    for metrics in train(state, batches, shape, config):
        yield metrics.loss, metrics.tokens, model


def plain_losses(
    shape: ModelConfig, config: TrainingConfig, windows: Iterator[Tensor], device: torch.device
) -> Iterator[tuple[Tensor, int, DecoderOnly]]:
    """Train with a plain loop; `windows` are rows of tokens, one longer than what is read."""
    model = build(shape).to(device).train()
    assert isinstance(model, DecoderOnly)
    call = torch.compile(model) if device.type == "cuda" else model
    matrices = [weight for weight in model.parameters() if weight.dim() > 1]
    vectors = [weight for weight in model.parameters() if weight.dim() <= 1]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": config.weight_decay}, {"params": vectors, "weight_decay": 0.0}],
        betas=(0.9, config.beta2), fused=device.type == "cuda",
    )  # fmt: skip
    for step in range(1, config.steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(config, shape.d_model, step)
        rows = next(windows).to(device, non_blocking=True)
        with autocast(config.precision, device):
            logits = call(rows[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1).float(), rows[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        yield loss.detach(), rows[:, 1:].numel(), model


def windows_of(stream: np.ndarray, rows: int, length: int) -> Iterator[Tensor]:
    """Yield random windows of a stream of tokens."""
    random = np.random.default_rng(1)
    while True:
        begins = random.integers(0, len(stream) - length - 1, rows)
        yield torch.from_numpy(np.stack([stream[begin : begin + length + 1] for begin in begins]).astype(np.int64))


# --- quality --------------------------------------------------------------------------------------------------------


def prepare(args: argparse.Namespace, shape: ModelConfig, device: torch.device) -> TrainingInputs:
    """Return the inputs of a training run: the store, the tokeniser and the held-out documents."""
    settings: dict[str, Any] = {
        "model": {
            name: getattr(shape, name)
            for name in ("d_model", "heads", "kv_heads", "d_ff", "decoder_layers", "max_length", "dropout")
        },
        "tokenizer": {"vocab": shape.vocab},
        "training": {
            "steps": args.steps, "batch_tokens": args.tokens, "micro_tokens": args.tokens,
            "row_tokens": args.row_tokens, "ema": 0.0,
        },
    }  # fmt: skip
    recipe = Recipe(settings=settings, corpus=tuple(CorpusConfig(files=(str(path),)) for path in args.text))
    sources = find_sources(recipe, Path())
    return prepare_inputs(recipe, sources, args.work, {}, device, Display(Interrupt()))


def compare_quality(args: argparse.Namespace, device: torch.device) -> None:
    """Train both and print the losses on the way and bits per byte at the end."""
    inputs = prepare(args, SHAPES["small" if args.small else "50M"], device)
    shape, config, examples = inputs.config.model, inputs.config.training, inputs.examples
    print(f"{weights(shape) / 1e6:.1f}M weights, {config.steps} steps of {config.batch_tokens} tokens, {config}")
    tokenizer = inputs.tokenizers["text"]
    order = np.random.default_rng(2).permutation(len(examples))
    stream = np.concatenate([
        joined(examples.gather(order[begin : begin + 1000])["text"], shape) for begin in range(0, len(order), 1000)
    ])  # fmt: skip
    plan = BatchPlan(config.batch_tokens, seed=config.seed, packed=True)
    pin = device.type == "cuda"

    def collate(batch: Examples) -> Batch:
        return inputs.task.collate(batch, shape).pinned() if pin else inputs.task.collate(batch, shape)

    loader = Loader(examples, plan, collate)
    rows = config.batch_tokens // config.row_tokens
    contestants = {
        "sixfold": sixfold_losses(shape, config, iter(loader), device),
        "plain loop": plain_losses(shape, config, windows_of(stream, rows, config.row_tokens), device),
    }
    for name, losses in contestants.items():
        start, tokens, model = time.perf_counter(), 0, None
        for step, (loss, count, current) in enumerate(losses, 1):
            model, tokens = current, tokens + count
            if step % max(1, config.steps // 10) == 0:
                print(f"  {name}: step {step}, loss {float(loss):.3f}", flush=True)
            if step == WARM_UP_STEPS:
                float(loss)
                start, tokens = time.perf_counter(), 0
        seconds = time.perf_counter() - start
        assert model is not None
        group = Group()
        validator = CausalValidator(model, shape, tokenizer, config, group, config.row_tokens, before=(shape.bos,))
        scores = validator.scores(inputs.dev[0])
        print(
            f"{name}: {scores['bits_per_byte']:.4f} bits per byte, perplexity {scores['perplexity']:.2f}, "
            f"{tokens / seconds:,.0f} tokens/s", flush=True,
        )  # fmt: skip


def joined(texts: Any, shape: ModelConfig) -> np.ndarray:
    """Return documents as one stream: <bos>, the tokens and <eos> of each."""
    ends = np.cumsum(texts.lengths)
    parts = [
        [shape.bos, *texts.values[end - length : end], shape.eos]
        for end, length in zip(ends, texts.lengths, strict=True)
    ]
    return np.concatenate(parts).astype(np.int32)


# --- speed ----------------------------------------------------------------------------------------------------------


def compare_speed(args: argparse.Namespace, device: torch.device) -> None:
    """Print tokens per second of both on full rows of random tokens."""
    peak = ceiling() if device.type == "cuda" else math.nan
    for name in args.shapes:
        shape = SHAPES[name]
        length = min(shape.max_length, args.row_tokens)
        rows = max(1, args.tokens // length)
        config = TrainingConfig(
            steps=10**9, warmup=100, label_smoothing=0.0, beta2=0.95, weight_decay=0.1, recompute=name == "1B"
        )
        tokens = torch.randint(4, shape.vocab, (rows, length + 1))
        positions = torch.arange(rows * length)
        batch = TextBatch(
            tokens=tokens[:, :-1].contiguous(), segments=torch.ones(rows, length, dtype=torch.long),
            labels=tokens[:, 1:].flatten(), label_positions=positions,
        )  # fmt: skip
        contestants: dict[str, Callable[[], Iterator[tuple[Tensor, int, DecoderOnly]]]] = {
            "sixfold": lambda shape=shape, config=config, batch=batch: sixfold_losses(
                shape, config, iter(lambda: [batch], None), device
            ),
        }
        if name != "1B":  # without recomputation, its activations do not fit
            contestants["plain loop"] = lambda shape=shape, config=config, tokens=tokens: plain_losses(
                shape, config, iter(lambda: tokens, None), device
            )
        rates = measure(contestants, args, device)
        for contestant, rate in rates.items():
            share = flops(shape, length) * rate / 1e12 / peak
            print(f"{name} {contestant:12} {rate:12,.0f} tokens/s  {share:6.1%} of {peak:.0f} TFLOP/s", flush=True)


def measure(contestants: dict[str, Callable[[], Iterator]], args: argparse.Namespace, device: torch.device) -> dict:
    """Return the median tokens per second of each; rounds alternate between them."""
    running = {}
    for name, start in contestants.items():
        running[name] = start()
        for _ in range(WARM_UP_STEPS):
            next(running[name])
    rates: dict[str, list[float]] = {name: [] for name in running}
    for _ in range(args.rounds):
        for name, steps in running.items():
            if device.type == "cuda":
                torch.cuda.synchronize()
            begin = time.perf_counter()
            tokens = sum(next(steps)[1] for _ in range(args.steps))
            if device.type == "cuda":
                torch.cuda.synchronize()
            rates[name].append(tokens / (time.perf_counter() - begin))
    return {name: statistics.median(values) for name, values in rates.items()}


def main() -> None:
    """Run one of the two comparisons."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["quality", "speed"])
    parser.add_argument("text", nargs="*", type=Path)
    parser.add_argument("--work", type=Path, help="folder for the tokens")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--shapes", nargs="*", default=["124M"], choices=list(SHAPES))
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=0, help="of a step; default: 65,536, or 2,048 for a small shape")
    parser.add_argument("--row-tokens", type=int, default=0, help="default: 1,024, or 128 for a small shape")
    args = parser.parse_args()
    is_small = args.small or args.shapes == ["small"]
    args.tokens = args.tokens or (2048 if is_small else 65_536)
    args.row_tokens = args.row_tokens or (128 if is_small else 1024)
    device = torch.device(args.device)
    with library_settings("auto", device):
        (compare_quality if args.what == "quality" else compare_speed)(args, device)


if __name__ == "__main__":
    main()
