"""Text to subword ids and back, with BPE, WordPiece or unigram; decoding returns exactly the text that was encoded.

A piece includes the space before it, and a character without a piece is spelt in bytes, so decoding is concatenation.
A space is put before every text, so that a word at its start is the same piece as elsewhere; decoding removes it.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

import numpy as np
import tokenizers

from sixfold.config import Algorithm, ModelConfig
from sixfold.errors import DataError, ModelFileError, RequestError
from sixfold.text.encodings import decode_line

SPECIALS = ("<pad>", "<bos>", "<eos>", "<unk>", "<mask>")
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
VERSION = 1
# Span tokens are private-use characters. In a text they stand for what a model must copy and not translate:
# placeholders, opening tags and closing tags, the same number of each.
SPAN_KINDS = ("placeholder", "opening", "closing")
FIRST_SPAN = 0xE000

# The names of our special tokens in published tokenisers.
FOREIGN_NAMES = {
    "pad": ("<pad>", "[PAD]"),
    "bos": ("<s>", "<bos>", "[CLS]", "<|begin_of_text|>", "<|endoftext|>"),
    "eos": ("</s>", "<eos>", "[SEP]", "<|end_of_text|>", "<|endoftext|>"),
    "unk": ("<unk>", "[UNK]"),
    "mask": ("<mask>", "[MASK]"),
}


@dataclass(frozen=True)
class Encoding:
    """The pieces of one text; `offsets[i]` are the first and the last character of piece i, the last exclusive."""

    ids: list[int]
    tokens: list[str]
    offsets: list[tuple[int, int]]


class Tokenizer:
    """An immutable tokeniser, made by `train_tokenizer` or loaded from a file."""

    def __init__(
        self,
        rust: tokenizers.Tokenizer,
        algorithm: str,
        tags: Sequence[str] = (),
        character_map: Sequence[str] = ("", ""),
        spans: int = 0,
    ) -> None:
        """Wrap a tokeniser of the Rust library.

        `character_map` are two strings of the same length: each character of the first is read as the one at the same
        position of the second. `spans` is the number of span tokens of each kind.
        """
        self.rust = rust
        self.spans = spans
        self.algorithm = algorithm
        self.tags = tuple(tags)
        self.character_map = str.maketrans(*character_map)
        self._json: str | None = None

    @property
    def is_foreign(self) -> bool:
        """Return whether another toolkit has learnt this tokeniser."""
        return self.algorithm not in get_args(Algorithm)

    @cached_property
    def vocab(self) -> int:
        """Return one more than the largest id; published tokenisers may have unused ids below it."""
        return 1 + max(self.rust.get_vocab().values())

    @cached_property
    def tokens(self) -> list[str]:
        """Return every piece, in the order of the ids."""
        return [self.rust.id_to_token(index) or f"<unused {index}>" for index in range(self.vocab)]

    @cached_property
    def specials(self) -> dict[str, int]:
        """Return the ids of those of pad, bos, eos, unk and mask that this tokeniser has."""
        if self.algorithm != "foreign":
            return {name.strip("<>"): index for index, name in enumerate(SPECIALS)}
        candidates = {
            role: [index for index in map(self.rust.token_to_id, names) if index is not None]
            for role, names in FOREIGN_NAMES.items()
        }
        return {role: indices[0] for role, indices in candidates.items() if indices}

    @cached_property
    def reserved(self) -> frozenset[int]:
        """Return the ids that stand for no text: special tokens and tags."""
        if self.algorithm == "foreign":
            added = self.rust.get_added_tokens_decoder()
            return frozenset(index for index, token in added.items() if token.special)
        return frozenset(range(len(SPECIALS) + len(self.tags)))

    def tag(self, name: str) -> int:
        """Return the id of a tag; raise RequestError if the tokeniser has no such tag."""
        if name not in self.tags:
            names = ", ".join(self.tags) or "none"
            raise RequestError(f"tag: expected one of those this tokeniser was trained with ({names}); got {name!r}")
        return len(SPECIALS) + self.tags.index(name)

    @cached_property
    def byte_ids(self) -> tuple[int, ...]:
        """Return the ids of the bytes that spell characters without a piece; a published tokeniser may have none."""
        ids = (self.rust.token_to_id(name) for name in BYTES)
        return tuple(index for index in ids if index is not None)

    @cached_property
    def span_ids(self) -> tuple[int, ...]:
        """The ids of the span tokens."""
        ids = (self.rust.token_to_id(token) for token in span_tokens(self.spans))
        return tuple(index for index in ids if index is not None)

    def tag_prefix(self, name: str) -> tuple[int, ...]:
        """Return the id of a tag as a tuple of one, or an empty tuple if the tokeniser has no such tag."""
        return (self.tag(name),) if name in self.tags else ()

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without special tokens."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of several texts, without special tokens."""
        encodings = self._encode(texts)
        if self.algorithm != "wordpiece":
            return [encoding.ids for encoding in encodings]
        return [
            self._spell_unknown(self.normalise(text), encoding).ids
            for text, encoding in zip(texts, encodings, strict=True)
        ]

    def encode_with_offsets(self, text: str) -> Encoding:
        """Return the ids, the pieces and their offsets in a text, without special tokens."""
        return self._spell_unknown(self.normalise(text), self._encode([text])[0])

    def normalise(self, text: str) -> str:
        """Replace the characters of a text that are in the character map; the length stays the same."""
        return text.translate(self.character_map) if self.character_map else text

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids. Special tokens and tags are left out; invalid bytes become U+FFFD."""
        text_ids = [index for index in ids if index not in self.reserved]
        for index in text_ids:
            if not 0 <= index < self.vocab:
                raise DataError(f"ids: expected numbers from 0 to {self.vocab - 1}; got {index}")
        return str(self.rust.decode(text_ids, skip_special_tokens=False))

    def sample(self, ids: Sequence[int], rate: float, random: np.random.Generator) -> list[int]:
        """Cut each piece in two with probability `rate`, and then its halves: subword regularisation.

        It undoes merges at random, while BPE-dropout leaves them out. It works on the ids of every algorithm, and the
        same seed gives the same pieces, which the Rust library's own sampling cannot guarantee.
        """
        result, _ = self.sample_batch(np.array(ids, np.int64), np.array([len(ids)]), rate, random)
        return list(map(int, result))

    def sample_batch(
        self, ids: np.ndarray, lengths: np.ndarray, rate: float, random: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Apply `sample` to several texts at once; return their ids, one text after another, and their lengths."""
        if self.is_foreign:
            raise RequestError("subword sampling: expected a tokeniser trained by Sixfold; got one of another toolkit")
        first, left, right = self._cuts
        text_of = np.repeat(np.arange(len(lengths)), lengths)
        is_open = np.ones(len(ids), bool)
        while is_open.any():
            choices = first[ids + 1] - first[ids]
            cut = is_open & (choices > 0) & (random.random(len(ids)) < rate)
            chosen = first[ids[cut]] + (random.random(int(cut.sum())) * choices[cut]).astype(np.int64)
            # A piece that is cut is repeated, and its two halves may be cut again.
            copies = 1 + cut
            ids, text_of, is_open = (np.repeat(array, copies) for array in (ids, text_of, cut))
            begins = np.flatnonzero(is_open)[::2]
            ids[begins], ids[begins + 1] = left[chosen], right[chosen]
        return ids, np.bincount(text_of, minlength=len(lengths))

    @cached_property
    def _cuts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return how each piece can be cut into two other pieces: arrays first, left and right.

        Piece i can be cut into left[k] and right[k] for each k from first[i] to first[i + 1], exclusive.
        """
        first_learned = len(SPECIALS) + len(self.tags) + len(BYTES)
        ids = {token: index for index, token in enumerate(self.tokens) if index >= first_learned}
        counts = [0] * (self.vocab + 1)
        halves: list[tuple[int, int]] = []
        for token, index in ids.items():
            pairs = [(ids.get(token[:cut]), ids.get(token[cut:])) for cut in range(1, len(token))]
            cuts = [(left, right) for left, right in pairs if left is not None and right is not None]
            counts[index + 1] = len(cuts)
            halves += cuts
        columns = np.array(halves, np.int64).reshape(-1, 2)
        return np.cumsum(counts), columns[:, 0], columns[:, 1]

    def _encode(self, texts: Sequence[str]) -> list[tokenizers.Encoding]:
        try:
            return list(self.rust.encode_batch(list(map(self.normalise, texts)), add_special_tokens=False))
        except (UnicodeEncodeError, TypeError):
            where = next((index for text in texts for index, char in enumerate(text) if is_surrogate(char)), None)
            if where is None:
                raise
            raise DataError(
                f"text: expected Unicode; got a lone surrogate at character {where}",
                "read the text with errors='replace'",
            ) from None

    def _spell_unknown(self, text: str, encoding: tokenizers.Encoding) -> Encoding:
        """Replace each unknown character of WordPiece, which has no byte fallback, by its bytes."""
        unknown = self.specials.get("unk") if self.algorithm == "wordpiece" else None
        first_byte = len(SPECIALS) + len(self.tags)
        ids: list[int] = []
        offsets: list[tuple[int, int]] = []
        for index, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
            spelling = [first_byte + byte for byte in text[start:end].encode()] if index == unknown else [index]
            ids += spelling
            offsets += [(start, end)] * len(spelling)
        return Encoding(ids, [self.tokens[index] for index in ids], offsets)

    def to_json(self) -> str:
        """Return the tokeniser as one line of JSON, as it is stored in a model file."""
        if self._json is not None:
            return self._json
        state = {
            "version": VERSION,
            "algorithm": self.algorithm,
            "tags": self.tags,
            **self._character_map_state(),
            **({"spans": self.spans} if self.spans else {}),
            "rust": json.loads(self.rust.to_str()),
        }
        return json.dumps(state, ensure_ascii=False, separators=(",", ":"))

    def _character_map_state(self) -> dict[str, Any]:
        if not self.character_map:
            return {}
        return {"fold": ["".join(map(chr, self.character_map)), "".join(map(chr, self.character_map.values()))]}

    def read(self, text: str) -> str:
        """Call `normalise`. Deprecated."""
        warnings.warn("Tokenizer.read is now Tokenizer.normalise", DeprecationWarning, stacklevel=2)
        return self.normalise(text)

    @property
    def fold(self) -> dict[int, int]:
        """Return `character_map`. Deprecated."""
        warnings.warn("Tokenizer.fold is now Tokenizer.character_map", DeprecationWarning, stacklevel=2)
        return self.character_map

    def known_tags(self, name: str) -> tuple[int, ...]:
        """Call `tag_prefix`. Deprecated."""
        warnings.warn("Tokenizer.known_tags is now Tokenizer.tag_prefix", DeprecationWarning, stacklevel=2)
        return self.tag_prefix(name)

    @classmethod
    def from_json(cls, text: str, where: str = "tokenizer") -> Tokenizer:
        """Read what `to_json` returned, or a Hugging Face tokenizer.json; `where` is named in error messages."""
        try:
            state: dict[str, Any] = json.loads(text)
            if "algorithm" in state and "model" in state:
                from sixfold.text.vocabulary_tokenizer import VocabularyTokenizer

                if state["version"] == VERSION:
                    return VocabularyTokenizer.from_state(state, where)
            if "rust" not in state and "algorithm" not in state:
                published = tokenizers.Tokenizer.from_str(text)
                published.no_truncation()  # as it was saved, it may cut texts at some length, or fill them up
                published.no_padding()
                return cls(published, "foreign")
            if state["version"] > VERSION:
                raise ModelFileError(
                    f"{where}: tokeniser format {state['version']} is newer than {VERSION}", "upgrade sixfold"
                )
            rust = tokenizers.Tokenizer.from_str(json.dumps(state["rust"]))
            tokenizer = cls(rust, state["algorithm"], state["tags"], state.get("fold", ("", "")), state.get("spans", 0))
            # Kept as it is, because the Rust library may write the scores of a unigram model with another last digit.
            tokenizer._json = text
            return tokenizer
        except ModelFileError:
            raise
        except Exception as error:  # the Rust library raises plain Exception
            raise ModelFileError(f"{where}: expected a tokeniser in JSON; {str(error).splitlines()[0]}") from None

    @classmethod
    def load(cls, path: Path) -> Tokenizer:
        """Read a tokeniser file of Sixfold or a Hugging Face tokenizer.json."""
        try:
            raw = path.read_bytes()
        except OSError as error:
            raise DataError(f"{path}: {error.strerror}") from None
        return cls.from_json(decode_line(raw, str(path)), str(path))

    def fit(self, config: ModelConfig) -> ModelConfig:
        """Return a model config with this tokeniser's vocabulary and special ids."""
        # GPT-2 has one special token for all roles.
        fallback = self.specials.get("eos", 0)
        pad, bos, eos, unk = (self.specials.get(role, fallback) for role in ("pad", "bos", "eos", "unk"))
        return replace(config, vocab=self.vocab, pad=pad, bos=bos, eos=eos, unk=unk)


def span_tokens(count: int) -> list[str]:
    """Return `count` characters for each kind of span: all placeholders, then all opening, then all closing tags."""
    return [chr(FIRST_SPAN + index) for index in range(count * len(SPAN_KINDS))]


def is_surrogate(char: str) -> bool:
    """Return whether a character is half of a UTF-16 pair, which Python strings can hold and UTF-8 cannot."""
    return "\ud800" <= char <= "\udfff"
