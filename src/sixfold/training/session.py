"""A training session: one start of a run, from its newest checkpoint until it ends or is stopped."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from sixfold import modelfile
from sixfold.config import Config, TrainingConfig
from sixfold.data.examples import Examples, ExampleSet
from sixfold.data.loader import BatchPlan, Loader, row_lengths_of
from sixfold.data.store import Tokenizers
from sixfold.errors import DataError
from sixfold.model.transformer import build, load_model, weights_of
from sixfold.modelfile import ModelFile
from sixfold.reports.formatting import format_duration
from sixfold.tasks.task import Batch, Task
from sixfold.text.language_profiles import LanguageProfile
from sixfold.training import checkpoint, defaults
from sixfold.training.checkpoint import Progress
from sixfold.training.display import Display, Log, memory
from sixfold.training.distributed import SINGLE_PROCESS, Group
from sixfold.training.interrupt import Stopped
from sixfold.training.loop import Metrics, train
from sixfold.training.memory_probe import fit_tokens
from sixfold.training.state import State

MAX_BAD_STEPS = 5  # in a row, before the run goes back to its last checkpoint
MAX_RETURNS = 3  # to a checkpoint, before the run gives up
GPU_STEPS_PER_READING = 10  # steps between two readings of the metrics, each of which waits for the GPU
MIN_COMPILED_TOKENS = 5 * 10**7  # of a whole run: a base model on an H200 has regained the minute by then


@dataclass(frozen=True)
class TrainingInputs:
    """All that is known before step 1."""

    config: Config
    task: Task[Any]
    examples: ExampleSet
    tokenizers: Tokenizers  # of the columns; a model file holds one, or those of source and target
    dev: Sequence[Any]  # the sets of each validation
    final_sets: Sequence[Any]  # the dev and test sets that the finished model is scored on
    start: ModelFile | None = None  # the model that is fine-tuned
    preset: str = ""  # that the settings started from
    profiles: Mapping[str, LanguageProfile] = field(default_factory=dict)  # of its languages, for the model file


class TrainingSession:
    """The model in training, its twin for validation, and the work between the steps."""

    def __init__(
        self, inputs: TrainingInputs, out: Path, device: torch.device, display: Display, group: Group = SINGLE_PROCESS
    ) -> None:
        self.inputs, self.out, self.device, self.display, self.group = inputs, out, device, display, group
        self.config = inputs.config.training
        self.task = inputs.task
        self.shape = inputs.config.model
        if inputs.start is None:
            model = build(self.shape, self.config.seed).to(device)
        else:
            model = load_model(self.shape, inputs.start.weights(), "the model to start from", device)
        twin = load_model(self.shape, weights_of(model), device=device)  # before training adds or distributes weights
        packed = defaults.is_packed(self.config, device.type) or inputs.examples.row_tokens > 0
        self.state = State(model, self.config, self.task.loss, packed, is_compiled(self.config, device), group)
        # A single process may stop in the middle of a validation; of several, the others would wait for ever.
        check_stop = display.interrupt.check if group.ranks == 1 else lambda: None
        self.validator = self.task.validator(twin, self.shape, inputs.tokenizers, self.config, group, check_stop)
        restored = checkpoint.restore_latest(self.checkpoints, self.state, display.say)
        self.progress = restored or Progress()
        group.barrier()  # before the leader writes a checkpoint that others might take for an earlier one
        if restored is not None:
            display.say(f"going on from step {self.state.step:,}")
        if 0 < self.progress.steps < self.config.steps:
            self.progress.stale = 0  # a run that is made longer goes on, also where its patience had ended
        self.progress.steps = self.config.steps
        if not self.progress.micro_tokens:
            lengths = inputs.examples.lengths()
            row_lengths = {name: int(column.max()) for name, column in lengths.items()}
            if packed:
                row_lengths = row_lengths_of(inputs.examples, lengths, self.config.subword_sampling)
            self.progress.micro_tokens = fit_tokens(self.state, inputs.examples, row_lengths, self.collate, self.config)
        self.loader = self._loader()
        self.unread: list[Metrics] = []  # of the steps since the last reading
        self.group_stops = False  # all processes know that one of them was asked to stop
        self.clock = time.monotonic()
        if restored is None:
            display.say(f"padding: {self.loader.padding_share():.1%} of what the model reads")
            self.progress.owes_validation = inputs.start is not None  # to show what the model can do already
            self.save()

    @property
    def checkpoints(self) -> Path:
        return self.out / "checkpoints"

    @property
    def best(self) -> Path:
        """Return the file of the model that scored best; its name has the step that the checkpoint records."""
        return self.out / f"best-{self.progress.best_step:09}.safetensors"

    @property
    def is_stale(self) -> bool:
        """Return whether the patience for validations without a better score has ended."""
        return 0 < self.config.patience <= self.progress.stale

    def collate(self, examples: Examples) -> Batch:
        """Make a batch of examples, in memory that the device can read by itself."""
        batch = self.task.collate(examples, self.shape)
        return batch.pinned() if self.device.type == "cuda" else batch

    def _loader(self) -> Loader[Batch]:
        plan = BatchPlan(
            micro_tokens=self.progress.micro_tokens,
            micro_batches=-(-self.config.batch_tokens // self.progress.micro_tokens),
            seed=self.config.seed,
            rank=self.group.rank,
            ranks=self.group.ranks,
            subword_sampling=self.config.subword_sampling,
            max_length=self.shape.max_length if self.shape.positions == "learned" else 10**9,
            packed=self.state.fixed_shapes,
        )
        return Loader(self.inputs.examples, plan, self.collate, self.inputs.tokenizers, self.progress.cursor)

    def train(self) -> None:
        """Train until the last step, the end of patience or an interrupt."""
        state, steps = self.state, self.config.steps
        with Log(self.out, state.step, self.group.is_leader) as log, self.display.training(steps, state.step) as line:
            if self.progress.owes_validation:  # the run was stopped in the middle of one
                self.validate(log)
            while state.step < steps and not self.is_over:
                self.clock, self.unread = time.monotonic(), []
                for metrics in train(state, self.loader, self.shape, self.config):
                    self.unread.append(metrics)
                    self.progress.tokens += metrics.tokens
                    self.progress.cursor = self.loader.cursor
                    if not self.is_time_to_read():
                        continue
                    line.step(state.step, steps, self.read_metrics(log))
                    self.group_stops = self.group.any(self.display.interrupt.requested)
                    if self.went_back():
                        log.go_back(state.step)
                        break
                    if self.is_due(self.config.validate_every):
                        self.progress.owes_validation = True
                        self.validate(log)
                    if self.is_due(self.config.checkpoint_every) or self.is_over:
                        self.save()
                    if self.is_over:
                        break

    def is_due(self, every: int) -> bool:
        """Return whether something that is done every so many steps, and at the last, is done at this step."""
        return self.state.step % every == 0 or self.state.step == self.config.steps

    def is_time_to_read(self) -> bool:
        """Return whether the metrics are read at this step; all processes read them at the same steps."""
        every = GPU_STEPS_PER_READING if self.device.type == "cuda" else 1
        config = self.config
        due = any(map(self.is_due, (every, config.validate_every, config.checkpoint_every)))
        return due or (self.group.ranks == 1 and self.display.interrupt.requested)

    @property
    def stops(self) -> bool:
        """Return whether the user asked to stop; several processes all stop at the same step."""
        return self.group_stops if self.group.ranks > 1 else self.display.interrupt.requested

    @property
    def is_over(self) -> bool:
        return self.is_stale or self.stops

    def read_metrics(self, log: Log) -> dict[str, float]:
        """Read the metrics of the last steps from the device, and log them."""
        latest = self.unread[-1]
        loss = float(torch.stack([metrics.loss for metrics in self.unread]).nanmean())
        now = time.monotonic()
        self.progress.seconds += now - self.clock
        values = {
            "loss": loss,
            "gradient_norm": float(latest.gradient_norm),
            "learning_rate": latest.learning_rate,
            "tokens_per_s": sum(metrics.tokens for metrics in self.unread) / max(now - self.clock, 1e-9),
            "memory": memory(),
        }
        self.clock = now
        log.scalars(latest.step, values)
        return values

    def went_back(self) -> bool:
        """Name the lines of skipped steps; after too many in a row, restore the last checkpoint and return True."""
        unread, self.unread = self.unread, []
        for metrics in unread:
            self.progress.bad_steps = self.progress.bad_steps + 1 if metrics.skipped else 0
            if metrics.skipped:
                numbers = self.group.gather([int(number) for batch in metrics.examples for number in batch])
                lines = ", ".join(self.inputs.examples.where(number) for number in numbers[:3])
                self.display.say(
                    f"step {metrics.step:,}: loss {float(metrics.loss):.3g}: skipped; "
                    f"its {len(numbers):,} examples begin with {lines}"
                )
        if self.progress.bad_steps < MAX_BAD_STEPS:
            return False
        returns = self.progress.returns + 1
        if returns > MAX_RETURNS:
            raise DataError(
                f"step {self.state.step:,}: the loss explodes again and again, "
                f"after {MAX_RETURNS} returns to a good state",
                "look at the lines named above, or lower training.learning_rate",
            )
        cursor = self.progress.cursor  # the data goes on behind the bad batches
        self.progress = checkpoint.restore_latest(self.checkpoints, self.state, self.display.say) or Progress()
        self.progress.cursor, self.progress.returns, self.progress.bad_steps = cursor, returns, 0
        self.progress.steps = self.config.steps
        self.display.say(f"went back to step {self.state.step:,}; the data goes on")
        return True

    def validate(self, log: Log) -> None:
        """Judge the averaged weights on the dev sets, and save a model that is better than all before."""
        started = time.monotonic()
        self.validator.load(self.state.kept_weights)
        try:
            values, samples, summary = self.validator.validate(self.inputs.dev)
        except Stopped:
            return
        self.progress.owes_validation = False
        rank = self.task.rank(values, self.config)
        is_better = rank > self.progress.best or not self.group.on_leader(self.best.exists)
        self.progress.history.append({"step": self.state.step, **values})
        self.progress.stale = 0 if is_better else self.progress.stale + 1
        if is_better:
            self.progress.best, self.progress.best_step = rank, self.state.step
            self.save_model(self.best)
        log.scalars(self.state.step, {f"dev_{name}": value for name, value in values.items()})
        log.samples(self.state.step, samples)
        seconds = time.monotonic() - started
        self.display.say(
            f"step {self.state.step:,}: {summary}{' (best)' if is_better else ''}, {format_duration(seconds)}"
        )
        if self.is_stale and self.state.step < self.config.steps:
            self.display.say(
                f"ends at step {self.state.step:,} of {self.config.steps:,}: no better in {self.progress.stale} "
                "validations (training.patience)"
            )
        for text, output, _ in samples[:1]:
            self.display.say(f"  {text}\n  → {output}")
        self.clock = time.monotonic()

    def save(self) -> None:
        """Write a checkpoint, and only then delete the best models that it does not need."""
        checkpoint.save(self.checkpoints, self.state, self.progress, self.config.keep)
        for path in self.out.glob(f"best-{'[0-9]' * 9}.safetensors") if self.group.is_leader else ():
            if path != self.best:
                path.unlink(missing_ok=True)

    def save_model(self, path: Path) -> None:
        """Write the averaged weights as a model file; all processes must call this."""
        weights = {name: checkpoint.array(weight) for name, weight in self.state.kept_weights.items()}
        if self.group.is_leader:
            inputs = self.inputs
            start = inputs.start
            tokenizer, *others = dict.fromkeys(inputs.tokenizers.values())
            modelfile.save(
                path, inputs.config, weights, tokenizer, self.card(), profiles=inputs.profiles,
                target_tokenizer=others[0] if others else None,
                sequence_format=None if start is None else start.sequence_format,
                prompt_format=None if start is None else start.prompt_format,
            )  # fmt: skip

    def card(self) -> dict[str, Any]:
        """Return what the model file says about the model."""
        store = self.inputs.examples.store
        return {
            **self.task.card(self.inputs.examples),
            "data": [{"name": corpus.name, "weight": corpus.weight, **corpus.purpose} for corpus in store.corpora],
            "step": self.progress.best_step,
            "validations": self.progress.history,
        }


def is_compiled(config: TrainingConfig, device: torch.device) -> bool:
    """Return whether layers are compiled: that takes up to a minute, which a short run does not regain."""
    if config.compile != "auto":
        return config.compile == "on"
    packed = defaults.is_packed(config, device.type)
    return packed and device.type == "cuda" and config.steps * config.batch_tokens >= MIN_COMPILED_TOKENS
