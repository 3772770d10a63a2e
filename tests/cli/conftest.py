import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from made_once import made_once

from sixfold import modelfile
from sixfold.model.transformer import weights_of

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import toy_translation as toy


def save_model(folder):
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toy, "TRAINING", replace(toy.TRAINING, steps=150))
        patch.setattr(toy, "MODEL", replace(toy.MODEL, d_model=64, d_ff=128))
        config, tokenizer, trained = toy.learn(toy.sentences())
    torch.set_num_threads(before)
    card = {"languages": {"source": "zh", "target": "toy"}}
    modelfile.save(folder / "toy.safetensors", config, weights_of(trained), tokenizer, card, storage="int8")


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """A model that has learnt the sentences of the toy grammar, so that its translations can be checked."""
    return made_once(tmp_path_factory, "cli-model", save_model) / "toy.safetensors"
