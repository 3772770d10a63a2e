"""Validation as a user would do it: raw text in, real decoding, detokenised text against the raw reference."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from sixfold.config import ModelConfig, Score, TrainingConfig
from sixfold.decoding.options import SearchOptions
from sixfold.decoding.search import beam_search, greedy
from sixfold.engines.engine import batches
from sixfold.engines.gpu import GpuEngine
from sixfold.evaluation.scores import Scores, score
from sixfold.model.stepper import translate_stepper
from sixfold.model.transformer import EncoderDecoder
from sixfold.recipe import set_name
from sixfold.text.tokenizer import Tokenizer
from sixfold.training.batch import pair_batch
from sixfold.training.distributed import ALONE, Group
from sixfold.training.loop import precision
from sixfold.training.loss import loss_in_pieces
from sixfold.training.state import compute_type_on

ROOM = {"cpu": 4096, "cuda": 2**17}  # tokens of a batch, times the beam

RELIABLE_BLEU = 10.0  # below it a few matches by chance decide, above all on a small dev set


def rank_of(scores: Mapping[str, float], measure: Score) -> list[float]:
    """What a validation is compared by: of two, the better has the larger list, read from its first number on.

    A score that is too low to mean anything counts as 0, and then the loss decides. Every validation has one list,
    whatever the others are, so that the order has no cycles.
    """
    if measure == "loss":
        return [0.0, -scores["loss"]]
    name, lowest = ("bleu", RELIABLE_BLEU) if measure == "auto" else (measure, 1.0)
    return [scores[name] if scores[name] >= lowest else 0.0, -scores["loss"]]


@dataclass(frozen=True)
class TextSet:
    """A dev or test set: raw sentences and their raw references."""

    name: str
    sources: Sequence[str]
    references: Sequence[str]
    languages: tuple[str, str] = ("", "")

    def first(self, count: int) -> TextSet:
        return replace(self, sources=self.sources[:count], references=self.references[:count])

    def both_ways(self) -> tuple[TextSet, TextSet]:
        """From source to target and back, each under a name of its own."""
        one, other = self.languages
        there = replace(self, name=set_name(self.name, one, other))
        back = TextSet(set_name(self.name, other, one), self.references, self.sources, (other, one))
        return there, back


class Validator:
    """Translates and scores with a model of its own, so that the one in training is left alone."""

    def __init__(
        self,
        model: EncoderDecoder,
        shape: ModelConfig,
        tokenizer: Tokenizer,
        config: TrainingConfig,
        check: Callable[[], None] = lambda: None,
        group: Group = ALONE,
    ) -> None:
        """`check` is called before each batch; it may raise to stop. The processes of a group share the work."""
        self.model = model.eval()
        self.shape = shape
        self.tokenizer = tokenizer
        self.config = config
        self.check = check
        self.group = group
        self.device = next(model.parameters()).device
        # A GPU decodes in an engine of its own, whose weights have the type that matrices are multiplied in.
        on_gpu = self.device.type == "cuda"
        twin = copy.deepcopy(model).to(compute_type_on(self.device, config.precision)) if on_gpu else None
        self.engine = GpuEngine(twin, shape) if twin is not None else None

    @torch.no_grad()
    def take(self, weights: Mapping[str, Tensor | np.ndarray]) -> None:
        for model in (self.model, self.engine.model) if self.engine else (self.model,):
            for name, weight in model.named_parameters():
                new = weights[name]
                weight.copy_(new if isinstance(new, Tensor) else torch.from_numpy(np.array(new)))

    def score(self, texts: TextSet, beam: int) -> tuple[Scores, list[str]]:
        translations = self.translate(texts, beam)
        return score(translations, texts.references, texts.languages[1]), translations

    @torch.inference_mode()
    def translate(self, texts: TextSet, beam: int) -> list[str]:
        """In the order of `texts`; sentences of like length share a batch."""
        return self.group.collect(self._translate(self.group.deal(self.read(texts)), beam))

    def read(self, texts: TextSet) -> list[list[int]]:
        """The ids of the sources, without <eos>; before them the target's tag, where the model has learnt with tags."""
        tags = self.tokenizer.known_tags(texts.languages[1])
        return [[*tags, *ids][: self.longest] for ids in self.tokenizer.encode_batch(texts.sources)]

    def _translate(self, texts: Sequence[list[int]], beam: int) -> list[str]:
        encoded = [[*ids, self.shape.eos] for ids in texts]
        result = [""] * len(texts)

        def decode(places: list[int]) -> None:
            for place, tokens in zip(places, self._decode([encoded[place] for place in places], beam), strict=True):
                result[place] = self.tokenizer.decode(tokens)

        lengths = [len(ids) for ids in encoded]
        for places in batches(lengths, ROOM[self.device.type] // beam):
            self._within_memory(decode, places)
        if self.engine is not None:
            self.engine.close()  # the next training step needs the memory
        return result

    @torch.inference_mode()
    def loss(self, texts: TextSet) -> float:
        """Nats a token of the reference, without label smoothing."""
        sides = self.read(texts), self.tokenizer.encode_batch(texts.references)
        pairs = self.group.deal([(x, y[: self.longest]) for x, y in zip(*sides, strict=True)])
        totals = torch.zeros(2, dtype=torch.float64)  # loss and tokens

        def add(places: list[int]) -> None:
            batch = pair_batch([pairs[place] for place in places], self.shape).to(self.device)
            source, target, padding = batch.inputs
            assert source is not None
            assert target is not None
            with precision(self.config, self.device):
                hidden = self.model.hidden(source, target, padding).flatten(0, 1)[batch.places]
                loss = float(loss_in_pieces(self.model.output, hidden, batch.labels))
            totals.add_(torch.tensor([loss, batch.tokens]))

        for places in batches([max(map(len, pair)) + 1 for pair in pairs], ROOM[self.device.type]):
            self._within_memory(add, places)
        loss, tokens = self.group.total(totals).tolist()
        return loss / max(tokens, 1)

    @property
    def longest(self) -> int:
        """Tokens of a side; what is beyond is cut off."""
        return self.shape.max_length - 1

    def _within_memory(self, work: Callable[[list[int]], None], places: list[int]) -> None:
        """Do it for a batch, or, where memory does not suffice, for one half after the other."""
        self.check()
        try:
            work(places)
            return
        except torch.OutOfMemoryError:
            if len(places) == 1:
                raise
        torch.cuda.empty_cache()
        for half in (places[: len(places) // 2], places[len(places) // 2 :]):
            self._within_memory(work, half)

    def _decode(self, sources: list[list[int]], beam: int) -> list[list[int]]:
        options = SearchOptions(beam=beam, max_length=self.shape.max_length, max_ratio=2.0)
        if self.engine is not None:
            return [found[0].tokens for found in self.engine.search(sources, options)]
        batch = pair_batch([(source[:-1], []) for source in sources], self.shape).to(self.device)
        source, _, padding = batch.inputs
        assert source is not None
        longest = options.longest(source.size(1))
        start = torch.full((len(sources),), self.shape.bos, device=self.device)
        with precision(self.config, self.device):
            stepper = translate_stepper(self.model, source, padding, longest)
            options = replace(options, max_length=longest)
            if beam == 1:
                return [found.tokens for found in greedy(stepper, start, self.shape.eos, options)]
            return [found[0].tokens for found in beam_search(stepper, start, self.shape.eos, options)]
