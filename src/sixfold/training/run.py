"""A run: raw corpora in, one model file out, and at any moment it may be killed and started again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from sixfold import files, modelfile
from sixfold.config import Config, from_dict, to_dict, to_toml
from sixfold.data import shortlist
from sixfold.data.loader import Loader, Order
from sixfold.data.store import Digests, Kept, open_tokens
from sixfold.errors import ConfigError, DataError
from sixfold.evaluation.scores import Scores
from sixfold.model.transformer import EncoderDecoder, build, load_weights
from sixfold.modelfile import ModelFile, Shortlist
from sixfold.recipe import Recipe, changed, of_files, set_name
from sixfold.reports import page, run_record
from sixfold.reports.training import report_page
from sixfold.text.tokenizer import Tokenizer
from sixfold.training import defaults, prepare
from sixfold.training.display import Display
from sixfold.training.distributed import ALONE, Group, joined
from sixfold.training.evaluate import TextSet, Validator
from sixfold.training.finetune import (
    SAMPLE,
    languages_of,
    recipe_of,
    refuse_other_direction,
    refuse_swapped,
    table,
)
from sixfold.training.interrupt import Interrupt, Stopped
from sixfold.training.prepare import Preparation, Sources
from sixfold.training.run_folder import (
    claim,
    read_known,
    refuse_changes,
    refuse_foreign_files,
    steps_asked,
    steps_before,
    what_was_asked,
    write_json,
)
from sixfold.training.session import Ready, Sitting
from sixfold.training.state import library_settings

WORTH_LISTING = 4000  # pieces of a vocabulary


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    model: Path | None  # None: it was stopped
    step: int
    scores: dict[str, dict[str, Any]]  # of each dev and test set
    leads: bool = True  # of several processes, the one that speaks


def train(
    files: Sequence[Path | str],
    out: Path | str,
    preset: str = "",
    changes: Sequence[str] = (),
    dev: Sequence[Path | str] = (),
    data: Path | str | None = None,
    device: str = "auto",
) -> Outcome:
    """As `sixfold train`: two files of lines, one of pairs, or a recipe whose corpora are in `data`.

    `changes` are such as "training.steps=1000". Called again with the same, it goes on where it was stopped.
    """
    paths = [Path(file) for file in files]
    is_recipe = paths[0].suffix == ".toml"
    if data is not None and not is_recipe:
        raise ConfigError("--data: expected only with a recipe, whose corpora it says the place of", "leave it out")
    folder = Path(data) if data is not None else paths[0].parent if is_recipe else Path()
    dev_paths = [Path(file) for file in dev]
    return begin_run(lambda: changed(of_files(paths, dev_paths), preset, changes), folder, Path(out), device)


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
    """As `sixfold finetune`: `files` are the new pairs, `old` some of those that `model` has learnt from."""
    sides = [[Path(file) for file in each] for each in (files, old, dev, old_dev)]

    def make() -> Recipe:
        return changed(recipe_of(Path(model), sides[0], sides[1], mix, sides[2], sides[3]), "", changes)

    return begin_run(make, Path(), Path(out), device)


def begin_run(make: Callable[[], Recipe], data: Path, out: Path, device: str) -> Outcome:
    """Alone, or as one of the processes that torchrun has started, of which the leader makes the recipe."""
    chosen = choose_device(device)
    with Interrupt() as interrupt, joined(chosen) as group:
        display = Display(interrupt, quiet=not group.leads)
        try:
            return replace(run(group.lead(make), data, out, chosen, display, group), leads=group.leads)
        except Stopped:
            display.say("stopped; the same command goes on from there")
            return Outcome(None, 0, {}, group.leads)


class Begun(NamedTuple):
    """A run before its first step of this start."""

    known: dict[str, Any]  # what run.json holds
    sources: Sources
    ready: Ready | None  # None: the run has ended


def run(recipe: Recipe, data: Path, out: Path, device: torch.device, display: Display, group: Group = ALONE) -> Outcome:
    """Begin a run in `out`, or go on with the one that is there."""
    with ExitStack() as stack:
        group.lead(lambda: stack.enter_context(claim(out)))
        start = modelfile.load(data / recipe.start) if recipe.start else None
        known, sources, ready = group.first(
            lambda: begin(recipe, data, out, device, display, start), pack, lambda packed: unpack(packed, out, start)
        )
        if ready is None:
            display.say(f"{out}: this run has ended")
            return Outcome(out / "model.safetensors", known["step"], known["scores"])
        stack.enter_context(library_settings(ready.config.training.precision, device))
        sitting = Sitting(ready, out, device, display, group)
        sitting.train()
        if sitting.stops:
            display.say(f"stopped at step {sitting.state.step:,}; the same command goes on from there")
            return Outcome(None, sitting.state.step, {})
        try:
            scores = finish(sitting)
        except Stopped:
            display.say("stopped while scoring; the same command scores again")
            return Outcome(None, sitting.state.step, {})
        for line in expectations(recipe, sources, scores):
            display.say(line)
        if group.leads:
            write_json(out / "run.json", {**known, "finished": True, "step": sitting.state.step, "scores": scores})
            page.write(out / "report.html", report_page(run_record.read([out])))
        return Outcome(out / "model.safetensors", sitting.state.step, scores)


def begin(
    recipe: Recipe, data: Path, out: Path, device: torch.device, display: Display, start: ModelFile | None
) -> Begun:
    """All that comes before the first step, and the only part that reads the corpora: the leader's work."""
    sources = prepare.find(recipe, data, languages_of(start))
    digests = Digests(out / "data")
    checksum = start.checksum if start else ""
    known, longer = read_known(out), False
    if known:
        asked = what_was_asked(recipe, sources, digests, checksum)
        refuse_changes(out, known, asked)
        longer = steps_asked(asked) > steps_before(known)
    else:
        refuse_foreign_files(out)
    check(recipe.config)
    if known.get("finished") and not longer and (out / "model.safetensors").exists():
        return Begun(known, sources, None)
    ready = make_ready(recipe, sources, out, known, device, display, start)
    known = {
        # Of a new run, cleaning has made the digests of the corpora while it read them.
        "asked": what_was_asked(recipe, sources, Digests(out / "data"), checksum),
        "config": to_dict(ready.config), "tokens": ready.store.key,
        "preset": known.get("preset", ready.preset), "sets": files_of(sources),
    }  # fmt: skip
    write_json(out / "run.json", known)
    with files.atomic(out / "config.toml") as file:
        file.write(to_toml(ready.config).encode())
    return Begun(known, sources, ready)


def pack(begun: Begun) -> tuple[Any, ...]:
    """What other processes need, small enough to be sent: they map the tokens themselves."""
    ready = begun.ready
    if ready is None:
        return begun.known, begun.sources, None
    store = ready.store.key, ready.store.readings
    sent = replace(ready, store=None, tokenizer=None, start=None)  # type: ignore[arg-type]
    return begun.known, begun.sources, (sent, ready.tokenizer.to_json(), store)


def unpack(packed: tuple[Any, ...], out: Path, start: ModelFile | None) -> Begun:
    known, sources, rest = packed
    if rest is None:
        return Begun(known, sources, None)
    ready, text, (key, readings) = rest
    tokenizer = Tokenizer.from_json(text)
    store = replace(open_tokens(out / "data", key, tokenizer, sources.train), readings=readings)
    return Begun(known, sources, replace(ready, store=store, tokenizer=tokenizer, start=start))


def files_of(sources: Sources) -> dict[str, dict[str, Any]]:
    """Where the dev and test sets are, for the report."""
    return {
        corpus.name: {"files": [str(file.absolute()) for file in corpus.files], "columns": list(corpus.columns)}
        for corpus in (*sources.dev, *sources.test)
    }


def expectations(recipe: Recipe, sources: Sources, scores: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Whether each dev and test set came out as the recipe promises."""
    one, other = sources.languages
    for promise, corpus in zip((*recipe.dev, *recipe.test), (*sources.dev, *sources.test), strict=True):
        there, back = set_name(corpus.name, one, other), set_name(corpus.name, other, one)
        promised = {corpus.name: promise.bleu, there: promise.bleu, back: promise.bleu_back}
        for name, bleu in promised.items():
            if bleu and name in scores:
                got = scores[name]["bleu"]
                verdict = "as promised" if got >= bleu - promise.tolerance else "NOT reached"
                yield f"{name}: expected BLEU {bleu:.1f} ± {promise.tolerance:.1f}; got {got:.1f}: {verdict}"


def choose_device(asked: str) -> torch.device:
    """The GPU where there is one."""
    if asked not in ("auto", "cpu", "cuda"):
        raise ConfigError(f"--device: expected auto, cpu or cuda; got {asked!r}")
    if asked == "cuda" and not torch.cuda.is_available():
        raise ConfigError("--device: expected a GPU that torch can use; found none", "leave --device out")
    return torch.device("cuda" if torch.cuda.is_available() and asked != "cpu" else "cpu")


def make_ready(
    recipe: Recipe,
    sources: Sources,
    out: Path,
    known: Mapping[str, Any],
    device: torch.device,
    display: Display,
    start: ModelFile | None = None,
) -> Ready:
    """Data first, then the settings that follow from it; what an earlier sitting chose stays."""
    tests = tuple(prepare.read_set(corpus, sources.languages) for corpus in sources.test)
    check_tags(recipe, sources, start)
    one_way = start is not None and not defaults.tune(recipe.settings, start.config).data.both_ways
    if start is not None and one_way and not prepare.are_stated(recipe):
        refuse_other_direction(start, sources.languages)
    preparation = Preparation(sources, out / "data", display)
    kept = preparation.clean(recipe.config.data)
    if known:
        config = lengthened(from_dict(known["config"]), recipe.config.training.steps, display)
    elif start is not None:
        config = defaults.tune(recipe.settings, start.config)
    else:
        config = defaults.choose(recipe.settings, len(kept), device.type)
    config = replace(config, tokenizer=prepare.with_tags(config.tokenizer, sources, config.data.both_ways))
    check(config)
    if config.training.lora and start is None:
        raise ConfigError("training.lora: expected 0 where no model is fine-tuned: random weights would stay random")
    if start is not None and not known:
        check_sides(recipe, kept, start, sources.languages, config, device)
    dev = preparation.dev_sets(kept, config, of_each=start is not None)
    if config.data.both_ways:
        dev, tests = (tuple(way for texts in sets for way in texts.both_ways()) for sets in (dev, tests))
    left_out = {source for texts in (*dev, *tests) for source in texts.sources}
    tokenizer = tokenizer_of(start) if start else preparation.learn_tokenizer(kept, left_out, config.tokenizer)
    tokens = preparation.tokenize(kept, tokenizer, left_out, config.data)
    if known and known["tokens"] != tokens.key:
        raise DataError(
            f"{out}: the corpora no longer give the tokens that this run began with",
            "if a library was updated, go back to its old version; or use another --output",
        )
    training = config.training
    if not known:

        def steps_in_a_pass(batch_tokens: int) -> int:
            order = Order(batch_tokens, 1, training.seed, packed=defaults.is_packed(training, device.type))
            return len(Loader(tokens, order, lambda each: each).epoch(0))

        training = defaults.complete(training, len(tokens.lines), steps_in_a_pass, device.type)
    config = replace(config, model=tokenizer.fit(config.model), training=training)
    shape, arrow = config.model, "↔" if config.data.both_ways else "→"
    display.say(
        f"{len(tokens.lines):,} pairs, {arrow.join(language or '?' for language in sources.languages)}, "
        f"{tokenizer.vocab:,} pieces; {shape.encoder_layers}+{shape.decoder_layers} layers of width {shape.d_model}; "
        f"{training.steps:,} steps of {training.batch_tokens:,} tokens on {device.type}"
    )
    name = "" if start else defaults.preset_name(recipe.settings, len(kept), device.type)
    return Ready(config, tokens, tokenizer, dev, tests, sources.languages, start, name)


def lengthened(config: Config, steps: int, display: Display) -> Config:
    """The settings of an earlier start, with more steps where the user asks for more now."""
    before = config.training.steps
    if steps <= before:
        return config
    display.say(f"the run is made longer: {steps:,} steps instead of {before:,}")
    if config.training.schedule == "cosine":
        display.say(f"the learning rate now falls until step {steps:,}, so that it is higher than at the end before")
    return replace(config, training=replace(config.training, steps=steps))


def check_sides(
    recipe: Recipe, kept: Kept, start: ModelFile, languages: tuple[str, str], config: Config, device: torch.device
) -> None:
    """Before hours of work: whether the sides of the corpora are in the order that the model translates in."""
    if config.data.both_ways or prepare.are_stated(recipe) or languages != languages_of(start):
        return  # where it is to learn another language, its losses tell nothing
    model = build(start.config.model).to(device)
    assert isinstance(model, EncoderDecoder)
    load_weights(model, start.weights(), "the model to start from")
    validator = Validator(model, start.config.model, tokenizer_of(start), config.training)
    for corpus, begin, end in zip(kept.corpora, [0, *kept.ends], kept.ends, strict=False):
        if corpus.way != "back" and end > begin:
            sample = kept.some(kept.smallest([range(begin, end)], SAMPLE))
            refuse_swapped(validator, corpus, sample, languages)


def tokenizer_of(start: ModelFile) -> Tokenizer:
    """The vocabulary is kept: what the weights know of each piece is what fine-tuning builds on."""
    if start.tokenizer is None:
        raise ConfigError("the model to start from: expected one with a tokeniser; it has none")
    return start.tokenizer


def check_tags(recipe: Recipe, sources: Sources, start: ModelFile | None) -> None:
    """Before hours of work: whether the tags that the corpora need can be had."""
    config = defaults.tune(recipe.settings, start.config) if start else recipe.config
    needed = prepare.with_tags(replace(config.tokenizer, tags=()), sources, config.data.both_ways).tags
    missing = [tag for tag in needed if start is not None and tag not in tokenizer_of(start).tags]
    if missing:
        known = ", ".join(tokenizer_of(start).tags) if start else ""
        raise ConfigError(
            f"data.both_ways or corpus.tag: expected tags of the model to start from ({known or 'it has none'}); "
            f"got {', '.join(missing)}"
        )


def check(config: Config) -> None:
    """What only training asks of a configuration."""
    model = config.model
    if config.training.compile == "on" and config.training.packing == "off":
        raise ConfigError("training.compile: expected training.packing, which gives all batches one shape; it is off")
    if model.kind != "encoder-decoder":
        raise ConfigError(f"model.kind: expected encoder-decoder to learn from pairs; got {model.kind!r}")
    room = model.max_length - min(2, len(config.tokenizer.tags))  # language and origin stand before a source
    if model.positions == "learned" and config.data.max_tokens > room:
        raise ConfigError(
            f"data.max_tokens: expected at most {room}, the rows of the learned position table "
            f"(model.max_length = {model.max_length}) less the tags; got {config.data.max_tokens}"
        )


def finish(sitting: Sitting) -> dict[str, dict[str, Any]]:
    """Score the best model as it will be used, with a beam, and give it its name."""
    sitting.group.meet()  # the first may still be writing it
    before: dict[str, dict[str, Any]] = {}
    if sitting.ready.start is not None:
        sitting.display.say("scoring the model that it started from with a beam of 4")
        sitting.validator.take(sitting.ready.start.weights())
        before = {texts.name: asdict(score(sitting, texts)[0]) for texts in sitting.ready.sets}
    best = modelfile.load(sitting.best)
    sitting.validator.take(best.weights())
    sitting.display.say(f"scoring the model of step {sitting.progress.best_step:,} with a beam of 4")
    scores: dict[str, dict[str, Any]] = {}
    for texts in sitting.ready.sets:
        found, translations = score(sitting, texts)
        scores[texts.name] = asdict(found)
        if sitting.group.leads:
            with files.atomic(sitting.out / f"{texts.name}.translated.txt") as file:
                file.write("".join(f"{line}\n" for line in translations).encode())
    cost = {"hours": sitting.progress.seconds / 3600, "device": str(sitting.device), "tokens": sitting.progress.tokens}
    card = {**best.card, "scores": scores, "cost": cost, "validations": sitting.progress.history}
    if before:
        card |= {"scores_before": before}
        for line in table(before, scores):
            sitting.display.say(line)
    if sitting.group.leads:
        lists = learn_shortlist(sitting)
        path = sitting.out / "model.safetensors"
        modelfile.save(path, best.config, best.weights(), best.tokenizer, card, shortlist=lists)
    return scores


def learn_shortlist(sitting: Sitting) -> Shortlist | None:
    """What makes the model quick on a CPU. A small vocabulary is quick without; what is known of old words stays."""
    shape, start = sitting.ready.config.model, sitting.ready.start
    if shape.vocab < WORTH_LISTING:
        return None
    with sitting.display.reading("learning a shortlist", shortlist.steps(sitting.ready.store, shape.vocab)) as advance:
        targets = [sitting.ready.languages[1], *sitting.ready.languages[: sitting.ready.config.data.both_ways]]
        options = [shortlist.suited(shape.vocab, target) for target in targets]
        learned = shortlist.build(sitting.ready.store, shape.vocab, shape.eos, advance, options)
    return learned if start is None or start.shortlist is None else shortlist.merge(start.shortlist, learned)


def score(sitting: Sitting, texts: TextSet) -> tuple[Scores, list[str]]:
    """As the model will be used."""
    found, translations = sitting.validator.score(texts, beam=4)
    sitting.display.say(f"{texts.name}: BLEU {found.bleu:.2f}, chrF {found.chrf:.2f} ({found.signature})")
    return found, translations
