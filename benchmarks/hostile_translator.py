"""A decoder and a translator that damage what they can: they drop, double and move parts, and write markup.

`hostile_translator` has the pipeline of Sixfold around the decoder, as any model has. `LawlessTranslator` has not: a
document must not be damaged by a translator that breaks its word either.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sixfold import Translator
from sixfold.decoding.options import Hypothesis, SearchOptions
from sixfold.engines.engine import Ids
from sixfold.text.tokenizer import Tokenizer
from sixfold.translation.direction import Direction
from sixfold.translation.protection import protected_spans
from sixfold.translation.result import Details, Link, Translation

MARKUP = (
    "<", ">", "&", "&amp;", '"', "'", "''", "]", "[", "}", "{", "\\", "\n", "\n\n", "--", "-->", "]]>", "*", "**", "_",
    "`", "``", "|", "#", "$", "%", "%s", "{0}", "</b>", "<b>", "~", "^", ":", "::", "..", ".", "- ", "1. ", "\t", ",",
    ";", "=",
    "\ue000", "\U000f0000", "\U000f0001", "{x, plural, other {}}", "\\fB", "\\end{document}", "@", "!", "(", ")", "\r",
    "\x0c", "\u2028",
)  # fmt: skip
KINDS = ("kept", "kept", "markup", "damaged", "both")


class LawlessTranslator:
    """A translator that turns sentences round and writes nonsense. What it does to a text depends on text and seed.

    Of two texts in five it keeps every part that must be copied and writes no markup, so these can be translated.
    """

    def __init__(self, source: str = "en", target: str = "zh", seed: int = 0) -> None:
        self.languages = (source, target)
        self.seed = seed

    def route(self, *_: object) -> LawlessTranslator:
        return self

    def translate_request(self, texts: list[str], _request: object, _progress: object = None) -> list[Translation]:
        return [self.translate(text) for text in texts]

    def translate(self, text: str) -> Translation:
        chance = random.Random(f"{self.seed} {text}")
        translation, links = nonsense(text, chance)
        return Translation(text, translation, 0.0, self.languages, _explain=lambda: Details((), tuple(links)))


class HostileEngine:
    """A decoder that writes nonsense, with the markup of all formats, and drops, doubles and moves span tokens."""

    def __init__(self, direction: Direction, seed: int = 0) -> None:
        self.config, self.seed = direction.engine.config, seed
        self.tokenizer: Tokenizer = direction.tokenizer
        self.engine = direction.engine

    def decode(
        self, sources: Sequence[Ids], options: SearchOptions | None = None, prefixes: Sequence[Ids] | None = None
    ) -> list[list[Hypothesis]]:
        search = options or SearchOptions()
        results = []
        for source, prefix in zip(sources, prefixes or [()] * len(sources), strict=True):
            chance = random.Random(f"{self.seed} {source} {search.n_best} {search.banned[:1]}")
            text = self.tokenizer.decode([token for token in source if token != self.config.eos])
            limit = min(search.max_target_length(len(source), len(prefix)), self.config.max_length - 1)
            hypotheses = []
            for rank in range(search.n_best):
                ids = [
                    token for token in self.tokenizer.encode(nonsense(text, chance)[0]) if token not in search.banned
                ]
                hypotheses.append(Hypothesis([*prefix, *ids][:limit] or [*prefix], -1.0 - rank))
            results.append(hypotheses)
        return results

    def score(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        return [[-1.0] * (len(target) + 1) for target, _ in zip(targets, sources, strict=True)]

    def align(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[np.ndarray]:
        chance = np.random.default_rng(self.seed)
        matrices = [
            chance.random((len(target), len(source))) ** 8 for source, target in zip(sources, targets, strict=True)
        ]
        return [matrix / matrix.sum(axis=1, keepdims=True) for matrix in matrices]

    def alternatives(self, source: Ids, prefix: Ids, options: SearchOptions) -> list[Hypothesis]:
        return self.decode([source], options, [prefix])[0]

    def close(self) -> None:
        self.engine.close()


def hostile_translator(seed: int = 0) -> Translator:
    """Return a translator with the languages and the tokeniser of the model in the package, and a hostile decoder."""
    translator = Translator(device="cpu")
    for languages, direction in translator._directions.items():
        translator._directions[languages] = replace(direction, engine=HostileEngine(direction, seed))
    return translator


def nonsense(text: str, chance: random.Random) -> tuple[str, list[Link]]:
    """Return a text of other words in another order, and which are aligned with words of the source."""
    kind = chance.choice(KINDS)
    pieces = _pieces(text)
    if kind in ("damaged", "both"):
        pieces = _damaged(pieces, chance)
    chance.shuffle(pieces)
    translation, links = "", []
    for (start, end, is_part), part in pieces:
        word = part if is_part else chance.choice(("词", "译文", "word", "一个", "七"))
        if kind in ("markup", "both") and chance.random() < 0.4:
            word += chance.choice(MARKUP)
        translation += " " if translation and chance.random() < 0.5 else ""
        links.append(Link((len(translation), len(translation) + len(word)), (start, end), 1.0))
        translation += word
    return translation, [link for link in links if chance.random() < 0.8]


Piece = tuple[tuple[int, int, bool], str]  # start and end in the source, whether it must be copied; the text


def _pieces(text: str) -> list[Piece]:
    """Return the words of a text and the parts that must be copied."""
    pieces, position = [], 0
    for start, end in [*protected_spans(text), (len(text), len(text))]:
        words = re.finditer(r"[^\W\d_]+", text[position:start])
        pieces += [((position + each.start(), position + each.end(), False), each[0]) for each in words]
        if start < end:
            pieces.append(((start, end, True), text[start:end]))
        position = end
    return pieces


def _damaged(pieces: list[Piece], chance: random.Random) -> list[Piece]:
    """Drop, double or change some of the parts that must be copied."""
    damaged = []
    for span, part in pieces:
        fate = chance.random() if span[2] else 1.0
        if fate < 0.3:
            continue
        if fate < 0.5:
            damaged.append((span, part))
        elif fate < 0.7:
            part = part[:-1] or chr(ord(part) + 1)
        damaged.append((span, part))
    return damaged
