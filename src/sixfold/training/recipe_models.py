"""The model files that a recipe names, to start from or for their tokeniser, and whether they fit the corpora."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch

from sixfold import modelfile
from sixfold.config import Config, TokenizerConfig
from sixfold.data.cleaned import CleanedCorpora
from sixfold.data.store import Tokenizers
from sixfold.errors import ConfigError
from sixfold.model.transformer import EncoderDecoder, load_model
from sixfold.modelfile import ModelFile
from sixfold.recipe import Recipe
from sixfold.tasks.translation import FORWARD
from sixfold.tasks.translation_validation import TranslationValidator
from sixfold.text.language_codes import matching_codes
from sixfold.text.sequence_format import TARGET, SequenceFormat
from sixfold.text.tokenizer import Tokenizer
from sixfold.training import defaults
from sixfold.training.corpora import Sources, are_stated
from sixfold.training.distributed import SINGLE_PROCESS
from sixfold.training.finetune import SAMPLE_PAIRS, languages_of, refuse_swapped
from sixfold.translation.direction import languages_of as directions_on_card

MODEL_PURPOSES = ("to start from", "to take the tokeniser from")


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


def tokenizer_of(model: ModelFile) -> Tokenizer:
    """Return the tokeniser of a model that the recipe names; raise ConfigError if it has none."""
    if model.tokenizer is None:
        raise ConfigError("the model of start or tokenizer_of: expected one with a tokeniser; it has none")
    return model.tokenizer


def tokenizers_of(model: ModelFile) -> Tokenizers:
    """Return the tokenisers of both sides of a model that the recipe names; raise ConfigError if it has none."""
    source = tokenizer_of(model)
    return dict(zip(FORWARD, (source, model.target_tokenizer or source), strict=True))


def with_codes_of(start: ModelFile, recipe: Recipe, sources: Sources) -> Sources:
    """Return the corpora with their languages as the model to start from calls them, if it has tokens for languages.

    ConfigError names a language that the model has no token for.
    """
    layout = start.sequence_format
    if layout is None:
        return sources
    both_ways = defaults.tune(recipe.settings, start.config).data.both_ways and TARGET in layout.slots
    codes = []
    for side, language in zip(FORWARD, sources.languages, strict=True):
        fitting = [language]
        if side in layout.slots or both_ways:
            fitting = matching_codes(language, layout.languages) if language else []
        if not fitting:
            raise ConfigError(
                f"data.{side}: expected a language of the model to start from ({', '.join(layout.languages)}); "
                f"got {language!r}",
                "state both languages: --set data.source=… --set data.target=…",
            )
        codes.append(fitting[0])
    return replace(sources, languages=(codes[0], codes[1]))


def check_tags(recipe: Recipe, sources: Sources, models: RecipeModels) -> None:
    """Check before hours of work that a tokeniser that is not learnt has the tags that the corpora need."""
    config = defaults.tune(recipe.settings, models.start.config) if models.start else recipe.config
    needs_languages = config.data.both_ways and (models.start is None or models.start.sequence_format is None)
    needed = with_tags(replace(config.tokenizer, tags=()), sources, needs_languages).tags
    if models.tokenizer_owner is None:
        return
    tags = tokenizers_of(models.tokenizer_owner)["source"].tags
    missing = [tag for tag in needed if tag not in tags]
    if missing:
        purpose = MODEL_PURPOSES[0 if models.start else 1]
        raise ConfigError(
            f"data.both_ways or corpus.tag: expected tags of the model {purpose} ({', '.join(tags) or 'it has none'}); "
            f"got {', '.join(missing)}"
        )


def with_tags(config: TokenizerConfig, sources: Sources, both_ways: bool) -> TokenizerConfig:
    """Add the tags that the corpora need: both languages where a model learns both ways, and tags of origin."""
    if both_ways and len(set(filter(None, sources.languages))) < 2:
        raise ConfigError(
            f"data.both_ways: expected two languages; got {' and '.join(map(repr, sources.languages))}",
            "--set data.source=zh --set data.target=en",
        )
    needed = (*(sources.languages if both_ways else ()), *(corpus.tag for corpus in sources.train if corpus.tag))
    return replace(config, tags=tuple(dict.fromkeys((*config.tags, *needed))))


def check_texts(recipe: Recipe, models: RecipeModels) -> None:
    """Check before hours of work that the tokenisers of a model, and the special tokens that it expects, will do."""
    start = models.start
    config = defaults.tune(recipe.settings, start.config) if start else recipe.config
    if models.tokenizer is not None and models.tokenizer.target_tokenizer is not None:
        raise ConfigError(
            "tokenizer_of: expected a model with one tokeniser for both sides; this one has two",
            "write start instead of tokenizer_of, to fine-tune the model; or leave it out, to learn a tokeniser",
        )
    if start is None and config.model.source_vocab:
        raise ConfigError(
            f"model.source_vocab: expected 0 where no model is fine-tuned, because both sides share the tokeniser that "
            f"is learnt; got {config.model.source_vocab}",
            "leave it out; model.share_embeddings=false gives each side embeddings of its own",
        )
    owner = models.tokenizer_owner
    if config.training.subword_sampling and owner is not None and tokenizers_of(owner)["source"].is_foreign:
        raise ConfigError(
            "training.subword_sampling: expected 0 with the tokeniser of another toolkit; "
            f"got {config.training.subword_sampling}",
            "leave it out",
        )
    if config.data.both_ways and start is not None and start.sequence_format is not None:
        if start.target_tokenizer is not None:
            fault = "has two tokenisers"
        elif TARGET not in start.sequence_format.slots:
            fault = "has no tokens that name the target language"
        else:
            return
        raise ConfigError(
            f"data.both_ways: expected a model that can learn both directions; the model to start from {fault}",
            "fine-tune it in its own direction, and another model in the other",
        )


def special_tokens_of(start: ModelFile) -> int:
    """Return how many special tokens the longer side of a pair has, besides <eos>, by the format of a model."""
    layout = start.sequence_format or SequenceFormat()
    return max(0, len(layout.before_source) + len(layout.after_source) - 1, len(layout.before_target))


def check_sides(
    recipe: Recipe,
    kept: CleanedCorpora,
    start: ModelFile,
    languages: tuple[str, str],
    config: Config,
    device: torch.device,
) -> None:
    """Check before hours of work that the sides of the corpora are in the order that the model translates in."""
    is_known = languages == languages_of(start) or languages in directions_on_card(start)
    if config.data.both_ways or are_stated(recipe) or not is_known:
        return  # the losses of a model tell nothing about a language that it is yet to learn
    model = load_model(start.config.model, start.weights(), "the model to start from", device)
    assert isinstance(model, EncoderDecoder)
    shape = start.config.model
    validator = TranslationValidator(
        model, shape, tokenizers_of(start), config.training, SINGLE_PROCESS, sequence_format=start.sequence_format
    )
    for corpus, begin, end in zip(kept.corpora, [0, *kept.ends], kept.ends, strict=False):
        if corpus.way != "back" and end > begin:
            sample = kept.records_at(kept.smallest_hashes([range(begin, end)], SAMPLE_PAIRS))
            refuse_swapped(validator, corpus, sample, languages)
