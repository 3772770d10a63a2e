"""The inputs of a translation run: its corpora and their languages, dev sets, tags, and the settings they lead to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import torch

from sixfold import files, modelfile
from sixfold.config import Config, TokenizerConfig, TrainingConfig, from_dict
from sixfold.configfile import require
from sixfold.data.cleaned import CleanedCorpora, key_of
from sixfold.data.corpus import RECORDS, Corpus, detect_languages, languages_from_names, uncompressed_name
from sixfold.data.examples import ExampleSet
from sixfold.data.loader import BatchPlan, Loader
from sixfold.data.store import open_tokens
from sixfold.errors import ConfigError, DataError
from sixfold.model.transformer import EncoderDecoder, load_model
from sixfold.modelfile import ModelFile
from sixfold.recipe import CorpusConfig, Recipe, set_name
from sixfold.tasks.loss import TokenLoss
from sixfold.tasks.translation import DevSet, TranslationTask, TranslationValidator
from sixfold.text.sequence_format import SequenceFormat
from sixfold.text.tokenizer import Tokenizer
from sixfold.training import defaults
from sixfold.training.display import Display
from sixfold.training.distributed import SINGLE_PROCESS
from sixfold.training.finetune import SAMPLE_PAIRS, languages_of, refuse_other_direction, refuse_swapped
from sixfold.training.preparation import Preparation
from sixfold.training.session import TrainingInputs, is_compiled

MODEL_PURPOSES = ("to start from", "to take the tokeniser from")


@dataclass(frozen=True)
class Sources:
    """The corpora of a recipe, found on disk, and the languages of their two sides."""

    train: tuple[Corpus, ...]
    dev: tuple[Corpus, ...]
    test: tuple[Corpus, ...]
    languages: tuple[str, str]


class RecipeModels(NamedTuple):
    """The model files that a recipe names."""

    start: ModelFile | None = None  # its weights and its tokeniser are used
    tokenizer: ModelFile | None = None  # only its tokeniser is used

    @classmethod
    def load(cls, recipe: Recipe, folder: Path) -> RecipeModels:
        """Open the files, which are relative to the data folder."""
        start, tokenizer = (
            modelfile.load(folder / name) if name else None for name in (recipe.start, recipe.tokenizer_of)
        )
        return cls(start, tokenizer)

    @property
    def tokenizer_owner(self) -> ModelFile | None:
        """Return the model whose tokeniser is used, or None if one is learnt."""
        return self.start or self.tokenizer

    def checksums(self) -> dict[str, str]:
        """Return the checksum of each file by its purpose."""
        return {purpose: file.checksum for purpose, file in zip(MODEL_PURPOSES, self, strict=True) if file is not None}


NO_MODELS = RecipeModels()


def find(recipe: Recipe, folder: Path, start_languages: tuple[str, str] = ("", "")) -> Sources:
    """Open the files that the recipe names; every file must exist before any work starts.

    `start_languages` are those of a model to start from, for files whose names do not say theirs.
    """
    if not recipe.corpus:
        raise DataError("corpus: expected files to learn from; got none", "name two files of lines or one of pairs")
    languages = complete_languages(detect_languages(recipe.config.data, recipe.corpus[0], folder), start_languages)
    for config in () if are_stated(recipe) else (*recipe.corpus, *recipe.dev, *recipe.test):
        refuse_reversed(config, languages)
    train, dev, test = (
        tuple(Corpus.from_config(config, folder, languages) for config in configs)
        for configs in (recipe.corpus, recipe.dev, recipe.test)
    )
    for corpus in chain(train, dev, test):
        corpus.stamp()  # raises if a file is missing
    names = [corpus.name for corpus in chain(dev, test)]
    require(len(set(names)) == len(names), "dev and test", "another name for each set", names)
    return Sources(train, dev, test, languages)


def are_stated(recipe: Recipe) -> bool:
    """Return whether the settings state both languages; they are then taken as stated and not guessed."""
    return bool(recipe.config.data.source and recipe.config.data.target)


def refuse_reversed(config: CorpusConfig, languages: tuple[str, str]) -> None:
    """Refuse files whose names say that their sides are in the opposite order to those of the run."""
    # Columns may be named in any order, and fields of JSON are found by their names.
    by_order = not config.columns and uncompressed_name(Path(config.files[0])).suffix.lower() not in RECORDS
    named = languages_from_names(config)
    if by_order and named == languages[::-1] and named[0] != named[1]:
        raise DataError(
            f"{', '.join(config.files)}: expected {languages[0]} and then {languages[1]}, as in the rest of the run; "
            f"by their names they are {named[0]} and {named[1]}",
            "name the files in the other order; for a file of pairs write in a recipe: columns = [2, 1]",
        )


def complete_languages(languages: tuple[str, str], start_languages: tuple[str, str]) -> tuple[str, str]:
    """Fill in a missing language from those of the model to start from."""
    source, target = languages
    if not source and not target:
        return start_languages
    if source and target:
        return languages
    stated = source or target
    if stated not in start_languages:
        return languages
    missing = start_languages[1] if stated == start_languages[0] else start_languages[0]
    return source or missing, target or missing


def read_set(corpus: Corpus, languages: tuple[str, str]) -> DevSet:
    """Read a dev or test set as it is: nothing that a user is measured by is cleaned away."""
    pairs = list(corpus.pairs())
    if not pairs:
        raise DataError(f"{corpus.files[0]}: expected sentences to translate; the file is empty")
    return DevSet(corpus.name, [pair.source for pair in pairs], [pair.target for pair in pairs], languages)


def with_tags(config: TokenizerConfig, sources: Sources, both_ways: bool) -> TokenizerConfig:
    """Add the tags that the corpora need: both languages where a model learns both ways, and tags of origin."""
    if both_ways and len(set(filter(None, sources.languages))) < 2:
        raise ConfigError(
            f"data.both_ways: expected two languages; got {' and '.join(map(repr, sources.languages))}",
            "--set data.source=zh --set data.target=en",
        )
    needed = (*(sources.languages if both_ways else ()), *(corpus.tag for corpus in sources.train if corpus.tag))
    return replace(config, tags=tuple(dict.fromkeys((*config.tags, *needed))))


@dataclass(frozen=True)
class DevSplit:
    """Splits dev sets off the corpora where the user names none; each is kept in `folder`."""

    preparation: Preparation
    kept: CleanedCorpora
    config: Config
    languages: tuple[str, str]

    def sets(self, of_each_corpus: bool) -> tuple[DevSet, ...]:
        """Return one set of all corpora, or one of each."""
        kept = self.kept
        parts = [range(begin, end) for begin, end in zip([0, *kept.ends], kept.ends, strict=False)]
        if of_each_corpus:
            return tuple(self._split_off([part], corpus.name) for corpus, part in zip(kept.corpora, parts, strict=True))
        # Machine translations are no references.
        human = [
            part for corpus, part in zip(kept.corpora, parts, strict=True) if corpus.way == "both" and not corpus.tag
        ]
        return (self._split_off(human or parts, "dev"),)

    def _split_off(self, parts: Sequence[range], name: str) -> DevSet:
        size = sum(map(len, parts))
        count = min(self.config.data.dev_pairs, size // 20)
        if count == 0:
            raise DataError(
                f"corpus: expected at least 20 pairs, to split a dev set off; got {size}",
                "name a dev set with --dev",
            )
        first = next(part.start for part in parts if part)
        path = self.preparation.folder / f"dev-{key_of(self.kept.key, first, count, self.config.training.seed)}.json"
        if not path.exists():
            with self.preparation.display.reading("splitting a dev set off", self.preparation.size) as advance:
                records = self.kept.records_at(self.kept.smallest_hashes(parts, count), advance)
            with files.atomic_write(path) as file:
                file.write(json.dumps([record[1:] for record in records], ensure_ascii=False).encode())
        pairs = json.loads(path.read_text(encoding="utf-8"))
        return DevSet(name, [source for source, _ in pairs], [target for _, target in pairs], self.languages)


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
    if start is not None:
        check_sequences(start)
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
    config = replace(config, tokenizer=with_tags(config.tokenizer, sources, config.data.both_ways))
    check(config, is_finetuned=start is not None)
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
        tokenizer, profiles = tokenizer_of(owner), owner.profiles
    else:
        tokenizer, profiles = preparation.learn_tokenizer(kept, excluded, config.tokenizer, sources.languages)
    # Both ways, a source of a dev set may be the target of a pair.
    excluded_columns = task.columns if config.data.both_ways else task.columns[:1]
    store = preparation.tokenize(
        kept, tokenizer, excluded, excluded_columns, config.data.max_tokens, has_dev_files=bool(sources.dev)
    )
    if recorded and recorded["tokens"] != store.key:
        raise DataError(
            f"{out}: the corpora no longer give the tokens that this run started with",
            "if a library was updated, go back to its old version; or use another --output",
        )
    examples = replace(task, data=config.data).examples(store, tokenizer)
    training = config.training if recorded else complete_training(config.training, examples, device)
    shape = config.model if start is not None else tokenizer.fit(config.model)  # an imported model has ids of its own
    config = replace(config, model=shape, training=training)
    display.say(summary(config, sources.languages, len(store), device))
    preset = "" if start else defaults.preset_name(recipe.settings, len(kept), device.type)
    task = task_of(config, sources.languages, device)
    validated = [dev_set.first(config.data.dev_pairs) for dev_set in dev]
    return TrainingInputs(config, task, examples, tokenizer, validated, (*dev, *tests), start, preset, profiles)


def new_config(recipe: Recipe, models: RecipeModels, pairs: int, device: torch.device) -> Config:
    """Return the configuration of a new run: that of the model to start from, or defaults for the corpus and device."""
    if models.start is not None:
        config = defaults.tune(recipe.settings, models.start.config)
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


def task_of(config: Config, languages: tuple[str, str], device: torch.device) -> TranslationTask:
    """Return the task with the loss that the settings ask for."""
    training = config.training
    loss = TokenLoss(training.label_smoothing, training.rdrop, is_compiled(training, device))
    return TranslationTask(languages, config.data, loss)


def pack_inputs(inputs: TrainingInputs) -> tuple[Any, ...]:
    """Return what other processes need to make the same inputs, small enough to be sent: they map the tokens."""
    sent = replace(inputs, task=None, examples=None, tokenizer=None, start=None)  # type: ignore[arg-type]
    return sent, inputs.tokenizer.to_json(), inputs.examples.store.key, inputs.examples.parts


def unpack_inputs(
    packed: tuple[Any, ...], sources: Sources, out: Path, device: torch.device, start: ModelFile | None
) -> TrainingInputs:
    """Make the leader's inputs again from what it has packed."""
    inputs, tokenizer_json, key, parts = packed
    tokenizer = Tokenizer.from_json(tokenizer_json)
    task = task_of(inputs.config, sources.languages, device)
    store = open_tokens(out / "data", key, tokenizer, sources.train, task.columns)
    examples = ExampleSet(store, task.columns, parts, added=(1, 1))
    return replace(inputs, task=task, examples=examples, tokenizer=tokenizer, start=start)


def lengthened(config: Config, steps: int, display: Display) -> Config:
    """Return the settings of an earlier start, with more steps if the user now sets more."""
    before = config.training.steps
    if steps <= before:
        return config
    display.say(f"the run is made longer: {steps:,} steps instead of {before:,}")
    if config.training.schedule == "cosine":
        display.say(f"the learning rate now falls until step {steps:,}, so that it is higher than at the end before")
    return replace(config, training=replace(config.training, steps=steps))


def check_sides(
    recipe: Recipe,
    kept: CleanedCorpora,
    start: ModelFile,
    languages: tuple[str, str],
    config: Config,
    device: torch.device,
) -> None:
    """Check before hours of work that the sides of the corpora are in the order that the model translates in."""
    if config.data.both_ways or are_stated(recipe) or languages != languages_of(start):
        return  # the losses of a model tell nothing about a language that it is yet to learn
    model = load_model(start.config.model, start.weights(), "the model to start from", device)
    assert isinstance(model, EncoderDecoder)
    shape = start.config.model
    validator = TranslationValidator(model, shape, tokenizer_of(start), config.training, SINGLE_PROCESS)
    for corpus, begin, end in zip(kept.corpora, [0, *kept.ends], kept.ends, strict=False):
        if corpus.way != "back" and end > begin:
            sample = kept.records_at(kept.smallest_hashes([range(begin, end)], SAMPLE_PAIRS))
            refuse_swapped(validator, corpus, sample, languages)


def tokenizer_of(model: ModelFile) -> Tokenizer:
    """Return the tokeniser of a model that the recipe names; raise ConfigError if it has none."""
    if model.tokenizer is None:
        raise ConfigError("the model of start or tokenizer_of: expected one with a tokeniser; it has none")
    return model.tokenizer


def check_tags(recipe: Recipe, sources: Sources, models: RecipeModels) -> None:
    """Check before hours of work that a tokeniser that is not learnt has the tags that the corpora need."""
    config = defaults.tune(recipe.settings, models.start.config) if models.start else recipe.config
    needed = with_tags(replace(config.tokenizer, tags=()), sources, config.data.both_ways).tags
    if models.tokenizer_owner is None:
        return
    tags = tokenizer_of(models.tokenizer_owner).tags
    missing = [tag for tag in needed if tag not in tags]
    if missing:
        purpose = MODEL_PURPOSES[0 if models.start else 1]
        raise ConfigError(
            f"data.both_ways or corpus.tag: expected tags of the model {purpose} ({', '.join(tags) or 'it has none'}); "
            f"got {', '.join(missing)}"
        )


def check_sequences(start: ModelFile) -> None:
    """Raise ConfigError if the model to start from reads other sequences than training makes of pairs."""
    special = start.sequence_format
    plain = SequenceFormat((), (start.config.model.eos,))
    if start.target_tokenizer is not None:
        raise ConfigError("start: expected a model with one tokeniser for both sides; this one has two")
    if special is not None and replace(special, languages={}) != plain:
        raise ConfigError(
            "start: expected a model that reads a source and <eos>, and whose targets have no forced first token; "
            "this one has tokens of languages, or no <eos>"
        )


def check(config: Config, is_finetuned: bool = True) -> None:
    """Check what only training needs of a configuration."""
    model = config.model
    if config.training.lora and not is_finetuned:
        raise ConfigError("training.lora: expected 0 where no model is fine-tuned: random weights would stay random")
    if config.training.compile == "on" and config.training.packing == "off":
        raise ConfigError("training.compile: expected training.packing, which gives all batches one shape; it is off")
    if model.kind != "encoder-decoder":
        raise ConfigError(f"model.kind: expected encoder-decoder to learn from pairs; got {model.kind!r}")
    max_tokens = model.max_length - min(2, len(config.tokenizer.tags))  # language and origin come before a source
    if model.positions == "learned" and config.data.max_tokens > max_tokens:
        raise ConfigError(
            f"data.max_tokens: expected at most {max_tokens}, the rows of the learned position table "
            f"(model.max_length = {model.max_length}) less the tags; got {config.data.max_tokens}"
        )


def expectations(recipe: Recipe, sources: Sources, scores: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Say for each dev and test set whether it reached the score that the recipe expects."""
    source, target = sources.languages
    for expected, corpus in zip((*recipe.dev, *recipe.test), (*sources.dev, *sources.test), strict=True):
        forward, backward = set_name(corpus.name, source, target), set_name(corpus.name, target, source)
        bleu_of = {corpus.name: expected.bleu, forward: expected.bleu, backward: expected.bleu_back}
        for name, bleu in bleu_of.items():
            if bleu and name in scores:
                got = scores[name]["bleu"]
                verdict = "as expected" if got >= bleu - expected.tolerance else "NOT reached"
                yield f"{name}: expected BLEU {bleu:.1f} ± {expected.tolerance:.1f}; got {got:.1f}: {verdict}"
