"""Export to folders that transformers loads: Marian, M2M100 (and NLLB) or mBART, with the files of their tokenisers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sixfold import tensorfile
from sixfold.config import ModelConfig
from sixfold.errors import RequestError
from sixfold.interop.huggingface import export_weights
from sixfold.interop.huggingface_tokenizers import FAIRSEQ_PIECES
from sixfold.interop.start_token import forbidden_tokens
from sixfold.modelfile import ModelFile
from sixfold.tensorfile import Tensor
from sixfold.text.sentencepiece_file import SPACE
from sixfold.text.tokenizer import Tokenizer
from sixfold.text.vocabulary_tokenizer import VocabularyTokenizer

ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "silu": "swish", "gelu-tanh": "gelu_new"}
# What the classes of transformers compute. A model that has other values fits none of them.
COMMON = {
    "kind": ("encoder-decoder",), "compatibility": ("scaled-dot",), "feed_forward": tuple(ACTIVATIONS), "bias": (True,),
    "norm": ("layer",), "norm_eps": (1e-5,), "final_norm": (False,), "token_types": (0,), "output_transform": (False,),
    "share_layers": (False,),
}  # fmt: skip
FAMILIES: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "marian": {
        "positions": ("sinusoidal",), "position_spacing": ("open",), "position_offset": (0,),
        "norm_position": ("post",), "embedding_norm": (False,),
    },
    "m2m_100": {
        "positions": ("sinusoidal",), "position_spacing": ("closed",), "position_offset": (2,), "pad": (1,),
        "norm_position": ("pre",), "embedding_norm": (False,), "output_bias": (False,), "source_vocab": (0,),
    },
    "mbart": {
        "positions": ("learned",), "position_offset": (2,), "norm_position": ("pre",), "embedding_norm": (True,),
        "source_vocab": (0,),
    },
}  # fmt: skip
CLASSES = {
    "marian": "MarianMTModel", "m2m_100": "M2M100ForConditionalGeneration", "mbart": "MBartForConditionalGeneration",
}  # fmt: skip


def write_huggingface(
    file: ModelFile,
    tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    languages: tuple[str, str],
    pieces_of: Callable[[Tokenizer], bytes],
    folder: Path,
) -> list[str]:
    """Write config.json, model.safetensors and the files of the tokeniser; return notes for the user."""
    config = file.config.model
    family = choose_family(config)
    weights = file.weights()
    if config.positions == "sinusoidal" and config.position_layout == "interleaved":
        weights = in_halves(config, weights)
    if config.output_bias is False and family != "m2m_100":
        weights["output.projection.bias"] = np.zeros(config.vocab, np.float32)
    exported = export_weights(config, weights, family)
    tensors = {name: Tensor("F32", np.ascontiguousarray(array, np.float32)) for name, array in exported.items()}
    tensorfile.write(folder / "model.safetensors", tensors, {"format": "pt"})
    write_json(folder / "config.json", _settings(config, family, [[token] for token in forbidden_tokens(file)]))
    if family == "marian":
        return _write_marian_tokenizer(file, tokenizer, target_tokenizer, languages, pieces_of, folder)
    if family == "m2m_100":
        return _write_m2m_tokenizer(file, tokenizer, languages, lambda: pieces_of(tokenizer), folder)
    return _write_fairseq_tokenizer(file, tokenizer, languages, folder)


def choose_family(config: ModelConfig) -> str:
    """Return the family of transformers that computes what a model computes; RequestError says what does not fit."""
    faults = {}
    for family, expected in FAMILIES.items():
        faults[family] = [
            f"model.{name} = {getattr(config, name)!r}"
            for name, values in (COMMON | dict(expected)).items()
            if getattr(config, name) not in values
        ]
        if config.groups != config.heads:
            faults[family].append(f"model.kv_heads = {config.kv_heads}")
        if not faults[family]:
            return family
    nearest = min(faults, key=lambda family: len(faults[family]))
    raise RequestError(
        f"transformers has no class for this model; nearest is {nearest}, but for {', '.join(faults[nearest])}",
        "export it to ctranslate2, argos or onnx",
    )


def in_halves(config: ModelConfig, weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the weights with the features of the residual stream in another order: sines first, then cosines.

    The same order everywhere changes nothing: features between layers have no order of their own.
    """
    order = np.r_[0 : config.d_model : 2, 1 : config.d_model : 2]
    result = {}
    for name, array in weights.items():
        reads = name.endswith((".up.weight", ".gate.weight", "query_key_value.weight", "projection.weight"))
        writes = re.search(r"(attention\.output|feed_forward\.down)\.(weight|bias)$|norm\.(weight|bias)$", name)
        if reads or name.endswith("embedding.token.weight"):
            result[name] = array[:, order]
        elif writes:
            result[name] = array[order]
        else:
            result[name] = array
    return result


def _settings(config: ModelConfig, family: str, forbidden: list[list[int]]) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "model_type": family, "architectures": [CLASSES[family]], "is_encoder_decoder": True,
        "vocab_size": config.vocab_read, "d_model": config.d_model, "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers, "encoder_attention_heads": config.heads,
        "decoder_attention_heads": config.heads, "encoder_ffn_dim": config.d_ff, "decoder_ffn_dim": config.d_ff,
        "num_hidden_layers": config.encoder_layers, "max_position_embeddings": config.max_length,
        "activation_function": ACTIVATIONS[config.feed_forward], "scale_embedding": config.scale_embeddings,
        "dropout": config.dropout, "attention_dropout": 0.0, "activation_dropout": 0.0,
        "tie_word_embeddings": config.tie_output, "pad_token_id": config.pad, "eos_token_id": config.eos,
        "bos_token_id": config.bos, "decoder_start_token_id": config.bos, "torch_dtype": "float32",
    }  # fmt: skip
    if family == "marian":
        settings |= {
            "decoder_vocab_size": config.vocab, "share_encoder_decoder_embeddings": config.share_embeddings,
            "static_position_embeddings": True, "normalize_before": False, "normalize_embedding": False,
            "add_final_layer_norm": False, "forced_eos_token_id": config.eos,
        }  # fmt: skip
    if forbidden:
        settings["bad_words_ids"] = forbidden
    return settings


def _write_marian_tokenizer(
    file: ModelFile, source: Tokenizer, target: Tokenizer, languages: tuple[str, str],
    pieces_of: Callable[[Tokenizer], bytes], folder: Path,
) -> list[str]:  # fmt: skip
    """Write source.spm, target.spm and the vocabularies. A tag such as <en> becomes >>en<<, which is read in texts."""
    config = file.config.model
    separate = file.target_tokenizer is not None and config.vocab_read != config.vocab
    (folder / "source.spm").write_bytes(pieces_of(source))
    (folder / "target.spm").write_bytes(pieces_of(target))
    tables = [(source, "vocab.json", config.vocab_read)] + [(target, "target_vocab.json", config.vocab)] * separate
    names: list[str] = []
    for tokenizer, name, size in tables:
        names = vocabulary_names(tokenizer, size)
        write_json(folder / name, {token: index for index, token in enumerate(names)})
    roles = {"eos_token": config.eos, "unk_token": config.unk, "pad_token": config.pad}
    write_json(folder / "tokenizer_config.json", {
        "tokenizer_class": "MarianTokenizer", "source_lang": languages[0], "target_lang": languages[1],
        "separate_vocabs": separate, "model_max_length": config.max_length,
        **{role: names[index] for role, index in roles.items()},
    })  # fmt: skip
    tagged = [f">>{tag}<<" for tag in source.tags]
    return [f"begin each text with the tag of its target language: {', '.join(tagged)}"] if tagged else []


def vocabulary_names(tokenizer: Tokenizer, size: int) -> list[str]:
    """Return the names of tokens in a vocab.json of Marian."""
    tags = {f"<{tag}>": f">>{tag}<<" for tag in tokenizer.tags}
    names = [tags.get(token, token).replace(" ", SPACE) for token in tokenizer.tokens[:size]]
    return names + [f"<unused {index}>" for index in range(len(names), size)]


def _write_m2m_tokenizer(
    file: ModelFile, source: Tokenizer, languages: tuple[str, str], pieces: Callable[[], bytes], folder: Path
) -> list[str]:
    if not isinstance(source, VocabularyTokenizer):
        return _write_fairseq_tokenizer(file, source, languages, folder)
    tokens = [token for token in source.tokens if not token.startswith("<unused ")]
    count = next((index for index, token in enumerate(tokens) if re.fullmatch("__[a-z]+__", token)), len(tokens))
    if len(tokens) - count not in (8, 100):
        raise RequestError(
            "transformers has no tokeniser for this model: expected the 100 languages of M2M100 or the 8 of WMT 21 as "
            f"its last tokens; got {len(tokens) - count}"
        )
    write_json(folder / "vocab.json", {token: index for index, token in enumerate(tokens[:count])})
    (folder / FAIRSEQ_PIECES).write_bytes(pieces())
    write_json(folder / "tokenizer_config.json", {
        "tokenizer_class": "M2M100Tokenizer", "src_lang": languages[0], "tgt_lang": languages[1],
        "language_codes": "m2m100" if len(tokens) - count == 100 else "wmt21",
    })  # fmt: skip
    return []


def _write_fairseq_tokenizer(file: ModelFile, source: Tokenizer, languages: tuple[str, str], folder: Path) -> list[str]:
    """Write tokenizer.json for NLLB or mBART."""
    layout = file.sequence_format
    if isinstance(source, VocabularyTokenizer) or layout is None:
        raise RequestError("transformers has no tokeniser for this model: expected a tokenizer.json of NLLB or mBART")
    (folder / "tokenizer.json").write_bytes(source.rust.to_str().encode())
    names = {code: source.tokens[token] for code, token in layout.languages.items()}
    if file.config.model.norm_position == "pre" and file.config.model.positions == "sinusoidal":
        kind = "NllbTokenizer"
    else:
        kind = "MBart50Tokenizer" if layout.before_target else "MBartTokenizer"
    write_json(folder / "tokenizer_config.json", {
        "tokenizer_class": kind, "src_lang": names.get(languages[0]), "tgt_lang": names.get(languages[1]),
        "extra_special_tokens": list(names.values()), "legacy_behaviour": layout.before_source == (),
    })  # fmt: skip
    return []


def write_json(path: Path, content: object) -> None:
    """Write a JSON file."""
    path.write_bytes(json.dumps(content, ensure_ascii=False, indent=2).encode())
