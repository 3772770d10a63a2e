"""Tokenisers, special tokens and chat templates of Hugging Face folders that write texts, such as GPT-2 and LLaMA."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tokenizers

from sixfold.config import ModelConfig
from sixfold.errors import ModelFileError
from sixfold.interop.huggingface_tokenizers import make_tokenizer, read_json, read_pieces
from sixfold.text.prompt_format import PromptFormat
from sixfold.text.tokenizer import Tokenizer

END_OF_TEXT = "<|endoftext|>"  # the special token of GPT-2


def read_prompt_parts(
    folder: Path, settings: Mapping[str, Any], config: ModelConfig
) -> tuple[Tokenizer | None, PromptFormat]:
    """Return the tokeniser of a folder, if it has one, and how its model is given prompts."""
    tokenizer = _read_tokenizer(folder)
    names = _optional(folder / "special_tokens_map.json") | _optional(folder / "tokenizer_config.json")
    texts = {key: text for key, value in names.items() if key.endswith("_token") and (text := _token_text(value))}
    stated = _optional(folder / "generation_config.json").get("eos_token_id")
    ends = settings.get("eos_token_id") if stated is None else stated
    ids = [token for token in (ends if isinstance(ends, list) else [ends]) if type(token) is int]
    layout = PromptFormat(
        _tokens_before(tokenizer, names, config) if tokenizer else (),
        tuple(token for token in ids if 0 <= token < config.vocab) or (config.eos,),
        _chat_template(folder, names), texts,
    )  # fmt: skip
    return tokenizer, layout


def _read_tokenizer(folder: Path) -> Tokenizer | None:
    """Read tokenizer.json, or the files of old folders: vocab.json with merges.txt, or a SentencePiece model."""
    if (folder / "tokenizer.json").exists():
        return Tokenizer.load(folder / "tokenizer.json")
    if (folder / "vocab.json").exists() and (folder / "merges.txt").exists():
        return _byte_level_bpe(folder)
    if (folder / "tokenizer.model").exists():
        model = read_pieces(folder / "tokenizer.model")
        return make_tokenizer("sentencepiece", model, model.pieces)
    return None


def _byte_level_bpe(folder: Path) -> Tokenizer:
    """Return the tokeniser of GPT-2: words of which each byte is a character, joined by the merges of a file."""
    try:
        model = tokenizers.models.BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt"))
    except Exception as error:  # the Rust library raises plain Exception
        raise ModelFileError(f"{folder}: vocab.json and merges.txt cannot be read: {error}") from None
    rust = tokenizers.Tokenizer(model)
    rust.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    rust.decoder = tokenizers.decoders.ByteLevel()
    if rust.token_to_id(END_OF_TEXT) is not None:
        rust.add_special_tokens([END_OF_TEXT])
    return Tokenizer(rust, "foreign")


def _tokens_before(tokenizer: Tokenizer, names: Mapping[str, Any], config: ModelConfig) -> tuple[int, ...]:
    """Return the special tokens before a text.

    tokenizer.json has a rule for them. A SentencePiece model has none, and `add_bos_token` decides, as in LLaMA.
    """
    if tokenizer.algorithm != "foreign":
        return () if names.get("add_bos_token") is False else (config.bos,)
    alone = tokenizer.rust.encode("a", add_special_tokens=False).ids
    whole = tokenizer.rust.encode("a").ids
    count = next((start for start in range(len(whole)) if whole[start : start + len(alone)] == alone), 0)
    return tuple(whole[:count])


def _chat_template(folder: Path, names: Mapping[str, Any]) -> str:
    """Return the template of chat_template.jinja or tokenizer_config.json; of several, the one that is `default`."""
    path = folder / "chat_template.jinja"
    if path.exists():
        return path.read_text(encoding="utf-8", errors="replace")
    template = names.get("chat_template")
    if isinstance(template, list):
        named = {each.get("name"): each.get("template") for each in template if isinstance(each, dict)}
        template = named.get("default", next(iter(named.values()), None))
    return template if isinstance(template, str) else ""


def _token_text(value: object) -> str | None:
    """Return the text of a special token, which is written as a text or as a table with its `content`."""
    content = value.get("content") if isinstance(value, dict) else value
    return content if isinstance(content, str) else None


def _optional(path: Path) -> dict[str, Any]:
    """Read a JSON object, or return an empty one where there is no such file."""
    return read_json(path) if path.exists() else {}
