"""The translation task: pairs of source and target, in one direction or both, judged by BLEU, chrF and loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

from torch import nn

from sixfold.config import DataConfig, ModelConfig, TrainingConfig
from sixfold.data import shortlist
from sixfold.data.cleaned import Advance
from sixfold.data.cleaning import Cleaner, HashSet
from sixfold.data.corpus import Corpus, Fingerprint, Pair
from sixfold.data.examples import Examples, ExampleSet, Part
from sixfold.data.store import Tokenizers, TokenStore
from sixfold.errors import ConfigError
from sixfold.model.transformer import EncoderDecoder
from sixfold.modelfile import Shortlist
from sixfold.recipe import CorpusDirection
from sixfold.tasks.loss import TokenLoss
from sixfold.tasks.task import Processes
from sixfold.tasks.translation_batches import TranslationBatch, append, make_batch
from sixfold.tasks.translation_validation import TranslationValidator
from sixfold.text.sequence_format import SequenceFormat
from sixfold.text.tokenizer import Tokenizer

RELIABLE_BLEU = 10.0  # below it a few chance matches decide, above all on a small dev set
MIN_VOCAB_FOR_SHORTLIST = 4000  # pieces; a smaller vocabulary is fast without a shortlist
FORWARD, BACKWARD = ("source", "target"), ("target", "source")  # the columns that source and target are read from


@dataclass(frozen=True)
class TranslationTask:
    """Translate the source of a pair into its target and, with `data.both_ways`, the target into the source."""

    languages: tuple[str, str]
    data: DataConfig = field(default_factory=DataConfig)
    loss: TokenLoss = field(default_factory=TokenLoss)
    sequence_format: SequenceFormat | None = None  # of an imported model; None: a tag before a source, <eos> after it
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

    # Examples: which directions are learnt, and with which special tokens.

    def examples(self, store: TokenStore, tokenizers: Tokenizers) -> ExampleSet:
        """Return the pairs in the directions that are learnt, with special tokens around each source."""
        tokenizer = tokenizers["source"]  # has the tags
        parts = self._direction(store, tokenizer, FORWARD, "forward")
        if self.data.both_ways:
            parts += self._direction(store, tokenizer, BACKWARD, "back")
            if len({part.columns for part in parts}) < 2:
                raise ConfigError(
                    "corpus.way: expected corpora for both directions, as data.both_ways needs; got one direction only"
                )
        if not parts:
            raise ConfigError(
                "corpus.way: expected a corpus for the direction from source to target; all are for the way back"
            )
        # A target is read after <bos> and predicted with <eos>; `collate` ends a source unless the format does.
        return ExampleSet(store, self.columns, tuple(parts), added=(int(self.sequence_format is None), 1))

    def _direction(
        self, store: TokenStore, tokenizer: Tokenizer, columns: tuple[str, ...], way: CorpusDirection
    ) -> list[Part]:
        """Return the corpora that are good for a direction; a tag or a token says what to translate into."""
        languages = self.languages if columns == FORWARD else self.languages[::-1]
        if self.sequence_format is not None:
            before, after, before_target = self.sequence_format.special_tokens(*languages)
        else:
            tag = (tokenizer.tag(languages[1]),) if self.data.both_ways else tokenizer.tag_prefix(languages[1])
            before, after, before_target = tag, (), ()
        return [
            Part(
                number,
                columns,
                prefixes=((*before, *origin_tags(tokenizer, corpus, way)), before_target),
                suffixes=(after, ()) if after else (),
            )
            for number, corpus in enumerate(store.corpora)
            if corpus.way in ("both", way)
        ]

    # Batches.

    def collate(self, examples: Examples, shape: ModelConfig) -> TranslationBatch:
        """Make a batch for teacher forcing: the decoder reads <bos> y1 … yn and predicts y1 … yn <eos>."""
        source = examples.columns["source"]
        if self.sequence_format is None:
            source = append(source, shape.eos)
        batch = make_batch(source, examples.columns["target"], shape, examples.packing)
        batch = replace(batch, examples=examples.numbers, micro_batch=examples.micro_batch)
        return batch if examples.has_loss else batch.without_loss()

    # Judging a model.

    def validator(
        self, model: nn.Module, shape: ModelConfig, tokenizers: Tokenizers, config: TrainingConfig,
        processes: Processes, check_stop: Callable[[], None],
    ) -> TranslationValidator:  # fmt: skip
        """Return a validator that translates dev sets with `model`."""
        assert isinstance(model, EncoderDecoder)
        return TranslationValidator(model, shape, tokenizers, config, processes, check_stop, self.sequence_format)

    def rank(self, values: Mapping[str, float], config: TrainingConfig) -> list[float]:
        """Return what a validation is compared by: the better of two has the larger list.

        A score that is too low to be reliable counts as 0, and then the loss decides. The list of a validation depends
        on nothing but its own values, so that the order has no cycles.
        """
        if config.score == "loss":
            return [0.0, -values["loss"]]
        name, lowest = ("bleu", RELIABLE_BLEU) if config.score == "auto" else (config.score, 1.0)
        return [values[name] if values[name] >= lowest else 0.0, -values["loss"]]

    def card(self, examples: ExampleSet) -> dict[str, Any]:
        """Return the languages and the number of pairs, as the card of a model file has them."""
        return {"languages": dict(zip(FORWARD, self.languages, strict=True)), "pairs": len(examples.store)}

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
