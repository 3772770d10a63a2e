"""Checkpoints of fairseq, with the dictionaries and SentencePiece models beside them."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sixfold.config import Config, DataConfig, ModelConfig, TokenizerConfig
from sixfold.configfile import section_from
from sixfold.errors import ConfigError, ModelFileError
from sixfold.interop.huggingface import rename
from sixfold.interop.huggingface_tokenizers import ChosenLanguages, TextParts, make_tokenizer, read_pieces
from sixfold.interop.weight_names import M2M100, MBART, Family
from sixfold.modelfile import ModelFile
from sixfold.text.foreign_codes import code_of
from sixfold.text.sequence_format import SequenceFormat
from sixfold.text.subword_nmt import SubwordNmtCodes

ACTIVATIONS = {
    "relu": "relu", "gelu": "gelu", "gelu_accurate": "gelu-tanh", "gelu_fast": "gelu-tanh", "swish": "silu",
}  # fmt: skip
SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")  # the first tokens of every dictionary
# Options that change what is computed, and the only value that is supported.
REQUIRED = {
    "no_token_positional_embeddings": False, "adaptive_softmax_cutoff": None, "encoder_langtok": None,
    "decoder_langtok": False, "lang_tok_replacing_bos_eos": False, "no_cross_attention": False,
    "cross_self_attention": False, "no_decoder_final_norm": False, "adaptive_input": False, "quant_noise_pq": 0,
    "decoder_layers_to_keep": None, "encoder_layers_to_keep": None,
}  # fmt: skip
PIECES = ("sentencepiece.bpe.model", "spm.model", "sentencepiece.model", "source.spm")
CODES = ("bpecodes", "bpe.codes", "code")
DEFAULTS = {
    "encoder_embed_dim": 512, "encoder_ffn_embed_dim": 2048, "encoder_layers": 6, "encoder_attention_heads": 8,
    "decoder_layers": 6, "max_source_positions": 1024, "max_target_positions": 1024, "activation_fn": "relu",
    "dropout": 0.1, "encoder_normalize_before": False, "layernorm_embedding": False, "no_scale_embedding": False,
    "encoder_learned_pos": False, "share_all_embeddings": False, "share_decoder_input_output_embed": False,
}  # fmt: skip
SAME = ("embed_dim", "ffn_embed_dim", "attention_heads", "normalize_before", "learned_pos")


def load_fairseq(path: Path, chosen: ChosenLanguages) -> ModelFile:
    """Read a checkpoint with torch's restricted loader, which runs no code."""
    arguments, arrays = _read_checkpoint(path)
    faults = [
        f"{name} = {arguments[name]!r}" for name, value in REQUIRED.items() if arguments.get(name, value) != value
    ]
    faults += [
        f"decoder_{name} = {arguments[f'decoder_{name}']!r}"
        for name in SAME
        if arguments.get(f"decoder_{name}", arguments.get(f"encoder_{name}")) != arguments.get(f"encoder_{name}")
    ]
    if faults:
        raise ModelFileError(f"{path}: expected options that this project computes; got {'; '.join(faults)}")
    config = _config(path, DEFAULTS | arguments, arrays)
    weights = rename(config, _family(config), arrays, str(path))
    parts = _text_parts(path.parent, arguments, config, chosen)
    card: dict[str, Any] = {"parent": f"fairseq checkpoint {path.name}", "languages": parts.languages}
    full = Config(config, TokenizerConfig(vocab=config.vocab), data=DataConfig(max_tokens=config.max_length))
    return ModelFile(
        full, weights, parts.tokenizer, card, target_tokenizer=parts.target_tokenizer,
        sequence_format=parts.sequence_format,
    )  # fmt: skip


def _read_checkpoint(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the options of a run and the weights, under the names that transformers gives them."""
    try:
        import torch
    except ImportError:
        raise ModelFileError(f"{path}: reading this format needs torch", "pip install 'sixfold[torch]'") from None
    try:
        with torch.serialization.safe_globals([argparse.Namespace]):
            checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged or hostile pickle can make the loader raise anything
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise ModelFileError(
            f"{path}: expected a fairseq checkpoint of options and tensors and nothing else: {reason}"
        ) from None
    config = checkpoint.get("cfg") if isinstance(checkpoint, dict) else None
    options = config.get("model") if isinstance(config, dict) else None
    if options is None and isinstance(checkpoint, dict):
        options = checkpoint.get("args")
    values = vars(options) if isinstance(options, argparse.Namespace) else options
    state = checkpoint.get("model") if isinstance(checkpoint, dict) else None
    if not isinstance(values, dict) or not isinstance(state, dict):
        raise ModelFileError(f"{path}: expected a fairseq checkpoint, which has the entries args (or cfg) and model")
    try:
        arrays = {_renamed(name): value.float().numpy() for name, value in state.items()}
    except AttributeError:
        raise ModelFileError(f"{path}: model: expected a table of tensors") from None
    return values, _split_projections(arrays)


def _renamed(name: str) -> str:
    if name == "decoder.output_projection.weight":
        return "lm_head.weight"
    return f"model.{name}"


def _split_projections(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the weights with three projections for each fused one of old checkpoints."""
    result: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        prefix, fused, kind = name.partition("in_proj_")
        parts = np.split(array, 3) if fused and len(array) % 3 == 0 else []
        result |= {f"{prefix}{letter}_proj.{kind}": part for letter, part in zip("qkv", parts, strict=False)}
        if not parts:
            result[name] = array
    return result


def _config(path: Path, options: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> ModelConfig:
    activation = options["activation_fn"]
    try:
        source, target = (len(arrays[f"model.{stack}.embed_tokens.weight"]) for stack in ("encoder", "decoder"))
        learned = bool(options["encoder_learned_pos"])
        shared = bool(options["share_all_embeddings"])
        return section_from(ModelConfig, "model", {
            "kind": "encoder-decoder", "vocab": target, "source_vocab": 0 if source == target else source,
            "d_model": options["encoder_embed_dim"], "heads": options["encoder_attention_heads"],
            "d_ff": options["encoder_ffn_embed_dim"], "encoder_layers": options["encoder_layers"],
            "decoder_layers": options["decoder_layers"],
            "max_length": min(options["max_source_positions"], options["max_target_positions"]),
            "positions": "learned" if learned else "sinusoidal", "position_layout": "halves",
            "position_spacing": "closed", "position_offset": 2, "feed_forward": ACTIVATIONS[activation],
            "norm_position": "pre" if options["encoder_normalize_before"] else "post",
            "embedding_norm": bool(options["layernorm_embedding"]), "dropout": float(options["dropout"]),
            "scale_embeddings": not options["no_scale_embedding"], "share_embeddings": shared,
            "tie_output": shared or bool(options["share_decoder_input_output_embed"]),
            "pad": 1, "bos": 2, "eos": 2, "unk": 3,
        })  # fmt: skip
    except (ConfigError, KeyError, TypeError) as error:
        raise ModelFileError(f"{path}: its options and weights do not fit: {error}") from None


def _family(config: ModelConfig) -> Family:
    """Return the names of the weights, which are those of transformers, with embeddings in each stack."""
    rows = dict(MBART if config.positions == "learned" or config.embedding_norm else M2M100)
    rows["encoder.embedding.token.weight"] = ("model.encoder.embed_tokens.weight",)
    rows["decoder.embedding.token.weight"] = ("model.decoder.embed_tokens.weight",)
    ignored = (".version", "._float_tensor", "model.decoder.embed_tokens.weight")
    return Family(lambda *_: {}, rows, "model.", {}, {}, "lm_head.", ignored=ignored)


def _text_parts(folder: Path, options: Mapping[str, Any], config: ModelConfig, chosen: ChosenLanguages) -> TextParts:
    """Return the tokenisers of the files beside a checkpoint: dict.en.txt, and a SentencePiece model or BPE codes."""
    names = {"source": options.get("source_lang"), "target": options.get("target_lang")}
    files = {side: folder / f"dict.{name}.txt" for side, name in names.items()}
    if not all(path.exists() for path in files.values()):
        shared = next((folder / name for name in ("dict.txt", "model_dict.txt") if (folder / name).exists()), None)
        if shared is None:
            listed = ", ".join(path.name for path in files.values())
            raise ModelFileError(f"{folder}: expected the dictionaries {listed}, or dict.txt; found none")
        files = dict.fromkeys(files, shared)
    tokens = {
        side: _read_dictionary(path, size)
        for (side, path), size in zip(files.items(), (config.vocab_read, config.vocab), strict=True)
    }
    card: dict[str, Any] = {}
    for side, own in (("source", chosen.source), ("target", chosen.target)):
        card[side] = (own[0] if len(own) == 1 else list(own)) if own else code_of(str(names[side] or ""))
    layout = SequenceFormat((), (config.eos,))
    pieces = next((folder / name for name in PIECES if (folder / name).exists()), None)
    codes = next((folder / name for name in CODES if (folder / name).exists()), None)
    if pieces is None and codes is None:
        return TextParts(sequence_format=layout, languages=card)
    if pieces is not None:
        model, algorithm = read_pieces(pieces), "sentencepiece"
        source, target = (make_tokenizer(algorithm, model, tokens[side]) for side in ("source", "target"))
    else:
        assert codes is not None
        merges = SubwordNmtCodes(codes.read_bytes(), str(codes))
        source, target = (make_tokenizer("subword-nmt", merges, tokens[side]) for side in ("source", "target"))
    return TextParts(source, None if tokens["source"] == tokens["target"] else target, layout, card)


def _read_dictionary(path: Path, size: int) -> list[str]:
    """Return the tokens of a dictionary: each line has a token and how often it occurred."""
    try:
        lines = path.read_bytes().decode().removesuffix("\n").split("\n")
    except UnicodeDecodeError:
        raise ModelFileError(f"{path}: expected UTF-8 text, a token and a number in each line") from None
    tokens = list(SPECIALS)
    for number, line in enumerate(lines, 1):
        token, _, count = line.removesuffix(" #fairseq:overwrite").rpartition(" ")
        if not token or not count.isdecimal():
            raise ModelFileError(f"{path}: line {number}: expected a token and a number; got {line!r:.60}")
        tokens.append(token)
    if len(tokens) > size:
        raise ModelFileError(
            f"{path}: expected at most {size} tokens, as many as the embeddings have; got {len(tokens)}"
        )
    return tokens + [f"<unused {index}>" for index in range(len(tokens), size)]
