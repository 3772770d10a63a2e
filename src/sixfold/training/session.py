"""One go at a run, from its newest checkpoint until it ends or is stopped."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from sixfold import modelfile
from sixfold.config import Config, TrainingConfig
from sixfold.data.loader import GROWTH, Loader, Order
from sixfold.data.packing import line_lengths
from sixfold.data.tokens import Store
from sixfold.errors import DataError
from sixfold.model.transformer import EncoderDecoder, build, load_weights
from sixfold.modelfile import ModelFile
from sixfold.reports.run_record import duration
from sixfold.text.tokenizer import Tokenizer
from sixfold.training import checkpoint, defaults
from sixfold.training.batch import Batch, collate
from sixfold.training.checkpoint import Progress
from sixfold.training.display import Display, Log, memory
from sixfold.training.distributed import ALONE, Group
from sixfold.training.evaluate import TextSet, Validator, rank_of
from sixfold.training.interrupt import Stopped
from sixfold.training.loop import Metrics, train
from sixfold.training.probe import fit_tokens
from sixfold.training.state import State

BAD_STEPS = 5  # in a row, before the run goes back to its last checkpoint
RETURNS = 3  # before it gives up
SAMPLES = 3  # translations shown at each validation
WORTH_COMPILING = 5 * 10**7  # tokens of a whole run: a base model on an H200 has won the minute back by then


@dataclass(frozen=True)
class Ready:
    """All that is known before step 1."""

    config: Config
    store: Store
    tokenizer: Tokenizer
    dev: tuple[TextSet, ...]
    tests: tuple[TextSet, ...]
    languages: tuple[str, str]
    start: ModelFile | None = None  # what is fine-tuned
    preset: str = ""  # what the settings started from

    @property
    def sets(self) -> tuple[TextSet, ...]:
        return (*self.dev, *self.tests)


class Sitting:
    """The model in training, its twin for validation, and what is done between the steps."""

    def __init__(self, ready: Ready, out: Path, device: torch.device, display: Display, group: Group = ALONE) -> None:
        self.ready, self.out, self.device, self.display, self.group = ready, out, device, display, group
        self.config = ready.config.training
        shape = ready.config.model
        model = build(shape, self.config.seed).to(device)
        assert isinstance(model, EncoderDecoder)
        if ready.start is not None:
            load_weights(model, ready.start.weights(), "the model to start from")
        packed = defaults.is_packed(self.config, device.type)
        self.state = State(model, self.config, packed, is_compiled(self.config, device), group)
        twin = build(shape, self.config.seed).to(device)
        assert isinstance(twin, EncoderDecoder)
        # Alone it may stop in the middle of a validation; together, the others would wait for ever.
        check = display.interrupt.check if group.ranks == 1 else lambda: None
        self.validator = Validator(twin, shape, ready.tokenizer, self.config, check, group)
        restored = checkpoint.restore_latest(self.checkpoints, self.state, display.say)
        self.progress = restored or Progress()
        group.meet()  # before the first writes what another might take for an earlier sitting's
        if restored is not None:
            display.say(f"going on from step {self.state.step:,}")
        if 0 < self.progress.steps < self.config.steps:
            self.progress.stale = 0  # whoever makes a run longer wants it to go on, also where its patience had ended
        self.progress.steps = self.config.steps
        if not self.progress.micro_tokens:
            lengths = ready.store.lengths()
            longest: tuple[int, int] = (int(lengths[0].max()), int(lengths[1].max()))
            if packed:
                longest = line_lengths(*lengths).widened(GROWTH * self.config.subword_sampling)
            self.progress.micro_tokens = fit_tokens(self.state, longest, shape, self.config)
        self.loader = self._loader()
        self.window: list[Metrics] = []  # steps that have not been looked at
        self.heard = False  # by all, that somebody asked to stop
        self.clock = time.monotonic()
        if restored is None:
            display.say(f"padding: {self.loader.padding_share():.1%} of what the model reads")
            self.progress.owes_validation = ready.start is not None  # what it can do already
            self.save()

    @property
    def checkpoints(self) -> Path:
        return self.out / "checkpoints"

    @property
    def best(self) -> Path:
        """The model that scored best, named by its step, so that the checkpoint says which it is."""
        return self.out / f"best-{self.progress.best_step:09}.safetensors"

    @property
    def is_stale(self) -> bool:
        return 0 < self.config.patience <= self.progress.stale

    def _loader(self) -> Loader[Batch]:
        micro = self.progress.micro_tokens
        together = -(-self.config.batch_tokens // micro)
        shape = self.ready.config.model
        longest = shape.max_length if shape.positions == "learned" else 10**9
        sampling = self.config.subword_sampling
        order = Order(
            micro, together, self.config.seed, self.group.rank, self.group.ranks, sampling, longest, self.state.steady
        )
        on_gpu = self.device.type == "cuda"
        make = (lambda examples: collate(examples, shape).pinned()) if on_gpu else (lambda each: collate(each, shape))
        return Loader(self.ready.store, order, make, self.ready.tokenizer, self.progress.cursor)

    def train(self) -> None:
        """Until the last step, the end of patience or an interrupt."""
        state, steps = self.state, self.config.steps
        with Log(self.out, state.step, self.group.leads) as log, self.display.training(steps, state.step) as board:
            if self.progress.owes_validation:  # it was stopped in the middle of one
                self.validate(log)
            while state.step < steps and not self.is_over:
                self.clock, self.window = time.monotonic(), []
                for metrics in train(state, self.loader, self.ready.config.model, self.config):
                    self.window.append(metrics)
                    self.progress.tokens += metrics.tokens
                    self.progress.cursor = self.loader.cursor
                    if not self.is_time_to_look():
                        continue
                    board.step(state.step, steps, self.look(log))
                    self.heard = self.group.any(self.display.interrupt.asked)
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
        return self.state.step % every == 0 or self.state.step == self.config.steps

    def is_time_to_look(self) -> bool:
        """Each look waits for the device, so that a GPU is asked every tenth step only, and by all at the same."""
        every = 10 if self.device.type == "cuda" else 1
        config = self.config
        due = any(map(self.is_due, (every, config.validate_every, config.checkpoint_every)))
        return due or (self.group.ranks == 1 and self.display.interrupt.asked)

    @property
    def stops(self) -> bool:
        """Somebody asked for it; together, all stop at the same step."""
        return self.heard if self.group.ranks > 1 else self.display.interrupt.asked

    @property
    def is_over(self) -> bool:
        return self.is_stale or self.stops

    def look(self, log: Log) -> dict[str, float]:
        """Read what the last steps gave, and write it down."""
        latest = self.window[-1]
        loss = float(torch.stack([metrics.loss for metrics in self.window]).nanmean())
        now = time.monotonic()
        self.progress.seconds += now - self.clock
        values = {
            "loss": loss,
            "gradient_norm": float(latest.gradient_norm),
            "learning_rate": latest.learning_rate,
            "tokens_per_s": sum(metrics.tokens for metrics in self.window) / max(now - self.clock, 1e-9),
            "memory": memory(),
        }
        self.clock = now
        log.scalars(latest.step, values)
        return values

    def went_back(self) -> bool:
        """Name the lines of steps that were skipped; after too many in a row, set the last good state."""
        window, self.window = self.window, []
        for metrics in window:
            self.progress.bad_steps = self.progress.bad_steps + 1 if metrics.skipped else 0
            if metrics.skipped:
                rows = self.group.collect([int(row) for each in metrics.rows for row in each])
                lines = ", ".join(self.ready.store.where(row) for row in rows[:3])
                self.display.say(
                    f"step {metrics.step:,}: loss {float(metrics.loss):.3g}: skipped; "
                    f"its {len(rows):,} pairs begin with {lines}"
                )
        if self.progress.bad_steps < BAD_STEPS:
            return False
        returns = self.progress.returns + 1
        if returns > RETURNS:
            raise DataError(
                f"step {self.state.step:,}: the loss explodes again and again, after {RETURNS} returns to a good state",
                "look at the lines named above, or lower training.learning_rate",
            )
        cursor = self.progress.cursor  # the data goes on behind the bad batches
        self.progress = checkpoint.restore_latest(self.checkpoints, self.state, self.display.say) or Progress()
        self.progress.cursor, self.progress.returns, self.progress.bad_steps = cursor, returns, 0
        self.progress.steps = self.config.steps
        self.display.say(f"went back to step {self.state.step:,}; the data goes on")
        return True

    def validate(self, log: Log) -> None:
        """Score the kept weights on the dev sets, and save a model that is better than all before."""
        began = time.monotonic()
        sets = [texts.first(self.ready.config.data.dev_pairs) for texts in self.ready.dev]
        try:
            values, translations = self.scores(sets)
        except Stopped:
            return
        self.progress.owes_validation = False
        rank = rank_of(values, self.config.score)
        better = rank > self.progress.best or not self.group.lead(self.best.exists)
        self.progress.history.append({"step": self.state.step, **values})
        self.progress.stale = 0 if better else self.progress.stale + 1
        if better:
            self.progress.best, self.progress.best_step = rank, self.state.step
            self.save_model(self.best)
        log.scalars(self.state.step, {f"dev_{name}": value for name, value in values.items()})
        texts = sets[0].first(SAMPLES)
        sample = list(zip(texts.sources, translations, texts.references, strict=False))
        log.samples(self.state.step, sample)
        self.display.say(
            f"step {self.state.step:,}: dev BLEU {values['bleu']:.2f}, chrF {values['chrf']:.2f}, "
            f"loss {values['loss']:.3f}{' (best)' if better else ''}, {duration(time.monotonic() - began)}"
        )
        if self.is_stale and self.state.step < self.config.steps:
            self.display.say(
                f"ends at step {self.state.step:,} of {self.config.steps:,}: no better in {self.progress.stale} "
                "validations (training.patience)"
            )
        for source, translation, _ in sample[:1]:
            self.display.say(f"  {source}\n  → {translation}")
        self.clock = time.monotonic()

    def scores(self, sets: Sequence[TextSet]) -> tuple[dict[str, float], list[str]]:
        """The means over the dev sets, and the translations of the first."""
        self.validator.take(self.state.kept_weights)
        found = [self.validator.score(texts, beam=1) for texts in sets]
        values = {f"{texts.name}_bleu": scores.bleu for texts, (scores, _) in zip(sets, found, strict=True)}
        values = {} if len(sets) == 1 else values
        values |= {
            "bleu": sum(scores.bleu for scores, _ in found) / len(found),
            "chrf": sum(scores.chrf for scores, _ in found) / len(found),
            "loss": sum(self.validator.loss(texts) for texts in sets) / len(sets),
        }
        return values, found[0][1]

    def save(self) -> None:
        """A checkpoint; only then may go what it does not need."""
        checkpoint.save(self.checkpoints, self.state, self.progress, self.config.keep)
        for path in self.out.glob(f"best-{'[0-9]' * 9}.safetensors") if self.group.leads else ():
            if path != self.best:
                path.unlink(missing_ok=True)

    def save_model(self, path: Path) -> None:
        weights = {name: checkpoint.array(weight) for name, weight in self.state.kept_weights.items()}
        if self.group.leads:
            modelfile.save(path, self.ready.config, weights, self.ready.tokenizer, self.card())

    def card(self) -> dict[str, Any]:
        """What a model file says about itself."""
        source, target = self.ready.languages
        return {
            "languages": {"source": source, "target": target},
            "data": [{"name": each.name, "weight": each.weight, **each.purpose} for each in self.ready.store.corpora],
            "pairs": len(self.ready.store.lines),
            "step": self.progress.best_step,
            "validations": self.progress.history,
        }


def is_compiled(config: TrainingConfig, device: torch.device) -> bool:
    """Compiling and warming up takes half a minute to a minute, which a short run does not win back."""
    if config.compile != "auto":
        return config.compile == "on"
    packed = defaults.is_packed(config, device.type)
    return packed and device.type == "cuda" and config.steps * config.batch_tokens >= WORTH_COMPILING
