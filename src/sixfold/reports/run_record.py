"""What a run has left in its folder so far, whether it has ended, is still going or was killed; read without torch."""

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
from sixfold.data.cleaning import Report
from sixfold.data.corpus import Corpus
from sixfold.errors import DataError, SixfoldError
from sixfold.evaluation.systems import TestSet, names_of
from sixfold.presets import PRESETS, preset
from sixfold.recipe import set_name
from sixfold.reports.charts import Series
from sixfold.text.lines import read_lines


@dataclass(frozen=True)
class ScoredSet:
    """A dev or test set as the finished model translated it; where its texts are gone, `missing` says why."""

    name: str
    translations: Sequence[str]
    texts: TestSet | None
    missing: str = ""


@dataclass(frozen=True)
class Record:
    """The files of a run, read as far as they are there."""

    name: str
    folder: Path
    known: Mapping[str, Any]  # run.json
    metrics: Sequence[Mapping[str, Any]]
    samples: Sequence[Mapping[str, Any]]
    card: Mapping[str, Any]  # of the finished model, or the best so far
    progress: Mapping[str, Any]  # of the newest checkpoint
    cleaning: Report | None
    findings: Sequence[Mapping[str, Any]]  # of the doctor
    sets: Sequence[ScoredSet]

    @property
    def finished(self) -> bool:
        return bool(self.known.get("finished"))

    @property
    def step(self) -> int:
        return int(max((row["step"] for row in self.metrics), default=0))

    @property
    def steps(self) -> int:
        return int(self.config.get("training.steps", 0))

    @property
    def languages(self) -> tuple[str, str]:
        named = self.known["asked"].get("languages", {})
        return str(named.get("source", "")), str(named.get("target", ""))

    @property
    def config(self) -> dict[str, Any]:
        """Every setting by its dotted name."""
        return dotted(self.known.get("config", {}))

    @property
    def preset(self) -> str:
        named = self.known.get("preset", "")
        return named if named in PRESETS else "base"

    @property
    def changes(self) -> dict[str, tuple[Any, Any]]:
        """Settings that are not those of the preset: its value and this run's."""
        usual = dotted(json.loads(json.dumps(to_dict(preset(self.preset)))))
        return {
            name: (usual.get(name, "–"), value) for name, value in self.config.items() if usual.get(name, "–") != value
        }

    @property
    def cost(self) -> dict[str, Any]:
        """Hours, tokens and device; before the end, as of the newest checkpoint."""
        if "cost" in self.card:
            return dict(self.card["cost"])
        if not self.progress:
            return {}
        return {"hours": self.progress.get("seconds", 0.0) / 3600, "tokens": self.progress.get("tokens", 0)}

    @property
    def speed(self) -> float:
        """Target tokens a second, the median of what was seen."""
        seen = sorted(row["tokens_per_s"] for row in self.metrics if row.get("tokens_per_s"))
        return float(seen[len(seen) // 2]) if seen else 0.0

    def series(self, metric: str, name: str = "") -> Series:
        rows = [row for row in self.metrics if metric in row]
        return Series(name or self.name, [row["step"] for row in rows], [row[metric] for row in rows])


def dotted(tree: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{section}.{key}": value for section, values in tree.items() for key, value in values.items()}


def read(folders: Sequence[Path]) -> list[Record]:
    """Every run, under a name that is its own."""
    whole = [folder.absolute() for folder in folders]
    return [read_one(folder, name) for folder, name in zip(folders, names_of(whole), strict=True)]


def read_one(folder: Path, name: str) -> Record:
    known = read_json(folder / "run.json")
    if not isinstance(known, dict) or not isinstance(known.get("asked"), dict):
        state = "it has not begun to train" if (folder / "data").is_dir() else "there is no run.json that can be read"
        raise DataError(f"{folder}: expected the folder of a run; {state}", "name the --output of sixfold train")
    return Record(
        name=name,
        folder=folder,
        known=known,
        metrics=[row for row in json_lines(folder / "metrics.jsonl") if isinstance(row.get("step"), int)],
        samples=[row for row in json_lines(folder / "samples.jsonl") if isinstance(row.get("samples"), list)],
        card=read_card(folder),
        progress=read_progress(folder),
        cleaning=read_cleaning(folder),
        findings=read_findings(folder),
        sets=list(read_sets(folder, known)),
    )


def read_json(path: Path) -> Any:
    """None where there is nothing that can be read: a run may be writing it, or was killed at it."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file; the last line of a killed run may be half a line."""
    if path.is_file():
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            with suppress(ValueError, RecursionError):
                row = json.loads(line)
                if isinstance(row, dict):
                    yield row


def read_card(folder: Path) -> Mapping[str, Any]:
    for path in (folder / "model.safetensors", *sorted(folder.glob("best-*.safetensors"), reverse=True)):
        with suppress(SixfoldError, OSError):
            return modelfile.load(path, verify=False).card
    return {}


def read_progress(folder: Path) -> Mapping[str, Any]:
    for path in sorted((folder / "checkpoints").glob("step-*.safetensors"), reverse=True):
        with suppress(SixfoldError, OSError, ValueError):
            progress = json.loads(tensorfile.read(path, verify=False)[1].get("progress", "{}"))
            return progress if isinstance(progress, dict) else {}
    return {}


def read_cleaning(folder: Path) -> Report | None:
    for path in sorted(folder.glob("data/clean-*/ledger.json")):
        with suppress(KeyError, TypeError):
            return Report.from_dict(read_json(path)["notes"]["report"])
    return None


def read_findings(folder: Path) -> list[Mapping[str, Any]]:
    doctor = read_json(folder / "doctor.json")
    findings = doctor.get("findings") if isinstance(doctor, dict) else None
    # The lines that it condemns are for `sixfold clean`, and may be millions.
    return [
        {key: value for key, value in finding.items() if isinstance(value, (str, int, float))}
        for finding in (findings if isinstance(findings, list) else [])
        if isinstance(finding, dict) and finding.get("count")
    ]


def read_sets(folder: Path, known: Mapping[str, Any]) -> Iterator[ScoredSet]:
    """What was translated at the end, with the texts if they are still there and still the same."""
    for path in sorted(folder.glob("*.translated.txt")):
        name = path.name.removesuffix(".translated.txt")
        translations = list(read_lines(path))
        whole, language, back = whole_set(known, name)
        try:
            pairs = set_pairs(folder, known, whole, len(translations))
        except DataError as error:
            yield ScoredSet(name, translations, None, str(error))
            continue
        sources, references = ([pair[side] for pair in pairs] for side in ((1, 0) if back else (0, 1)))
        yield ScoredSet(name, translations, TestSet(sources, references, [""] * len(pairs), language))


def whole_set(known: Mapping[str, Any], name: str) -> tuple[str, str, bool]:
    """Of a set that was translated: its name, the language it was translated into, and whether that is its source."""
    languages = known["asked"].get("languages", {})
    one, other = str(languages.get("source", "")), str(languages.get("target", ""))
    if known.get("config", {}).get("data", {}).get("both_ways"):
        for source, target in ((one, other), (other, one)):
            if name.endswith(set_name("", source, target)):
                return name.removesuffix(set_name("", source, target)), target, source == other
    return name, other, False


def set_pairs(folder: Path, known: Mapping[str, Any], name: str, count: int) -> list[tuple[str, str]]:
    """From the files that run.json names, or from what was split off the corpus."""
    files = known.get("sets", {}).get(name)
    if files:
        corpus = Corpus(name, tuple(map(Path, files["files"])), columns=tuple(files.get("columns", ())))
        before = next((entry for key, entry in known["asked"]["corpora"].items() if is_set(key, name)), None)
        if before and before[0] != corpus.digest():
            raise DataError(f"{corpus.files[0]}: has changed since the run read it")
        pairs = [(pair.source, pair.target) for pair in corpus.pairs()]
        if len(pairs) == count:
            return pairs
    for path in folder.glob("data/dev-*.json") if name == "dev" and not files else ():
        split = read_json(path)
        if isinstance(split, list) and len(split) == count:
            return [(str(source), str(reference)) for source, reference in split]
    raise DataError(f"{name}: the run does not say where its {count:,} sentences are")


def is_set(key: str, name: str) -> bool:
    """Whether `test 1 (news)` is the set called news."""
    return re.fullmatch(rf"(?:dev|test) \d+ \({re.escape(name)}\)", key) is not None


def duration(seconds: float) -> str:
    """3 h 20 min, 5 min 10 s or 8 s."""
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{whole} s"
