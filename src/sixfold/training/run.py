"""A run: raw corpora in, one model file out, and at any moment it may be killed and started again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch

from sixfold import files, modelfile
from sixfold.config import Config, Kind, to_dict, to_toml
from sixfold.data.cleaned import Digests
from sixfold.data.documents import TextCorpus
from sixfold.errors import ConfigError
from sixfold.model.precision import library_settings
from sixfold.modelfile import ModelFile
from sixfold.recipe import Recipe, changed, of_files, of_texts
from sixfold.reports import page, run_record
from sixfold.reports.training import training_page
from sixfold.training import corpora, text_inputs, translation_inputs
from sixfold.training.corpora import Sources
from sixfold.training.display import Display
from sixfold.training.distributed import SINGLE_PROCESS, Group, process_group
from sixfold.training.finetune import recipe_of, score_table
from sixfold.training.interrupt import Interrupt, Stopped
from sixfold.training.recipe_models import RecipeModels
from sixfold.training.run_folder import (
    claim,
    read_run_file,
    refuse_changes,
    refuse_foreign_files,
    run_settings,
    steps_recorded,
    steps_set,
    write_json,
)
from sixfold.training.session import TrainingInputs, TrainingSession
from sixfold.training.shortlist_learner import ShortlistLearner


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    model: Path | None  # None: it was stopped
    step: int
    scores: dict[str, dict[str, Any]]  # of each dev and test set
    is_leader: bool = True  # of several processes, the one that prints messages


def train(
    files: Sequence[Path | str],
    out: Path | str,
    preset: str = "",
    changes: Sequence[str] = (),
    dev: Sequence[Path | str] = (),
    data: Path | str | None = None,
    device: str = "auto",
    kind: Kind = "encoder-decoder",
) -> Outcome:
    """Train as `sixfold train` does: from two files of lines, one of pairs, or a recipe whose corpora are in `data`.

    With the kind "decoder", all files are text to learn a language from. `changes` are such as "training.steps=1000".
    Called again with the same arguments, it goes on where it was stopped.
    """
    paths = [Path(file) for file in files]
    is_recipe = paths[0].suffix == ".toml"
    if data is not None and not is_recipe:
        raise ConfigError("--data: expected only with a recipe, whose corpora are in that folder", "leave it out")
    folder = Path(data) if data is not None else paths[0].parent if is_recipe else Path()
    dev_paths = [Path(file) for file in dev]
    changes = changes if kind == "encoder-decoder" else [f"model.kind={kind}", *changes]
    is_text = not is_recipe and changed(Recipe(), preset, changes).config.model.kind == "decoder"
    of = of_texts if is_text else of_files
    return begin_run(lambda: changed(of(paths, dev_paths), preset, changes), folder, Path(out), device)


def finetune(
    model: Path | str,
    files: Sequence[Path | str],
    out: Path | str,
    old: Sequence[Path | str] = (),
    mix: float = 0.5,
    dev: Sequence[Path | str] = (),
    old_dev: Sequence[Path | str] = (),
    changes: Sequence[str] = (),
    device: str = "auto",
) -> Outcome:
    """Fine-tune as `sixfold finetune` does: `files` are the new pairs, `old` some of those the model was trained on.

    A decoder-only model learns from prompts with answers instead of pairs, or from one file of text.
    """
    new_paths, old_paths, dev_paths, old_dev_paths = (
        [Path(file) for file in some] for some in (files, old, dev, old_dev)
    )

    def make_recipe() -> Recipe:
        return changed(recipe_of(Path(model), new_paths, old_paths, mix, dev_paths, old_dev_paths), "", changes)

    return begin_run(make_recipe, Path(), Path(out), device)


def begin_run(make_recipe: Callable[[], Recipe], data: Path, out: Path, device_name: str) -> Outcome:
    """Run in this process, alone or as one of those that torchrun has started, whose leader makes the recipe."""
    device = choose_device(device_name)
    with Interrupt() as interrupt, process_group(device) as group:
        display = Display(interrupt, quiet=not group.is_leader)
        try:
            outcome = run(group.on_leader(make_recipe), data, out, device, display, group)
            return replace(outcome, is_leader=group.is_leader)
        except Stopped:
            display.say("stopped; the same command goes on from there")
            return Outcome(None, 0, {}, group.is_leader)


@runtime_checkable
class InputsOfKind(Protocol):
    """What the modules have in common that prepare the inputs of translation models and of decoder-only models."""

    def find_sources(self, recipe: Recipe, folder: Path, models: RecipeModels = ...) -> Sources: ...

    def check(self, config: Config) -> None: ...

    def prepare_inputs(
        self, recipe: Recipe, sources: Sources, out: Path, recorded: Mapping[str, Any], device: torch.device,
        display: Display, models: RecipeModels = ...,
    ) -> TrainingInputs: ...  # fmt: skip

    def pack_inputs(self, inputs: TrainingInputs) -> tuple[Any, ...]: ...

    def unpack_inputs(
        self, packed: tuple[Any, ...], sources: Sources, out: Path, device: torch.device, start: ModelFile | None
    ) -> TrainingInputs: ...


def inputs_of_kind(recipe: Recipe, models: RecipeModels) -> InputsOfKind:
    """Return the module that prepares the inputs of the model of a recipe."""
    shape = models.start.config.model if models.start is not None else recipe.config.model
    if shape.kind == "decoder":
        return text_inputs
    return translation_inputs


class PreparedRun(NamedTuple):
    """A run before its first step of this start."""

    run_file: dict[str, Any]  # what run.json holds
    sources: Sources
    inputs: TrainingInputs | None  # None: the run has ended already


def run(
    recipe: Recipe, data: Path, out: Path, device: torch.device, display: Display, group: Group = SINGLE_PROCESS
) -> Outcome:
    """Start a run in `out`, or go on with the one that is there."""
    with ExitStack() as stack:
        group.on_leader(lambda: stack.enter_context(claim(out)))
        models = RecipeModels.load(recipe, data)
        run_file, sources, inputs = group.leader_first(
            lambda: prepare(recipe, data, out, device, display, models),
            lambda prepared: pack(prepared, recipe, models),
            lambda packed: unpack(packed, out, device, recipe, models),
        )
        if inputs is None:
            display.say(f"{out}: this run has ended")
            return Outcome(out / "model.safetensors", run_file["step"], run_file["scores"])
        shortlist = ShortlistLearner(inputs, out) if group.is_leader else None
        if shortlist is not None:
            stack.enter_context(shortlist.beside_training(device))
        stack.enter_context(library_settings(inputs.config.training.precision, device))
        session = TrainingSession(inputs, out, device, display, group)
        session.train()
        if session.stops:
            display.say(f"stopped at step {session.state.step:,}; the same command goes on from there")
            return Outcome(None, session.state.step, {})
        try:
            scores = finish(session, shortlist)
        except Stopped:
            display.say("stopped while scoring; the same command scores again")
            return Outcome(None, session.state.step, {})
        for line in corpora.expectations(recipe, sources, scores):
            display.say(line)
        if group.is_leader:
            write_json(out / "run.json", {**run_file, "finished": True, "step": session.state.step, "scores": scores})
            page.write(out / "report.html", training_page(run_record.read_runs([out])))
        # Gloo's threads need the interpreter to release the tensors of a collective: a process that ends right after
        # one, while the leader still writes, may abort.
        group.barrier()
        return Outcome(out / "model.safetensors", session.state.step, scores)


def prepare(
    recipe: Recipe, data: Path, out: Path, device: torch.device, display: Display, models: RecipeModels
) -> PreparedRun:
    """Do all that comes before the first step. Only the leader does it, and only here are the corpora read."""
    kind = inputs_of_kind(recipe, models)
    sources = kind.find_sources(recipe, data, models)
    run_file, is_longer = read_run_file(out), False
    if run_file:
        settings = run_settings(recipe, sources, Digests(out / "data"), models)
        refuse_changes(out, run_file, settings)
        is_longer = steps_set(settings) > steps_recorded(run_file)
    else:
        refuse_foreign_files(out)
    kind.check(recipe.config)
    if run_file.get("finished") and not is_longer and (out / "model.safetensors").exists():
        return PreparedRun(run_file, sources, None)
    inputs = kind.prepare_inputs(recipe, sources, out, run_file, device, display, models)
    run_file = {
        # Cleaning has made the digests of a new run's corpora while it read them.
        "asked": run_settings(recipe, sources, Digests(out / "data"), models),
        "config": to_dict(inputs.config),
        "tokens": inputs.examples.store.key,
        "preset": run_file.get("preset", inputs.preset),
        "sets": files_of(sources),
    }
    write_json(out / "run.json", run_file)
    with files.atomic_write(out / "config.toml") as file:
        file.write(to_toml(inputs.config).encode())
    return PreparedRun(run_file, sources, inputs)


def pack(prepared: PreparedRun, recipe: Recipe, models: RecipeModels) -> tuple[Any, ...]:
    """Return what other processes need, small enough to be sent."""
    run_file, sources, inputs = prepared
    return run_file, sources, inputs and inputs_of_kind(recipe, models).pack_inputs(inputs)


def unpack(
    packed: tuple[Any, ...], out: Path, device: torch.device, recipe: Recipe, models: RecipeModels
) -> PreparedRun:
    """Make the leader's prepared run again from what it has packed."""
    run_file, sources, inputs = packed
    kind = inputs_of_kind(recipe, models)
    return PreparedRun(run_file, sources, inputs and kind.unpack_inputs(inputs, sources, out, device, models.start))


def files_of(sources: Sources) -> dict[str, dict[str, Any]]:
    """Return the files of the dev and test sets, for the report."""
    return {
        corpus.name: {"files": [str(file.absolute()) for file in corpus.files], "columns": list(corpus.columns)}
        for corpus in (*sources.dev, *sources.test)
        if not isinstance(corpus, TextCorpus)  # a report shows translations beside their references
    }


def choose_device(name: str) -> torch.device:
    """Return the device with this name; "auto" is the GPU where there is one."""
    if name not in ("auto", "cpu", "cuda"):
        raise ConfigError(f"--device: expected auto, cpu or cuda; got {name!r}")
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("--device: expected a GPU that torch can use; found none", "leave --device out")
    return torch.device("cuda" if torch.cuda.is_available() and name != "cpu" else "cpu")


def finish(session: TrainingSession, shortlist: ShortlistLearner | None) -> dict[str, dict[str, Any]]:
    """Score the best model as it will be used, and write it as model.safetensors. Only the leader has a shortlist."""
    session.group.barrier()  # the leader may still be writing the best model
    display, start = session.display, session.inputs.start
    how = " with a beam of 4" if session.shape.kind == "encoder-decoder" else ""
    before: dict[str, dict[str, Any]] = {}
    if start is not None:
        display.say(f"scoring the model that it started from{how}")
        session.validator.load(start.weights())
        before = {test_set.name: final_score(session, test_set)[0] for test_set in session.inputs.final_sets}
    best = modelfile.load(session.best)
    session.validator.load(best.weights())
    display.say(f"scoring the model of step {session.progress.best_step:,}{how}")
    scores: dict[str, dict[str, Any]] = {}
    for test_set in session.inputs.final_sets:
        scores[test_set.name], outputs = final_score(session, test_set)
        if session.group.is_leader and outputs:
            with files.atomic_write(session.out / f"{test_set.name}.translated.txt") as file:
                file.write("".join(f"{line}\n" for line in outputs).encode())
    cost = {"hours": session.progress.seconds / 3600, "device": str(session.device), "tokens": session.progress.tokens}
    card = {**best.card, "scores": scores, "cost": cost, "validations": session.progress.history}
    if before:
        card |= {"scores_before": before}
        for line in score_table(before, scores):
            display.say(line)
    if shortlist is not None:
        path = session.out / "model.safetensors"
        lists = shortlist.result(display)
        modelfile.save(
            path,
            best.config,
            best.weights(),
            best.tokenizer,
            card,
            shortlist=lists,
            profiles=best.profiles,
            target_tokenizer=best.target_tokenizer,
            sequence_format=best.sequence_format,
            prompt_format=best.prompt_format,
        )
    return scores


def final_score(session: TrainingSession, test_set: Any) -> tuple[dict[str, Any], list[str]]:
    """Score a dev or test set as the model will be used, and print the scores."""
    scores, line, outputs = session.validator.final_score(test_set)
    session.display.say(line)
    return scores, outputs
