"""Models of llama2.c: a header of seven numbers, weights in float32, and a tokeniser in tokenizer.bin beside them."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sixfold.config import Config, DataConfig, ModelConfig, TokenizerConfig
from sixfold.errors import ConfigError, ModelFileError
from sixfold.interop.huggingface import join
from sixfold.interop.prompt_tokenizers import from_pieces, put_before
from sixfold.modelfile import ModelFile
from sixfold.tensorfile import DAMAGED, OpenFile, StoredArray, Tensor, open_file
from sixfold.text.prompt_format import PromptFormat
from sixfold.text.sentencepiece_file import BYTE, CONTROL, NORMAL, SPACE, UNKNOWN
from sixfold.text.tokenizer import BYTES, Tokenizer
from sixfold.weights import check_weights, shapes

HEADER = struct.Struct("<7i")
MAGIC = 0x616B3432  # begins the files of later versions, which have other weights
TOKENIZER = "tokenizer.bin"
BOS, EOS = 1, 2
FIRST_BYTE = 3  # the ids 3 to 258 are bytes
MAX_TOKENIZER_BYTES = 64 * 2**20
LIMITS = (10**5, 10**6, 1000, 10**4, 10**4, 10**7, 10**7)  # of the numbers of a header


class Header(NamedTuple):
    """The numbers of a header in their order. A negative vocabulary says that the output is not tied."""

    dim: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    vocab: int
    length: int

    @property
    def is_valid(self) -> bool:
        """Return whether these can be the numbers of a model."""
        if not all(0 < abs(number) <= limit for number, limit in zip(self, LIMITS, strict=True)):
            return False
        is_positive = min(self._replace(vocab=1)) > 0
        return is_positive and self.dim % self.heads == 0 and self.heads % self.kv_heads == 0

    @property
    def arrays(self) -> dict[str, tuple[int, ...]]:
        """Return the names and shapes of the arrays, in the order of the file."""
        kv_dim, vocab = self.dim // self.heads * self.kv_heads, abs(self.vocab)
        arrays: dict[str, tuple[int, ...]] = {
            "tokens": (vocab, self.dim), "attention_norm": (self.layers, self.dim),
            "query": (self.layers, self.dim, self.dim), "key": (self.layers, kv_dim, self.dim),
            "value": (self.layers, kv_dim, self.dim), "attention_output": (self.layers, self.dim, self.dim),
            "feed_forward_norm": (self.layers, self.dim), "gate": (self.layers, self.hidden, self.dim),
            "down": (self.layers, self.dim, self.hidden), "up": (self.layers, self.hidden, self.dim),
            "norm": (self.dim,), "rotation": (2, self.length, self.dim // self.heads // 2),
        }  # fmt: skip
        return arrays if self.vocab > 0 else {**arrays, "projection": (vocab, self.dim)}

    @property
    def size(self) -> int:
        """Return the bytes of a file."""
        return HEADER.size + 4 * sum(map(math.prod, self.arrays.values()))


# Our names: the arrays of a layer, stacked.
LAYER = {
    "self_attention.query_key_value": ("query", "key", "value"),
    "self_attention.output": ("attention_output",),
    "self_attention_norm": ("attention_norm",),
    "feed_forward.gate": ("gate",),
    "feed_forward.up": ("up",),
    "feed_forward.down": ("down",),
    "feed_forward_norm": ("feed_forward_norm",),
}


def is_llama2c(path: Path) -> bool:
    """Return whether a file begins with a header that fits its size, or with that of a later version."""
    try:
        with path.open("rb") as file:
            start = file.read(HEADER.size)
        size = path.stat().st_size
    except OSError:
        return False
    if len(start) < HEADER.size:
        return False
    header = Header(*HEADER.unpack(start))
    return header.dim == MAGIC or (header.is_valid and size >= 2**10 and (size >= header.size or path.suffix == ".bin"))


def load_llama2c(path: Path) -> ModelFile:
    """Read a model file of llama2.c. Its tokeniser is at its end, or in tokenizer.bin beside it."""
    file = open_file(path)
    header = Header(*HEADER.unpack(file.read(0, HEADER.size).tobytes()))
    if header.dim == MAGIC:
        raise ModelFileError(
            f"{path}: expected a llama2.c file of its first version; got version {header.hidden}",
            "export it with `python export.py --version 0`",
        )
    if file.size < header.size:
        raise ModelFileError(f"{path}: expected {header.size} bytes for its header; got {file.size}", DAMAGED)
    config = _config(path, header)
    tensors = dict(_tensors(file, header))
    check_weights(str(path), shapes(config), {name: tensor.shape for name, tensor in tensors.items()})
    tokenizer = _find_tokenizer(file, header)
    full = Config(config, TokenizerConfig(vocab=config.vocab), data=DataConfig(max_tokens=config.max_length))
    layout = PromptFormat((BOS,), (EOS, BOS))  # models that were trained on stories end them with <s> too
    return ModelFile(full, tensors, tokenizer, {"parent": f"llama2.c model {path.name}"}, prompt_format=layout)


def _config(path: Path, header: Header) -> ModelConfig:
    try:
        return ModelConfig(
            kind="decoder", vocab=abs(header.vocab), d_model=header.dim, heads=header.heads, kv_heads=header.kv_heads,
            d_ff=header.hidden, decoder_layers=header.layers, positions="rotary", position_layout="interleaved",
            max_length=header.length, feed_forward="swiglu", bias=False, norm="rms", norm_position="pre",
            dropout=0.0, scale_embeddings=False, tie_output=header.vocab > 0, pad=0, bos=BOS, eos=EOS, unk=0,
        )  # fmt: skip
    except ConfigError as error:
        raise ModelFileError(f"{path}: its header: {error}") from None


def _tensors(file: OpenFile, header: Header) -> Iterator[tuple[str, Tensor]]:
    """Yield the weights, which are read when they are used. The table of rotations is not needed."""
    starts, position = {}, HEADER.size
    for name, shape in header.arrays.items():
        starts[name], position = position, position + 4 * math.prod(shape)

    def stored(name: str, layer: int | None = None) -> Tensor:
        shape = header.arrays[name] if layer is None else header.arrays[name][1:]
        size = 4 * math.prod(shape)
        return Tensor("F32", StoredArray(file, name, starts[name] + size * (layer or 0), size, np.float32, shape))

    yield "decoder.embedding.token.weight", stored("tokens")
    for layer in range(header.layers):
        for ours, theirs in LAYER.items():
            weight = f"decoder.layers.{layer}.{ours}.weight"
            yield weight, join([stored(name, layer) for name in theirs], f"{file.path}: {weight}")
    yield "decoder.norm.weight", stored("norm")
    if header.vocab < 0:
        yield "output.projection.weight", stored("projection")


def _find_tokenizer(file: OpenFile, header: Header) -> Tokenizer | None:
    beside = file.path.with_name(TOKENIZER)
    if file.size > header.size:
        rest = file.size - header.size
        if rest > MAX_TOKENIZER_BYTES:
            raise ModelFileError(f"{file.path}: expected {header.size} bytes; got {file.size}", DAMAGED)
        data, where = file.read(header.size, rest).tobytes(), f"{file.path}: what follows the weights"
    elif beside.exists():
        if beside.stat().st_size > MAX_TOKENIZER_BYTES:
            raise ModelFileError(f"{beside}: expected at most {MAX_TOKENIZER_BYTES} bytes; got more")
        data, where = beside.read_bytes(), str(beside)
    else:
        return None
    return read_tokenizer(data, abs(header.vocab), where)


def read_tokenizer(data: bytes, vocab: int, where: str) -> Tokenizer:
    """Read tokenizer.bin: the largest size of a token, then for each token its score, its size and its text."""
    try:
        rows = list(islice(_rows(data), vocab + 1))
        texts = _names([text.decode("utf-8") for _, text in rows])
    except (struct.error, ValueError) as error:
        raise ModelFileError(f"{where}: expected a tokeniser of llama2.c; {error}", DAMAGED) from None
    if len(rows) != vocab or vocab < FIRST_BYTE + len(BYTES):
        count = f"more than {vocab}" if len(rows) > vocab else len(rows)
        raise ModelFileError(f"{where}: expected a tokeniser of {vocab} tokens, bytes among them; got {count}")
    kinds = [UNKNOWN, CONTROL, CONTROL, *[BYTE] * len(BYTES), *[NORMAL] * vocab][:vocab]
    rust = from_pieces(texts, [score for score, _ in rows], kinds, add_space=True)
    rust.post_processor = put_before([(texts[BOS], BOS)])
    return Tokenizer(rust, "foreign")


def _rows(data: bytes) -> Iterator[tuple[float, bytes]]:
    position = 4
    while position < len(data):
        score, size = struct.unpack_from("<fi", data, position)
        position += 8 + size
        if size < 0 or position > len(data):
            raise ValueError("a token is cut short")
        yield score, data[position - size : position]


def _names(texts: Sequence[str]) -> list[str]:
    """Return the pieces of SentencePiece: llama2.c writes spaces, and in its first files bytes as characters."""
    first, end = FIRST_BYTE, FIRST_BYTE + len(BYTES)
    if list(texts[first:end]) not in ([chr(byte) for byte in range(256)], list(BYTES)):
        raise ValueError("its tokens 3 to 258 are not the 256 bytes")
    return ["<unk>", "<s>", "</s>", *BYTES, *(text.replace(" ", SPACE) for text in texts[end:])]
