"""A recipe: settings, the corpora they are for, and the scores that a run should reach."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from sixfold.config import Config, check_tag
from sixfold.configfile import assign, check_types, read_toml, require, section_from
from sixfold.errors import ConfigError, DataError
from sixfold.presets import from_tree

CorpusDirection = Literal["both", "forward", "back"]  # from source to target, from target to source, or both


@dataclass(frozen=True)
class CorpusConfig:
    """The settings of a corpus: two files of lines or one file of pairs, with paths relative to the data folder."""

    files: tuple[str, ...] = ()
    name: str = ""  # empty: from the name of the file
    weight: float = 1.0  # how often each pair is used in an epoch; with 0.5, alternating halves
    way: CorpusDirection = (
        "both"  # that it is learned in, with data.both_ways: a side made by a machine is a poor target
    )
    tag: str = ""  # put before each source, such as "bt" for back-translations
    tag_way: CorpusDirection = "both"  # with data.both_ways, the direction whose sources have the tag
    columns: tuple[str, ...] = ()  # of a TSV, counted from 1, or of JSON lines by name; empty: the first two
    bleu: float = 0.0  # of a dev or test set: the score that a run should reach, within `tolerance`
    bleu_back: float = 0.0  # the same from target to source, with data.both_ways
    tolerance: float = 1.0

    def __post_init__(self) -> None:
        check_types(self, "corpus")
        require(1 <= len(self.files) <= 2, "corpus.files", "one file of pairs or two files of lines", list(self.files))
        require(len(self.columns) in (0, 2), "corpus.columns", "none, or source and target", list(self.columns))
        require(0 < self.weight <= 1000, "corpus.weight", "above 0, at most 1000", self.weight)
        require("/" not in self.name and "\\" not in self.name, "corpus.name", "a name without slashes", self.name)
        if self.tag:
            check_tag(self.tag, "corpus.tag")
        else:
            require(self.tag_way == "both", "corpus.tag_way", "a corpus.tag with it", self.tag_way)
        for name in ("bleu", "bleu_back", "tolerance"):
            require(getattr(self, name) >= 0, f"corpus.{name}", "0 or more", getattr(self, name))


@dataclass(frozen=True)
class Recipe:
    """The settings and corpora of a training run, as `sixfold train recipe.toml` reads them."""

    config: Config = field(default_factory=Config)
    corpus: tuple[CorpusConfig, ...] = ()
    dev: tuple[CorpusConfig, ...] = ()
    test: tuple[CorpusConfig, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)  # of the file itself, without defaults
    start: str = ""  # a model file to fine-tune, instead of random weights
    tokenizer_of: str = ""  # a model file whose tokeniser is used, instead of learning one


def set_name(name: str, source: str, target: str) -> str:
    """Return the name of one direction of a dev or test set that is translated both ways."""
    return f"{name}.{source}-{target}"


def load(path: Path) -> Recipe:
    """Read a TOML file: the sections of a Config, [[corpus]], [[dev]] and [[test]] tables, and names of other files.

    `start` and `tokenizer_of` name model files in the data folder. `corpora` names another TOML file, relative to this
    one, whose [[corpus]] tables come before those of this file; a table here for the same files replaces one there.
    """
    tree = read_toml(path)
    shared = _pop_file_name(tree, "corpora", path)
    corpus, dev, test = (_corpora(tree.pop(name, []), f"{path}: {name}") for name in ("corpus", "dev", "test"))
    if shared:
        corpus = _join_corpora(_load_shared_corpora(path.parent / shared), corpus)
    for name, sets in (("dev", dev), ("test", test)):
        for each in sets:
            require((each.way, each.tag) == ("both", ""), f"{path}: {name}", "neither way nor tag", each.files[0])
    start, tokenizer_of = _pop_file_name(tree, "start", path), _pop_file_name(tree, "tokenizer_of", path)
    if start and tokenizer_of:
        raise ConfigError(
            f"{path}: tokenizer_of: expected none beside start, whose tokeniser is used", "leave one of them out"
        )
    return Recipe(from_tree(dict(tree), str(path)), corpus, dev, test, tree, start, tokenizer_of)


def of_files(files: Sequence[Path], dev: Sequence[Path] = ()) -> Recipe:
    """Return the recipe for the files that a user names: a recipe, two files of lines, or one file of pairs."""
    if len(files) == 1 and files[0].suffix == ".toml":
        recipe = load(files[0])
    elif 1 <= len(files) <= 2:
        recipe = Recipe(corpus=(CorpusConfig(tuple(map(str, files)), name="train"),))
    else:
        raise DataError(f"files: expected two files of lines, one of pairs or a recipe; got {len(files)}")
    if dev:
        dev_config = CorpusConfig(tuple(str(path.absolute()) for path in dev), name="dev")
        recipe = replace(recipe, dev=(dev_config,))
    return recipe


def of_texts(files: Sequence[Path], dev: Sequence[Path] = ()) -> Recipe:
    """Return the recipe for files of text that a language is learnt from; each is a corpus of its own."""
    train, held_out = (tuple(CorpusConfig((str(file.absolute()),)) for file in some) for some in (files, dev))
    if len(held_out) == 1:
        held_out = (replace(held_out[0], name="dev"),)
    return Recipe(corpus=train, dev=held_out)


def changed(recipe: Recipe, preset: str, assignments: Iterable[str]) -> Recipe:
    """Return a recipe after changes such as `training.steps=100`, with another preset if one is named."""
    tree = assign({**recipe.settings, **({"preset": preset} if preset else {})}, assignments)
    return replace(recipe, config=from_tree(dict(tree), "settings"), settings=tree)


def _pop_file_name(tree: dict[str, Any], key: str, path: Path) -> str:
    """Remove a key from a recipe and return the file name that it has, or "" if the recipe lacks the key."""
    name = tree.pop(key, "")
    if not isinstance(name, str):
        raise ConfigError(f"{path}: {key}: expected the name of a file; got {name!r}")
    return name


def _load_shared_corpora(path: Path) -> tuple[CorpusConfig, ...]:
    """Read the [[corpus]] tables of a file that several recipes share."""
    tree = read_toml(path)
    corpora = _corpora(tree.pop("corpus", []), f"{path}: corpus")
    if tree:
        raise ConfigError(f"{path}: expected only [[corpus]] tables; got {', '.join(tree)}", "move it to the recipe")
    return corpora


def _join_corpora(shared: Sequence[CorpusConfig], own: Sequence[CorpusConfig]) -> tuple[CorpusConfig, ...]:
    """Return the shared corpora and then the recipe's own; of two for the same files, only the recipe's own."""
    own_of = {corpus.files: corpus for corpus in own}
    shared_files = {corpus.files for corpus in shared}
    replaced = (own_of.get(corpus.files, corpus) for corpus in shared)
    return (*replaced, *(corpus for corpus in own if corpus.files not in shared_files))


def _corpora(tables: Any, where: str) -> tuple[CorpusConfig, ...]:
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        name = where.rpartition(" ")[2]
        raise ConfigError(f"{where}: expected tables; got {tables!r}", f"write [[{name}]] above its settings")
    return tuple(_corpus(table, f"{where} {number}") for number, table in enumerate(tables, start=1))


def _corpus(table: dict[str, Any], where: str) -> CorpusConfig:
    if isinstance(table.get("columns"), list):  # the columns of a TSV are numbers
        table = {**table, "columns": [str(column) for column in table["columns"]]}
    try:
        return section_from(CorpusConfig, "corpus", table)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}", error.hint) from None
