"""A trace: every array of one forward pass over a sentence and its translation, with the pieces its rows stand for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from sixfold import tensorfile
from sixfold.alignment_heads import AligningHeads, align, aligning_heads, word_weights
from sixfold.config import ModelConfig
from sixfold.errors import RequestError
from sixfold.explorer.forward import forward, softmax
from sixfold.explorer.heads import Head, Kind, check_head, kinds_of
from sixfold.explorer.pieces import Pieces, piece_text, pieces_of_ids, pieces_of_text
from sixfold.modelfile import ModelFile
from sixfold.tensorfile import Tensor
from sixfold.text.sequence_format import SpecialTokens
from sixfold.text.tokenizer import Tokenizer
from sixfold.translation.direction import Direction, collapse_whitespace, special_tokens
from sixfold.translation.options import TranslateOptions
from sixfold.translation.pipeline import decode
from sixfold.translation.prepare import replace_surrogates, source_sentence
from sixfold.translation.protection import Edit, apply_edits
from sixfold.translation.request import DecodeOptions
from sixfold.weights import depth

Array = np.ndarray
NEEDED_WHOLE = ("key", "value", "key_rotated")  # a single query row needs all rows of these arrays
MAX_FLOAT16 = 65504.0  # beyond it a float16 is infinite, which would mean masked


class Choice(NamedTuple):
    """A piece that the decoder could have written next."""

    id: int
    text: str
    logit: float
    probability: float


class Step(NamedTuple):
    """One decoding step: the piece that was read last, the piece that came next, and the likeliest alternatives."""

    read: str
    wrote: str
    probability: float
    rank: int  # of the piece that came next; 0 is the likeliest
    entropy: float  # of the whole distribution, in bits
    choices: tuple[Choice, ...]


@dataclass(frozen=True)
class Trace:
    """What `explore` returns. `trace[name]` is an array of the forward pass, without the axis of rows of `forward`.

    An encoder-decoder has both `source` and `target`; an encoder has only a source, a decoder only a target. `target`
    is what the decoder reads: <bos>, then the translation. `predicted` is what it should write at each position: the
    translation, then <eos>. A decoder-only model reads the text as a prompt, and the last piece of `predicted` is the
    one that it would write next. `off` lists the heads that were switched off.
    """

    model: ModelFile
    tokenizer: Tokenizer
    arrays: Mapping[str, Array]
    source: Pieces | None
    target: Pieces | None
    predicted: Pieces | None
    text: str
    translation: str
    languages: tuple[str, str]
    off: tuple[Head, ...] = ()

    def __getitem__(self, name: str) -> Array:
        if name not in self.arrays:
            similar = [candidate for candidate in self.arrays if candidate.split(".")[-1] == name.split(".")[-1]][:3]
            hint = f"try {', '.join(similar)}" if similar else "`trace.names` lists them"
            raise RequestError(f"name: expected the name of an array of this trace; got {name!r:.80}", hint)
        return self.arrays[name]

    @property
    def names(self) -> list[str]:
        """The names of all arrays, in the order of computation."""
        return list(self.arrays)

    @property
    def config(self) -> ModelConfig:
        return self.model.config.model

    @property
    def target_tokenizer(self) -> Tokenizer:
        """The tokeniser of the target, which a model may share with the source."""
        return self.model.target_tokenizer or self.tokenizer

    @property
    def special(self) -> SpecialTokens:
        """The special tokens of the direction."""
        return special_tokens(self.model, self.tokenizer, self.languages)

    @property
    def kinds(self) -> dict[Kind, int]:
        """The kinds of attention that the model has, each with its number of layers."""
        return kinds_of(self.config)

    def attention(self, kind: Kind, layer: int | None = None, head: int | None = None) -> Array:
        """Return attention weights: layers × heads × rows × columns, or those of one layer, or of one head."""
        check_head(self.config, Head(kind, layer or 0, head or 0))
        layers = range(self.kinds[kind]) if layer is None else [layer]
        weights = np.stack([self[f"{Head(kind, index, 0).module_path}.weights"] for index in layers])
        weights = weights if head is None else weights[:, head]
        return weights if layer is None else weights[0]

    def rows(self, kind: Kind) -> Pieces:
        """Return the pieces that queries come from, in this kind of attention."""
        side = self.source if kind == "encoder" else self.target
        assert side is not None
        return side

    def columns(self, kind: Kind) -> Pieces:
        """Return the pieces that are looked at, in this kind of attention."""
        side = self.target if kind == "decoder" else self.source
        assert side is not None
        return side

    def labels(self, kind: Kind) -> tuple[list[str], list[str]]:
        """Return the labels of rows and columns. A row of a decoder shows what it reads and what comes next."""
        rows = self.rows(kind).texts
        if kind != "encoder" and self.predicted is not None:
            rows = [f"{read} → {wrote}" for read, wrote in zip(rows, self.predicted.texts, strict=True)]
        return rows, self.columns(kind).texts

    def by_word(self, kind: Kind, weights: Array) -> tuple[Array, list[str], list[str]]:
        """Return weights of words, from weights of pieces: the mean of a word's rows, the sum of its columns.

        The words of rows and of columns come with them. A row of a translation is a word that was written, and a row
        of a decoder-only model is one that was read.
        """
        rows = self.rows(kind) if self.predicted is None or not self.names_rows_by_output(kind) else self.predicted
        columns = self.columns(kind)
        return word_weights(weights, rows.words, columns.words), rows.word_texts, columns.word_texts

    def names_rows_by_output(self, kind: Kind) -> bool:
        """Return whether rows are found by the piece that they write, as in a translation, not by that which they read.

        Nobody looks for the <bos> of a translation; of a text, what a piece attends to is in the row that reads it.
        """
        return kind != "encoder" and self.source is not None

    @property
    def aligning(self) -> AligningHeads:
        """The heads whose attention aligns the target with the source."""
        if self.source is None or self.predicted is None:
            message = f"alignment: expected an encoder-decoder; got a model of the kind {self.config.kind!r}"
            raise RequestError(message, "the views attention, heads and token show what its pieces attend to")
        return aligning_heads(self.model.card, self.config)

    def alignment(self, aligning: AligningHeads | None = None) -> tuple[Array, Pieces, Pieces]:
        """Return the share of each source piece (columns) in each target piece (rows), and both rows of pieces.

        Tags, <bos> and <eos> are left out. Without an argument, this is the alignment that the details of a
        translation contain; `aligning` takes other heads than those on the model's card.
        """
        chosen = self.aligning if aligning is None else aligning
        assert self.source is not None
        assert self.predicted is not None
        rows, columns = self.text_rows, self.text_columns
        steps = self.attention("cross", chosen.layer)[list(chosen.heads)].mean(axis=0)
        source = self.source.part(columns.start, columns.stop)
        weights = align(chosen.token_weights(steps)[rows, columns], [start < end for start, end in source.spans])
        return weights, self.predicted.part(rows.start, -1), source

    @property
    def text_columns(self) -> slice:
        """Which of the source pieces are those of the text."""
        assert self.source is not None
        return slice(len(self.special.before_source), len(self.source) - len(self.special.after_source))

    @property
    def text_rows(self) -> slice:
        """Which of the predicted pieces are those of the translation and its <eos>."""
        return slice(len(self.special.before_target), None)

    def steps(self, count: int = 10) -> list[Step]:
        """Return every decoding step, each with its `count` likeliest pieces."""
        if self.target is None or self.predicted is None:
            raise RequestError(f"steps: expected a model with a decoder; got one of the kind {self.config.kind!r}")
        texts = zip(self.target.texts, self.predicted.texts, strict=True)
        return [
            make_step(self.target_tokenizer, read, wrote, token, logits, count)
            for (read, wrote), token, logits in zip(texts, self.predicted.ids, self["logits"], strict=True)
        ]

    def safetensors(self, names: Iterable[str], half: bool = False, row: int | None = None) -> bytes:
        """Return arrays as the bytes of a safetensors file.

        `half` stores them in float16. `row` takes only the row of this position, in float32. Each array of attention
        `weights` comes with its `mask`: one bit a cell, 1 = may look, each row padded to whole bytes.
        """
        tensors: dict[str, Tensor] = {}
        for name in names:
            array = self[name]
            if name.endswith(".weights"):
                mask = self[name.removesuffix("weights") + "masked_scores"][0] > -np.inf
                tensors[name.removesuffix("weights") + "mask"] = Tensor.of(np.packbits(mask, axis=-1))
            if row is not None and name.rpartition(".")[2] not in NEEDED_WHOLE:
                axis = array.ndim - 2
                if not 0 <= row < array.shape[axis]:
                    raise RequestError(f"row: expected 0 to {array.shape[axis] - 1}; got {row}")
                array = np.take(array, row, axis=axis)
            if half and row is None:
                clipped = np.where(np.isfinite(array), np.clip(array, -MAX_FLOAT16, MAX_FLOAT16), array)
                array = clipped.astype(np.float16)
            tensors[name] = Tensor.of(np.ascontiguousarray(array))
        return b"".join(tensorfile.packed(tensors, {})[1])

    @property
    def nbytes(self) -> int:
        """The memory of all arrays, in bytes."""
        return sum(array.nbytes for array in self.arrays.values())

    def to_dict(self, count: int = 10) -> dict[str, Any]:
        """Return what the HTTP interface sends first: pieces, steps, and the names and shapes of the arrays."""
        config = self.config
        sides = {"source": self.source, "target": self.target, "predicted": self.predicted}
        return {
            "text": self.text, "translation": self.translation, "from": self.languages[0], "to": self.languages[1],
            "model": self.model.name, "off": [str(head) for head in self.off],
            "kinds": dict(self.kinds), "heads": config.heads, "d_model": config.d_model, "d_head": config.d_head,
            "config": asdict(config),
            **{name: None if side is None else _pieces_to_dict(side) for name, side in sides.items()},
            "steps": [] if self.predicted is None else [step_to_dict(step) for step in self.steps(count)],
            "arrays": {name: list(array.shape) for name, array in self.arrays.items()},
        }  # fmt: skip

    def _repr_html_(self) -> str:
        """Return the pictures that a notebook shows: the alignment of words, and all heads."""
        from sixfold.explorer.views import notebook

        return notebook(self)

    def __repr__(self) -> str:
        translation = f" → {self.translation!r:.40}" if self.translation else ""
        return f"Trace({self.text!r:.40}{translation}, {len(self.arrays)} arrays)"


def make_step(tokenizer: Tokenizer, read: str, wrote: str, token: int, logits: Array, count: int) -> Step:
    """Return a step from its logits, which are -inf for pieces that cannot be chosen; `token` is what came next."""
    probabilities = softmax(logits)
    likeliest = np.argpartition(-logits, min(count, len(logits)) - 1)[:count]  # a full sort takes many times as long
    ranked = [int(index) for index in likeliest[np.lexsort((likeliest, -logits[likeliest]))] if logits[index] > -np.inf]
    choices = [
        Choice(index, piece_text(tokenizer, index), float(logits[index]), float(probabilities[index]))
        for index in ranked
    ]
    bits = float(-(probabilities * np.log2(np.maximum(probabilities, 1e-30))).sum())
    rank = int((logits > logits[token]).sum())
    return Step(read, wrote, float(probabilities[token]), rank, bits, tuple(choices))


def _pieces_to_dict(pieces: Pieces) -> dict[str, Any]:
    return {"ids": pieces.ids, "texts": pieces.texts, "spans": pieces.spans, "words": pieces.words}


def step_to_dict(step: Step) -> dict[str, Any]:
    """Return a step as the HTTP interface sends it."""
    return {**step._asdict(), "choices": [choice._asdict() for choice in step.choices]}


def trace_pair(direction: Direction, text: str, translation: str | None = None, off: Sequence[Head] = ()) -> Trace:
    """Translate, unless the translation is given, then run one forward pass over both texts and record every array.

    `off` only tells the trace which heads of the direction's model have been switched off already.
    """
    text = replace_surrogates(text).strip()
    sentence = source_sentence(text, direction.tokenizer)
    if not sentence.ids:
        raise RequestError("text: expected a sentence; got nothing", "give a sentence to look into")
    direction.check_length("text", sentence.ids)
    special, end = direction.special, direction.engine.config.eos
    read, source_edits = sentence.read.text, sentence.read.source_edits()
    edits: Sequence[Edit]
    if translation is None:
        (result,) = decode(direction, [sentence], DecodeOptions(TranslateOptions(guard=False)))
        if result.insertion is not None:
            read, source_edits = result.insertion.read, [*result.insertion.source_edits]
        ids = result.hypotheses[0].tokens
        written = direction.decode_target(ids)
        edits = result.target_edits(written)
    else:
        written = collapse_whitespace(sentence.read.mask_target(replace_surrogates(translation)))
        ids = direction.encode_target(written)
        direction.check_length("translation", ids)
        edits = sentence.read.target_edits(written) or ()
    translation = apply_edits(written, edits)
    bos, tokenizer = [direction.engine.config.bos, *special.before_target], direction.target_tokenizer
    source = pieces_of_text(direction.tokenizer, read, special.before_source, special.after_source)
    source = source.after(source_edits, text)
    target = pieces_of_ids(tokenizer, ids, written, bos).after(edits, translation)
    predicted = pieces_of_ids(tokenizer, ids, written, special.before_target, [end]).after(edits, translation)
    arrays = forward(direction.file, np.array([source.ids]), np.array([target.ids]))
    return Trace(
        direction.file, direction.tokenizer, _without_rows_axis(arrays), source, target, predicted, text, translation,
        direction.languages, tuple(off),
    )  # fmt: skip


def trace_text(model: ModelFile, text: str, off: Sequence[Head] = (), max_weights: int | None = None) -> Trace:
    """Return the trace of a model with one stack. `max_weights` limits the attention weights of all heads together.

    An encoder reads the text between <bos> and <eos>. A decoder reads what `Generator` reads: the tokens before every
    prompt, then the text as it is. Its last piece is followed by the likeliest one.
    """
    config, tokenizer = model.config.model, model.tokenizer
    if tokenizer is None:
        raise RequestError("model: expected a model with a tokeniser; this one has none")
    text = replace_surrogates(text)
    if not text.strip():
        raise RequestError("text: expected a sentence; got nothing", "give a sentence to look into")
    before = [config.bos] if config.kind == "encoder" else model.prompts.before
    after = [config.eos] if config.kind == "encoder" else []
    length = len(before) + len(tokenizer.encode(text)) + len(after)
    longest = config.max_length
    if max_weights is not None:  # each head has the square of the length
        longest = min(longest, math.isqrt(max_weights // (depth(config, config.stacks[0]) * config.heads)))
    if length > longest:
        raise RequestError(f"text: expected at most {longest} tokens; got {length}", "use a shorter text")
    languages = ("", "")
    if config.kind == "encoder":
        source = pieces_of_text(tokenizer, text, before, after)
        arrays = forward(model, np.array([source.ids]))
        return Trace(model, tokenizer, _without_rows_axis(arrays), source, None, None, text, "", languages, tuple(off))
    target = pieces_of_text(tokenizer, text, before)
    arrays = forward(model, None, np.array([target.ids]))
    following = int(arrays["logits"][0, -1].argmax())
    predicted = pieces_of_text(tokenizer, text, before, [following]).part(1, None)
    return Trace(model, tokenizer, _without_rows_axis(arrays), None, target, predicted, text, "", languages, tuple(off))


def _without_rows_axis(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return the arrays without the axis of rows, of which there is one. Tables of positions never had that axis."""
    return {name: array if name.endswith("embedding.position") else array[0] for name, array in arrays.items()}
