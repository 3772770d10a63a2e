"""The folder of a run: what was asked for when it began, so that a later start goes on with the same or is refused."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from sixfold import configfile, files
from sixfold.data.cleaned import Digests
from sixfold.errors import ConfigError, DataError
from sixfold.recipe import Recipe
from sixfold.training.corpora import Sources
from sixfold.training.recipe_models import MODEL_PURPOSES, RecipeModels


def run_settings(recipe: Recipe, sources: Sources, digests: Digests, models: RecipeModels) -> dict[str, Any]:
    """Return what a later start must agree with: the user's settings and digests of the files."""
    corpora = {
        f"{kind} {number} ({corpus.name})": [
            digests.of(corpus),
            corpus.weight,
            list(corpus.columns),
            *corpus.purpose.values(),
        ]
        for kind, some in (("train", sources.train), ("dev", sources.dev), ("test", sources.test))
        for number, corpus in enumerate(some, start=1)
    }
    corpora |= {purpose: [checksum] for purpose, checksum in models.checksums().items()}
    languages = dict(zip(("source", "target"), sources.languages, strict=True))
    return json.loads(json.dumps({"settings": recipe.settings, "corpora": corpora, "languages": languages}))


def claim(out: Path) -> AbstractContextManager[None]:
    """Lock the folder of a run for this process, and delete what a killed process left unfinished there."""
    subfolders = ("checkpoints", "data", "data/clean-*", "data/tokens-*")
    return files.lock_folder(out, f"--output: {out}", "another process is training there", subfolders)


def read_run_file(out: Path) -> dict[str, Any]:
    """Return the run.json of an earlier start; it is empty where there was none."""
    if not (out / "run.json").exists():
        return {}
    try:
        run_file: dict[str, Any] = json.loads((out / "run.json").read_text(encoding="utf-8"))
        return run_file if run_file["asked"] else {}
    except (ValueError, KeyError, TypeError):
        raise DataError(f"{out / 'run.json'}: cannot be read", "use another --output") from None


def refuse_changes(out: Path, run_file: dict[str, Any], settings: dict[str, Any]) -> None:
    """Refuse to mix an earlier run with another one. Only the number of steps may be raised."""
    before = run_file["asked"]
    if steps_set(settings) >= steps_recorded(run_file):  # a run may be made longer
        before, settings = without_steps(before), without_steps(settings)
    differences = difference(before, settings)
    if differences:
        raise ConfigError(
            f"{out}: this folder holds a run with other settings: {'; '.join(differences)}",
            "give the same data and settings (training.steps may rise) to go on, or another --output to start anew",
        )


def refuse_foreign_files(out: Path) -> None:
    """Refuse a folder that no run has used yet and that has files which a run would replace."""
    written = ("model.safetensors", "config.toml", "metrics.jsonl", "samples.jsonl", "report.html")
    foreign = [name for name in written if (out / name).exists()]
    if foreign:
        raise ConfigError(
            f"--output: {out} has no run in it, but files that a run would replace: {', '.join(foreign)}",
            "name another folder, or move them",
        )


def steps_recorded(run_file: dict[str, Any]) -> int:
    """Return the steps of an earlier start, whether the user set them or they were chosen."""
    return int(run_file.get("config", {}).get("training", {}).get("steps", 0))


def steps_set(settings: dict[str, Any]) -> int:
    """Return the steps that the user sets, or 0."""
    return int(settings["settings"].get("training", {}).get("steps", 0))


def without_steps(run: dict[str, Any]) -> dict[str, Any]:
    settings = run["settings"]
    training = {name: value for name, value in settings.get("training", {}).items() if name != "steps"}
    return {**run, "settings": {**settings, "training": training}}


def difference(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return `training.seed: 1 → 2` for every setting that differs, and a sentence for every corpus that does."""
    old, new = ({**flat(each["settings"]), **flat({"language": each["languages"]})} for each in (before, now))
    differences = configfile.changes(old, new)
    for name in sorted(before["corpora"].keys() | now["corpora"].keys()):
        if before["corpora"].get(name) != now["corpora"].get(name):
            differences.append(f"{'model' if name in MODEL_PURPOSES else 'corpus'} {name} is another or has changed")
    return differences


def flat(tree: dict[str, Any], path: str = "") -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in tree.items():
        values |= flat(value, f"{path}{name}.") if isinstance(value, dict) else {f"{path}{name}": value}
    return values


def write_json(path: Path, values: dict[str, Any]) -> None:
    with files.atomic_write(path) as file:
        file.write(json.dumps(values, indent=1, ensure_ascii=False).encode())
