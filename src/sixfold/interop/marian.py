"""Models of Marian itself: an .npz file with its settings inside, and vocabularies in YAML or SentencePiece."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import yaml

from sixfold.config import Config, DataConfig, FeedForward, ModelConfig, TokenizerConfig
from sixfold.configfile import section_from
from sixfold.errors import ConfigError, ModelFileError
from sixfold.interop.archives import check_unpacked_size
from sixfold.interop.huggingface_tokenizers import ChosenLanguages, TextParts, make_tokenizer, read_pieces
from sixfold.interop.start_token import add_start_token
from sixfold.modelfile import ModelFile
from sixfold.tensorfile import Tensor
from sixfold.text.foreign_codes import code_of, language_tokens
from sixfold.text.sequence_format import TARGET, SequenceFormat
from sixfold.weights import check_weights, shapes

SETTINGS = "special:model.yml"
ACTIVATIONS = {"relu": "relu", "swish": "silu"}  # its gelu is x · sigmoid(1.702 x)
MAX_LENGTH = 512
NORM_EPS = 1e-6
# Options that change what is computed, and the only value that is supported.
REQUIRED = {
    "type": "transformer", "transformer-decoder-autoreg": "self-attention", "transformer-no-projection": False,
    "transformer-depth-scaling": False, "factors-combine": "sum", "lemma-dim-emb": 0, "transformer-tied-layers": [],
    "transformer-pool": False, "input-types": [],
}  # fmt: skip
# The pre- and postprocessing of sublayers: n is a norm, a adds the residual connection, d is dropout.
NORM_POSITIONS: dict[tuple[str, ...], str] = {("", "an", ""): "post", ("n", "a", "n"): "pre"}


def load_marian(path: Path, chosen: ChosenLanguages) -> ModelFile:
    """Read a model.npz and the vocabularies beside it."""
    arrays = read_npz(path)
    settings = _settings(path, arrays)
    config = _config(path, settings, arrays)
    weights = _weights(path, config, arrays)
    tensors = {name: Tensor("F32", array) for name, array in weights.items()}
    vocabularies = _find_vocabularies(path, settings)
    tokens = [_read_tokens(each) for each in vocabularies]
    sizes = config.vocab_read, config.vocab
    if [len(each) for each in (tokens[0], tokens[-1])] != list(sizes):
        raise ModelFileError(
            f"{path}: expected vocabularies of {sizes[0]} and {sizes[1]} tokens; got "
            f"{', '.join(f'{len(each)} ({file.name})' for each, file in zip(tokens, vocabularies, strict=True))}"
        )
    file, target_tokens = add_start_token(ModelFile(Config(model=config), tensors), tokens[-1])
    source_tokens = target_tokens if config.share_embeddings else tokens[0]
    parts = _text_parts(path, vocabularies, source_tokens, target_tokens, chosen)
    model = file.config.model
    card: dict[str, Any] = {"parent": f"Marian model {path.name}", "languages": parts.languages}
    full = Config(model, TokenizerConfig(vocab=model.vocab), data=DataConfig(max_tokens=model.max_length))
    return ModelFile(
        full, file.tensors, parts.tokenizer, card, target_tokenizer=parts.target_tokenizer,
        sequence_format=parts.sequence_format,
    )  # fmt: skip


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file; arrays of Python objects, which may run code, are refused."""
    try:
        with path.open("rb") as file:
            if not zipfile.is_zipfile(file):
                raise ValueError("it is not one, or cut short")
            with zipfile.ZipFile(file) as members:
                check_unpacked_size(path, members.infolist())
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, NotImplementedError, KeyError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise ModelFileError(f"{path}: expected an .npz file with arrays and nothing else: {reason}") from None


def _settings(path: Path, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return the settings inside a model, and those of the decoder beside it, which name the vocabularies."""
    if SETTINGS not in arrays:
        raise ModelFileError(f"{path}: expected a model of Marian, which has {SETTINGS} inside; found none")
    settings = _read_yaml(f"{path}: {SETTINGS}", arrays[SETTINGS].tobytes().rstrip(b"\0"))
    for decoder in (path.with_name(f"{path.name}.decoder.yml"), path.with_name("decoder.yml")):
        if decoder.exists():
            return settings | {"vocabs": _read_yaml(str(decoder), decoder.read_bytes()).get("vocabs")}
    return settings


def _read_yaml(where: str, data: bytes) -> dict[str, Any]:
    try:
        content = yaml.safe_load(data.decode())
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError, ValueError):
        content = None
    if not isinstance(content, dict):
        raise ModelFileError(f"{where}: expected settings in YAML")
    return content


def _config(path: Path, settings: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> ModelConfig:
    faults = [f"{name} = {settings[name]!r}" for name, value in REQUIRED.items() if settings.get(name, value) != value]
    activation = settings.get("transformer-ffn-activation", "swish")
    if activation not in ACTIVATIONS:
        faults.append(f"transformer-ffn-activation = {activation!r}")
    # Dropout does nothing in inference.
    steps = tuple(
        str(settings.get(name) or default).replace("d", "")
        for name, default in (
            ("transformer-preprocess", ""),
            ("transformer-postprocess", "dan"),
            ("transformer-postprocess-top", ""),
        )
    )
    if steps not in NORM_POSITIONS:
        faults.append(f"transformer-preprocess, -postprocess and -postprocess-top = {steps}")
    if faults:
        raise ModelFileError(f"{path}: expected options that this project computes; got {'; '.join(faults)}")
    try:
        source, target = _embeddings(arrays, "encoder"), _embeddings(arrays, "decoder")
        learned = "Wpos" in arrays
        return section_from(ModelConfig, "model", {
            "kind": "encoder-decoder", "vocab": len(target), "d_model": target.shape[1],
            "source_vocab": 0 if len(source) == len(target) else len(source),
            "heads": settings["transformer-heads"], "d_ff": arrays["encoder_l1_ffn_W1"].shape[1],
            "encoder_layers": settings["enc-depth"], "decoder_layers": settings["dec-depth"],
            "max_length": len(arrays["Wpos"]) if learned else MAX_LENGTH,
            "positions": "learned" if learned else "sinusoidal", "position_layout": "halves",
            "position_spacing": "closed", "feed_forward": cast(FeedForward, ACTIVATIONS[activation]),
            "norm_position": NORM_POSITIONS[steps], "norm_eps": NORM_EPS,
            "embedding_norm": "n" in str(settings.get("transformer-postprocess-emb") or ""),
            "share_embeddings": source is target, "tie_output": _output(arrays) is None,
            "output_bias": True, "eos": 0, "unk": 1, "pad": 0, "bos": 0,
        })  # fmt: skip
    except (ConfigError, KeyError, IndexError) as error:
        raise ModelFileError(f"{path}: {SETTINGS} and the weights do not fit: {error}") from None


def _embeddings(arrays: Mapping[str, np.ndarray], stack: str) -> np.ndarray:
    return arrays["Wemb"] if "Wemb" in arrays else arrays[f"{stack}_Wemb"]


def _output(arrays: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """Return the output projection, pieces × width, or None if it is the target embedding."""
    if "decoder_ff_logit_out_W" in arrays:
        return arrays["decoder_ff_logit_out_W"].T
    return arrays.get("decoder_ff_logit_out_Wt")


def _weights(path: Path, config: ModelConfig, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    missing: list[str] = []
    used = {SETTINGS, "Wemb", "encoder_Wemb", "decoder_Wemb", "decoder_ff_logit_out_W", "decoder_ff_logit_out_Wt"}

    def take(name: str, *others: str) -> np.ndarray:
        stored_name = next((each for each in (name, *others) if each in arrays), None)
        used.update((name, *others))
        if stored_name is None:
            missing.append(name)
            return np.zeros(0, np.float32)
        return np.asarray(arrays[stored_name], np.float32)

    def norm(ours: str, theirs: str) -> dict[str, np.ndarray]:
        parts = {"weight": "scale", "bias": "bias"}
        return {f"{ours}.{part}": take(f"{theirs}_ln_{name}", f"{theirs}_ln_{name}_pre").reshape(-1)
                for part, name in parts.items()}  # fmt: skip

    def linear(ours: str, theirs: str, letters: Sequence[str]) -> dict[str, np.ndarray]:
        matrices = [take(f"{theirs}_W{letter}").T for letter in letters]
        biases = [take(f"{theirs}_b{letter}").reshape(-1) for letter in letters]
        fits = len({each.shape[1:] for each in matrices}) == 1
        return {
            f"{ours}.weight": np.concatenate(matrices) if fits else matrices[0],
            f"{ours}.bias": np.concatenate(biases),
        }

    weights: dict[str, np.ndarray] = {}
    for stack, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        if stack == "encoder" or not config.share_embeddings:
            weights[f"{stack}.embedding.token.weight"] = np.asarray(_embeddings(arrays, stack), np.float32)
        if config.positions == "learned":
            weights[f"{stack}.embedding.position.weight"] = take("Wpos")
        if config.embedding_norm:
            weights |= norm(f"{stack}.embedding.norm", f"{stack}_emb")
        if config.ends_in_norm:
            weights |= norm(f"{stack}.norm", f"{stack}_top")
        for index in range(layers):
            ours, theirs = f"{stack}.layers.{index}", f"{stack}_l{index + 1}"
            for part, name in (("self_attention", "self"), *((("cross_attention", "context"),) * (stack == "decoder"))):
                weights |= linear(f"{ours}.{part}.query_key_value", f"{theirs}_{name}", "qkv")
                weights |= linear(f"{ours}.{part}.output", f"{theirs}_{name}", "o")
                weights |= norm(f"{ours}.{part}_norm", f"{theirs}_{name}_Wo")
            weights |= linear(f"{ours}.feed_forward.up", f"{theirs}_ffn", "1")
            weights |= linear(f"{ours}.feed_forward.down", f"{theirs}_ffn", "2")
            weights |= norm(f"{ours}.feed_forward_norm", f"{theirs}_ffn_ffn")
    output = _output(arrays)
    if output is not None:
        weights["output.projection.weight"] = np.asarray(output, np.float32)
    weights["output.projection.bias"] = take("decoder_ff_logit_out_b").reshape(-1)
    unexpected = [name for name in arrays if name not in used]
    if missing or unexpected:
        faults = [f"missing {name}" for name in missing] + [f"unexpected {name}" for name in unexpected]
        raise ModelFileError(f"{path}: the weights do not fit the settings: {'; '.join(faults)}")
    check_weights(str(path), shapes(config), {name: array.shape for name, array in weights.items()})
    return weights


def _find_vocabularies(path: Path, settings: Mapping[str, Any]) -> list[Path]:
    """Return one vocabulary or two: those that the settings name, or else those in the folder of the model."""
    named = [path.parent / Path(str(each)).name for each in settings.get("vocabs") or ()]
    if named and all(each.exists() for each in named):
        return named if named[0] != named[-1] else named[:1]
    vocabularies = sorted(path.parent.glob("*vocab*.yml")) or sorted(path.parent.glob("vocab*.spm"))
    if len(vocabularies) not in (1, 2):
        listed = ", ".join(each.name for each in named) or "vocab.yml or vocab.spm"
        raise ModelFileError(
            f"{path}: expected its vocabularies ({listed}) in the same folder; found {len(vocabularies)}"
        )
    return vocabularies


def _read_tokens(path: Path) -> list[str]:
    """Return the tokens of a vocabulary in the order of their ids."""
    if path.suffix == ".spm":
        return list(read_pieces(path).pieces)
    try:
        lines = path.read_bytes().decode().split("\n")
    except (OSError, UnicodeDecodeError):
        raise ModelFileError(f"{path}: expected tokens with ids, in YAML") from None
    ids: dict[int, str] = {}
    key: str | None = None
    for line in filter(str.strip, lines):
        if line.startswith("? "):  # a long token has a line of its own
            key = line[2:]
            continue
        token, _, number = (key, "", line.lstrip(": ")) if key is not None else line.rpartition(":")
        key = None
        if not number.strip().isdecimal():
            raise ModelFileError(f"{path}: expected lines such as 'token: 17'; got {line!r:.60}")
        ids[int(number)] = _unquote(token.strip("\r"))
    if sorted(ids) != list(range(len(ids))) or len(ids) < 2:
        raise ModelFileError(f"{path}: expected ids from 0 on, without gaps; got {len(ids)} of them")
    return [ids[index] for index in range(len(ids))]


def _unquote(token: str) -> str:
    """Return a YAML scalar as it is meant. What looks like a number or a truth value is a token here."""
    if token[:1] in ("'", '"') and token[-1:] == token[:1] and len(token) > 1:
        try:
            return str(yaml.load(token, Loader=yaml.BaseLoader))
        except yaml.YAMLError:
            return token[1:-1]
    return token


def _text_parts(
    path: Path, vocabularies: Sequence[Path], source_tokens: Sequence[str], target_tokens: Sequence[str],
    chosen: ChosenLanguages,
) -> TextParts:  # fmt: skip
    """Return the tokenisers: source.spm and target.spm, or vocabularies that are SentencePiece models themselves."""
    languages = language_tokens(token for token in source_tokens if token.startswith(">>"))
    ids = {code: list(source_tokens).index(token) for code, token in languages.items()}
    names = re.search(r"\b([a-z]{2,3})-([a-z]{2,3})\b", path.resolve().parent.name)
    card: dict[str, Any] = {
        side: (own[0] if len(own) == 1 else list(own)) if own else (code_of(names[number]) if names else "")
        for number, (side, own) in enumerate((("source", chosen.source), ("target", chosen.target)), 1)
    }
    if languages:
        targets = chosen.narrow(list(languages), chosen.target, "--to")
        card["target"] = targets[0] if len(targets) == 1 else targets
    eos = list(source_tokens).index("</s>") if "</s>" in source_tokens else 0
    layout = SequenceFormat((TARGET,) if languages else (), (eos,), (), ids)
    files = [path.parent / f"{side}.spm" for side in ("source", "target")]
    if not all(file.exists() for file in files):
        files = [vocabularies[0], vocabularies[-1]]
    if any(file.suffix != ".spm" for file in files):
        return TextParts(sequence_format=layout, languages=card)
    source, target = (
        make_tokenizer("sentencepiece", read_pieces(file), tokens)
        for file, tokens in zip(files, (source_tokens, target_tokens), strict=True)
    )
    return TextParts(source, None if source.to_json() == target.to_json() else target, layout, card)
