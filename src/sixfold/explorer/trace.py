"""Every number of one pass over a sentence and its translation, by name, with the pieces that the rows stand for."""

from __future__ import annotations

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
from sixfold.text.tokenizer import Tokenizer
from sixfold.translation.direction import Direction, one_line, tag_of
from sixfold.translation.hypotheses import best_hypotheses
from sixfold.translation.options import TranslateOptions
from sixfold.translation.plan import replace_surrogates

Array = np.ndarray
WHOLE = ("key", "value", "key_rotated")  # of these, a row of queries needs all
LARGEST_HALF = 65504.0  # what 16 bits can say; beyond it they say infinity, which means masked


class Choice(NamedTuple):
    """A piece that might have come next."""

    id: int
    text: str
    logit: float
    probability: float


class Step(NamedTuple):
    """What the decoder read last, what came next, and what else might have."""

    read: str
    wrote: str
    probability: float
    rank: int  # 0: it was the likeliest
    entropy: float  # of the whole distribution, in bits
    choices: tuple[Choice, ...]


@dataclass(frozen=True)
class Trace:
    """What `explore` returns. `trace[name]` is an array, without the axis of sentences that `forward` has.

    An encoder-decoder has both sides; an encoder only a source, a decoder only a target. The target is as it is read:
    <bos>, then the translation; `predicted` is what comes next at each place, <eos> last.
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
            near = [each for each in self.arrays if each.split(".")[-1] == name.split(".")[-1]][:3]
            hint = f"try {', '.join(near)}" if near else "`trace.names` lists them"
            raise RequestError(f"name: expected that of an array of this trace; got {name!r:.80}", hint)
        return self.arrays[name]

    @property
    def names(self) -> list[str]:
        """In the order of computation."""
        return list(self.arrays)

    @property
    def config(self) -> ModelConfig:
        return self.model.config.model

    @property
    def kinds(self) -> dict[Kind, int]:
        """The kinds of attention, and how many layers each has."""
        return kinds_of(self.config)

    def attention(self, kind: Kind, layer: int | None = None, head: int | None = None) -> Array:
        """Weights: layers × heads × rows × columns, or those of one layer, or of one head."""
        check_head(self.config, Head(kind, layer or 0, head or 0))
        layers = range(self.kinds[kind]) if layer is None else [layer]
        found = np.stack([self[f"{Head(kind, each, 0).place}.weights"] for each in layers])
        found = found if head is None else found[:, head]
        return found if layer is None else found[0]

    def rows(self, kind: Kind) -> Pieces:
        """What asks, in this kind of attention."""
        side = self.source if kind == "encoder" else self.target
        assert side is not None
        return side

    def columns(self, kind: Kind) -> Pieces:
        """What is looked at."""
        side = self.target if kind == "decoder" else self.source
        assert side is not None
        return side

    def labels(self, kind: Kind) -> tuple[list[str], list[str]]:
        """Of rows and columns. A row of the decoder is what it reads and what comes next."""
        asks = self.rows(kind).texts
        if kind != "encoder" and self.predicted is not None:
            asks = [f"{read} → {wrote}" for read, wrote in zip(asks, self.predicted.texts, strict=True)]
        return asks, self.columns(kind).texts

    def by_word(self, kind: Kind, weights: Array) -> tuple[Array, list[str], list[str]]:
        """A matrix of pieces joined into one of words: the mean of a word's rows, the sum of its columns."""
        asks = self.predicted if kind != "encoder" and self.predicted is not None else self.rows(kind)
        looked = self.columns(kind)
        return word_weights(weights, asks.words, looked.words), asks.word_texts, looked.word_texts

    @property
    def aligning(self) -> AligningHeads:
        """The heads by which target and source are aligned."""
        if self.source is None or self.predicted is None:
            raise RequestError(f"alignment: expected a model of two sides; got one of the kind {self.config.kind!r}")
        return aligning_heads(self.model.card, self.config)

    def alignment(self, aligning: AligningHeads | None = None) -> tuple[Array, Pieces, Pieces]:
        """The share of each source piece (columns) in each target piece (rows), and the pieces of both sides.

        Tags, <bos> and <eos> are left out. This is the alignment that a translation's details have; other heads than
        those of the model's card may be given.
        """
        chosen = self.aligning if aligning is None else aligning
        assert self.source is not None
        assert self.predicted is not None
        first = len(tag_of(self.model, self.tokenizer, self.languages))
        steps = self.attention("cross", chosen.layer)[list(chosen.heads)].mean(axis=0)
        source = self.source.part(first, -1)
        weights = align(chosen.token_weights(steps)[:, first:-1], [start < end for start, end in source.spans])
        return weights, self.predicted.part(0, -1), source

    def steps(self, count: int = 10) -> list[Step]:
        """The decoder's choice at each place."""
        if self.target is None or self.predicted is None:
            raise RequestError(f"steps: expected a model that writes; got one of the kind {self.config.kind!r}")
        texts = zip(self.target.texts, self.predicted.texts, strict=True)
        return [
            step_of(self.tokenizer, *each, wrote, logits, count)
            for each, wrote, logits in zip(texts, self.predicted.ids, self["logits"], strict=True)
        ]

    def safetensors(self, names: Iterable[str], half: bool = False, row: int | None = None) -> bytes:
        """Arrays for another program; `half` in 16 bits, `row` only of one place, in 32.

        Of a `weights` the cells that may be looked at come too, as `mask`, a bit each, rows filled up to bytes.
        """
        tensors: dict[str, Tensor] = {}
        for name in names:
            array = self[name]
            if name.endswith(".weights"):
                may = self[name.removesuffix("weights") + "masked_scores"][0] > -np.inf
                tensors[name.removesuffix("weights") + "mask"] = Tensor.of(np.packbits(may, axis=-1))
            if row is not None and name.rpartition(".")[2] not in WHOLE:
                axis = array.ndim - 2
                if not 0 <= row < array.shape[axis]:
                    raise RequestError(f"row: expected 0 to {array.shape[axis] - 1}; got {row}")
                array = np.take(array, row, axis=axis)
            if half and row is None:
                kept = np.where(np.isfinite(array), np.clip(array, -LARGEST_HALF, LARGEST_HALF), array)
                array = kept.astype(np.float16)
            tensors[name] = Tensor.of(np.ascontiguousarray(array))
        return b"".join(tensorfile.packed(tensors, {})[1])

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays.values())

    def to_dict(self, count: int = 10) -> dict[str, Any]:
        """What a page needs to begin with; the arrays are only named."""
        config = self.config
        sides = {"source": self.source, "target": self.target, "predicted": self.predicted}
        return {
            "text": self.text, "translation": self.translation, "from": self.languages[0], "to": self.languages[1],
            "model": self.model.name, "off": [str(head) for head in self.off],
            "kinds": dict(self.kinds), "heads": config.heads, "d_model": config.d_model, "d_head": config.d_head,
            "config": asdict(config),
            **{name: None if side is None else _described(side) for name, side in sides.items()},
            "steps": [] if self.predicted is None else [told(step) for step in self.steps(count)],
            "arrays": {name: list(array.shape) for name, array in self.arrays.items()},
        }  # fmt: skip

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from sixfold.explorer.views import notebook

        return notebook(self)

    def __repr__(self) -> str:
        return f"Trace({self.text!r:.40} → {self.translation!r:.40}, {len(self.arrays)} arrays)"


def step_of(tokenizer: Tokenizer, read: str, wrote: str, index: int, logits: Array, count: int) -> Step:
    """A choice by its logits, which are -inf of what cannot be chosen; `index` is the piece that came next."""
    chances = softmax(logits)
    some = np.argpartition(-logits, min(count, len(logits)) - 1)[:count]  # sorting all takes many times as long
    best = [int(each) for each in some[np.lexsort((some, -logits[some]))] if logits[each] > -np.inf]
    choices = [Choice(each, piece_text(tokenizer, each), float(logits[each]), float(chances[each])) for each in best]
    bits = float(-(chances * np.log2(np.maximum(chances, 1e-30))).sum())
    rank = int((logits > logits[index]).sum())
    return Step(read, wrote, float(chances[index]), rank, bits, tuple(choices))


def _described(side: Pieces) -> dict[str, Any]:
    return {"ids": side.ids, "texts": side.texts, "spans": side.spans, "words": side.words}


def told(step: Step) -> dict[str, Any]:
    return {**step._asdict(), "choices": [choice._asdict() for choice in step.choices]}


def trace_pair(direction: Direction, text: str, translation: str | None = None, off: Sequence[Head] = ()) -> Trace:
    """Translate, unless the translation is given, then replay it once with every intermediate kept.

    `off` only says which heads of the direction's model have been switched off.
    """
    text = replace_surrogates(text).strip()
    read = direction.tokenizer.encode(text)
    if not read:
        raise RequestError("text: expected some; got nothing", "give a sentence to look into")
    direction.check_length("text", read)
    tag, end = list(direction.tag), direction.engine.config.eos
    source = pieces_of_text(direction.tokenizer, text, tag, [end])
    if translation is None:
        ids = best_hypotheses(direction, [source.ids], TranslateOptions().search(direction.room))[0][0].tokens
        translation = direction.said(ids)
    else:
        translation = one_line(replace_surrogates(translation))
        ids = direction.encode_target(translation)
        direction.check_length("translation", ids)
    bos = [direction.engine.config.bos]
    target = pieces_of_ids(direction.tokenizer, ids, translation, bos)
    predicted = pieces_of_ids(direction.tokenizer, ids, translation, (), [end])
    arrays = forward(direction.file, np.array([source.ids]), np.array([target.ids]))
    return Trace(
        direction.file, direction.tokenizer, _single(arrays), source, target, predicted, text, translation,
        direction.languages, tuple(off),
    )  # fmt: skip


def trace_text(model: ModelFile, text: str, off: Sequence[Head] = ()) -> Trace:
    """Of a model that has one side only: an encoder reads the text between its specials, a decoder as it stands."""
    config, tokenizer = model.config.model, model.tokenizer
    if tokenizer is None:
        raise RequestError("model: expected one with a tokeniser; this one has none")
    text = replace_surrogates(text)
    if not text.strip():
        raise RequestError("text: expected some; got nothing", "give a sentence to look into")
    length = len(tokenizer.encode(text)) + (2 if config.kind == "encoder" else 0)
    if length > config.max_length:
        raise RequestError(f"text: expected at most {config.max_length} tokens; got {length}", "take a shorter text")
    languages = ("", "")
    if config.kind == "encoder":
        source = pieces_of_text(tokenizer, text, [config.bos], [config.eos])
        arrays = forward(model, np.array([source.ids]))
        return Trace(model, tokenizer, _single(arrays), source, None, None, text, "", languages, tuple(off))
    whole = pieces_of_text(tokenizer, text)
    if len(whole) < 2:
        raise RequestError("text: expected two pieces or more, as each is read to predict the next; got one")
    target, predicted = whole.part(0, -1), whole.part(1, None)
    arrays = forward(model, None, np.array([target.ids]))
    return Trace(model, tokenizer, _single(arrays), None, target, predicted, text, "", languages, tuple(off))


def _single(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Without the axis of sentences, of which there is one; tables of positions never had it."""
    return {name: array if name.endswith("embedding.position") else array[0] for name, array in arrays.items()}
