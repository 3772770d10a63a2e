"""Sixfold: the Transformer of "Attention Is All You Need", from raw parallel text to a translator you can look into."""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sixfold.config import Config, ModelConfig, TokenizerConfig, TrainingConfig
    from sixfold.decoding.options import SamplingOptions
    from sixfold.errors import ConfigError, DataError, ModelFileError, RequestError, SixfoldError
    from sixfold.explorer.explore import explore
    from sixfold.explorer.trace import Trace
    from sixfold.generation.generator import Generator
    from sixfold.generation.options import Continuation, GenerateOptions, TextChunk
    from sixfold.modelfile import ModelFile
    from sixfold.presets import preset
    from sixfold.serving.client import AsyncClient, Client
    from sixfold.text.tokenizer import Tokenizer
    from sixfold.training.run import finetune, train
    from sixfold.translation.documents.steps import translate_document
    from sixfold.translation.glossary import Glossary
    from sixfold.translation.memory import TranslationMemory
    from sixfold.translation.options import TranslateOptions
    from sixfold.translation.result import Translation
    from sixfold.translation.translator import Translator

__version__ = "0.1.0"

# Names are imported when they are first used, so that `import sixfold` costs nothing.
_HOMES = {
    "AsyncClient": "sixfold.serving.client",
    "Client": "sixfold.serving.client",
    "Config": "sixfold.config",
    "ConfigError": "sixfold.errors",
    "Continuation": "sixfold.generation.options",
    "DataError": "sixfold.errors",
    "GenerateOptions": "sixfold.generation.options",
    "Generator": "sixfold.generation.generator",
    "Glossary": "sixfold.translation.glossary",
    "ModelConfig": "sixfold.config",
    "ModelFile": "sixfold.modelfile",
    "ModelFileError": "sixfold.errors",
    "RequestError": "sixfold.errors",
    "SamplingOptions": "sixfold.decoding.options",
    "SixfoldError": "sixfold.errors",
    "TextChunk": "sixfold.generation.options",
    "Tokenizer": "sixfold.text.tokenizer",
    "TokenizerConfig": "sixfold.config",
    "Trace": "sixfold.explorer.trace",
    "TrainingConfig": "sixfold.config",
    "TranslateOptions": "sixfold.translation.options",
    "Translation": "sixfold.translation.result",
    "TranslationMemory": "sixfold.translation.memory",
    "Translator": "sixfold.translation.translator",
    "explore": "sixfold.explorer.explore",
    "finetune": "sixfold.training.run",
    "preset": "sixfold.presets",
    "train": "sixfold.training.run",
    "translate_document": "sixfold.translation.documents.steps",
}

_RENAMED = {"Memory": "TranslationMemory"}  # old public names, which still work for one release

__all__ = [
    "AsyncClient",
    "Client",
    "Config",
    "ConfigError",
    "Continuation",
    "DataError",
    "GenerateOptions",
    "Generator",
    "Glossary",
    "ModelConfig",
    "ModelFile",
    "ModelFileError",
    "RequestError",
    "SamplingOptions",
    "SixfoldError",
    "TextChunk",
    "Tokenizer",
    "TokenizerConfig",
    "Trace",
    "TrainingConfig",
    "TranslateOptions",
    "Translation",
    "TranslationMemory",
    "Translator",
    "explore",
    "finetune",
    "preset",
    "train",
    "translate_document",
]


def __dir__() -> list[str]:
    """The public names, whether they are imported already or not; modules of the package are not among them."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        warnings.warn(f"sixfold.{name} is now sixfold.{_RENAMED[name]}", DeprecationWarning, stacklevel=2)
        name = _RENAMED[name]
    if name not in _HOMES:
        raise AttributeError(f"module 'sixfold' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
