"""The folder of a run: what was asked for when it began, so that a later start goes on with the same or is refused."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from sixfold import configfile, files
from sixfold.data.store import Digests
from sixfold.errors import ConfigError, DataError
from sixfold.recipe import Recipe
from sixfold.training.prepare import Sources


def what_was_asked(recipe: Recipe, sources: Sources, digests: Digests, start: str = "") -> dict[str, Any]:
    """What a later start must agree with: the settings that the user gave and what is in the files."""
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
    if start:
        corpora["to start from"] = [start]
    languages = dict(zip(("source", "target"), sources.languages, strict=True))
    return json.loads(json.dumps({"settings": recipe.settings, "corpora": corpora, "languages": languages}))


def claim(out: Path) -> AbstractContextManager[None]:
    """For one run at a time."""
    subfolders = ("checkpoints", "data", "data/clean-*", "data/tokens-*")
    return files.claim(out, f"--output: {out}", "another process is training there", subfolders)


def read_known(out: Path) -> dict[str, Any]:
    """What an earlier start wrote there; empty where there was none."""
    if not (out / "run.json").exists():
        return {}
    try:
        known: dict[str, Any] = json.loads((out / "run.json").read_text(encoding="utf-8"))
        return known if known["asked"] else {}
    except (ValueError, KeyError, TypeError):
        raise DataError(f"{out / 'run.json'}: cannot be read", "use another --output") from None


def refuse_changes(out: Path, known: dict[str, Any], asked: dict[str, Any]) -> None:
    """Refuse to mix an earlier run with another one; but more steps than before may be asked for."""
    before = known["asked"]
    if steps_asked(asked) >= steps_before(known):  # a run may be made longer
        before, asked = without_steps(before), without_steps(asked)
    differences = difference(before, asked)
    if differences:
        raise ConfigError(
            f"{out}: this folder holds a run with other settings: {'; '.join(differences)}",
            "give the same data and settings (training.steps may rise) to go on, or another --output to begin anew",
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


def steps_before(known: dict[str, Any]) -> int:
    """The length of an earlier start's run, whether the user gave it or it was chosen."""
    return int(known.get("config", {}).get("training", {}).get("steps", 0))


def steps_asked(asked: dict[str, Any]) -> int:
    """The length that the user gives, or 0."""
    return int(asked["settings"].get("training", {}).get("steps", 0))


def without_steps(asked: dict[str, Any]) -> dict[str, Any]:
    settings = asked["settings"]
    training = {name: value for name, value in settings.get("training", {}).items() if name != "steps"}
    return {**asked, "settings": {**settings, "training": training}}


def difference(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """`training.seed: 1 → 2` for every setting that differs, and a sentence for a corpus that does."""
    old, new = ({**flat(each["settings"]), **flat({"language": each["languages"]})} for each in (before, now))
    found = configfile.changes(old, new)
    for name in sorted(before["corpora"].keys() | now["corpora"].keys()):
        if before["corpora"].get(name) != now["corpora"].get(name):
            found.append(f"{'model' if name == 'to start from' else 'corpus'} {name} is another or has changed")
    return found


def flat(tree: dict[str, Any], path: str = "") -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in tree.items():
        values |= flat(value, f"{path}{name}.") if isinstance(value, dict) else {f"{path}{name}": value}
    return values


def write_json(path: Path, values: dict[str, Any]) -> None:
    with files.atomic(path) as file:
        file.write(json.dumps(values, indent=1, ensure_ascii=False).encode())
