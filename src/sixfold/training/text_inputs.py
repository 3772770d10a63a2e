"""The inputs of a run for a decoder-only model: documents, or prompts with answers, in tokens, and its settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from sixfold.config import Config, TrainingConfig, from_dict
from sixfold.configfile import require
from sixfold.data.cleaned import CleanedCorpora
from sixfold.data.corpus import RECORDS, uncompressed_name
from sixfold.data.documents import ANSWERS, TEXT, TextCorpus, detect_documents, has_answers
from sixfold.data.examples import ExampleSet
from sixfold.data.loader import BatchPlan, Loader
from sixfold.data.store import open_tokens
from sixfold.errors import ConfigError, DataError
from sixfold.modelfile import ModelFile
from sixfold.recipe import CorpusConfig, Recipe
from sixfold.tasks.causal_lm import CausalTask
from sixfold.tasks.causal_lm_validation import TextSet
from sixfold.tasks.loss import TokenLoss
from sixfold.text.tokenizer import Tokenizer
from sixfold.training import defaults, text_defaults
from sixfold.training.corpora import Sources, hold_out
from sixfold.training.display import Display
from sixfold.training.preparation import Preparation
from sixfold.training.recipe_models import NO_MODELS, RecipeModels, tokenizer_of
from sixfold.training.session import TrainingInputs, is_compiled
from sixfold.training.translation_inputs import lengthened

WHOLE = 2**31 - 1  # tokens of a document, which may be of any length
MAX_DEV_CHARACTERS = 500_000  # of a dev set that is split off: a thousand sentences are fewer, a thousand books are not
PACKED_FILE_GROWTH = 3  # by which a compressed text is larger than its file, roughly


def find_sources(recipe: Recipe, folder: Path, models: RecipeModels = NO_MODELS) -> Sources:
    """Open the files that the recipe names; every file must exist before any work starts."""
    if not recipe.corpus:
        raise DataError("corpus: expected files of text to learn from; got none", "name one or more")
    files = [[folder / file for file in each.files] for each in (*recipe.corpus, *recipe.dev, *recipe.test)]
    kinds = {has_answers(some) for some in files}
    if len(kinds) > 1:
        raise DataError("corpus: expected either documents or prompts with answers; got both", "train on one of them")
    contents = ANSWERS if kinds == {True} else TEXT
    if contents == ANSWERS and models.start is None:
        raise DataError(
            f"{files[0][0]}: expected documents to learn a language from; got pairs of texts",
            "`sixfold finetune` learns answers to prompts; translation is learnt without --kind decoder",
        )

    def opened(config: CorpusConfig) -> TextCorpus:
        paths = tuple(folder / file for file in config.files)
        name = config.name or uncompressed_name(paths[0]).stem
        corpus = TextCorpus(name, paths, config.weight, config.columns, contents=contents)
        corpus.stamp()  # raises if a file is missing
        if contents == ANSWERS or corpus.format in RECORDS:
            return corpus
        chosen = recipe.config.data.documents
        return replace(corpus, documents=detect_documents(paths[0]) if chosen == "auto" else chosen)

    train, dev, test = (tuple(map(opened, configs)) for configs in (recipe.corpus, recipe.dev, recipe.test))
    names = [corpus.name for corpus in (*dev, *test)]
    require(len(set(names)) == len(names), "dev and test", "another name for each set", names)
    return Sources(train, dev, test, ("", ""))


def prepare_inputs(
    recipe: Recipe,
    sources: Sources,
    out: Path,
    recorded: Mapping[str, Any],
    device: torch.device,
    display: Display,
    models: RecipeModels = NO_MODELS,
) -> TrainingInputs:
    """Prepare the data, then choose the settings that follow from it; those `recorded` by an earlier start stay."""
    start = models.start
    columns = contents_of(sources)
    unit = "documents" if columns == TEXT else "answers"
    preparation = Preparation(sources.train, CausalTask(columns, recipe.config.data), out / "data", display, unit)
    kept = preparation.clean(recipe.config.data.dev_pairs)
    if recorded:
        config = lengthened(from_dict(recorded["config"]), recipe.config.training.steps, display)
    else:
        config = new_config(recipe, models, text_size(sources), device)
    check(config, is_finetuned=start is not None)
    check_lengths(config, columns)
    dev = tuple(map(read_set, sources.dev)) or split_off(preparation, kept, config, of_each_corpus=start is not None)
    tests = tuple(map(read_set, sources.test))
    excluded = {text for each in (*dev, *tests) for text in (each.prompts or each.texts)}
    owner = models.tokenizer_owner
    if owner is not None:
        tokenizer = tokenizer_of(owner)
    else:
        tokenizer, _ = preparation.learn_tokenizer(kept, excluded, config.tokenizer, [""] * len(columns))
    max_tokens = WHOLE if columns == TEXT else config.data.max_tokens
    tokenizers = dict.fromkeys(columns, tokenizer)
    store = preparation.tokenize(kept, tokenizers, excluded, columns[:1], max_tokens, has_dev_files=bool(sources.dev))
    if recorded and recorded["tokens"] != store.key:
        raise DataError(
            f"{out}: the corpora no longer give the tokens that this run started with",
            "if a library was updated, go back to its old version; or use another --output",
        )
    examples = task_of(config, columns, device, start).examples(store, tokenizers)
    size = text_size(sources)
    training = config.training if recorded else complete_training(config.training, examples, size, device)
    shape = config.model if start is not None else tokenizer.fit(config.model)  # an imported model has ids of its own
    config = replace(config, model=shape, training=training)
    display.say(summary(config, examples, unit, device))
    preset = "" if start else defaults.preset_name(recipe.settings, size, device.type, text_defaults.SIZES)
    task = task_of(config, columns, device, start)  # whether it is compiled follows from the steps
    return TrainingInputs(config, task, examples, tokenizers, dev, (*dev, *tests), start, preset)


def contents_of(sources: Sources) -> tuple[str, ...]:
    """Return the columns of the records of all corpora."""
    corpus = sources.train[0]
    assert isinstance(corpus, TextCorpus)
    return corpus.contents


def text_size(sources: Sources) -> int:
    """Return about how many bytes of text the corpora have."""
    return sum(
        corpus.size * (1 if uncompressed_name(corpus.files[0]) == corpus.files[0] else PACKED_FILE_GROWTH)
        for corpus in sources.train
    )


def read_set(corpus: Any) -> TextSet:
    """Read a dev or test set as it is: nothing that a user is measured by is cleaned away."""
    texts = [record[1:] for record in corpus.records()]
    if not texts:
        raise DataError(f"{corpus.files[0]}: expected text to predict; the file is empty")
    return set_of(corpus.name, texts)


def set_of(name: str, texts: Sequence[Sequence[str]]) -> TextSet:
    """Return a set of documents, or of prompts with answers."""
    prompts = [each[0] for each in texts] if len(texts[0]) > 1 else ()
    return TextSet(name, [each[-1] for each in texts], prompts)


def split_off(
    preparation: Preparation, kept: CleanedCorpora, config: Config, of_each_corpus: bool
) -> tuple[TextSet, ...]:
    """Split a dev set off all corpora, or one off each; its texts are few enough to be predicted often."""
    parts = [range(begin, end) for begin, end in zip([0, *kept.ends], kept.ends, strict=False)]
    named = (
        [(corpus.name, [part]) for corpus, part in zip(kept.corpora, parts, strict=True)]
        if of_each_corpus
        else [("dev", parts)]
    )
    sets = []
    for name, some in named:
        texts = hold_out(preparation, kept, some, config)
        every = -(-sum(len(each[-1]) for each in texts) // MAX_DEV_CHARACTERS)
        sets.append(set_of(name, texts[::every]))
    return tuple(sets)


def new_config(recipe: Recipe, models: RecipeModels, size: int, device: torch.device) -> Config:
    """Return the configuration of a new run: that of the model to start from, or defaults for the text and device."""
    if models.start is not None:
        return text_defaults.tune_text(recipe.settings, models.start.config, device.type)
    config = text_defaults.choose(recipe.settings, size, device.type)
    if models.tokenizer is not None:
        config = replace(config, tokenizer=models.tokenizer.config.tokenizer)
    return config


def complete_training(
    training: TrainingConfig, examples: ExampleSet, size: int, device: torch.device
) -> TrainingConfig:
    """Fill in the settings of training that depend on how many steps an epoch has."""

    def steps_per_epoch(batch_tokens: int) -> int:
        plan = BatchPlan(batch_tokens, 1, training.seed, packed=defaults.is_packed(training, device.type))
        return len(Loader(examples, plan, lambda batch: batch).epoch(0))

    return defaults.fill_in(training, defaults.size_of(size, text_defaults.SIZES), steps_per_epoch, device.type)


def summary(config: Config, examples: ExampleSet, unit: str, device: torch.device) -> str:
    """Return one line for people: the data, the model and the length of the run."""
    shape, training = config.model, config.training
    tokens = sum(int(column.sum(dtype="int64")) for column in examples.lengths().values())
    rows = f" in rows of {examples.row_tokens}" if examples.row_tokens else ""
    return (
        f"{len(examples):,} {unit}, {tokens:,} tokens{rows}, {shape.vocab:,} pieces; "
        f"{shape.decoder_layers} layers of width {shape.d_model}; "
        f"{training.steps:,} steps of {training.batch_tokens:,} tokens on {device.type}"
    )


def task_of(
    config: Config, columns: tuple[str, ...], device: torch.device, start: ModelFile | None = None
) -> CausalTask:
    """Return the task with the loss that the settings set, for prompts as the model to start from reads them."""
    training = config.training
    loss = TokenLoss(training.label_smoothing, training.rdrop, is_compiled(training, device))
    prompts = start.prompt_format if start is not None else None
    return CausalTask(columns, config.data, loss, training.row_tokens, prompts.before if prompts is not None else None)


def pack_inputs(inputs: TrainingInputs) -> tuple[Any, ...]:
    """Return what other processes need to make the same inputs, small enough to be sent: they map the tokens."""
    sent = (inputs.config, inputs.dev, inputs.final_sets, inputs.preset)
    (tokenizer,) = dict.fromkeys(inputs.tokenizers.values())
    return sent, tokenizer.to_json(), inputs.examples.store.key


def unpack_inputs(
    packed: tuple[Any, ...], sources: Sources, out: Path, device: torch.device, start: ModelFile | None
) -> TrainingInputs:
    """Make the leader's inputs again from what it has packed."""
    (config, dev, final_sets, preset), tokenizer_json, key = packed
    task = task_of(config, contents_of(sources), device, start)
    tokenizers = dict.fromkeys(task.columns, Tokenizer.from_json(tokenizer_json))
    store = open_tokens(out / "data", key, tokenizers, sources.train, task.columns)
    return TrainingInputs(config, task, task.examples(store, tokenizers), tokenizers, dev, final_sets, start, preset)


def check(config: Config, is_finetuned: bool = True) -> None:
    """Check what only the training of decoder-only models needs of a configuration, chosen settings or not."""
    training = config.training
    if training.lora and not is_finetuned:
        raise ConfigError("training.lora: expected 0 where no model is fine-tuned: random weights would stay random")
    if training.score not in ("auto", "loss"):
        raise ConfigError(f"training.score: expected loss for a decoder-only model; got {training.score!r}")
    if training.subword_sampling:
        raise ConfigError("training.subword_sampling: expected 0 for a decoder-only model, whose texts fill their rows")


def check_lengths(config: Config, columns: tuple[str, ...]) -> None:
    """Check that the rows or the prompts with answers of a complete configuration fit the model."""
    model, training = config.model, config.training
    if columns == TEXT and training.packing == "off":
        raise ConfigError("training.packing: expected auto or on for documents, which fill their rows; it is off")
    if columns == TEXT and training.row_tokens > model.max_length:
        raise ConfigError(
            f"training.row_tokens: expected at most model.max_length = {model.max_length}; got {training.row_tokens}"
        )
    if columns == ANSWERS and model.positions == "learned" and 2 * config.data.max_tokens >= model.max_length:
        raise ConfigError(
            f"data.max_tokens: expected less than half of model.max_length = {model.max_length}, so that a prompt and "
            f"its answer fit; got {config.data.max_tokens}"
        )
