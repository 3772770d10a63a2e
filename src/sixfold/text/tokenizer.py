"""Text to subword ids and back: BPE, WordPiece or unigram, and every string comes back exactly as it went in.

Pieces carry their leading space as a plain space, and a character that no piece knows is spelt in bytes, so decoding
is concatenation. A space put before every text makes a word at the start the same piece as that word further on;
decoding takes it off again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers

from sixfold.config import ModelConfig
from sixfold.errors import DataError, ModelFileError, RequestError
from sixfold.text.lines import decode_line

SPECIALS = ("<pad>", "<bos>", "<eos>", "<unk>", "<mask>")
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
VERSION = 1
# Span tokens are private-use characters that stand in a text for what a model must copy, not translate: placeholders,
# opening tags and closing tags, so many of each.
SPAN_KINDS = ("placeholder", "opening", "closing")
FIRST_SPAN = 0xE000

# What published tokenisers call our specials.
FOREIGN_NAMES = {
    "pad": ("<pad>", "[PAD]"),
    "bos": ("<s>", "<bos>", "[CLS]", "<|begin_of_text|>", "<|endoftext|>"),
    "eos": ("</s>", "<eos>", "[SEP]", "<|end_of_text|>", "<|endoftext|>"),
    "unk": ("<unk>", "[UNK]"),
    "mask": ("<mask>", "[MASK]"),
}


@dataclass(frozen=True)
class Encoding:
    """The pieces of one text; `offsets[i]` is where piece i stands in it, in characters."""

    ids: list[int]
    tokens: list[str]
    offsets: list[tuple[int, int]]


class Tokenizer:
    """A trained tokeniser. Made by `train_tokenizer`, or loaded; it never changes."""

    def __init__(
        self,
        rust: tokenizers.Tokenizer,
        algorithm: str,
        tags: Sequence[str] = (),
        fold: Sequence[str] = ("", ""),
        spans: int = 0,
    ) -> None:
        """`fold` are characters, and as many others that they are read as; `spans` is the number of spans a kind."""
        self.rust = rust
        self.spans = spans
        self.algorithm = algorithm
        self.tags = tuple(tags)
        self.fold = str.maketrans(*fold)
        self._json: str | None = None

    @cached_property
    def vocab(self) -> int:
        """One more than the largest id; published tokenisers may leave some out."""
        return 1 + max(self.rust.get_vocab().values())

    @cached_property
    def tokens(self) -> list[str]:
        """Every piece, in the order of the ids."""
        return [self.rust.id_to_token(index) or f"<unused {index}>" for index in range(self.vocab)]

    @cached_property
    def specials(self) -> dict[str, int]:
        """The ids of pad, bos, eos, unk and mask, as far as this tokeniser has them."""
        if self.algorithm != "foreign":
            return {name.strip("<>"): index for index, name in enumerate(SPECIALS)}
        found = {
            role: [index for index in map(self.rust.token_to_id, names) if index is not None]
            for role, names in FOREIGN_NAMES.items()
        }
        return {role: indices[0] for role, indices in found.items() if indices}

    @cached_property
    def reserved(self) -> frozenset[int]:
        """Ids that stand for no text: specials and tags."""
        if self.algorithm == "foreign":
            added = self.rust.get_added_tokens_decoder()
            return frozenset(index for index, token in added.items() if token.special)
        return frozenset(range(len(SPECIALS) + len(self.tags)))

    def tag(self, name: str) -> int:
        """The id of a language tag."""
        if name not in self.tags:
            known = ", ".join(self.tags) or "none"
            raise RequestError(f"tag: expected one of those this tokeniser was trained with ({known}); got {name!r}")
        return len(SPECIALS) + self.tags.index(name)

    @cached_property
    def byte_ids(self) -> tuple[int, ...]:
        """What spells a character that has no piece; a published tokeniser may have none."""
        found = (self.rust.token_to_id(name) for name in BYTES)
        return tuple(index for index in found if index is not None)

    def known_tags(self, name: str) -> tuple[int, ...]:
        """Its id, if it is a tag here."""
        return (self.tag(name),) if name in self.tags else ()

    def encode(self, text: str) -> list[int]:
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        encodings = self._encode(texts)
        if self.algorithm != "wordpiece":
            return [encoding.ids for encoding in encodings]
        return [self._spelt(self.read(text), found).ids for text, found in zip(texts, encodings, strict=True)]

    def encode_with_offsets(self, text: str) -> Encoding:
        return self._spelt(self.read(text), self._encode([text])[0])

    def read(self, text: str) -> str:
        """As it is understood: each character, or the one that it is read as."""
        return text.translate(self.fold) if self.fold else text

    def decode(self, ids: Iterable[int]) -> str:
        """The text of these ids; specials and tags are left out, bytes that form no character become U+FFFD."""
        kept = [index for index in ids if index not in self.reserved]
        for index in kept:
            if not 0 <= index < self.vocab:
                raise DataError(f"ids: expected numbers from 0 to {self.vocab - 1}; got {index}")
        return str(self.rust.decode(kept, skip_special_tokens=False))

    def sample(self, ids: Sequence[int], rate: float, random: np.random.Generator) -> list[int]:
        """Subword regularisation: each piece is cut in two with probability `rate`, and so are the halves.

        It undoes merges at random, as BPE-dropout withholds them, but works on ids for every algorithm and repeats
        exactly from a seed, which the Rust library's own sampling cannot.
        """
        result, _ = self.sample_batch(np.array(ids, np.int64), np.array([len(ids)]), rate, random)
        return list(map(int, result))

    def sample_batch(
        self, ids: np.ndarray, lengths: np.ndarray, rate: float, random: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """As `sample`, for many texts at once whose ids stand one after another."""
        if self.algorithm == "foreign":
            raise RequestError(
                "subword sampling: expected a tokeniser of ours, whose pieces are plain text; got a foreign one"
            )
        first, left, right = self._cuts
        text_of = np.repeat(np.arange(len(lengths)), lengths)
        is_open = np.ones(len(ids), bool)
        while is_open.any():
            ways = first[ids + 1] - first[ids]
            cut = is_open & (ways > 0) & (random.random(len(ids)) < rate)
            chosen = first[ids[cut]] + (random.random(int(cut.sum())) * ways[cut]).astype(np.int64)
            # Each piece that is cut takes two places; its halves are open to be cut again.
            copies = 1 + cut
            ids, text_of, is_open = (np.repeat(each, copies) for each in (ids, text_of, cut))
            begins = np.flatnonzero(is_open)[::2]
            ids[begins], ids[begins + 1] = left[chosen], right[chosen]
        return ids, np.bincount(text_of, minlength=len(lengths))

    @cached_property
    def _cuts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The ways to cut a piece into two known pieces: those of piece i stand from first[i] to first[i + 1]."""
        first_learned = len(SPECIALS) + len(self.tags) + len(BYTES)
        ids = {token: index for index, token in enumerate(self.tokens) if index >= first_learned}
        counts = [0] * (self.vocab + 1)
        halves: list[tuple[int, int]] = []
        for token, index in ids.items():
            found = [(ids.get(token[:cut]), ids.get(token[cut:])) for cut in range(1, len(token))]
            ways = [(one, other) for one, other in found if one is not None and other is not None]
            counts[index + 1] = len(ways)
            halves += ways
        both = np.array(halves, np.int64).reshape(-1, 2)
        return np.cumsum(counts), both[:, 0], both[:, 1]

    def _encode(self, texts: Sequence[str]) -> list[tokenizers.Encoding]:
        try:
            return list(self.rust.encode_batch(list(map(self.read, texts)), add_special_tokens=False))
        except (UnicodeEncodeError, TypeError):
            where = next((index for text in texts for index, char in enumerate(text) if is_surrogate(char)), None)
            if where is None:
                raise
            raise DataError(
                f"text: expected Unicode; got a lone surrogate at character {where}",
                "read the text with errors='replace'",
            ) from None

    def _spelt(self, text: str, encoding: tokenizers.Encoding) -> Encoding:
        """WordPiece knows no byte fallback: spell each unknown character here."""
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
        """All of it as one line of JSON, as it is stored in a model file."""
        if self._json is not None:
            return self._json
        state = {
            "version": VERSION,
            "algorithm": self.algorithm,
            "tags": self.tags,
            **self._fold_state(),
            **({"spans": self.spans} if self.spans else {}),
            "rust": json.loads(self.rust.to_str()),
        }
        return json.dumps(state, ensure_ascii=False, separators=(",", ":"))

    def _fold_state(self) -> dict[str, Any]:
        return {"fold": ["".join(map(chr, self.fold)), "".join(map(chr, self.fold.values()))]} if self.fold else {}

    @classmethod
    def from_json(cls, text: str, where: str = "tokenizer") -> Tokenizer:
        """Read what to_json wrote, or a Hugging Face tokenizer.json."""
        try:
            state: dict[str, Any] = json.loads(text)
            if "rust" not in state:
                return cls(tokenizers.Tokenizer.from_str(text), "foreign")
            if state["version"] > VERSION:
                raise ModelFileError(
                    f"{where}: tokeniser format {state['version']} is newer than {VERSION}", "upgrade sixfold"
                )
            rust = tokenizers.Tokenizer.from_str(json.dumps(state["rust"]))
            tokenizer = cls(rust, state["algorithm"], state["tags"], state.get("fold", ("", "")), state.get("spans", 0))
            # Kept as read: the Rust library may write the scores of a unigram model back with another last digit.
            tokenizer._json = text
            return tokenizer
        except ModelFileError:
            raise
        except Exception as error:  # the Rust library raises plain Exception
            raise ModelFileError(f"{where}: expected a tokeniser in JSON; {str(error).splitlines()[0]}") from None

    @classmethod
    def load(cls, path: Path) -> Tokenizer:
        """From a tokeniser file of ours or a Hugging Face tokenizer.json."""
        try:
            raw = path.read_bytes()
        except OSError as error:
            raise DataError(f"{path}: {error.strerror}") from None
        return cls.from_json(decode_line(raw, str(path)), str(path))

    def fit(self, config: ModelConfig) -> ModelConfig:
        """The same model with this tokeniser's vocabulary and special ids."""
        # GPT-2 has one special token for all purposes.
        spare = self.specials.get("eos", 0)
        pad, bos, eos, unk = (self.specials.get(role, spare) for role in ("pad", "bos", "eos", "unk"))
        return replace(config, vocab=self.vocab, pad=pad, bos=bos, eos=eos, unk=unk)


def span_tokens(count: int) -> list[str]:
    """`count` characters for each kind of span: all placeholders, then all opening tags, then all closing tags."""
    return [chr(FIRST_SPAN + index) for index in range(count * len(SPAN_KINDS))]


def is_surrogate(char: str) -> bool:
    """Half of a UTF-16 pair, which Python strings can hold and UTF-8 cannot."""
    return "\ud800" <= char <= "\udfff"
