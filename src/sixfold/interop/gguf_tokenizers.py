"""Tokenisers, special tokens and chat templates of GGUF files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tokenizers
from tokenizers import normalizers, pre_tokenizers

from sixfold.config import ModelConfig
from sixfold.errors import ModelFileError
from sixfold.interop.prompt_tokenizers import LLAMA_3_WORDS, QWEN2_WORDS, byte_level, from_pieces, put_before
from sixfold.text.prompt_format import PromptFormat
from sixfold.text.sentencepiece_file import CONTROL, NORMAL, UNKNOWN, USER_DEFINED
from sixfold.text.tokenizer import Tokenizer

Settings = Mapping[str, Any]
KEY = "tokenizer.ggml."


class Words(NamedTuple):
    """How a text is cut into words before pieces are merged."""

    expression: str | None = None  # None: that of GPT-2
    digits: bool = False  # each digit is a word
    nfc: bool = False  # characters are composed first
    whole: bool = False  # a word that is a piece is not cut, whatever its merges
    begins: bool = False  # a text has <bos> before it, unless the file says otherwise


# By the name in `tokenizer.ggml.pre`.
WORDS = {
    "gpt-2": Words(),
    "gpt2": Words(),
    "smollm": Words(digits=True),
    "llama-bpe": Words(LLAMA_3_WORDS, whole=True, begins=True),
    "llama3": Words(LLAMA_3_WORDS, whole=True, begins=True),
    "qwen2": Words(QWEN2_WORDS, nfc=True),
}
ROLES = {"bos": "bos", "eos": "eos", "unknown": "unk", "padding": "pad"}  # their names of roles: ours
ENDS = ("eos", "eot", "eom")  # roles of tokens that end a text


def read_prompts(settings: Settings, config: ModelConfig, where: str) -> tuple[Tokenizer | None, PromptFormat]:
    """Return the tokeniser of a file, if it has one, and how its model is given prompts."""
    kind, tokens = settings.get(KEY + "model"), settings.get(KEY + "tokens")
    template = settings.get("tokenizer.chat_template", "")
    ends = {token: None for role in ENDS if type(token := settings.get(f"{KEY}{role}_token_id")) is int}
    ids = tuple(token for token in ends if 0 <= token < config.vocab) or (config.eos,)
    if kind in (None, "none", "no_vocab") or tokens is None:
        return None, PromptFormat((), ids)
    if kind not in READERS:
        raise ModelFileError(f"{where}: {KEY}model: expected one of {', '.join(READERS)}; got {kind!r}")
    if not _is_texts(tokens) or not tokens or len(tokens) > config.vocab:
        raise ModelFileError(f"{where}: {KEY}tokens: expected up to {config.vocab} texts, as many as the embeddings")
    kinds = settings.get(KEY + "token_type", [NORMAL] * len(tokens))
    if not isinstance(kinds, list) or len(kinds) != len(tokens):
        raise ModelFileError(f"{where}: {KEY}token_type: expected a number for each of the {len(tokens)} tokens")
    try:
        rust, begins = READERS[kind](settings, tokens, kinds)
    except ModelFileError as error:
        raise ModelFileError(f"{where}: {error}", error.hint) from None
    except Exception as error:  # the Rust library raises plain Exception
        raise ModelFileError(f"{where}: its tokeniser cannot be read: {str(error).partition(chr(10))[0]}") from None
    before = (config.bos,) if settings.get(KEY + "add_bos_token", begins) and config.bos < len(tokens) else ()
    if before:
        rust.post_processor = put_before([(tokens[config.bos], config.bos)])
    texts = {
        f"{ours}_token": tokens[index]
        for theirs, ours in ROLES.items()
        if type(index := settings.get(f"{KEY}{theirs}_token_id")) is int and 0 <= index < len(tokens)
    }
    return Tokenizer(rust, "foreign"), PromptFormat(before, ids, template if isinstance(template, str) else "", texts)


def _gpt2(settings: Settings, tokens: Sequence[str], kinds: Sequence[int]) -> tuple[tokenizers.Tokenizer, bool]:
    """Return a byte-level BPE, and whether its texts have <bos> before them."""
    name = settings.get(KEY + "pre", "gpt-2")
    if name not in WORDS:
        raise ModelFileError(f"{KEY}pre: expected one of {', '.join(WORDS)}; got {name!r}")
    words, merges = WORDS[name], settings.get(KEY + "merges")
    if not isinstance(merges, list) or not _is_texts(merges):
        raise ModelFileError(f"{KEY}merges: expected texts; found none")
    pairs = [(left, right) for left, _, right in (merge.partition(" ") for merge in merges)]
    added = [
        (index, kind != USER_DEFINED) for index, kind in enumerate(kinds) if kind in (CONTROL, UNKNOWN, USER_DEFINED)
    ]
    rust = byte_level(tokens, pairs, words.expression, added, words.whole)
    if words.digits:
        digits = pre_tokenizers.Digits(individual_digits=True)
        rust.pre_tokenizer = pre_tokenizers.Sequence([digits, rust.pre_tokenizer])
    if words.nfc:
        rust.normalizer = normalizers.NFC()
    return rust, words.begins


def _llama(settings: Settings, tokens: Sequence[str], kinds: Sequence[int]) -> tuple[tokenizers.Tokenizer, bool]:
    """Return a tokeniser that merges pieces by their scores; its texts have <bos> before them."""
    scores = settings.get(KEY + "scores")
    if not isinstance(scores, list) or len(scores) != len(tokens):
        raise ModelFileError(f"{KEY}scores: expected a number for each of the {len(tokens)} tokens")
    return from_pieces(tokens, scores, kinds, bool(settings.get(KEY + "add_space_prefix", True))), True


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


READERS = {"gpt2": _gpt2, "llama": _llama}
