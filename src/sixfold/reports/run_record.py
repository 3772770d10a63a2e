"""The files that a training run has written so far, even if it is still running or was killed; read without torch."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sixfold import modelfile, tensorfile
from sixfold.config import to_dict
from sixfold.data.cleaning import CleaningReport
from sixfold.data.corpus import Corpus
from sixfold.errors import DataError, SixfoldError
from sixfold.evaluation.systems import TestSet, short_names
from sixfold.presets import PRESETS, preset
from sixfold.recipe import set_name
from sixfold.reports.charts import Series
from sixfold.text.encodings import read_lines


@dataclass(frozen=True)
class TranslatedSet:
    """A dev or test set as the finished model translated it; without its texts, `problem` says why they are missing."""

    name: str
    translations: Sequence[str]
    texts: TestSet | None
    problem: str = ""


@dataclass(frozen=True)
class RunRecord:
    """The contents of a run's folder; files that do not exist yet are empty here."""

    name: str
    folder: Path
    run: Mapping[str, Any]  # run.json
    metrics: Sequence[Mapping[str, Any]]  # rows of metrics.jsonl
    samples: Sequence[Mapping[str, Any]]  # rows of samples.jsonl
    card: Mapping[str, Any]  # of the finished model, or of the best so far
    progress: Mapping[str, Any]  # of the newest checkpoint
    cleaning: CleaningReport | None
    findings: Sequence[Mapping[str, Any]]  # of doctor.json
    sets: Sequence[TranslatedSet]

    @property
    def finished(self) -> bool:
        return bool(self.run.get("finished"))

    @property
    def step(self) -> int:
        """The last step that was logged."""
        return int(max((row["step"] for row in self.metrics), default=0))

    @property
    def steps(self) -> int:
        """The number of steps that the run is to take."""
        return int(self.config.get("training.steps", 0))

    @property
    def languages(self) -> tuple[str, str]:
        """The codes of source and target language; an empty text where one is not known."""
        return recorded_languages(self.run)

    @property
    def is_language_model(self) -> bool:
        """Whether the model is decoder-only."""
        return self.config.get("model.kind") == "decoder"

    @property
    def config(self) -> dict[str, Any]:
        """Every setting by its dotted name, such as "training.steps"."""
        return dotted(self.run.get("config", {}))

    @property
    def preset(self) -> str:
        name = self.run.get("preset", "")
        fallback = "decoder-tiny" if self.is_language_model else "base"
        return name if name in PRESETS else fallback

    @property
    def changes(self) -> dict[str, tuple[Any, Any]]:
        """Settings that differ from the preset: the preset's value and this run's."""
        defaults = dotted(json.loads(json.dumps(to_dict(preset(self.preset)))))
        return {
            name: (defaults.get(name, "–"), value)
            for name, value in self.config.items()
            if defaults.get(name, "–") != value
        }

    @property
    def cost(self) -> dict[str, Any]:
        """Hours, tokens and device; of an unfinished run, hours and tokens of the newest checkpoint."""
        if "cost" in self.card:
            return dict(self.card["cost"])
        if not self.progress:
            return {}
        return {"hours": self.progress.get("seconds", 0.0) / 3600, "tokens": self.progress.get("tokens", 0)}

    @property
    def speed(self) -> float:
        """The median of the logged target tokens a second; 0 where none is logged."""
        rates = sorted(row["tokens_per_s"] for row in self.metrics if row.get("tokens_per_s"))
        return float(rates[len(rates) // 2]) if rates else 0.0

    def series(self, metric: str, name: str = "") -> Series:
        """Return a metric over steps, under the run's name unless another is given."""
        rows = [row for row in self.metrics if metric in row]
        return Series(name or self.name, [row["step"] for row in rows], [row[metric] for row in rows])


def dotted(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return {"a": {"b": 1}} as {"a.b": 1}."""
    return {f"{section}.{key}": value for section, values in tree.items() for key, value in values.items()}


def read_runs(folders: Sequence[Path]) -> list[RunRecord]:
    """Return every run, each under a short name that no other has."""
    names = short_names([folder.absolute() for folder in folders])
    return [read_run(folder, name) for folder, name in zip(folders, names, strict=True)]


def read_run(folder: Path, name: str) -> RunRecord:
    """Return the record of one run; raise a DataError if the folder is not that of a run."""
    run = read_json(folder / "run.json")
    if not isinstance(run, dict) or not isinstance(run.get("asked"), dict):
        state = "it has not begun to train" if (folder / "data").is_dir() else "there is no run.json that can be read"
        raise DataError(f"{folder}: expected the folder of a run; {state}", "name the --output of sixfold train")
    return RunRecord(
        name=name,
        folder=folder,
        run=run,
        metrics=[row for row in json_lines(folder / "metrics.jsonl") if isinstance(row.get("step"), int)],
        samples=[row for row in json_lines(folder / "samples.jsonl") if isinstance(row.get("samples"), list)],
        card=read_card(folder),
        progress=read_progress(folder),
        cleaning=read_cleaning(folder),
        findings=read_findings(folder),
        sets=list(read_sets(folder, run)),
    )


def read_json(path: Path) -> Any:
    """Return a JSON file, or None if it cannot be read: a run may be writing it, or was killed while writing."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a file, one a line. Lines that are not objects are skipped: the last may be cut off."""
    if path.is_file():
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            with suppress(ValueError, RecursionError):
                row = json.loads(line)
                if isinstance(row, dict):
                    yield row


def read_card(folder: Path) -> Mapping[str, Any]:
    """Return the card of the finished model, or of the best so far; empty where no model can be read."""
    for path in (folder / "model.safetensors", *sorted(folder.glob("best-*.safetensors"), reverse=True)):
        with suppress(SixfoldError, OSError):
            return modelfile.load(path, verify=False).card
    return {}


def read_progress(folder: Path) -> Mapping[str, Any]:
    """Return the progress that the newest readable checkpoint recorded: seconds and tokens."""
    for path in sorted((folder / "checkpoints").glob("step-*.safetensors"), reverse=True):
        with suppress(SixfoldError, OSError, ValueError):
            progress = json.loads(tensorfile.read(path, verify=False)[1].get("progress", "{}"))
            return progress if isinstance(progress, dict) else {}
    return {}


def read_cleaning(folder: Path) -> CleaningReport | None:
    for path in sorted(folder.glob("data/clean-*/ledger.json")):
        with suppress(KeyError, TypeError):
            return CleaningReport.from_dict(read_json(path)["notes"]["report"])
    return None


def read_findings(folder: Path) -> list[Mapping[str, Any]]:
    """Return the findings of doctor.json that found something."""
    doctor = read_json(folder / "doctor.json")
    findings = doctor.get("findings") if isinstance(doctor, dict) else None
    # Line numbers are left out: they are for `sixfold clean`, and may be millions.
    return [
        {key: value for key, value in finding.items() if isinstance(value, (str, int, float))}
        for finding in (findings if isinstance(findings, list) else [])
        if isinstance(finding, dict) and finding.get("count")
    ]


def read_sets(folder: Path, run: Mapping[str, Any]) -> Iterator[TranslatedSet]:
    """Yield the sets that were translated at the end, with their texts if these exist and have not changed."""
    for path in sorted(folder.glob("*.translated.txt")):
        name = path.name.removesuffix(".translated.txt")
        translations = list(read_lines(path))
        corpus_name, language, is_backward = split_set_name(run, name)
        try:
            pairs = set_pairs(folder, run, corpus_name, len(translations))
        except DataError as error:
            yield TranslatedSet(name, translations, None, str(error))
            continue
        sources, references = ([pair[side] for pair in pairs] for side in ((1, 0) if is_backward else (0, 1)))
        yield TranslatedSet(name, translations, TestSet(sources, references, [""] * len(pairs), language))


def recorded_languages(run: Mapping[str, Any]) -> tuple[str, str]:
    """Return the codes of source and target language in run.json; an empty text where one is missing."""
    languages = run["asked"].get("languages", {})
    return str(languages.get("source", "")), str(languages.get("target", ""))


def split_set_name(run: Mapping[str, Any], name: str) -> tuple[str, str, bool]:
    """Return the corpus of a translated set, the language it was translated into, and whether that is backward.

    A run that learns both directions translates each set twice, backward from target to source.
    """
    source, target = recorded_languages(run)
    if run.get("config", {}).get("data", {}).get("both_ways"):
        for origin, goal in ((source, target), (target, source)):
            if name.endswith(set_name("", origin, goal)):
                return name.removesuffix(set_name("", origin, goal)), goal, origin == target
    return name, target, False


def set_pairs(folder: Path, run: Mapping[str, Any], name: str, count: int) -> list[tuple[str, str]]:
    """Return the pairs of a set, from the files that run.json names, or from the dev set split off the corpus.

    Raise a DataError if they have changed, or if there are not `count` of them.
    """
    files = run.get("sets", {}).get(name)
    if files:
        corpus = Corpus(name, tuple(map(Path, files["files"])), columns=tuple(files.get("columns", ())))
        recorded = next((entry for key, entry in run["asked"]["corpora"].items() if is_set(key, name)), None)
        if recorded and recorded[0] != corpus.digest():
            raise DataError(f"{corpus.files[0]}: has changed since the run read it")
        pairs = [(pair.source, pair.target) for pair in corpus.pairs()]
        if len(pairs) == count:
            return pairs
    for path in folder.glob("data/dev-*.json") if name == "dev" and not files else ():
        split = read_json(path)
        if isinstance(split, list) and len(split) == count:
            return [(str(source), str(reference)) for source, reference in split]
    raise DataError(f"{name}: the run does not record where its {count:,} sentences are")


def is_set(key: str, name: str) -> bool:
    """Return whether `key`, such as "test 1 (news)", is the set called `name`."""
    return re.fullmatch(rf"(?:dev|test) \d+ \({re.escape(name)}\)", key) is not None
