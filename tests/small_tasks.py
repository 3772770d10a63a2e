"""Batches and losses for tests, and two tiny tasks that are no translation: they show that the seam is real."""

from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F

from sixfold.data.examples import ExampleSet
from sixfold.model.transformer import PLAIN
from sixfold.tasks.loss import TokenLoss
from sixfold.tasks.task import Batch, Validation, pad


def token_loss(config):
    """Return the loss that a training configuration sets."""
    return TokenLoss(config.label_smoothing, config.rdrop)


@dataclass(frozen=True, kw_only=True)
class TextBatch(Batch):
    """A batch for an encoder-only or decoder-only model."""

    tokens: torch.Tensor

    @property
    def output_shape(self):
        return self.tokens.size(0), self.tokens.size(1)


@dataclass(frozen=True, kw_only=True)
class PaddedTextBatch(TextBatch):
    padding: torch.Tensor | None = None


class TinyTask:
    """The base of both tasks: a card, no shortlist, and validation by accuracy on batches of examples."""

    def card(self, _examples):
        return {"task": type(self).__name__}

    def rank(self, values, _config):
        return [values["accuracy"], -values["loss"]]

    def shortlist_work(self, _examples, _vocab):
        return 0

    def shortlist(self, *_):
        raise NotImplementedError

    def validator(self, model, shape, _tokenizer, _config, _processes, _check_stop):
        return TinyValidator(self, model, shape)


class TinyValidator:
    """Measures the share of labels that a model predicts."""

    def __init__(self, task, model, shape):
        self.task, self.model, self.shape = task, model.eval(), shape

    def load(self, weights):
        with torch.no_grad():
            for name, weight in self.model.named_parameters():
                weight.copy_(torch.as_tensor(weights[name]))

    @torch.no_grad()
    def validate(self, dev):
        batches = [self.task.collate(examples, self.shape) for examples in dev]
        is_correct = [self.task.logits(self.model, batch).argmax(-1) == batch.labels for batch in batches]
        loss = sum(float(self.task.loss(self.model, batch)) for batch in batches)
        labels = sum(len(batch.labels) for batch in batches)
        values = {"accuracy": float(torch.cat(is_correct).float().mean()), "loss": loss / labels}
        return Validation(values, [], f"accuracy {values['accuracy']:.2f}, loss {values['loss']:.3f}")

    def final_score(self, test_set):
        values, _, summary = self.validate([test_set])
        return values, summary, []


@dataclass(frozen=True)
class CopyTask(TinyTask):
    """An encoder reads a text and writes it again, position by position: one column, a label for each token."""

    loss: TokenLoss = field(default_factory=TokenLoss)
    columns = ("text",)

    def examples(self, store, _tokenizer):
        return ExampleSet.of_store(store, (0,))

    def collate(self, examples, shape):
        tokens, is_text = pad(*examples.columns["text"], shape.pad)
        return PaddedTextBatch(
            tokens=torch.from_numpy(tokens),
            padding=torch.from_numpy(is_text),
            labels=torch.from_numpy(tokens[is_text]),
            label_positions=torch.from_numpy(np.flatnonzero(is_text)),
            examples=examples.numbers,
            micro_batch=examples.micro_batch,
        )

    def logits(self, model, batch):
        return model.output(model.hidden(**batch.inputs).flatten(0, 1)[batch.label_positions])


@dataclass(frozen=True)
class ClassTask(TinyTask):
    """An encoder reads a text and predicts its class at the first position: two columns, one label for each row.

    The loss is a plain cross-entropy over a few classes, and no loss of tokens.
    """

    classes: int = 2
    columns = ("text", "class")

    def examples(self, store, _tokenizer):
        return ExampleSet.of_store(store, (1, 0))

    def collate(self, examples, shape):
        text, label = examples.columns["text"], examples.columns["class"]
        tokens, is_text = pad(text.values, text.lengths, shape.pad)
        tokens = np.concatenate([np.full((len(tokens), 1), shape.bos), tokens], 1)
        return PaddedTextBatch(
            tokens=torch.from_numpy(tokens),
            padding=torch.from_numpy(np.concatenate([np.ones((len(tokens), 1), bool), is_text], 1)),
            labels=torch.from_numpy(label.values),
            label_positions=torch.arange(len(tokens)) * tokens.shape[1],
            examples=examples.numbers,
            micro_batch=examples.micro_batch,
        )

    def logits(self, model, batch, execution=PLAIN):
        hidden = model.hidden(**batch.inputs, execution=execution).flatten(0, 1)[batch.label_positions]
        return model.output(hidden)[:, : self.classes]

    def loss(self, model, batch, execution=PLAIN):
        return F.cross_entropy(self.logits(model, batch, execution), batch.labels, reduction="sum")
