"""The inputs of a translation run: its data in tokens, its task, and the settings that they lead to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from sixfold.config import Config, TrainingConfig, from_dict
from sixfold.data.examples import ExampleSet
from sixfold.data.loader import BatchPlan, Loader
from sixfold.data.store import open_tokens
from sixfold.errors import ConfigError, DataError
from sixfold.interop.start_token import forbidden_tokens
from sixfold.modelfile import ModelFile
from sixfold.recipe import Recipe
from sixfold.tasks.loss import TokenLoss
from sixfold.tasks.translation import TranslationTask
from sixfold.text.tokenizer import Tokenizer
from sixfold.training import defaults
from sixfold.training.corpora import DevSplit, Sources, are_stated, find, read_set
from sixfold.training.display import Display
from sixfold.training.finetune import languages_of, refuse_other_direction
from sixfold.training.preparation import Preparation
from sixfold.training.recipe_models import (
    NO_MODELS,
    RecipeModels,
    check_sides,
    check_tags,
    check_texts,
    special_tokens_of,
    tokenizers_of,
    with_codes_of,
    with_tags,
)
from sixfold.training.session import TrainingInputs, is_compiled


def find_sources(recipe: Recipe, folder: Path, models: RecipeModels = NO_MODELS) -> Sources:
    """Open the files that the recipe names; a model to start from says the languages of files that do not."""
    sources = find(recipe, folder, languages_of(models.start))
    return sources if models.start is None else with_codes_of(models.start, recipe, sources)


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
    tests = tuple(read_set(corpus, sources.languages) for corpus in sources.test)
    check_tags(recipe, sources, models)
    check_texts(recipe, models)
    is_forward = start is not None and not defaults.tune(recipe.settings, start.config).data.both_ways
    if start is not None and is_forward and not are_stated(recipe):
        refuse_other_direction(start, sources.languages)
    task = TranslationTask(sources.languages, recipe.config.data)
    preparation = Preparation(sources.train, task, out / "data", display)
    kept = preparation.clean(recipe.config.data.dev_pairs)
    if recorded:
        config = lengthened(from_dict(recorded["config"]), recipe.config.training.steps, display)
    else:
        config = new_config(recipe, models, len(kept), device)
    needs_languages = config.data.both_ways and (start is None or start.sequence_format is None)
    config = replace(config, tokenizer=with_tags(config.tokenizer, sources, needs_languages))
    check(config, start is not None, special_tokens_of(start) if start is not None else 0)
    if start is not None and not recorded:
        check_sides(recipe, kept, start, sources.languages, config, device)
    if sources.dev:
        dev = tuple(read_set(corpus, sources.languages) for corpus in sources.dev)
    else:
        dev = DevSplit(preparation, kept, config, sources.languages).sets(of_each_corpus=start is not None)
    if config.data.both_ways:
        dev, tests = (tuple(way for dev_set in sets for way in dev_set.both_ways()) for sets in (dev, tests))
    excluded = {source for dev_set in (*dev, *tests) for source in dev_set.sources}
    owner = models.tokenizer_owner
    if owner is not None:
        tokenizers, profiles = tokenizers_of(owner), owner.profiles
    else:
        learnt, profiles = preparation.learn_tokenizer(kept, excluded, config.tokenizer, sources.languages)
        tokenizers = dict.fromkeys(task.columns, learnt)
    # Both ways, a source of a dev set may be the target of a pair.
    excluded_columns = task.columns if config.data.both_ways else task.columns[:1]
    store = preparation.tokenize(
        kept, tokenizers, excluded, excluded_columns, config.data.max_tokens, has_dev_files=bool(sources.dev)
    )
    if recorded and recorded["tokens"] != store.key:
        raise DataError(
            f"{out}: the corpora no longer give the tokens that this run started with",
            "if a library was updated, go back to its old version; or use another --output",
        )
    task = task_of(config, sources.languages, device, start)
    examples = task.examples(store, tokenizers)
    training = config.training if recorded else complete_training(config.training, examples, device)
    # An imported model has ids of its own.
    shape = config.model if start is not None else tokenizers["target"].fit(config.model)
    config = replace(config, model=shape, training=training)
    display.say(summary(config, sources.languages, len(store), device))
    preset = "" if start else defaults.preset_name(recipe.settings, len(kept), device.type)
    task = task_of(config, sources.languages, device, start)  # whether it is compiled follows from the steps
    validated = [dev_set.first(config.data.dev_pairs) for dev_set in dev]
    return TrainingInputs(config, task, examples, tokenizers, validated, (*dev, *tests), start, preset, profiles)


def new_config(recipe: Recipe, models: RecipeModels, pairs: int, device: torch.device) -> Config:
    """Return the configuration of a new run: that of the model to start from, or defaults for the corpus and device."""
    if models.start is not None:
        config = defaults.tune(recipe.settings, models.start.config, special_tokens_of(models.start))
    else:
        config = defaults.choose(recipe.settings, pairs, device.type)
    if models.tokenizer is not None:
        config = replace(config, tokenizer=models.tokenizer.config.tokenizer)
    return config


def complete_training(training: TrainingConfig, examples: ExampleSet, device: torch.device) -> TrainingConfig:
    """Fill in the settings of training that depend on how many steps an epoch has."""

    def steps_per_epoch(batch_tokens: int) -> int:
        plan = BatchPlan(batch_tokens, 1, training.seed, packed=defaults.is_packed(training, device.type))
        return len(Loader(examples, plan, lambda batch: batch).epoch(0))

    return defaults.complete(training, len(examples.store), steps_per_epoch, device.type)


def summary(config: Config, languages: tuple[str, str], pairs: int, device: torch.device) -> str:
    """Return one line for people: the data, the model and the length of the run."""
    shape, training, arrow = config.model, config.training, "↔" if config.data.both_ways else "→"
    return (
        f"{pairs:,} pairs, {arrow.join(language or '?' for language in languages)}, "
        f"{shape.vocab:,} pieces; {shape.encoder_layers}+{shape.decoder_layers} layers of width {shape.d_model}; "
        f"{training.steps:,} steps of {training.batch_tokens:,} tokens on {device.type}"
    )


def task_of(
    config: Config, languages: tuple[str, str], device: torch.device, start: ModelFile | None = None
) -> TranslationTask:
    """Return the task with the loss that the settings set, for sequences as the model to start from reads them."""
    training, forbidden = config.training, forbidden_tokens(start) if start is not None else ()
    loss = TokenLoss(training.label_smoothing, training.rdrop, is_compiled(training, device), forbidden)
    return TranslationTask(languages, config.data, loss, start.sequence_format if start is not None else None)


def pack_inputs(inputs: TrainingInputs) -> tuple[Any, ...]:
    """Return what other processes need to make the same inputs, small enough to be sent: they map the tokens."""
    sent = replace(inputs, task=None, examples=None, tokenizers={}, start=None)  # type: ignore[arg-type]
    tokenizers = {name: tokenizer.to_json() for name, tokenizer in inputs.tokenizers.items()}
    return sent, tokenizers, inputs.examples.store.key, inputs.examples.parts, inputs.examples.added


def unpack_inputs(
    packed: tuple[Any, ...], sources: Sources, out: Path, device: torch.device, start: ModelFile | None
) -> TrainingInputs:
    """Make the leader's inputs again from what it has packed."""
    inputs, stated, key, parts, added = packed
    made = {text: Tokenizer.from_json(text) for text in set(stated.values())}  # columns may share one
    tokenizers = {name: made[text] for name, text in stated.items()}
    task = task_of(inputs.config, sources.languages, device, start)
    store = open_tokens(out / "data", key, tokenizers, sources.train, task.columns)
    examples = ExampleSet(store, task.columns, parts, added)
    return replace(inputs, task=task, examples=examples, tokenizers=tokenizers, start=start)


def lengthened(config: Config, steps: int, display: Display) -> Config:
    """Return the settings of an earlier start, with more steps if the user now sets more."""
    before = config.training.steps
    if steps <= before:
        return config
    display.say(f"the run is made longer: {steps:,} steps instead of {before:,}")
    if config.training.schedule == "cosine":
        display.say(f"the learning rate now falls until step {steps:,}, so that it is higher than at the end before")
    return replace(config, training=replace(config.training, steps=steps))


def check(config: Config, is_finetuned: bool = True, special_tokens: int = 0) -> None:
    """Check what only training needs of a configuration; `special_tokens` are those of `special_tokens_of`."""
    model = config.model
    if config.training.lora and not is_finetuned:
        raise ConfigError("training.lora: expected 0 where no model is fine-tuned: random weights would stay random")
    if config.training.compile == "on" and config.training.packing == "off":
        raise ConfigError("training.compile: expected training.packing, which gives all batches one shape; it is off")
    if model.kind != "encoder-decoder":
        raise ConfigError(f"model.kind: expected encoder-decoder to learn from pairs; got {model.kind!r}")
    tags = min(2, len(config.tokenizer.tags))  # language and origin come before a source
    max_tokens = model.max_length - max(tags, special_tokens)
    if model.positions == "learned" and config.data.max_tokens > max_tokens:
        raise ConfigError(
            f"data.max_tokens: expected at most {max_tokens}, the rows of the learned position table "
            f"(model.max_length = {model.max_length}) less the special tokens; got {config.data.max_tokens}"
        )
