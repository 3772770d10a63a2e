"""Small CTranslate2 models, written by ctranslate2's own converters, as OpenNMT-py and Marian train them."""

import argparse
import json
import zipfile

import ctranslate2
import numpy as np
import pytest
import sentencepiece
import torch
from ctranslate2.converters import opennmt_py
from small_sentencepiece import TEXT, train

from sixfold.decoding.options import SearchOptions
from sixfold.engines.cpu import CpuEngine

SENTENCES = list(dict.fromkeys(TEXT))[:10]
D_MODEL, D_FF, HEADS, LAYERS, POSITIONS = 32, 48, 4, 2, 120


def opennmt(folder, quantization=None, separate=True, seed=1, positions=True):
    """Write a model as OpenNMT-py trains them: Argos packages hold such models. Return its SentencePiece model."""
    data = train()
    library = sentencepiece.SentencePieceProcessor(model_proto=data)
    pieces = [library.id_to_piece(index) for index in range(3, library.get_piece_size())]
    source = ["<unk>", "<blank>", "<s>", "</s>", *pieces]
    target = ["<unk>", "<blank>", "<s>", "</s>", *pieces[:150]] if separate else source
    opt = argparse.Namespace(
        enc_layers=LAYERS, dec_layers=LAYERS + 1, heads=HEADS, position_encoding=positions, max_relative_positions=0,
        encoder_type="transformer", decoder_type="transformer",
    )  # fmt: skip
    spec = opennmt_py._get_model_spec_seq2seq(
        opt, opennmt_variables(len(source), len(target), separate, seed), [source], [target], 1
    )
    spec.validate()
    spec.optimize(quantization)
    folder.mkdir(parents=True)
    spec.save(str(folder))
    return data


def opennmt_variables(source, target, separate, seed):
    """Return random weights under the names of OpenNMT-py."""
    random = torch.Generator().manual_seed(seed)
    variables = {}

    def add(name, *shape, gain=1.0):
        variables[name] = gain + torch.randn(shape, generator=random) * 0.3 if name.endswith("norm.weight") or (
            "layer_norm" in name and name.endswith("weight")
        ) else torch.randn(shape, generator=random) * 0.4  # fmt: skip

    def linear(name, outputs, inputs):
        add(f"{name}.weight", outputs, inputs)
        add(f"{name}.bias", outputs)

    def norm(name):
        add(f"{name}.weight", D_MODEL)
        add(f"{name}.bias", D_MODEL)

    def attention(name):
        for part in ("query", "keys", "values"):
            linear(f"{name}.linear_{part}", D_MODEL, D_MODEL)
        linear(f"{name}.final_linear", D_MODEL, D_MODEL)

    steps = torch.arange(POSITIONS).float()[:, None] * torch.exp(
        torch.arange(0, D_MODEL, 2).float() * -(np.log(10000.0) / D_MODEL)
    )
    table = torch.zeros(POSITIONS, 1, D_MODEL)
    table[:, 0, 0::2], table[:, 0, 1::2] = steps.sin(), steps.cos()
    for stack, size, layers, name in (
        ("encoder", source, LAYERS, "transformer"), ("decoder", target, LAYERS + 1, "transformer_layers"),
    ):  # fmt: skip
        add(f"{stack}.embeddings.make_embedding.emb_luts.0.weight", size, D_MODEL)
        variables[f"{stack}.embeddings.make_embedding.pe.pe"] = table
        norm(f"{stack}.layer_norm")
        for index in range(layers):
            layer = f"{stack}.{name}.{index}"
            attention(f"{layer}.self_attn")
            linear(f"{layer}.feed_forward.w_1", D_FF, D_MODEL)
            linear(f"{layer}.feed_forward.w_2", D_MODEL, D_FF)
            norm(f"{layer}.feed_forward.layer_norm")
            if stack == "encoder":
                norm(f"{layer}.layer_norm")
                continue
            attention(f"{layer}.context_attn")
            norm(f"{layer}.layer_norm_1")
            norm(f"{layer}.layer_norm_2")
    linear("generator", target, D_MODEL)
    if not separate:
        shared = variables["encoder.embeddings.make_embedding.emb_luts.0.weight"]
        variables["decoder.embeddings.make_embedding.emb_luts.0.weight"] = shared
        variables["generator.weight"] = shared
    variables["generator.bias"][3] += 2.0  # <eos>
    return variables


def argos(path, model_folder, data, **metadata):
    """Write an Argos package of a CTranslate2 folder and a SentencePiece model."""
    about = {"package_version": "1.9", "argos_version": "1.9", "from_code": "en", "from_name": "English",
             "to_code": "es", "to_name": "Spanish"} | metadata  # fmt: skip
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("translate-en_es-1_9/metadata.json", json.dumps(about))
        archive.writestr("translate-en_es-1_9/sentencepiece.model", data)
        archive.writestr("translate-en_es-1_9/stanza/en/tokenize/model.pt", b"pickle")
        for file in sorted(model_folder.iterdir()):
            archive.write(file, f"translate-en_es-1_9/model/{file.name}")
    return path


def their_translations(folder, tokens, compute, length=16):
    translator = ctranslate2.Translator(str(folder), compute_type=compute, inter_threads=1, intra_threads=1)
    options = {"beam_size": 4, "patience": 2.0, "max_decoding_length": length, "return_scores": True}
    results = translator.translate_batch(tokens, max_input_length=0, min_decoding_length=1, **options)
    return [(result.hypotheses[0], result.scores[0]) for result in results]


def check_folder(folder, data, file, tolerance=2e-3):
    """Compare translations, as tokens with scores, of the folder in ctranslate2 and of the model in our engine."""
    library = sentencepiece.SentencePieceProcessor(model_proto=data)
    theirs = their_translations(folder, [library.encode(text, out_type=str) for text in SENTENCES], "float32")
    layout, tokenizer = file.sequence_format, file.tokenizer
    engine = CpuEngine(file, "float32", threads=1)
    sources = [[*layout.before_source, *tokenizer.encode(text), *layout.after_source] for text in SENTENCES]
    ours = engine.decode(sources, SearchOptions(beam=4, max_length=16))
    names = (file.target_tokenizer or tokenizer).tokens
    same = 0
    for (tokens, score), (best,) in zip(theirs, ours, strict=True):
        assert best.score == pytest.approx(score, abs=tolerance)
        same += [names[index] for index in best.tokens] == tokens
    assert same >= len(SENTENCES) - 1 - (tolerance > 0.01) * 3  # of translations with the same score, rounding decides
    assert len({tuple(tokens) for tokens, _ in theirs}) > 3
