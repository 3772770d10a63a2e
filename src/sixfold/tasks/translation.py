"""The translation task: pairs of source and target, in one direction or both, judged by BLEU, chrF and loss."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from sixfold.config import DataConfig, ModelConfig, TrainingConfig
from sixfold.data import shortlist
from sixfold.data.cleaned import Advance
from sixfold.data.cleaning import Cleaner, HashSet
from sixfold.data.corpus import Corpus, Fingerprint, Pair
from sixfold.data.examples import Examples, ExampleSet, Packing, Part
from sixfold.data.store import Ragged, TokenStore
from sixfold.decoding.options import SearchOptions
from sixfold.decoding.search import beam_search, greedy
from sixfold.engines.engine import batch_by_length
from sixfold.engines.gpu import GpuEngine
from sixfold.errors import ConfigError
from sixfold.evaluation.scores import Scores, score
from sixfold.model.precision import autocast, compute_type_on
from sixfold.model.stepper import translation_stepper
from sixfold.model.transformer import EncoderDecoder
from sixfold.modelfile import Shortlist
from sixfold.recipe import CorpusDirection, set_name
from sixfold.tasks.loss import TokenLoss, chunked_cross_entropy
from sixfold.tasks.task import Batch, Processes, Validation, lay_out, pad
from sixfold.text.tokenizer import Tokenizer

BATCH_TOKENS = {"cpu": 4096, "cuda": 2**17}  # of a validation, times the beam
RELIABLE_BLEU = 10.0  # below it a few chance matches decide, above all on a small dev set
FINAL_BEAM = 4
SAMPLES = 3  # translations shown at each validation
MIN_VOCAB_FOR_SHORTLIST = 4000  # pieces; a smaller vocabulary is fast without a shortlist
FORWARD, BACKWARD = ("source", "target"), ("target", "source")  # the columns that source and target are read from


@dataclass(frozen=True, kw_only=True)
class TranslationBatch(Batch):
    """What an encoder-decoder reads. A padded batch has `source_padding`, a packed one has segments."""

    source: Int[Tensor, "rows source"]
    target: Int[Tensor, "rows target"]
    source_padding: Bool[Tensor, "rows source"] | None = None  # True = a real token
    source_segments: Int[Tensor, "rows source"] | None = None  # the number of the text in its row, from 1; 0: padding
    target_segments: Int[Tensor, "rows target"] | None = None

    @property
    def output_shape(self) -> tuple[int, int]:
        return self.target.size(0), self.target.size(1)


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


@dataclass(frozen=True)
class TranslationTask:
    """Translate the source of a pair into its target and, with `data.both_ways`, the target into the source."""

    languages: tuple[str, str]
    data: DataConfig = field(default_factory=DataConfig)
    loss: TokenLoss = field(default_factory=TokenLoss)
    columns: ClassVar[tuple[str, ...]] = FORWARD

    # Raw text: which records there are, and which of them are good.

    @property
    def cleaning_key(self) -> tuple[Any, ...]:
        """Return the settings that decide which pairs are kept."""
        unused = ("both_ways", "dev_pairs", "max_tokens")
        return self.languages, {name: value for name, value in asdict(self.data).items() if name not in unused}

    def read(
        self, corpus: Corpus, advance: Advance | None = None, fingerprint: Fingerprint | None = None
    ) -> Iterator[Pair]:
        """Read the pairs of a corpus in order."""
        return corpus.pairs(advance, fingerprint)

    def cleaner(self, seen: HashSet) -> Cleaner:
        """Return the filters of `data` for these languages."""
        return Cleaner(self.data, self.languages, seen)

    # Examples: which directions are learnt, and with which tags.

    def examples(self, store: TokenStore, tokenizer: Tokenizer) -> ExampleSet:
        """Return the pairs in the directions that are learnt, with a tag before each source where there are tags."""
        parts = self._both_directions(store, tokenizer) if self.data.both_ways else self._forward(store, tokenizer)
        # <eos> ends a source; a target is read after <bos> and predicted with <eos>.
        return ExampleSet(store, self.columns, tuple(parts), added=(1, 1))

    def _both_directions(self, store: TokenStore, tokenizer: Tokenizer) -> list[Part]:
        """Return every corpus in the directions that it is good for; a tag says what to translate into."""
        directions: tuple[tuple[tuple[str, ...], CorpusDirection, str], ...]
        directions = ((FORWARD, "forward", self.languages[1]), (BACKWARD, "back", self.languages[0]))
        parts = [
            Part(number, columns, ((tokenizer.tag(language), *origin_tags(tokenizer, corpus, way)), ()))
            for columns, way, language in directions
            for number, corpus in enumerate(store.corpora)
            if corpus.way in ("both", way)
        ]
        if len({part.columns for part in parts}) < 2:
            raise ConfigError(
                "corpus.way: expected corpora for both directions, as data.both_ways needs; got one direction only"
            )
        return parts

    def _forward(self, store: TokenStore, tokenizer: Tokenizer) -> list[Part]:
        """Return the corpora for the direction from source to target, tagged where the tokeniser has the tags."""
        language = tokenizer.tag_prefix(self.languages[1])
        parts = [
            Part(number, FORWARD, (language + origin_tags(tokenizer, corpus, "forward"), ()))
            for number, corpus in enumerate(store.corpora)
            if corpus.way != "back"
        ]
        if not parts:
            raise ConfigError(
                "corpus.way: expected a corpus for the direction from source to target; all are for the way back"
            )
        return parts

    # Batches.

    def collate(self, examples: Examples, shape: ModelConfig) -> TranslationBatch:
        """Make a batch for teacher forcing: the decoder reads <bos> y1 … yn and predicts y1 … yn <eos>."""
        source = append(examples.columns["source"], shape.eos)
        target = examples.columns["target"]
        if examples.packing is None:
            batch = _pad_pairs(source, target, shape)
        else:
            batch = _pack_pairs(source, target, examples.packing, shape)
        batch = replace(batch, examples=examples.numbers, micro_batch=examples.micro_batch)
        return batch if examples.has_loss else batch.without_loss()

    # Judging a model.

    def validator(
        self, model: nn.Module, shape: ModelConfig, tokenizer: Tokenizer, config: TrainingConfig,
        processes: Processes, check_stop: Callable[[], None],
    ) -> TranslationValidator:  # fmt: skip
        """Return a validator that translates dev sets with `model`."""
        assert isinstance(model, EncoderDecoder)
        return TranslationValidator(model, shape, tokenizer, config, processes, check_stop)

    def rank(self, values: Mapping[str, float], config: TrainingConfig) -> list[float]:
        """Return what a validation is compared by: the better of two has the larger list.

        A score that is too low to be reliable counts as 0, and then the loss decides. The list of a validation depends
        on nothing but its own values, so that the order has no cycles.
        """
        if config.score == "loss":
            return [0.0, -values["loss"]]
        name, lowest = ("bleu", RELIABLE_BLEU) if config.score == "auto" else (config.score, 1.0)
        return [values[name] if values[name] >= lowest else 0.0, -values["loss"]]

    def card(self) -> dict[str, Any]:
        """Return the languages, as the card of a model file has them."""
        return {"languages": dict(zip(FORWARD, self.languages, strict=True))}

    # The shortlist, which makes a model fast on a CPU.

    def shortlist_work(self, examples: ExampleSet, vocab: int) -> int:
        """Return the units of work of `shortlist`; 0 for a small vocabulary, which needs none."""
        return shortlist.steps(examples, vocab) if vocab >= MIN_VOCAB_FOR_SHORTLIST else 0

    def shortlist(
        self, examples: ExampleSet, shape: ModelConfig, start: Shortlist | None, advance: Callable[[int], None]
    ) -> Shortlist:
        """Learn a shortlist; pieces that the model to start from lists for a source piece stay listed."""
        targets = [self.languages[1], *self.languages[: self.data.both_ways]]
        options = [shortlist.options_for(shape.vocab, target) for target in targets]
        learned = shortlist.build(examples, shape.vocab, shape.eos, advance, options)
        return learned if start is None else shortlist.merge(start, learned)


def origin_tags(tokenizer: Tokenizer, corpus: Corpus, way: CorpusDirection) -> tuple[int, ...]:
    """Return the tag of a corpus in this direction, such as "bt" for back-translations, or nothing if it has none."""
    return (tokenizer.tag(corpus.tag),) if corpus.tag and corpus.tag_way in ("both", way) else ()


def append(text: Ragged, token: int) -> Ragged:
    """Add a token to the end of every text."""
    lengths = text.lengths + 1
    values = np.full(lengths.sum(), token, np.int64)
    is_text = np.ones(len(values), bool)
    is_text[np.cumsum(lengths) - 1] = False
    values[is_text] = text.values
    return Ragged(values, lengths)


def pair_batch(pairs: Sequence[tuple[Sequence[int], Sequence[int]]], shape: ModelConfig) -> TranslationBatch:
    """Make a padded batch of pairs of ids without <bos> and <eos>."""
    columns = {
        name: Ragged(
            np.array([index for pair in pairs for index in pair[side]], np.int64),
            np.array([len(pair[side]) for pair in pairs]),
        )
        for side, name in enumerate(FORWARD)
    }
    return TranslationTask(("", "")).collate(Examples(columns, np.arange(len(pairs))), shape)


def _pad_pairs(source: Ragged, target: Ragged, shape: ModelConfig) -> TranslationBatch:
    """Give each pair a row of its own."""
    tokens, is_text = pad(*source, shape.pad)
    # (rows, length + 1): what the decoder reads begins with <bos>, what it predicts ends in <eos>.
    is_target = np.arange(target.lengths.max() + 1) < target.lengths[:, None] + 1
    read = np.full(is_target.shape, shape.pad)
    read[:, 0] = shape.bos
    read[:, 1:][is_target[:, 1:]] = target.values
    labels = np.full(is_target.shape, shape.eos)
    labels[:, :-1][is_target[:, 1:]] = target.values
    return TranslationBatch(
        source=torch.from_numpy(tokens),
        target=torch.from_numpy(read),
        # Attention without a mask is faster, so that a batch without padding has none.
        source_padding=None if is_text.all() else torch.from_numpy(is_text),
        labels=torch.from_numpy(labels[is_target]),
        label_positions=torch.from_numpy(np.flatnonzero(is_target)),
    )


def _pack_pairs(source: Ragged, target: Ragged, packing: Packing, shape: ModelConfig) -> TranslationBatch:
    """Put several pairs into each row, and number the texts of a row from 1."""
    layout = lay_out(source.lengths, packing.counts, packing.rows, packing.lengths["source"])
    tokens = np.full(layout.segments.shape, shape.pad)
    tokens.flat[layout.positions] = source.values
    target_layout = lay_out(target.lengths + 1, packing.counts, packing.rows, packing.lengths["target"])
    positions, target_segments, begins = target_layout
    is_first = np.zeros(len(positions), bool)
    is_first[begins] = True
    read = np.full(target_segments.shape, shape.pad)
    read.flat[positions[begins]] = shape.bos
    read.flat[positions[~is_first]] = target.values
    labels = np.full(len(positions), shape.eos)
    labels[:-1][~is_first[1:]] = target.values
    return TranslationBatch(
        source=torch.from_numpy(tokens),
        target=torch.from_numpy(read),
        source_segments=torch.from_numpy(layout.segments),
        target_segments=torch.from_numpy(target_segments),
        labels=torch.from_numpy(labels),
        label_positions=torch.from_numpy(positions),
    )


class TranslationValidator:
    """Translates dev sets as a user would: raw text in, real decoding, detokenised text against the raw reference."""

    def __init__(
        self, model: EncoderDecoder, shape: ModelConfig, tokenizer: Tokenizer, config: TrainingConfig,
        processes: Processes, check_stop: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        self.model = model.eval()
        self.shape = shape
        self.tokenizer = tokenizer
        self.config = config
        self.processes = processes
        self.check_stop = check_stop
        self.device = next(model.parameters()).device
        # A GPU decodes in an engine of its own, whose weights have the type that matrices are multiplied in.
        on_gpu = self.device.type == "cuda"
        twin = copy.deepcopy(model).to(compute_type_on(self.device, config.precision)) if on_gpu else None
        self.engine = GpuEngine(twin, shape) if twin is not None else None

    @torch.no_grad()
    def load(self, weights: Mapping[str, Tensor | np.ndarray]) -> None:
        """Set the weights to judge."""
        for model in (self.model, self.engine.model) if self.engine else (self.model,):
            for name, weight in model.named_parameters():
                new = weights[name]
                weight.copy_(new if isinstance(new, Tensor) else torch.from_numpy(np.array(new)))

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
        own = self._translate(self.processes.scatter(self.encode_sources(dev_set)), beam)
        return self.processes.gather(own)

    def encode_sources(self, dev_set: DevSet) -> list[list[int]]:
        """Return the ids of the sources without <eos>, after the tag of the target language if the model has one."""
        tags = self.tokenizer.tag_prefix(dev_set.languages[1])
        return [[*tags, *ids][: self.max_length] for ids in self.tokenizer.encode_batch(dev_set.sources)]

    def _translate(self, sources: Sequence[list[int]], beam: int) -> list[str]:
        translations = [""] * len(sources)

        def decode(numbers: list[int]) -> None:
            targets = self._decode([[*sources[number], self.shape.eos] for number in numbers], beam)
            for number, tokens in zip(numbers, targets, strict=True):
                translations[number] = self.tokenizer.decode(tokens)

        for numbers in batch_by_length([len(ids) + 1 for ids in sources], BATCH_TOKENS[self.device.type] // beam):
            self._within_memory(decode, numbers)
        if self.engine is not None:
            self.engine.close()  # the next training step needs the memory
        return translations

    @torch.inference_mode()
    def loss(self, dev_set: DevSet) -> float:
        """Return the loss in nats a token of the reference, without label smoothing."""
        sides = self.encode_sources(dev_set), self.tokenizer.encode_batch(dev_set.references)
        pairs = self.processes.scatter([(x, y[: self.max_length]) for x, y in zip(*sides, strict=True)])
        totals = torch.zeros(2, dtype=torch.float64)  # loss and tokens

        def add(numbers: list[int]) -> None:
            batch = pair_batch([pairs[number] for number in numbers], self.shape).to(self.device)
            with autocast(self.config.precision, self.device):
                hidden = self.model.hidden(**batch.inputs).flatten(0, 1)[batch.label_positions]
                loss = float(chunked_cross_entropy(self.model.output, hidden, batch.labels))
            totals.add_(torch.tensor([loss, len(batch.labels)]))

        for numbers in batch_by_length([max(map(len, pair)) + 1 for pair in pairs], BATCH_TOKENS[self.device.type]):
            self._within_memory(add, numbers)
        loss, tokens = self.processes.all_reduce(totals).tolist()
        return loss / max(tokens, 1)

    @property
    def max_length(self) -> int:
        """Return how many tokens of a side are read; the rest is cut off."""
        return self.shape.max_length - 1

    def _within_memory(self, work: Callable[[list[int]], None], numbers: list[int]) -> None:
        """Work on a batch or, where memory does not suffice, on one half after the other."""
        self.check_stop()
        try:
            work(numbers)
            return
        except torch.OutOfMemoryError:
            if len(numbers) == 1:
                raise
        torch.cuda.empty_cache()
        for half in (numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]):
            self._within_memory(work, half)

    def _decode(self, sources: list[list[int]], beam: int) -> list[list[int]]:
        """Return the best target of each source, which ends in <eos>."""
        options = SearchOptions(beam=beam, max_length=self.shape.max_length, max_ratio=2.0)
        if self.engine is not None:
            return [hypotheses[0].tokens for hypotheses in self.engine.search(sources, options)]
        batch = pair_batch([(source[:-1], []) for source in sources], self.shape).to(self.device)
        longest = options.max_target_length(batch.source.size(1))
        start = torch.full((len(sources),), self.shape.bos, device=self.device)
        with autocast(self.config.precision, self.device):
            stepper = translation_stepper(self.model, batch.source, batch.source_padding, longest)
            options = replace(options, max_length=longest)
            if beam == 1:
                return [hypothesis.tokens for hypothesis in greedy(stepper, start, self.shape.eos, options)]
            return [hypotheses[0].tokens for hypotheses in beam_search(stepper, start, self.shape.eos, options)]
