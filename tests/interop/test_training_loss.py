"""Imported models learn from the numbers that transformers learns from: the loss of a text is that of its own model."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import small_checkpoints as checkpoints
import torch

from sixfold.config import DataConfig, TrainingConfig
from sixfold.data.cleaned import clean
from sixfold.data.corpus import Corpus
from sixfold.data.examples import Examples, Packing
from sixfold.data.store import tokenize
from sixfold.interop.huggingface import load_folder
from sixfold.interop.start_token import forbidden_tokens
from sixfold.model.transformer import load_model
from sixfold.tasks.loss import TokenLoss
from sixfold.tasks.translation import TranslationTask
from sixfold.tasks.translation_validation import DevSet, TranslationValidator
from sixfold.training.distributed import SINGLE_PROCESS
from sixfold.training.recipe_models import tokenizers_of
from sixfold.training.translation_inputs import task_of

PAIRS = [
    ("The machines are learning.", "机器在学习。"), ("I love code", "我爱 Python 代码"), ("café", "naïve ½ x"),
    ("他在学习机器翻译。", "price: $1,234.56!"), ("Numbers 123 and no more of them here", "한국어 문장입니다 текст"),
]  # fmt: skip
SOURCES, TARGETS = zip(*PAIRS, strict=True)
MODELS = {
    "Marian, one vocabulary and two tokenisers": (checkpoints.marian, {}, ("en", "fr")),
    "Marian, two vocabularies": (checkpoints.marian, {"separate": True}, ("en", "fr")),
    "Marian, one tokeniser": (checkpoints.marian, {"one": True}, ("en", "fr")),
    "Marian, a token for the target": (checkpoints.marian, {"tags": (">>fra<<", ">>ron<<")}, ("en", "ro")),
    "M2M100": (checkpoints.m2m100, {}, ("en", "zh")),
    "NLLB": (checkpoints.nllb, {}, ("en", "zh")),
    "mBART-50": (checkpoints.mbart, {}, ("en", "ro")),
    "mBART": (checkpoints.mbart, {"fifty": False}, ("en", "ro")),
}


@pytest.fixture(params=MODELS, scope="module")
def imported(request, tmp_path_factory):
    """A model of transformers, its tokeniser, what was imported from it, and a direction."""
    folder = tmp_path_factory.mktemp("checkpoint")
    make, settings, languages = MODELS[request.param]
    model, tokenizer = make(folder, **settings)
    return model, tokenizer, load_folder(folder / "model"), languages


def library_loss(model, tokenizer, forbidden=-1, smoothing=0.0):
    """Return the loss of a label of PAIRS and the number of labels, as transformers computes both.

    A forbidden token is taken out of the vocabulary. The first mBART also learns to write the language after </s>,
    where no search reads on: that label is left out.
    """
    tag = ">>ron<< " if ">>ron<<" in tokenizer.get_vocab() else ""
    batch = tokenizer([tag + text for text in SOURCES], text_target=list(TARGETS), padding=True, return_tensors="pt")
    labels = batch["labels"].masked_fill(batch["labels"] == tokenizer.pad_token_id, -100)
    with torch.no_grad():
        output = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], labels=labels)
    is_eos = labels == tokenizer.eos_token_id
    is_after = is_eos.cumsum(1) - is_eos.int() > 0
    labels[is_after] = -100
    logits, count = output.logits.flatten(0, 1), int((labels != -100).sum())
    if forbidden >= 0:
        logits = torch.cat((logits[:, :forbidden], logits[:, forbidden + 1 :]), dim=1)
        labels = labels - (labels > forbidden).int()
    loss = torch.nn.functional.cross_entropy(logits, labels.flatten(), label_smoothing=smoothing)
    if not is_after.any() and forbidden < 0:
        assert float(loss) == pytest.approx(float(output.loss), abs=1e-5)
    return float(loss), count


def training_examples(file, languages, folder):
    """The examples that training makes of a file of PAIRS, and their task."""
    (folder / "pairs.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS), encoding="utf-8")
    data = DataConfig(skip=("script", "ratio"))
    task = TranslationTask(languages, data, TokenLoss(), file.sequence_format)
    corpus = Corpus("pairs", (Path(folder / "pairs.tsv"),))
    kept = clean([corpus], task, 0, folder / "data", lambda _: None)
    store = tokenize(kept, tokenizers_of(file), set(), (), 100, folder / "data", lambda _: None)
    assert len(store) == len(PAIRS)
    return task, task.examples(store, tokenizers_of(file))


def test_the_loss_of_training_and_validation_is_that_of_transformers(imported, tmp_path):
    model, tokenizer, file, languages = imported
    expected, count = library_loss(model, tokenizer)
    task, examples = training_examples(file, languages, tmp_path)
    own = load_model(file.config.model, file.weights()).eval()
    numbers = np.arange(len(PAIRS))
    width = {name: int(lengths.sum()) for name, lengths in examples.lengths().items()}
    for packing in (None, Packing(np.array([3, 2]), 3, width)):
        batch = task.collate(Examples(examples.gather(numbers), numbers, packing), file.config.model)
        assert len(batch.labels) == count
        with torch.no_grad():
            assert float(task.loss(own, batch)) / count == pytest.approx(expected, abs=1e-4)
    validator = TranslationValidator(
        own, file.config.model, tokenizers_of(file), file.config.training, SINGLE_PROCESS,
        sequence_format=file.sequence_format,
    )  # fmt: skip
    dev_set = DevSet("dev", SOURCES, TARGETS, languages)
    assert validator.loss(dev_set) == pytest.approx(expected, abs=1e-4)


def test_a_token_that_may_never_be_written_has_no_share_in_the_loss(tmp_path):
    model, tokenizer = checkpoints.marian(tmp_path, separate=True)
    pad = model.config.pad_token_id
    path = tmp_path / "model" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"bad_words_ids": [[pad]]}))
    file = load_folder(tmp_path / "model")
    assert forbidden_tokens(file) == [pad]
    task, examples = training_examples(file, ("en", "fr"), tmp_path)
    own = load_model(file.config.model, file.weights()).eval()
    numbers = np.arange(len(PAIRS))
    batch = task.collate(Examples(examples.gather(numbers), numbers), file.config.model)
    for smoothing in (0.0, 0.1):
        config = replace(file.config, training=TrainingConfig(label_smoothing=smoothing))
        loss = task_of(config, ("en", "fr"), torch.device("cpu"), file).loss
        expected, count = library_loss(model, tokenizer, pad, smoothing)
        with torch.no_grad():
            assert float(loss(own, batch)) / count == pytest.approx(expected, abs=1e-4)
