"""A model, trained in seconds, that translates Chinese word by word into English and back, with or without tags."""

import itertools
import random
from dataclasses import replace

import torch
from made_once import made_once

from sixfold import modelfile
from sixfold.config import Config, DataConfig, ModelConfig, TokenizerConfig, TrainingConfig
from sixfold.model.transformer import build, weights_of
from sixfold.tasks.loss import TokenLoss
from sixfold.tasks.translation_batches import pair_batch
from sixfold.text.learn import train_tokenizer
from sixfold.text.tokenizer import Tokenizer
from sixfold.training.loop import train
from sixfold.training.state import State

WORDS = {
    "我": "I", "你": "you", "爱": "love", "看": "watch", "猫": "cats", "狗": "dogs", "水": "water", "书": "books",
    "山": "mountains", "花": "flowers",
}  # fmt: skip
ENDS = {"": "", "。": ".", "！": "!"}
TAGS = ("zh", "en")
NAMES = ("zh-en", "en-zh", "de-en", "en-de", "tagged")
SHAPE = ModelConfig(d_model=64, heads=2, d_ff=128, encoder_layers=1, decoder_layers=1, norm_position="pre", dropout=0.0)
TRAINING = TrainingConfig(steps=350, learning_rate=4e-3, warmup=40, schedule="cosine", label_smoothing=0.01)


def pair(generator):
    """Return a pair of a few words in the same order on both sides."""
    words, end = generator.choices(list(WORDS), k=generator.randint(1, 5)), generator.choice(list(ENDS))
    return "".join(words) + end, " ".join(WORDS[word] for word in words) + ENDS[end]


def learn():
    """Train a model. Half of the sources begin with the tag of the target language, which may be their own."""
    generator = random.Random(1)
    settings = TokenizerConfig(vocab=340, tags=TAGS)
    tokenizer = train_tokenizer([side for _ in range(300) for side in pair(generator)], settings)
    config = Config(tokenizer.fit(replace(SHAPE, max_length=64)), settings, TRAINING)

    def example():
        sides = [tokenizer.encode(side) for side in pair(generator)]
        source, target = generator.randint(0, 1), generator.randint(0, 1)
        if source == target and generator.random() < 0.7:
            target = 1 - source
        is_tagged = source == target or generator.random() < 0.5
        return [*([tokenizer.tag(TAGS[target])] if is_tagged else []), *sides[source]], sides[target]

    def batches():
        while True:
            yield [pair_batch([example() for _ in range(48)], config.model)]

    model = build(config.model, seed=1)
    for _ in train(State(model, TRAINING, TokenLoss(TRAINING.label_smoothing)), batches(), config.model, TRAINING):
        pass
    return config, weights_of(model), tokenizer


def save_models(folder):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # matrices this small gain nothing from more
    config, weights, tokenizer = learn()
    torch.set_num_threads(threads)
    for name in NAMES:
        source, target = ("zh", "en") if name == "tagged" else name.split("-")
        model_tokenizer = tokenizer if name == "tagged" else Tokenizer(tokenizer.rust, tokenizer.algorithm)
        model_config = replace(config, data=DataConfig(both_ways=name == "tagged"))
        card = {"languages": {"source": source, "target": target}}
        modelfile.save(folder / f"{name}.safetensors", model_config, weights, model_tokenizer, card)


def shared_models(factory):
    """Return model files: one for each direction, and one with tags; the German one behaves like the others."""
    folder = made_once(factory, "models", save_models)
    return {name: folder / f"{name}.safetensors" for name in NAMES}


def distinct_sentences(count):
    """Return `count` Chinese sentences, without full stops, that are all different."""
    return ["".join(words) for words in itertools.islice(itertools.product(WORDS, repeat=6), count)]
