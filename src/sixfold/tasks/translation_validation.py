"""Judges a model that translates: dev sets are translated as a user would do it, and compared with their references."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sixfold.config import ModelConfig, TrainingConfig
from sixfold.data.store import Tokenizers
from sixfold.decoding.constraints import force_prefix
from sixfold.decoding.options import SearchOptions
from sixfold.decoding.search import beam_search, greedy
from sixfold.engines.engine import batch_by_length
from sixfold.engines.gpu import GpuEngine
from sixfold.evaluation.scores import Scores, score
from sixfold.model.precision import autocast, compute_type_on
from sixfold.model.stepper import translation_stepper
from sixfold.model.transformer import EncoderDecoder
from sixfold.recipe import set_name
from sixfold.tasks.loss import chunked_cross_entropy
from sixfold.tasks.task import Processes, Validation
from sixfold.tasks.translation_batches import sequence_batch
from sixfold.tasks.validation import copy_weights, within_memory
from sixfold.text.sequence_format import SequenceFormat, SpecialTokens

BATCH_TOKENS = {"cpu": 4096, "cuda": 2**17}  # of a validation, times the beam
FINAL_BEAM = 4
SAMPLES = 3  # translations shown at each validation


@dataclass(frozen=True)
class DevSet:
    """A dev or test set: raw sentences and their raw references."""

    name: str
    sources: Sequence[str]
    references: Sequence[str]
    languages: tuple[str, str] = ("", "")

    def first(self, count: int) -> DevSet:
        """Return the first `count` sentences."""
        return replace(self, sources=self.sources[:count], references=self.references[:count])

    def both_ways(self) -> tuple[DevSet, DevSet]:
        """Return the set from source to target and the set back, each under a name of its own."""
        source, target = self.languages
        forward = replace(self, name=set_name(self.name, source, target))
        backward = DevSet(set_name(self.name, target, source), self.references, self.sources, (target, source))
        return forward, backward


class TranslationValidator:
    """Translates dev sets as a user would: raw text in, real decoding, detokenised text against the raw reference."""

    def __init__(
        self, model: EncoderDecoder, shape: ModelConfig, tokenizers: Tokenizers, config: TrainingConfig,
        processes: Processes, check_stop: Callable[[], None] = lambda: None,
        sequence_format: SequenceFormat | None = None,
    ) -> None:  # fmt: skip
        self.model = model.eval()
        self.shape = shape
        self.tokenizers = tokenizers
        self.sequence_format = sequence_format
        self.config = config
        self.processes = processes
        self.check_stop = check_stop
        self.device = next(model.parameters()).device
        # A GPU decodes in an engine of its own, whose weights have the type that matrices are multiplied in.
        on_gpu = self.device.type == "cuda"
        twin = copy.deepcopy(model).to(compute_type_on(self.device, config.precision)) if on_gpu else None
        self.engine = GpuEngine(twin, shape) if twin is not None else None

    def load(self, weights: Mapping[str, Tensor | np.ndarray]) -> None:
        """Set the weights to judge."""
        for model in (self.model, self.engine.model) if self.engine else (self.model,):
            copy_weights(model, weights)

    def validate(self, dev: Sequence[DevSet]) -> Validation:
        """Translate greedily, and return the means over the dev sets and some translations of the first."""
        results = [self.score(dev_set, beam=1) for dev_set in dev]
        values = {f"{dev_set.name}_bleu": scores.bleu for dev_set, (scores, _) in zip(dev, results, strict=True)}
        values = {} if len(dev) == 1 else values
        values |= {
            "bleu": sum(scores.bleu for scores, _ in results) / len(results),
            "chrf": sum(scores.chrf for scores, _ in results) / len(results),
            "loss": sum(self.loss(dev_set) for dev_set in dev) / len(dev),
        }
        shown = dev[0].first(SAMPLES)
        samples = list(zip(shown.sources, results[0][1], shown.references, strict=False))
        summary = f"dev BLEU {values['bleu']:.2f}, chrF {values['chrf']:.2f}, loss {values['loss']:.3f}"
        return Validation(values, samples, summary)

    def final_score(self, test_set: DevSet) -> tuple[dict[str, Any], str, list[str]]:
        """Translate with a beam, as the model will be used: the scores, a line for people, and the translations."""
        scores, translations = self.score(test_set, FINAL_BEAM)
        line = f"{test_set.name}: BLEU {scores.bleu:.2f}, chrF {scores.chrf:.2f} ({scores.signature})"
        return asdict(scores), line, translations

    def score(self, dev_set: DevSet, beam: int) -> tuple[Scores, list[str]]:
        """Return the scores of a set, and its translations."""
        translations = self.translate(dev_set, beam)
        return score(translations, dev_set.references, dev_set.languages[1]), translations

    @torch.inference_mode()
    def translate(self, dev_set: DevSet, beam: int) -> list[str]:
        """Translate the sources of a set, in their order; sentences of similar length share a batch."""
        prefix = self.special_tokens(dev_set).before_target
        own = self._translate(self.processes.scatter(self.encode_sources(dev_set)), prefix, beam)
        return self.processes.gather(own)

    def special_tokens(self, dev_set: DevSet) -> SpecialTokens:
        """Return the special tokens around a source, and those that every target of a set begins with."""
        if self.sequence_format is not None:
            return self.sequence_format.special_tokens(*dev_set.languages)
        return SpecialTokens(self.tokenizers["source"].tag_prefix(dev_set.languages[1]), (self.shape.eos,), ())

    def encode_sources(self, dev_set: DevSet) -> list[list[int]]:
        """Return all that the encoder reads of each source; the text is cut off where it is too long.

        The encoder reads <eos> alone where a format puts nothing around an empty text.
        """
        before, after, _ = self.special_tokens(dev_set)
        room = max(0, self.shape.max_length - len(before) - len(after))
        texts = self.tokenizers["source"].encode_batch(dev_set.sources)
        return [[*before, *ids[:room], *after] or [self.shape.eos] for ids in texts]

    def encode_references(self, dev_set: DevSet) -> list[list[int]]:
        """Return the ids of the references without <bos> and <eos>; they are cut off where they are too long."""
        prefix, room = self.special_tokens(dev_set).before_target, self.shape.max_length - 1
        return [[*prefix, *ids][:room] for ids in self.tokenizers["target"].encode_batch(dev_set.references)]

    def _translate(self, sources: Sequence[list[int]], prefix: tuple[int, ...], beam: int) -> list[str]:
        translations = [""] * len(sources)

        def decode(numbers: list[int]) -> None:
            targets = self._decode([sources[number] for number in numbers], prefix, beam)
            for number, tokens in zip(numbers, targets, strict=True):
                translations[number] = self.tokenizers["target"].decode(tokens[len(prefix) :])

        for numbers in batch_by_length(list(map(len, sources)), BATCH_TOKENS[self.device.type] // beam):
            within_memory(decode, numbers, self.check_stop)
        if self.engine is not None:
            self.engine.close()  # the next training step needs the memory
        return translations

    @torch.inference_mode()
    def loss(self, dev_set: DevSet) -> float:
        """Return the loss in nats a token of the reference, without label smoothing."""
        sides = self.encode_sources(dev_set), self.encode_references(dev_set)
        pairs = self.processes.scatter(list(zip(*sides, strict=True)))
        totals = torch.zeros(2, dtype=torch.float64)  # loss and tokens

        def add(numbers: list[int]) -> None:
            batch = sequence_batch([pairs[number] for number in numbers], self.shape).to(self.device)
            with autocast(self.config.precision, self.device):
                hidden = self.model.hidden(**batch.inputs).flatten(0, 1)[batch.label_positions]
                loss = float(chunked_cross_entropy(self.model.output, hidden, batch.labels))
            totals.add_(torch.tensor([loss, len(batch.labels)]))

        lengths = [max(len(source), len(target) + 1) for source, target in pairs]
        for numbers in batch_by_length(lengths, BATCH_TOKENS[self.device.type]):
            within_memory(add, numbers, self.check_stop)
        loss, tokens = self.processes.all_reduce(totals).tolist()
        return loss / max(tokens, 1)

    def _decode(self, sources: list[list[int]], prefix: tuple[int, ...], beam: int) -> list[list[int]]:
        """Return the best target of each source; all begin with a prefix, which the engine of a GPU does not have."""
        options = SearchOptions(
            beam=beam, min_length=1 + len(prefix), max_length=self.shape.max_length, max_ratio=2.0
        )  # fmt: skip
        if self.engine is not None and not prefix:
            return [hypotheses[0].tokens for hypotheses in self.engine.search(sources, options)]
        batch = sequence_batch([(source, ()) for source in sources], self.shape).to(self.device)
        longest = options.max_target_length(batch.source.size(1), len(prefix))
        start = torch.full((len(sources),), self.shape.bos, device=self.device)
        with autocast(self.config.precision, self.device):
            stepper = translation_stepper(self.model, batch.source, batch.source_padding, longest)
            options = replace(options, max_length=longest)
            rules = [force_prefix([prefix] * len(sources))] if prefix else []
            if beam == 1:
                return [hypothesis.tokens for hypothesis in greedy(stepper, start, self.shape.eos, options, rules)]
            return [hypotheses[0].tokens for hypotheses in beam_search(stepper, start, self.shape.eos, options, rules)]
