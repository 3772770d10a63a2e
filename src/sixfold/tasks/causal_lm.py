"""The task of decoder-only models: to predict the next token of documents, or of answers to prompts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from torch import nn

from sixfold.config import DataConfig, ModelConfig, TrainingConfig
from sixfold.data.cleaned import Advance
from sixfold.data.cleaning import HashSet
from sixfold.data.corpus import Corpus, Fingerprint
from sixfold.data.documents import ANSWERS, TEXT, TextCleaner, TextCorpus
from sixfold.data.examples import Examples, ExampleSet, Part
from sixfold.data.store import Tokenizers, TokenStore
from sixfold.model.transformer import DecoderOnly
from sixfold.modelfile import Shortlist
from sixfold.tasks.causal_lm_validation import CausalValidator
from sixfold.tasks.loss import TokenLoss
from sixfold.tasks.task import Processes
from sixfold.tasks.text_batches import TextBatch, join, make_batch, optional, with_ends


@dataclass(frozen=True)
class CausalTask:
    """Predict the next token of every document or, with the columns `prompt` and `answer`, of every answer."""

    columns: tuple[str, ...] = TEXT
    data: DataConfig = field(default_factory=DataConfig)
    loss: TokenLoss = field(default_factory=TokenLoss)
    row_tokens: int = 1024  # of the rows that documents are joined and cut into; prompts and answers stay whole
    before: tuple[int, ...] | None = None  # tokens before each prompt, as an imported model has them; None: <bos>

    # Raw text: which records there are, and which of them are good.

    @property
    def cleaning_key(self) -> tuple[Any, ...]:
        """Return the settings that decide which records are kept."""
        return self.columns, self.data.skip, self.data.documents

    def read(
        self, corpus: Corpus, advance: Advance | None = None, fingerprint: Fingerprint | None = None
    ) -> Iterator[Any]:
        """Read the records of a corpus in order."""
        assert isinstance(corpus, TextCorpus)
        return corpus.records(advance, fingerprint)

    def cleaner(self, seen: HashSet) -> TextCleaner:
        """Return the filters of `data`."""
        return TextCleaner(self.data, seen)

    # Examples and batches.

    @property
    def added(self) -> tuple[int, ...]:
        """Return the tokens besides the text of each column that are read."""
        return (1,) if self.columns == TEXT else (1 if self.before is None else len(self.before), 0)

    def examples(self, store: TokenStore, _tokenizers: Tokenizers) -> ExampleSet:
        """Return every row of the store: documents to be cut into rows, or whole prompts with answers."""
        plain = ((),) * len(self.columns)
        parts = tuple(Part(number, self.columns, plain) for number in range(len(store.corpora)))
        return ExampleSet(store, self.columns, parts, self.added, self.row_tokens if self.columns == TEXT else 0)

    def collate(self, examples: Examples, shape: ModelConfig) -> TextBatch:
        """Make a batch: the model reads <bos> x1 … xn and predicts x1 … xn <eos>, or of these only the answer."""
        if self.columns == TEXT:
            text = with_ends(examples.columns["text"], examples.pieces, shape)
            batch = make_batch(text, shape, examples.packing)
        else:
            prompt, answer = (examples.columns[name] for name in ANSWERS)
            always = prompt.lengths >= 0
            before = (shape.bos,) if self.before is None else self.before
            around = [optional(token, always) for token in (*before, shape.eos)]
            whole = join([*around[:-1], prompt, answer, around[-1]])
            batch = make_batch(whole, shape, examples.packing, given=prompt.lengths + len(before) - 1)
        batch = replace(batch, examples=examples.numbers, micro_batch=examples.micro_batch)
        return batch if examples.has_loss else batch.without_loss()

    # Judging a model.

    def validator(
        self, model: nn.Module, shape: ModelConfig, tokenizers: Tokenizers, config: TrainingConfig,
        processes: Processes, check_stop: Callable[[], None],
    ) -> CausalValidator:  # fmt: skip
        """Return a validator that predicts held-out texts with `model`."""
        assert isinstance(model, DecoderOnly)
        (tokenizer,) = dict.fromkeys(tokenizers.values())
        return CausalValidator(model, shape, tokenizer, config, processes, self.row_tokens, check_stop, self.before)

    def rank(self, values: Mapping[str, float], _config: TrainingConfig) -> list[float]:
        """Return what a validation is compared by: the lower loss is better."""
        return [-values["loss"]]

    def card(self, examples: ExampleSet) -> dict[str, Any]:
        """Return the name of the task and the number of documents or answers, as the card of a model file has them."""
        return {"task": "causal-lm", "documents" if self.columns == TEXT else "answers": len(examples.store)}

    # Every token may follow every other, so that there is no shortlist.

    def shortlist_work(self, _examples: ExampleSet, _vocab: int) -> int:
        """Return 0: the model gets no shortlist."""
        return 0

    def shortlist(
        self, examples: ExampleSet, shape: ModelConfig, start: Shortlist | None, advance: Callable[[int], None]
    ) -> Shortlist:
        """Raise an error: `shortlist_work` has said that there is none."""
        raise NotImplementedError
