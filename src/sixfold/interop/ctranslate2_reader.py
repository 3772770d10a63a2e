"""CTranslate2 folders, read back into a model file: all stored types, among them int8 rows with scales."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sixfold.alignment_heads import AligningHeads
from sixfold.config import Config, DataConfig, ModelConfig, TokenizerConfig
from sixfold.errors import ModelFileError
from sixfold.interop.ctranslate2_folder import Variables, read_settings, read_variables, read_vocabularies
from sixfold.interop.ctranslate2_shape import config_of
from sixfold.interop.ctranslate2_weights import check_all_used, tensors_of
from sixfold.interop.huggingface_tokenizers import ChosenLanguages, TextParts, make_tokenizer, read_pieces
from sixfold.interop.start_token import add_start_token
from sixfold.modelfile import SCALE, ModelFile
from sixfold.text.foreign_codes import code_of
from sixfold.text.moses_bpe import MosesBpe
from sixfold.text.sentencepiece import SentencePieceModel
from sixfold.text.sequence_format import SequenceFormat
from sixfold.weights import check_weights, shapes

SPM_NAMES = {"source": ("source.spm", "sentencepiece.model", "spm.model"), "target": ("target.spm",)}


def load_ctranslate2(
    folder: Path,
    chosen: ChosenLanguages,
    pieces: SentencePieceModel | MosesBpe | None = None,
    languages: tuple[str, str] = ("", ""),
) -> ModelFile:
    """Read a CTranslate2 folder.

    `pieces` is the piece model of both sides, if it is not in the folder; `languages` are what the user's choice
    replaces.
    """
    variables = read_variables(folder / "model.bin")
    settings = read_settings(folder)
    source_tokens, target_tokens = read_vocabularies(folder)
    config = config_of(variables, settings, source_tokens, target_tokens)
    tensors = dict(tensors_of(variables, config))
    starts_from_zero = bool(variables.scalar("decoder/start_from_zero_embedding", 0))
    check_all_used(variables)
    check_weights(
        str(folder), shapes(config), {name: each.shape for name, each in tensors.items() if SCALE not in name}
    )
    file = ModelFile(Config(model=config), tensors)
    if starts_from_zero:
        file, target_tokens = add_start_token(file, target_tokens)
        source_tokens = target_tokens if file.config.model.vocab_read == file.config.model.vocab else source_tokens
    config = file.config.model
    parts = _text_parts(folder, settings, source_tokens, target_tokens, pieces)
    names = [side[0] if len(side) == 1 else list(side) for side in (chosen.source, chosen.target)]
    stated = {
        side: name or code_of(own) for side, name, own in zip(("source", "target"), names, languages, strict=True)
    }
    card: dict[str, Any] = {"parent": f"CTranslate2 model {folder.resolve().name}", "languages": stated}
    card |= _alignment(variables, config)
    data, tokenizer = DataConfig(max_tokens=config.max_length), TokenizerConfig(vocab=config.vocab)
    return ModelFile(
        Config(config, tokenizer, data=data), file.tensors, parts.tokenizer, card,
        target_tokenizer=parts.target_tokenizer, sequence_format=parts.sequence_format,
    )  # fmt: skip


def _alignment(variables: Variables, config: ModelConfig) -> dict[str, Any]:
    """Return the entry of the card for the heads whose mean CTranslate2 returns as the alignment."""
    layer, count = variables.scalar("decoder/alignment_layer", -1), variables.scalar("decoder/alignment_heads", 1)
    heads = tuple(range(min(count, config.heads) if count > 0 else config.heads))
    return AligningHeads(layer % config.decoder_layers, heads, False).to_card()


def _text_parts(
    folder: Path, settings: Mapping[str, Any], source_tokens: Sequence[str],
    target_tokens: Sequence[str], pieces: SentencePieceModel | MosesBpe | None,
) -> TextParts:  # fmt: skip
    """Return the tokenisers of a folder, if it has SentencePiece models, and the special tokens around a source."""
    ids = {token: index for index, token in reversed(list(enumerate(source_tokens)))}
    ends = [("add_source_bos", "bos_token", "<s>"), ("add_source_eos", "eos_token", "</s>")]
    added = [settings.get(name, default) if settings.get(flag) else None for flag, name, default in ends]
    missing = [token for token in added if token is not None and token not in ids]
    if missing:
        raise ModelFileError(f"{folder}: config.json: expected tokens of the source vocabulary; got {missing[0]!r:.60}")
    before, after = ((ids[token],) if token is not None else () for token in added)
    layout = SequenceFormat(before, after)
    paths = {side: next((folder / each for each in names if (folder / each).exists()), None)
             for side, names in SPM_NAMES.items()}  # fmt: skip
    if pieces is None and paths["source"] is not None:
        pieces = read_pieces(paths["source"])
    if pieces is None:
        return TextParts(sequence_format=layout)
    algorithm = "moses-bpe" if isinstance(pieces, MosesBpe) else "sentencepiece"
    source = make_tokenizer(algorithm, pieces, source_tokens)
    if list(source_tokens) == list(target_tokens) and paths["target"] is None:
        return TextParts(source, None, layout)
    target_pieces = pieces if paths["target"] is None else read_pieces(paths["target"])
    target = make_tokenizer(algorithm, target_pieces, target_tokens)
    return TextParts(source, target, layout)
