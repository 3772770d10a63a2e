"""Test sets, and the translations that a model makes of them or that a file contains."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sixfold.config import Compute
from sixfold.data import corpus
from sixfold.data.cleaning import REPLACEMENT
from sixfold.errors import DataError, RequestError
from sixfold.modelfile import ModelFile
from sixfold.text.encodings import read_lines
from sixfold.text.languages import guess_language, language_of, languages_of
from sixfold.translation.loading import load
from sixfold.translation.options import TranslateOptions
from sixfold.translation.translator import Translator

MODEL_SUFFIX = ".safetensors"
BATCH_SENTENCES = 500  # translated in one call

ReportProgress = Callable[[int], None]  # is called with the number of sentences just translated


@dataclass(frozen=True)
class TestSet:
    """Source sentences, their references, and the corpus of each, which is an empty text if not known."""

    __test__ = False  # or pytest would collect it because of its name

    sources: Sequence[str]
    references: Sequence[str]
    corpora: Sequence[str]
    language: str  # of the references; empty if not known

    def __len__(self) -> int:
        return len(self.sources)


@dataclass(frozen=True)
class DecodingOptions:
    """How models translate a test set."""

    beam: int = 4
    compute: Compute = "int8"
    threads: int = 0  # 0: as many as the machine has cores


def require_sacrebleu() -> None:
    """Raise a RequestError if sacreBLEU is missing. Call it before long work."""
    if importlib.util.find_spec("sacrebleu") is None:
        raise RequestError("scoring needs sacrebleu, which is not installed", "pip install 'sixfold[evaluate]'")


def read_test_set(files: Sequence[Path], language: str = "") -> TestSet:
    """Read two files of lines, or one file of pairs; the third column of a TSV is the name of the corpus."""
    is_table = len(files) == 1 and corpus.uncompressed_name(files[0]).suffix.lower() in corpus.TABLES
    rows = list(_read_table(files[0]) if is_table else _read_pairs(files))
    while len(files) == 1 and rows and rows[-1][:2] == ("", ""):
        rows.pop()  # empty lines at the end of a file of pairs are not sentences
    if not rows:
        raise DataError(f"{files[0]}: expected sentences to translate; the file is empty")
    sources, references, corpora = zip(*rows, strict=True)
    for number, texts in enumerate(zip(sources, references, strict=True), start=1):
        if any(REPLACEMENT in text for text in texts):
            raise DataError(
                f"{files[-1 if REPLACEMENT in texts[1] else 0]}:{number}: expected UTF-8; got a byte that is not, "
                "or U+FFFD, which stands for one",
                "convert the file, for example: iconv -f GB18030 -t UTF-8",
            )
    name_language = language_of(files[1]) if len(files) == 2 else languages_of(files[0])[1]
    return TestSet(sources, references, corpora, language or name_language)


def _read_table(path: Path) -> Iterator[tuple[str, str, str]]:
    for number, line in enumerate(corpus.read_corpus_lines(path), start=1):
        cells = [cell.strip() for cell in line.split("\t")] if line.strip() else ["", ""]
        if len(cells) not in (2, 3):
            raise DataError(
                f"{path}:{number}: expected source, reference and optionally a corpus; got {len(cells)} columns",
                "separate columns by tabs, or name two files of lines",
            )
        yield cells[0], cells[1], cells[2] if len(cells) == 3 else ""


def _read_pairs(files: Sequence[Path]) -> Iterator[tuple[str, str, str]]:
    for _, source, reference in corpus.Corpus("test", tuple(files)).pairs():
        yield source, reference, ""


def read_translations(path: Path, count: int) -> list[str]:
    """Read the output of another system, one line for each of the `count` sentences."""
    translations = [line.removeprefix("\ufeff").strip() for line in read_lines(path)]
    if len(translations) != count:
        raise DataError(
            f"{path}: expected {count:,} lines, as many as the test set; got {len(translations):,}",
            f"a model file ends in {MODEL_SUFFIX}; a system's output has one line for each sentence, empty ones too",
        )
    return translations


def open_model(path: Path) -> ModelFile:
    """Load a model and check that it can translate."""
    return load(path)


def translate(model: ModelFile, texts: TestSet, options: DecodingOptions, report_progress: ReportProgress) -> list[str]:
    """Translate the sources into the language of the references, each as one sentence, in their order."""
    sources = texts.sources
    translate_options = TranslateOptions(options.beam, split=False)
    result: list[str] = []
    with Translator(model, "cpu", options.threads or None, options.compute) as translator:
        is_known = any(target == texts.language for _, target in translator.directions)
        target = texts.language if is_known else None
        for start in range(0, len(sources), BATCH_SENTENCES):
            batch = sources[start : start + BATCH_SENTENCES]
            translations = translator.translate_batch(batch, None, target, translate_options)
            # A line break would shift all later lines in the file of translations.
            result += [" ".join(translation.text.split()) for translation in translations]
            report_progress(len(translations))
    return result


def target_language(texts: TestSet, models: Sequence[ModelFile]) -> str:
    """Return the language of the references.

    It is the one of the test set; else that of the first model's card which names one; else a guess by the script. A
    model of two directions leaves the choice between its languages to the guess.
    """
    if texts.language:
        return texts.language
    guess = guess_language(texts.references[:1000])
    for model in models:
        languages = model.card.get("languages")
        if isinstance(languages, dict) and isinstance(languages.get("target"), str) and languages["target"]:
            is_source = model.config.data.both_ways and guess == languages.get("source")
            return guess if is_source else str(languages["target"])
    return guess


def short_names(paths: Sequence[Path]) -> list[str]:
    """Return a short name for each file: its own, with as many of its folders as make it unique."""
    stems = [path.with_suffix("") if path.suffix in (MODEL_SUFFIX, ".txt") else path for path in paths]
    names: list[str] = []
    for path, stem in zip(paths, stems, strict=True):
        other_stems = [other for other_path, other in zip(paths, stems, strict=True) if other_path != path]
        length = next(
            (n for n in range(1, len(stem.parts)) if all(other.parts[-n:] != stem.parts[-n:] for other in other_stems)),
            len(stem.parts),
        )
        name = "/".join(stem.parts[-length:])
        repeats = sum(1 for earlier in names if earlier.partition(" (")[0] == name)
        names.append(f"{name} ({repeats + 1})" if repeats else name)
    return names
