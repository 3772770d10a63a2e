"""Tokenisers of decoder-only models as tokenizer.json, and those that are stored as pieces and scores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors

from sixfold.errors import RequestError
from sixfold.text.sentencepiece import SentencePieceModel
from sixfold.text.sentencepiece_file import BYTE, CONTROL, NORMAL, SPACE, UNKNOWN, USER_DEFINED
from sixfold.text.tokenizer import Tokenizer
from sixfold.text.vocabulary_tokenizer import VocabularyTokenizer

# How a byte-level BPE cuts a text into words, by the names of GGUF files.
_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA_3_WORDS = rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}|{_REST}"
QWEN2_WORDS = rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}|{_REST}"


def tokenizer_json(tokenizer: Tokenizer, before: Sequence[int]) -> str:
    """Return a tokenizer.json that gives the ids of a tokeniser, with the special tokens `before` every text.

    RequestError is raised for a tokeniser that the format cannot express.
    """
    if isinstance(tokenizer, VocabularyTokenizer):
        rust = _of_pieces(tokenizer)
    else:
        _check_own(tokenizer)
        rust = tokenizers.Tokenizer.from_str(tokenizer.rust.to_str())
    if tokenizer.algorithm != "foreign":
        if not tokenizer.is_foreign:
            rust.add_special_tokens([AddedToken(tokenizer.tokens[index]) for index in sorted(tokenizer.reserved)])
        rust.post_processor = put_before([(tokenizer.tokens[index], index) for index in before])
    return str(rust.to_str())


def _check_own(tokenizer: Tokenizer) -> None:
    """Raise RequestError for what a tokeniser of Sixfold does outside of the Rust library."""
    reasons = {
        "WordPiece, whose unknown characters are spelt in bytes": tokenizer.algorithm == "wordpiece",
        "one that reads traditional Chinese as simplified": bool(tokenizer.character_map),
    }
    for reason, is_so in reasons.items():
        if is_so:
            raise RequestError(f"tokeniser: expected one that tokenizer.json can express; got {reason}")


def _of_pieces(tokenizer: VocabularyTokenizer) -> tokenizers.Tokenizer:
    model = tokenizer.pieces
    if not isinstance(model, SentencePieceModel) or model.algorithm != "bpe" or tokenizer.tokens != model.pieces:
        raise RequestError(
            "tokeniser: expected one that tokenizer.json can express, such as a BPE model of SentencePiece; got "
            f"{getattr(model, 'algorithm', tokenizer.algorithm)!r}"
        )
    if model.has_rules or model.settings.remove_extra_whitespaces:
        raise RequestError(
            "tokeniser: expected a SentencePiece model that changes no characters, as that of LLaMA; got one with rules"
        )
    return from_pieces(model.pieces, model.scores, model.kinds, model.settings.add_dummy_prefix)


def from_pieces(
    pieces: Sequence[str], scores: Sequence[float], kinds: Sequence[int], add_space: bool
) -> tokenizers.Tokenizer:
    """Return a tokeniser that merges pieces by their scores, as a BPE model of SentencePiece does.

    `kinds` are those of a SentencePiece model. `add_space` puts a space before every text.
    """
    unknown = next((pieces[index] for index, kind in enumerate(kinds) if kind == UNKNOWN), None)
    has_bytes = BYTE in kinds
    model = models.BPE(
        {piece: index for index, piece in enumerate(pieces)}, _merges(pieces, scores, kinds), unk_token=unknown,
        fuse_unk=True, byte_fallback=has_bytes,
    )  # fmt: skip
    rust = tokenizers.Tokenizer(model)
    steps: list[Any] = [normalizers.Prepend(SPACE)] if add_space else []
    rust.normalizer = normalizers.Sequence([*steps, normalizers.Replace(" ", SPACE)])
    rust.decoder = decoders.Sequence([
        decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(),
        *([decoders.Strip(" ", 1, 0)] if add_space else []),
    ])  # fmt: skip
    for kind, is_special in ((CONTROL, True), (UNKNOWN, True), (USER_DEFINED, False)):
        tokens = [piece for piece, each in zip(pieces, kinds, strict=True) if each == kind]
        rust.add_tokens([AddedToken(token, normalized=False, special=is_special) for token in tokens])
    return rust


def _merges(pieces: Sequence[str], scores: Sequence[float], kinds: Sequence[int]) -> list[tuple[str, str]]:
    """Return every pair of pieces that makes another one, those of the highest score first."""
    normal = {piece: index for index, piece in enumerate(pieces) if kinds[index] in (NORMAL, USER_DEFINED)}
    pairs = [
        (-scores[index], index, piece[:cut], piece[cut:])
        for piece, index in normal.items() if kinds[index] == NORMAL
        for cut in range(1, len(piece)) if piece[:cut] in normal and piece[cut:] in normal
    ]  # fmt: skip
    return [(left, right) for _, _, left, right in sorted(pairs)]


def byte_level(
    tokens: Sequence[str],
    merges: Iterable[tuple[str, str]],
    words: str | None,
    added: Iterable[tuple[int, bool]],
    whole: bool = False,
) -> tokenizers.Tokenizer:
    """Return a byte-level BPE, whose pieces are spelt in characters that stand for bytes, as in GPT-2.

    `words` is the expression of the words of a text; None: that of GPT-2. `added` are the ids of tokens that are read
    in a text before it is cut, and whether each is special. With `whole`, a word that is a piece is not cut.
    """
    vocab = {token: index for index, token in enumerate(tokens)}
    rust = tokenizers.Tokenizer(models.BPE(vocab, list(merges), ignore_merges=whole))
    cut = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=words is None)
    if words is not None:
        rust.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(words), "isolated"), cut])
    else:
        rust.pre_tokenizer = cut
    rust.decoder = decoders.ByteLevel()
    rust.add_tokens([AddedToken(tokens[index], normalized=False, special=special) for index, special in added])
    return rust


def put_before(tokens: Sequence[tuple[str, int]]) -> Any:
    """Return a rule that puts special tokens before every text."""
    single = [*(token for token, _ in tokens), "$A"]
    return processors.TemplateProcessing(single=single, special_tokens=list(dict.fromkeys(tokens)))
