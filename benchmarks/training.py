"""Training speed on real text: real (not padding) target tokens a second, beside synthetic batches and Hugging Face.

The corpora are cleaned, tokenised and batched by `sixfold`; each step is that of `sixfold train`, with its guard
against bad steps and its average of the weights. Hugging Face's Marian reads the same pairs through its own collator,
compiled, with the same precision, loss and optimizer. Its batches are drawn at random, as its Trainer does by default,
or grouped by length. Rounds alternate; medians are reported.

    python benchmarks/training.py DATA --work DIR                       # GPU, base, vocabulary 32k
    python benchmarks/training.py DATA --work DIR --small --device cpu  # the same code in a minute
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from model_forward import ceiling, flops
from sixfold.data.tokens import Store
from sixfold.training.batch import Batch, collate
from sixfold.training.prepare import find

from sixfold import recipe as recipes
from sixfold.config import ModelConfig, TrainingConfig
from sixfold.data.loader import Loader, Order
from sixfold.model.transformer import build
from sixfold.presets import preset
from sixfold.tasks.loss import TokenLoss
from sixfold.tasks.task import Batch
from sixfold.tasks.translation import TranslationBatch, TranslationTask
from sixfold.text.tokenizer import Tokenizer
from sixfold.training.display import Display
from sixfold.training.interrupt import Interrupt
from sixfold.training.loop import precision, train
from sixfold.training.run import make_ready
from sixfold.training.session import Ready
from sixfold.training.state import State, library_settings

SMALL = replace(preset("base").model, d_model=64, heads=4, d_ff=128, encoder_layers=1, decoder_layers=1)
WARM_UP_STEPS = 6  # not timed


def make_data(args: argparse.Namespace, device: torch.device) -> Ready:
    """Return the pairs of the recipe, cleaned and tokenised."""
    recipe = recipes.load(args.recipe)
    if args.small:
        recipe = replace(recipe, corpus=recipe.corpus[-2:], settings={**recipe.settings, "tokenizer": {"vocab": 2000}})
    return prepare_inputs(recipe, find(recipe, args.data), args.work, {}, device, Display(Interrupt()))


def tokens_per_second(steps: Iterator[int], count: int, device: torch.device) -> float:
    """Return target tokens a second over `count` steps; each item of `steps` is the tokens of one step."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    tokens = sum(next(steps) for _ in range(count))
    if device.type == "cuda":
        torch.cuda.synchronize()
    return tokens / (time.perf_counter() - start)


def sixfold_steps(shape: ModelConfig, config: TrainingConfig, batches: object, device: torch.device) -> Iterator[int]:
    """Train a new model and yield the target tokens of each step."""
    state = State(build(shape).to(device), config, steady=True, compiled=device.type == "cuda")
    for metrics in train(state, batches, shape, config):  # type: ignore[arg-type]
        yield metrics.tokens


def synthetic(shape: ModelConfig, rows: int, length: int) -> Iterator[list[Batch]]:
    """Yield the same full batch of random tokens forever."""
    ids = torch.randint(4, shape.vocab, (3, rows, length))
    positions = torch.arange(rows * length)
    batch = TranslationBatch(source=ids[0], target=ids[1], labels=ids[2].flatten(), label_positions=positions)
    while True:
        yield [batch]


class HuggingFaceMarian:
    """MarianMTModel with DataCollatorForSeq2Seq, compiled on a GPU."""

    def __init__(self, shape: ModelConfig, tokenizer: Tokenizer, device: torch.device) -> None:
        from peers import HuggingFace
        from transformers import DataCollatorForSeq2Seq, PreTrainedTokenizerFast

        self.shape, self.device = shape, device
        self.model = HuggingFace(shape, build(shape)).model.to(device).train()  # type: ignore[arg-type]
        self.call = torch.compile(self.model, dynamic=True) if device.type == "cuda" else self.model
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True)
        fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer.rust, pad_token="<pad>", eos_token="<eos>")
        assert fast.pad_token_id == shape.pad
        self.collator = DataCollatorForSeq2Seq(fast, pad_to_multiple_of=8)

    def steps(self, store: Store, tokens: int, grouped: bool) -> Iterator[int]:
        """Train and yield the target tokens of each step."""
        for batch in queued(sentences(store, self.shape, tokens, grouped), self.collator):
            labels = batch["labels"]
            start = torch.full((len(labels), 1), self.shape.bos)
            decoder_inputs = torch.cat((start, labels[:, :-1].masked_fill(labels[:, :-1] == -100, self.shape.pad)), 1)
            inputs = {"input_ids": batch["input_ids"], "attention_mask": batch["attention_mask"]}
            inputs = {name: tensor.to(self.device, non_blocking=True) for name, tensor in inputs.items()}
            targets, decoder_inputs = (
                labels.to(self.device, non_blocking=True),
                decoder_inputs.to(self.device, non_blocking=True),
            )
            with precision(TrainingConfig(), self.device):
                logits = self.call(**inputs, decoder_input_ids=decoder_inputs, use_cache=False).logits.flatten(0, 1)
                loss = F.cross_entropy(logits.float(), targets.flatten(), ignore_index=-100, label_smoothing=0.1)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            yield int((labels != -100).sum())


def sentences(store: Store, shape: ModelConfig, tokens: int, grouped: bool) -> Iterator[list[dict]]:
    """Yield batches of as many pairs as have `tokens` target tokens on average, grouped by length or random."""
    generator = random.Random(1)
    source_lengths, target_lengths = store.lengths()
    rows_per_batch = max(1, round(tokens / target_lengths.mean()))
    while True:
        if grouped:  # as LengthGroupedSampler does: random pools of fifty batches, each sorted
            pool = np.array(generator.sample(range(len(store)), min(len(store), 50 * rows_per_batch)))
            pool = pool[np.argsort(-source_lengths[pool])]
            batches = [pool[start : start + rows_per_batch] for start in range(0, len(pool), rows_per_batch)]
            generator.shuffle(batches)
        else:
            batches = [np.array(generator.sample(range(len(store)), rows_per_batch))]
        for rows in batches:
            yield [example(examples, int(row), shape) for row in rows]


def example(store: Store, row: int, shape: ModelConfig) -> dict:
    """Return a pair as Hugging Face's collator takes it."""
    source, target, _, _ = store.gather(np.array([row]))
    ids = source.tolist()
    return {"input_ids": ids, "attention_mask": [1] * len(ids), "labels": [*target.tolist(), shape.eos]}


def queued(examples: Iterator[list[dict]], collator: Callable) -> Iterator[dict]:
    """Yield batches that worker processes of a DataLoader collate ahead of time."""

    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self) -> Iterator[dict]:
            info = torch.utils.data.get_worker_info()
            for number, batch in enumerate(examples):
                if info is None or number % info.num_workers == info.id:
                    yield collator(batch)

    workers = 6 if torch.cuda.is_available() else 0
    return iter(torch.utils.data.DataLoader(Stream(), batch_size=None, num_workers=workers, pin_memory=workers > 0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--recipe", type=Path, default=Path(__file__).parents[1] / "recipes" / "zh-en-base.toml")
    parser.add_argument("--work", type=Path, required=True, help="folder of the tokenised corpora")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true")
    parser.add_argument(
        "--tokens",
        type=int,
        default=32768,
        help="tokens of a step; Hugging Face gets a quarter, or it runs out of memory",
    )
    parser.add_argument("--only", default="", help="measure only contestants whose name contains this text")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=30, help="steps timed in each round")
    parser.add_argument("--big", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    with library_settings("auto", torch.device(args.device)):
        compare(args)


def compare(args: argparse.Namespace) -> None:
    """Measure Sixfold and Hugging Face, and print the table."""
    device = torch.device(args.device)
    args.work.mkdir(parents=True, exist_ok=True)
    inputs = make_inputs(args, device)
    examples = inputs.examples
    shape = inputs.tokenizer.fit(replace(SMALL if args.small else preset("base").model, position_layout="halves"))
    tokens = 2048 if args.small else args.tokens
    config = TrainingConfig(steps=10**9, warmup=4000)
    pin = device.type == "cuda"
    task = TranslationTask(("", ""))

    def collate(batch: Examples) -> Batch:
        return task.collate(batch, shape).pinned() if pin else task.collate(batch, shape)

    loader = Loader(examples, BatchPlan(tokens, packed=True), collate)
    print(f"{len(examples):,} pairs, padding {loader.padding_share():.1%}", flush=True)
    length = 64
    peer = HuggingFaceMarian(shape, inputs.tokenizer, device)
    contestants = {
        "sixfold, synthetic 64": lambda: sixfold_steps(
            shape, config, synthetic(shape, tokens // length, length), device
        ),
        "sixfold, real text": lambda: sixfold_steps(shape, config, loader, device),
        "HF Marian, real, grouped": lambda: peer.steps(store, tokens // 4, grouped=True),
        "HF Marian, real, random": lambda: peer.steps(store, tokens // 4, grouped=False),
    }
    contestants = {name: start for name, start in contestants.items() if args.only in name}
    results = measure(contestants, args, device)
    if args.only:
        return
    if args.big and not args.small:
        big = replace(shape, d_model=1024, heads=16, d_ff=4096)
        batches = synthetic(big, tokens // 128, length)
        contestant = {"sixfold big, synthetic 64": lambda: sixfold_steps(big, config, batches, device)}
        results |= measure(contestant, args, device)
    peak = ceiling() if pin else float("nan")
    synthetic_rate = results["sixfold, synthetic 64"]
    for name, rate in results.items():
        config_of_row = replace(shape, d_model=1024, heads=16, d_ff=4096) if "big" in name else shape
        share = (
            f"{flops(config_of_row, length) * rate / 1e12 / peak:6.1%} of the ceiling"
            if "synthetic" in name and pin
            else ""
        )
        print(f"{name:28} {rate:12,.0f} target tokens/s  {rate / synthetic_rate:5.2f} of synthetic  {share}")
    best_peer = max(results["HF Marian, real, grouped"], results["HF Marian, real, random"])
    print(f"real text against the better of Hugging Face's two: {results['sixfold, real text'] / best_peer:.2f} x")
    print(f"torch {torch.__version__}, ceiling {peak:.0f} TFLOP/s")
    if args.out:
        args.out.write_text(json.dumps({"results": results, "ceiling_tflops": peak}, indent=1), encoding="utf-8")


def measure(
    contestants: dict[str, Callable[[], Iterator[int]]], args: argparse.Namespace, device: torch.device
) -> dict[str, float]:
    """Return the median speed of each contestant; rounds alternate between them."""
    running = {}
    for name, start_steps in contestants.items():
        start = time.perf_counter()
        running[name] = start_steps()
        for _ in range(WARM_UP_STEPS):
            next(running[name])
        print(f"  {name}: ready after {time.perf_counter() - start:.0f} s", flush=True)
    rates: dict[str, list[float]] = {name: [] for name in running}
    for _ in range(args.rounds):
        for name, steps in running.items():
            rates[name].append(tokens_per_second(steps, args.steps, device))
    for name, measured in rates.items():
        print(f"  {name}: {', '.join(f'{rate:,.0f}' for rate in measured)}", flush=True)
    return {name: statistics.median(measured) for name, measured in rates.items()}


if __name__ == "__main__":
    main()
