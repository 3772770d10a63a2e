"""One model that has learnt something for all these tests, as it takes some seconds, and small ones that have not."""

from dataclasses import replace

import pytest
import torch
from small_models import SMALL, in_memory, random_model
from small_translators import shared_models

from sixfold.config import TokenizerConfig
from sixfold.text.learn import train_tokenizer


@pytest.fixture(scope="session")
def learned(tmp_path_factory):
    """Translates word by word."""
    return shared_models(tmp_path_factory)


@pytest.fixture(scope="session")
def tokenizer():
    return train_tokenizer(["a cat saw the black dog", "the dog sat", "黑猫看见狗"] * 9, TokenizerConfig(vocab=310))


@pytest.fixture(scope="session")
def untaught(tokenizer):
    """Makes a model that can read, with random weights, and the same in torch; it may long to end."""

    def make(seed=1, longing=0.0, **changes):
        config = tokenizer.fit(replace(SMALL, **{"max_length": 40, "output_bias": True, **changes}))
        model = random_model(config, seed)
        with torch.no_grad():
            model.output.projection.bias[config.eos] += longing
        return replace(in_memory(config, model), tokenizer=tokenizer), model

    return make
