"""The seam is real: tasks that are no translation are stored, batched, trained, validated, checkpointed and resumed."""

import numpy as np
import pytest
import torch
from small_tasks import ClassTask, CopyTask

from sixfold import modelfile
from sixfold.config import Config, ModelConfig, TokenizerConfig, TrainingConfig
from sixfold.data.corpus import Corpus
from sixfold.data.examples import Examples
from sixfold.data.store import Column, TokenStore
from sixfold.tasks.task import Task, lay_out
from sixfold.text.learn import train_tokenizer
from sixfold.training.display import Display
from sixfold.training.interrupt import Interrupt
from sixfold.training.session import TrainingInputs, TrainingSession

TOKENIZER = train_tokenizer(["a few words", "and some more"] * 20, TokenizerConfig(vocab=300))
SHAPE = ModelConfig(
    kind="encoder",
    vocab=TOKENIZER.vocab,
    d_model=32,
    heads=4,
    d_ff=64,
    encoder_layers=1,
    norm_position="pre",
    dropout=0.1,
)


def column(rows):
    return Column(np.concatenate(rows).astype(np.uint16), np.cumsum([len(row) for row in rows]))


def make_inputs(task, columns, tmp_path, steps=60, packing="off"):
    store = TokenStore(columns, np.arange(1, 201), [Corpus("made", (tmp_path / "a.tsv",))], [200])
    training = TrainingConfig(
        steps=steps, batch_tokens=400, warmup=5, learning_rate=1e-2, schedule="constant", validate_every=30,
        checkpoint_every=20, label_smoothing=0.0, patience=0, packing=packing,
    )  # fmt: skip
    examples = task.examples(store, {"text": TOKENIZER})
    dev = [Examples(examples.gather(np.arange(50)), np.arange(50))]
    return TrainingInputs(Config(SHAPE, TokenizerConfig(), training), task, examples, {"text": TOKENIZER}, dev, dev)


def copy_task():
    random = np.random.default_rng(1)
    texts = [random.integers(20, 60, random.integers(2, 12)) for _ in range(200)]
    return CopyTask(), {"text": column(texts)}


def class_task():
    """Whether a text holds more of one kind of token than of the other."""
    random = np.random.default_rng(1)
    texts = [
        random.choice([20, 21], random.integers(3, 10), p=[0.2, 0.8] if number % 2 else [0.8, 0.2])
        for number in range(200)
    ]
    labels = [[int((text == 21).mean() > 0.5)] for text in texts]
    return ClassTask(), {"text": column(texts), "class": column(labels)}


@pytest.mark.parametrize("make", [copy_task, class_task])
def test_a_task_that_is_no_translation_is_learnt_and_resumed_exactly(make, tmp_path):
    task, columns = make()
    assert isinstance(task, Task)
    device = torch.device("cpu")

    def session(folder, steps):
        (tmp_path / folder).mkdir(exist_ok=True)
        inputs = make_inputs(task, columns, tmp_path, steps)
        return TrainingSession(inputs, tmp_path / folder, device, Display(Interrupt(), quiet=True))

    whole = session("whole", 60)
    whole.train()
    first, last = (entry["accuracy"] for entry in whole.progress.history)
    assert last > 0.9
    assert last >= first
    saved = modelfile.load(whole.best)
    assert saved.card["task"] == type(task).__name__
    assert saved.config.model.kind == "encoder"
    for steps in (20, 60):
        stopped = session("stopped", steps)
        stopped.train()
    for name, weight in whole.state.weights.items():
        assert torch.equal(weight, stopped.state.weights[name]), name
        assert torch.equal(whole.state.kept_weights[name], stopped.state.kept_weights[name]), name


def test_texts_are_laid_out_in_rows_as_the_docstring_says():
    positions, segments, begins = lay_out(np.array([2, 1, 2]), np.array([2, 1]), 2, 4)
    assert segments.tolist() == [[1, 1, 2, 0], [1, 1, 0, 0]]
    assert positions.tolist() == [0, 1, 2, 4, 5]
    assert begins.tolist() == [0, 2, 3]
