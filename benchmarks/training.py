"""Training on real text: non-padding target tokens a second, beside full synthetic batches and Hugging Face.

The corpora are cleaned, tokenised and batched by `sixfold`'s own loader; each step is that of
`sixfold train`, with its guard and its average.
Hugging Face's Marian reads the same pairs through its own collator, compiled, with the same precision, loss and
optimizer, in batches of sentences drawn at random, as its Trainer does by default, and grouped by length, as it can.
Rounds alternate; medians are reported.

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

from sixfold import recipe as recipes
from sixfold.config import ModelConfig, TrainingConfig
from sixfold.data.examples import Examples, ExampleSet
from sixfold.data.loader import BatchPlan, Loader
from sixfold.model.precision import autocast, library_settings
from sixfold.model.transformer import build
from sixfold.presets import preset
from sixfold.tasks.loss import TokenLoss
from sixfold.tasks.task import Batch
from sixfold.tasks.translation import TranslationTask
from sixfold.tasks.translation_batches import TranslationBatch
from sixfold.text.tokenizer import Tokenizer
from sixfold.training.corpora import find
from sixfold.training.display import Display
from sixfold.training.interrupt import Interrupt
from sixfold.training.loop import train
from sixfold.training.session import TrainingInputs
from sixfold.training.state import State
from sixfold.training.translation_inputs import prepare_inputs

SMALL = replace(preset("base").model, d_model=64, heads=4, d_ff=128, encoder_layers=1, decoder_layers=1)
WARM_UP_STEPS = 6  # that are not timed


def make_inputs(args: argparse.Namespace, device: torch.device) -> TrainingInputs:
    """Return the inputs of a training run of the recipe."""
    recipe = recipes.load(args.recipe)
    if args.small:
        recipe = replace(recipe, corpus=recipe.corpus[-2:], settings={**recipe.settings, "tokenizer": {"vocab": 2000}})
    return prepare_inputs(recipe, find(recipe, args.data), args.work, {}, device, Display(Interrupt()))


def tokens_per_second(steps: Iterator[int], count: int, device: torch.device) -> float:
    """Return the target tokens per second over `count` steps; each item of `steps` is the tokens of one step."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    tokens = sum(next(steps) for _ in range(count))
    if device.type == "cuda":
        torch.cuda.synchronize()
    return tokens / (time.perf_counter() - start)


def sixfold_steps(
    shape: ModelConfig, config: TrainingConfig, batches: Iterable[Sequence[Batch]], device: torch.device
) -> Iterator[int]:
    """Train with Sixfold, and yield the target tokens of each step."""
    is_compiled = device.type == "cuda"
    loss = TokenLoss(config.label_smoothing, config.rdrop, is_compiled)
    state = State(build(shape).to(device), config, loss, fixed_shapes=True, compiled=is_compiled)
    for metrics in train(state, batches, shape, config):
        yield metrics.tokens


def synthetic(shape: ModelConfig, rows: int, length: int) -> Iterator[list[Batch]]:
    """Yield the same batch of random tokens without padding again and again."""
    ids = torch.randint(4, shape.vocab, (3, rows, length))
    positions = torch.arange(rows * length)
    batch = TranslationBatch(source=ids[0], target=ids[1], labels=ids[2].flatten(), label_positions=positions)
    while True:
        yield [batch]


class HuggingFaceMarian:
    """MarianMTModel with batches from DataCollatorForSeq2Seq, compiled on a GPU."""

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

    def steps(self, examples: ExampleSet, tokens: int, grouped: bool) -> Iterator[int]:
        """Train, and yield the target tokens of each step."""
        for batch in prefetch(random_batches(examples, self.shape, tokens, grouped), self.collator):
            labels = batch["labels"]
            start = torch.full((len(labels), 1), self.shape.bos)
            before = torch.cat((start, labels[:, :-1].masked_fill(labels[:, :-1] == -100, self.shape.pad)), 1)
            inputs = {"input_ids": batch["input_ids"], "attention_mask": batch["attention_mask"]}
            inputs = {name: tensor.to(self.device, non_blocking=True) for name, tensor in inputs.items()}
            expected, before = labels.to(self.device, non_blocking=True), before.to(self.device, non_blocking=True)
            with autocast(TrainingConfig().precision, self.device):
                logits = self.call(**inputs, decoder_input_ids=before, use_cache=False).logits.flatten(0, 1)
                loss = F.cross_entropy(logits.float(), expected.flatten(), ignore_index=-100, label_smoothing=0.1)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            yield int((labels != -100).sum())


def random_batches(examples: ExampleSet, shape: ModelConfig, tokens: int, grouped: bool) -> Iterator[list[dict]]:
    """Yield batches of as many pairs as have `tokens` target tokens on average."""
    generator = random.Random(1)
    lengths = examples.lengths()
    batch_size = max(1, round(tokens / lengths["target"].mean()))
    while True:
        if grouped:  # as LengthGroupedSampler does: random pools of fifty batches, each sorted by length
            pool = np.array(generator.sample(range(len(examples)), min(len(examples), 50 * batch_size)))
            pool = pool[np.argsort(-lengths["source"][pool])]
            batches = [pool[begin : begin + batch_size] for begin in range(0, len(pool), batch_size)]
            generator.shuffle(batches)
        else:
            batches = [np.array(generator.sample(range(len(examples)), batch_size))]
        for rows in batches:
            yield [example(examples, int(row), shape) for row in rows]


def example(examples: ExampleSet, number: int, shape: ModelConfig) -> dict:
    """Return an example as Hugging Face's collator reads it."""
    columns = examples.gather(np.array([number]))
    source, target = ([*columns[name].values.tolist(), shape.eos] for name in ("source", "target"))
    return {"input_ids": source, "attention_mask": [1] * len(source), "labels": target}


def prefetch(batches: Iterator[list[dict]], collator: Callable) -> Iterator[dict]:
    """Collate batches ahead of time in worker processes of a DataLoader."""

    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self) -> Iterator[dict]:
            info = torch.utils.data.get_worker_info()
            for number, batch in enumerate(batches):
                if info is None or number % info.num_workers == info.id:
                    yield collator(batch)

    workers = 6 if torch.cuda.is_available() else 0
    return iter(torch.utils.data.DataLoader(Stream(), batch_size=None, num_workers=workers, pin_memory=workers > 0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--recipe", type=Path, default=Path(__file__).parents[1] / "recipes" / "zh-en-base.toml")
    parser.add_argument("--work", type=Path, required=True, help="folder for the tokens")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true")
    parser.add_argument(
        "--tokens",
        type=int,
        default=32768,
        help="of a step; Hugging Face gets a quarter, because it would run out of memory",
    )
    parser.add_argument("--only", default="", help="measure only those whose name contains this")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=30, help="timed in each round")
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
    tokenizer = inputs.tokenizers["target"]
    shape = tokenizer.fit(replace(SMALL if args.small else preset("base").model, position_layout="halves"))
    tokens = 2048 if args.small else args.tokens
    config = TrainingConfig(steps=10**9, warmup=4000)
    pin = device.type == "cuda"
    task = TranslationTask(("", ""))

    def collate(batch: Examples) -> Batch:
        return task.collate(batch, shape).pinned() if pin else task.collate(batch, shape)

    loader = Loader(examples, BatchPlan(tokens, packed=True), collate)
    print(f"{len(examples):,} pairs, padding {loader.padding_share():.1%}", flush=True)
    length = 64
    peer = HuggingFaceMarian(shape, tokenizer, device)
    contestants = {
        "sixfold, synthetic 64": lambda: sixfold_steps(
            shape, config, synthetic(shape, tokens // length, length), device
        ),
        "sixfold, real text": lambda: sixfold_steps(shape, config, loader, device),
        "HF Marian, real, grouped": lambda: peer.steps(examples, tokens // 4, grouped=True),
        "HF Marian, real, random": lambda: peer.steps(examples, tokens // 4, grouped=False),
    }
    contestants = {name: start for name, start in contestants.items() if args.only in name}
    results = measure(contestants, args, device)
    if args.only:
        return
    if args.big and not args.small:
        big = replace(shape, d_model=1024, heads=16, d_ff=4096)
        big_batches = synthetic(big, tokens // 128, length)
        results |= measure(
            {"sixfold big, synthetic 64": lambda: sixfold_steps(big, config, big_batches, device)}, args, device
        )
    peak = ceiling() if pin else float("nan")
    synthetic_rate = results["sixfold, synthetic 64"]
    for name, rate in results.items():
        of = replace(shape, d_model=1024, heads=16, d_ff=4096) if "big" in name else shape
        share = f"{flops(of, length) * rate / 1e12 / peak:6.1%} of the ceiling" if "synthetic" in name and pin else ""
        print(f"{name:28} {rate:12,.0f} target tokens/s  {rate / synthetic_rate:5.2f} of synthetic  {share}")
    best_peer = max(results["HF Marian, real, grouped"], results["HF Marian, real, random"])
    print(f"real text against the better of Hugging Face's two: {results['sixfold, real text'] / best_peer:.2f} x")
    print(f"torch {torch.__version__}, ceiling {peak:.0f} TFLOP/s")
    if args.out:
        args.out.write_text(json.dumps({"results": results, "ceiling_tflops": peak}, indent=1), encoding="utf-8")


def measure(
    contestants: dict[str, Callable[[], Iterator[int]]], args: argparse.Namespace, device: torch.device
) -> dict[str, float]:
    """Return the median rate of each contestant in target tokens per second; rounds alternate between them."""
    running = {}
    for name, start in contestants.items():
        began_at = time.perf_counter()
        running[name] = start()
        for _ in range(WARM_UP_STEPS):
            next(running[name])
        print(f"  {name}: ready after {time.perf_counter() - began_at:.0f} s", flush=True)
    rates: dict[str, list[float]] = {name: [] for name in running}
    for _ in range(args.rounds):
        for name, steps in running.items():
            rates[name].append(tokens_per_second(steps, args.steps, device))
    for name, values in rates.items():
        print(f"  {name}: {', '.join(f'{rate:,.0f}' for rate in values)}", flush=True)
    return {name: statistics.median(values) for name, values in rates.items()}


if __name__ == "__main__":
    main()
