"""What is compared: a test set, and the translations of it that a model makes or a file holds."""

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
from sixfold.text.languages import guess_language, language_of, languages_of
from sixfold.text.lines import read_lines
from sixfold.translation.loading import load_all
from sixfold.translation.options import TranslateOptions
from sixfold.translation.translator import Translator

MODEL = ".safetensors"
WINDOW = 500  # sentences that are translated together

Advance = Callable[[int], None]  # is told how many sentences are done


@dataclass(frozen=True)
class TestSet:
    """Sentences, their references, and the corpus each comes from; all one corpus where nobody said."""

    __test__ = False  # for pytest, which takes every class of such a name for one of tests

    sources: Sequence[str]
    references: Sequence[str]
    corpora: Sequence[str]
    language: str  # of the references; empty: not known

    def __len__(self) -> int:
        return len(self.sources)


@dataclass(frozen=True)
class Decoding:
    """How models translate."""

    beam: int = 4
    compute: Compute = "int8"
    threads: int = 0  # 0: as many as there are cores


def check_installed() -> None:
    """Said before any work is done."""
    if importlib.util.find_spec("sacrebleu") is None:
        raise RequestError("scoring needs sacrebleu, which is not installed", "pip install 'sixfold[evaluate]'")


def read_set(files: Sequence[Path], language: str = "") -> TestSet:
    """Two files of lines, or one of pairs; the third column of a TSV is the name of the corpus."""
    table = len(files) == 1 and corpus.uncompressed(files[0]).suffix.lower() in corpus.TABLES
    rows = list(_table(files[0]) if table else _pairs(files))
    while len(files) == 1 and rows and rows[-1][:2] == ("", ""):
        rows.pop()  # empty lines at the end of a file of pairs are no sentences
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
    named = language_of(files[1]) if len(files) == 2 else languages_of(files[0])[1]
    return TestSet(sources, references, corpora, language or named)


def _table(path: Path) -> Iterator[tuple[str, str, str]]:
    for number, line in enumerate(corpus.lines(path), start=1):
        cells = [cell.strip() for cell in line.split("\t")] if line.strip() else ["", ""]
        if len(cells) not in (2, 3):
            raise DataError(
                f"{path}:{number}: expected source, reference and perhaps a corpus; got {len(cells)} columns",
                "separate columns by tabs, or name two files of lines",
            )
        yield cells[0], cells[1], cells[2] if len(cells) == 3 else ""


def _pairs(files: Sequence[Path]) -> Iterator[tuple[str, str, str]]:
    for _, source, reference in corpus.Corpus("test", tuple(files)).pairs():
        yield source, reference, ""


def read_translations(path: Path, count: int) -> list[str]:
    """What another system said, a line a sentence."""
    found = [line.removeprefix("\ufeff").strip() for line in read_lines(path)]
    if len(found) != count:
        raise DataError(
            f"{path}: expected {count:,} lines, as many as the test set; got {len(found):,}",
            f"a model file ends in {MODEL}; a system's output has one line for each sentence, empty ones too",
        )
    return found


def open_model(path: Path) -> ModelFile:
    """A model that can translate."""
    return load_all(path)[0][0]


def translate(model: ModelFile, texts: TestSet, options: Decoding, advance: Advance) -> list[str]:
    """In the order of the sources, each as one sentence, whatever it holds, into the language of the references."""
    sources = texts.sources
    wanted = TranslateOptions(options.beam, split=False)
    result: list[str] = []
    with Translator(model, "cpu", options.threads or None, options.compute) as translator:
        target = texts.language if any(other == texts.language for _, other in translator.directions) else None
        for first in range(0, len(sources), WINDOW):
            some = translator.translate_batch(sources[first : first + WINDOW], None, target, wanted)
            # A line feed would shift all lines after it in the file of translations.
            result += [" ".join(each.text.split()) for each in some]
            advance(len(some))
    return result


def target_language(texts: TestSet, models: Sequence[ModelFile]) -> str:
    """As said or named; else as the models' cards say; else, or where they know two, as the script tells."""
    if texts.language:
        return texts.language
    guess = guess_language(texts.references[:1000])
    for model in models:
        languages = model.card.get("languages")
        if isinstance(languages, dict) and isinstance(languages.get("target"), str) and languages["target"]:
            is_source = model.config.data.both_ways and guess == languages.get("source")
            return guess if is_source else str(languages["target"])
    return guess


def names_of(paths: Sequence[Path]) -> list[str]:
    """A short name for each file: its own, with as many of its folders as make it unique."""
    plain = [path.with_suffix("") if path.suffix in (MODEL, ".txt") else path for path in paths]
    names: list[str] = []
    for path, short in zip(paths, plain, strict=True):
        others = [other for mate, other in zip(paths, plain, strict=True) if mate != path]
        length = next(
            (n for n in range(1, len(short.parts)) if all(other.parts[-n:] != short.parts[-n:] for other in others)),
            len(short.parts),
        )
        name = "/".join(short.parts[-length:])
        again = sum(1 for earlier in names if earlier.partition(" (")[0] == name)
        names.append(f"{name} ({again + 1})" if again else name)
    return names
