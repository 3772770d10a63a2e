"""BLEU of Sixfold and of Hugging Face's Seq2SeqTrainer after the same GPU minutes, with the same pairs and shape.

Sixfold trains from the recipe for `--steps` steps. Then Hugging Face's Marian trains for as many seconds. Both times
include compiling, and exclude reading and validating. Marian's schedule is set to end with its time. Both models are
decoded by the same beam search of 4 and scored by sacreBLEU on every dev set of the recipe.

    python benchmarks/quality.py DATA --work DIR --steps 4000           # GPU; needs transformers and accelerate
    python benchmarks/quality.py DATA --work DIR --steps 6 --small --device cpu
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from training import SMALL, example

from sixfold import recipe as recipes
from sixfold.config import ModelConfig
from sixfold.data.batching import rows_of_epoch
from sixfold.data.examples import ExampleSet
from sixfold.interop.huggingface import load_folder
from sixfold.model.precision import library_settings
from sixfold.model.transformer import EncoderDecoder, build, load_weights
from sixfold.recipe import Recipe
from sixfold.tasks.translation_validation import DevSet, TranslationValidator
from sixfold.training.corpora import find
from sixfold.training.display import Display
from sixfold.training.distributed import SINGLE_PROCESS
from sixfold.training.interrupt import Interrupt
from sixfold.training.session import TrainingInputs, TrainingSession
from sixfold.training.translation_inputs import prepare_inputs


def change(recipe: Recipe, args: argparse.Namespace) -> Recipe:
    """Return the recipe with the steps and, with --small, the size of this comparison, validated only at the end."""
    training = {"steps": args.steps, "warmup": max(1, args.steps // 8), "patience": 0}
    training |= {"validate_every": args.steps, "checkpoint_every": 10 * args.steps}
    tree: dict[str, Any] = {**recipe.settings, "training": {**recipe.settings["training"], **training}}
    if args.small:
        fields = ("d_model", "heads", "d_ff", "encoder_layers", "decoder_layers")
        tree["model"] = {**tree["model"], **{name: getattr(SMALL, name) for name in fields}}
        tree["tokenizer"] = {"vocab": 2000}
        tree["training"]["batch_tokens"] = 1024
        recipe = replace(recipe, corpus=recipe.corpus[-2:])
    return replace(recipe, settings=tree)


def train_sixfold(
    inputs: TrainingInputs, args: argparse.Namespace, device: torch.device, display: Display
) -> tuple[TrainingSession, float]:
    """Train with Sixfold without validations; return the session and the seconds of its steps."""
    session = TrainingSession(inputs, args.work / "ours", device, display)
    session.validate = lambda log: None  # type: ignore[method-assign]
    start = time.perf_counter()
    session.train()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return session, time.perf_counter() - start


class Pairs(torch.utils.data.Dataset):
    """The examples of Sixfold's loader, epoch after epoch, as Hugging Face reads them."""

    def __init__(self, examples: ExampleSet, shape: ModelConfig, seed: int, epochs: int) -> None:
        chosen = [rows_of_epoch(examples.ends, examples.weights, seed, epoch) for epoch in range(epochs)]
        self.rows = np.concatenate(chosen)
        self.examples, self.shape = examples, shape

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict:
        return example(self.examples, int(self.rows[index]), self.shape)


def train_peer(
    inputs: TrainingInputs, seconds: float, args: argparse.Namespace, device: torch.device
) -> tuple[EncoderDecoder, ModelConfig, dict[str, float]]:
    """Train a new MarianMTModel with Seq2SeqTrainer for a number of seconds."""
    import transformers

    shape = replace(inputs.config.model, norm_position="post", position_layout="halves")
    rate = peer_rate(inputs, shape, args, device)
    steps = max(2, int(seconds * rate * 0.98))
    model = new_marian(shape)
    trainer = make_trainer(model, inputs, shape, steps, args, device)
    clock = Clock(seconds)
    trainer.add_callback(clock.callback(transformers.TrainerCallback))
    trainer.train()
    pairs = clock.steps * peer_batch(inputs, args) * args.peer_together
    tokens = int(pairs * inputs.examples.lengths()["target"].mean())
    folder = args.work / "peer"
    model.save_pretrained(folder)
    file = load_folder(folder)
    converted = build(file.config.model)
    load_weights(converted, file.weights())
    assert isinstance(converted, EncoderDecoder)
    return converted.to(device), file.config.model, {"seconds": clock.elapsed, "steps": clock.steps, "tokens": tokens}


def new_marian(shape: ModelConfig) -> Any:
    """Return a Marian model of this shape, initialised by Hugging Face."""
    from peers import HuggingFace

    model = HuggingFace(shape, build(shape)).model  # type: ignore[arg-type]
    return type(model)(model.config)


class Clock:
    """Ends a training after a number of seconds from its first step on, compiling included."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.steps, self.elapsed, self.start = seconds, 0, 0.0, 0.0

    def callback(self, base: type) -> Any:
        clock = self

        class Callback(base):  # type: ignore[misc,valid-type]
            def on_step_begin(self, *_: Any, **__: Any) -> None:
                clock.start = clock.start or time.perf_counter()

            def on_step_end(self, _: Any, state: Any, control: Any, **__: Any) -> None:
                clock.steps, clock.elapsed = state.global_step, time.perf_counter() - clock.start
                if clock.elapsed > clock.seconds:
                    control.should_training_stop = True

        return Callback()


def peer_rate(inputs: TrainingInputs, shape: ModelConfig, args: argparse.Namespace, device: torch.device) -> float:
    """Return the steps per second of a short trial, so that the schedule can end with the time."""
    import transformers

    count = 4 if args.small else 40
    trainer = make_trainer(new_marian(shape), inputs, shape, count, args, device)
    times: list[float] = []

    class Watch(transformers.TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            if device.type == "cuda":
                torch.cuda.synchronize()
            times.append(time.perf_counter())

    trainer.add_callback(Watch())
    trainer.train()
    half = len(times) // 2
    return (len(times) - 1 - half) / (times[-1] - times[half])


def peer_batch(inputs: TrainingInputs, args: argparse.Namespace) -> int:
    """Return the pairs of a batch of the peer, which pads all to the longest and so needs smaller batches."""
    mean_length = float(inputs.examples.lengths()["target"].mean())
    return max(1, round(inputs.config.training.batch_tokens / mean_length / args.peer_share))


def make_trainer(
    model: Any, inputs: TrainingInputs, shape: ModelConfig, steps: int, args: argparse.Namespace, device: torch.device
) -> Any:
    import transformers
    from transformers.trainer_pt_utils import LengthGroupedSampler

    data = Pairs(inputs.examples, shape, inputs.config.training.seed, 1)
    lengths = inputs.examples.lengths()["source"][data.rows].tolist()
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=inputs.tokenizers["target"].rust, pad_token="<pad>", eos_token="<eos>"
    )
    batch = peer_batch(inputs, args)
    settings = {
        "output_dir": str(args.work / "peer-run"), "max_steps": steps, "per_device_train_batch_size": batch,
        "learning_rate": args.peer_rate, "lr_scheduler_type": "cosine",
        "warmup_steps": max(1, int(steps * args.peer_warmup)),
        "adam_beta2": 0.98, "adam_epsilon": 1e-9, "max_grad_norm": 1.0, "label_smoothing_factor": 0.1,
        "bf16": device.type == "cuda", "use_cpu": device.type == "cpu", "optim": "adamw_torch_fused",
        "dataloader_num_workers": 10 if device.type == "cuda" else 0, "save_strategy": "no", "report_to": "none",
        "logging_steps": 500, "remove_unused_columns": False, "disable_tqdm": True, "seed": 1, "weight_decay": 0.0,
        "torch_compile": args.peer_compile, "gradient_accumulation_steps": args.peer_together,
    }  # fmt: skip
    fields = {field.name for field in dataclasses.fields(transformers.Seq2SeqTrainingArguments)}
    assert settings.keys() <= fields, settings.keys() - fields

    class Trainer(transformers.Seq2SeqTrainer):
        """Groups by length, as the Trainer offers, with lengths that need not be counted again."""

        def _get_train_sampler(self, *_: Any) -> Any:
            return LengthGroupedSampler(batch, lengths=lengths)

    return Trainer(
        model=model, args=transformers.Seq2SeqTrainingArguments(**settings), train_dataset=data,
        data_collator=transformers.DataCollatorForSeq2Seq(fast, model=model, pad_to_multiple_of=8),
    )  # fmt: skip


def scores(
    model: EncoderDecoder, shape: ModelConfig, inputs: TrainingInputs, dev: tuple[DevSet, ...]
) -> dict[str, float]:
    """Return the BLEU of a model on each dev set."""
    validator = TranslationValidator(model, shape, inputs.tokenizers, inputs.config.training, SINGLE_PROCESS)
    return {dev_set.name: validator.score(dev_set, beam=4)[0].bleu for dev_set in dev}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--recipe", type=Path, default=Path(__file__).parents[1] / "recipes" / "zh-en-base.toml")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--peer-rate", type=float, default=5e-4, help="peak learning rate of Hugging Face's model")
    parser.add_argument("--peer-warmup", type=float, default=0.3, help="share of its steps")
    parser.add_argument("--peer-compile", action="store_true")
    parser.add_argument("--peer-share", type=int, default=6, help="its batches have 1/N of the pairs of our steps")
    parser.add_argument("--peer-together", type=int, default=1, help="batches of one of its steps")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    with library_settings("auto", torch.device(args.device)):
        compare(args)


def compare(args: argparse.Namespace) -> None:
    """Train both, score both and print the table."""
    device = torch.device(args.device)
    args.work.mkdir(parents=True, exist_ok=True)
    recipe = change(recipes.load(args.recipe), args)
    display = Display(Interrupt())
    inputs = prepare_inputs(recipe, find(recipe, args.data), args.work, {}, device, display)
    dev_count = len(recipe.dev) * (1 + inputs.config.data.both_ways) or len(inputs.dev)
    dev = tuple(dev_set.first(20) if args.small else dev_set for dev_set in inputs.final_sets[:dev_count])
    session, seconds = train_sixfold(inputs, args, device, display)
    session.validator.load(session.state.kept_weights)
    shape = inputs.config.model
    result: dict[str, Any] = {"ours": scores(session.validator.model, shape, inputs, dev)}
    result["ours"] |= {"seconds": seconds, "steps": session.state.step, "tokens": session.progress.tokens}
    print(json.dumps(result), flush=True)
    if args.out:
        session.save_model(args.out.with_suffix(".safetensors"))
    del session
    torch.cuda.empty_cache()
    peer, peer_shape, cost = train_peer(inputs, seconds, args, device)
    result["peer"] = scores(peer, peer_shape, inputs, dev) | cost
    print(f"{'':12} {'ours':>9} {'HF':>9}")
    for name in result["ours"]:
        print(f"{name:12} {result['ours'][name]:9,.2f} {result['peer'][name]:9,.2f}")
    if args.out:
        args.out.write_text(json.dumps(result, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
