"""Trained models, shared by all tests because training takes some seconds, and small models with random weights."""

from dataclasses import replace

import pytest
import torch
from small_models import SMALL, in_memory, random_model
from small_translators import shared_models

from sixfold.config import TokenizerConfig
from sixfold.text.learn import train_tokenizer


@pytest.fixture(scope="session")
def trained_models(tmp_path_factory):
    """Paths of models that translate word by word."""
    return shared_models(tmp_path_factory)


@pytest.fixture(scope="session")
def tokenizer():
    return train_tokenizer(["a cat saw the black dog", "the dog sat", "黑猫看见狗"] * 9, TokenizerConfig(vocab=310))


@pytest.fixture(scope="session")
def make_model(tokenizer):
    """Return a function that makes a model file with random weights, and the same model in torch.

    `eos_bias` is added to the logit of <eos>, so that translations end earlier.
    """

    def make(seed=1, eos_bias=0.0, **changes):
        config = tokenizer.fit(replace(SMALL, **{"max_length": 40, "output_bias": True, **changes}))
        model = random_model(config, seed)
        with torch.no_grad():
            model.output.projection.bias[config.eos] += eos_bias
        return replace(in_memory(config, model), tokenizer=tokenizer), model

    return make
