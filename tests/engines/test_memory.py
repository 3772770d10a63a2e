"""The estimated memory of models, compared with how much the resident memory of a process grows and shrinks."""

import json
import random
import subprocess
import sys

import numpy as np
import pytest

from sixfold import modelfile
from sixfold.config import Config, ModelConfig
from sixfold.text.protobuf import float_field, integer_field, message_field
from sixfold.text.sentencepiece import SentencePieceModel
from sixfold.text.sequence_format import SequenceFormat
from sixfold.text.vocabulary_tokenizer import VocabularyTokenizer
from sixfold.translation.loading import shipped_models
from sixfold.weights import shapes

UNIGRAM, BPE = 1, 2
SHAPE = {"d_model": 256, "heads": 4, "d_ff": 1024, "encoder_layers": 3, "decoder_layers": 3, "max_length": 128}

# Opens two models in a new process. The first one is small and pays what is needed once: modules and libraries.
MEASURE = """
import gc, json, sys
from pathlib import Path
from sixfold.engines.pool import return_memory
from sixfold.translation.translator import Translator

def resident():
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmRSS:")[2].split()[0])

text = "this is a sentence of several words"
for path in sys.argv[1:]:
    with Translator(path, "cpu", threads=1, memory=10**10) as translator:
        pool = translator._pool
        direction = next(iter(translator._directions.values()))
        gc.collect()
        return_memory()
        before = resident()
        direction.tokenizer.encode(text)
        direction.decode_target(direction.encode_target(text))
        direction.engine.score([direction.encoder_input([5])], [[5]])
        gc.collect()
        return_memory()
        grown, estimate = resident() - before, pool.open_bytes
        pool.close_all()
        kept = resident() - before
print(json.dumps([estimate, grown, kept]))
"""


def sentencepiece_model(kind, vocab, seed):
    """Return a SentencePiece model with pieces that are made up."""
    draw = random.Random(seed)
    kinds = {"<unk>": 2}
    while len(kinds) < vocab - 1:
        kinds["".join(draw.choices("▁abcdefghijklmnopqrstuvwxyz", k=draw.randint(1, 9)))] = 1
    pieces = b"".join(
        message_field(1, message_field(1, piece.encode()) + float_field(2, -index / 1000) + integer_field(3, role))
        for index, (piece, role) in enumerate(kinds.items())
    )
    return SentencePieceModel(pieces + message_field(2, integer_field(3, kind)))


def save(path, kind, storage="float32", vocab=20_000):
    """Save a model with random weights and two tokenisers, as imported ones have them."""
    config, draw = ModelConfig(vocab=vocab, eos=0, unk=1, **SHAPE), np.random.default_rng(1)
    weights = {name: draw.standard_normal(shape, np.float32) for name, shape in shapes(config).items()}
    source, target = (
        VocabularyTokenizer("sentencepiece", pieces, ["</s>", *pieces.pieces], {"eos": 0, "unk": 1})
        for pieces in (sentencepiece_model(kind, vocab, seed) for seed in (1, 2))
    )
    modelfile.save(
        path, Config(config), weights, source, {}, storage, target_tokenizer=target,
        sequence_format=SequenceFormat((), (0,)),
    )  # fmt: skip
    return path


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("name", ["unigram, int8", "BPE, float32", "the one in the package"])
def test_the_resident_memory_grows_as_estimated_and_shrinks_again(name, tmp_path, monkeypatch):
    monkeypatch.setenv("SIXFOLD_CACHE", str(tmp_path / "cache"))
    small, path = save(tmp_path / "small.safetensors", UNIGRAM, vocab=300), tmp_path / "model.safetensors"
    if name == "the one in the package":
        (path,) = shipped_models()
    else:
        save(path, *{"unigram, int8": (UNIGRAM, "int8"), "BPE, float32": (BPE, "float32")}[name])
    process = subprocess.run([sys.executable, "-c", MEASURE, small, path], capture_output=True, text=True, timeout=120)
    assert not process.stderr
    estimate, grown, kept = json.loads(process.stdout)
    assert 0.85 * grown < estimate < 1.5 * grown  # BPE takes more when many words have been kept
    assert kept < 0.3 * grown
