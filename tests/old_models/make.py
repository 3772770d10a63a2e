"""Writes the model of format 1 that `test_old_models.py` opens in every later version.

    PYTHONPATH=src:tests python tests/old_models/make.py

It is run once for a format. A change of the format adds a model of the new one, and leaves the old ones as they are.
"""

import json
import random
from pathlib import Path

import numpy as np
from small_translators import TAGS, pair

from sixfold import Translator, modelfile
from sixfold.config import Config, DataConfig, ModelConfig, TokenizerConfig, TrainingConfig
from sixfold.explorer.forward import forward
from sixfold.model.transformer import build, weights_of
from sixfold.modelfile import Shortlist
from sixfold.tasks.loss import TokenLoss
from sixfold.tasks.translation_batches import pair_batch
from sixfold.text.learn import train_tokenizer
from sixfold.training.loop import train
from sixfold.training.state import State

HERE = Path(__file__).parent
STORAGES = ("float32", "int8")
TEXTS = ["我爱猫。", "you watch books!"]
SHAPE = ModelConfig(
    d_model=16, heads=2, d_ff=32, encoder_layers=1, decoder_layers=1, norm_position="pre", dropout=0.0, max_length=32
)
TRAINING = TrainingConfig(steps=2500, learning_rate=1e-2, warmup=100, schedule="cosine", label_smoothing=0.01)


def learn():
    """Train to translate word by word between Chinese and English; a tag before the source names the target."""
    chance = random.Random(1)
    settings = TokenizerConfig(vocab=310, tags=TAGS)
    tokenizer = train_tokenizer([side for _ in range(300) for side in pair(chance)], settings)
    config = Config(tokenizer.fit(SHAPE), settings, TRAINING, DataConfig("zh", "en", both_ways=True, max_tokens=30))

    def example():
        sides = [tokenizer.encode(side) for side in pair(chance)]
        target = chance.randint(0, 1)
        return [tokenizer.tag(TAGS[target]), *sides[1 - target]], sides[target]

    def batches():
        while True:
            yield [pair_batch([example() for _ in range(48)], config.model)]

    model = build(config.model, seed=1)
    for _ in train(State(model, TRAINING, TokenLoss(TRAINING.label_smoothing)), batches(), config.model, TRAINING):
        pass
    return config, weights_of(model), tokenizer


def inputs(file):
    """Return the ids of the first text with its tag, and those of a possible translation."""
    source = [file.tokenizer.tag("en"), *file.tokenizer.encode(TEXTS[0]), file.config.model.eos]
    target = [file.config.model.bos, *file.tokenizer.encode("I love cats.")]
    return np.array([source]), np.array([target])


def main():
    config, weights, tokenizer = learn()
    vocab = config.model.vocab
    lists = Shortlist(np.arange(vocab), np.arange(vocab + 1), np.arange(vocab))  # any piece may be written
    card = {"languages": {"source": "zh", "target": "en"}, "note": "a toy that translates word by word"}
    expected = {}
    for storage in STORAGES:
        path = HERE / f"format-1-{storage}.safetensors"
        modelfile.save(path, config, weights, tokenizer, card, storage, lists)
        file = modelfile.load(path)
        logits = forward(file, *inputs(file))["logits"][0]
        with Translator(path, "cpu") as translator:
            translations = [each.text for each in translator.translate_batch(TEXTS)]
        expected[storage] = {
            "translations": translations,
            "logits": [[round(float(value), 4) for value in row[:12]] for row in logits],
        }
        print(path.stat().st_size, translations)
    (HERE / "format-1.json").write_text(json.dumps(expected, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
