"""`sixfold summary`: what a model is made of, from a model file or a preset, without loading a tensor library."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.tree import Tree

from sixfold import config as settings
from sixfold import modelfile, presets
from sixfold.cli.config import Set, resolve
from sixfold.cli.options import MODEL_HELP, Command
from sixfold.config import Config, ModelConfig
from sixfold.errors import ConfigError
from sixfold.modelfile import ModelFile
from sixfold.translation.loading import MODEL_SUFFIX, find_model
from sixfold.weights import Shape, cost, counts, shapes

LENGTH = 64  # tokens a sentence, for figures that depend on it


def register(app: typer.Typer, name: str) -> None:
    app.command(name, cls=Command)(summary)


def summary(
    name: Annotated[
        str | None,
        typer.Argument(metavar="MODEL|PRESET|FILE.toml", help=f"A preset, a recipe, or a model. {MODEL_HELP}"),
    ] = None,
    model: Annotated[Path | None, typer.Option("--model", "-m", help="The same as the argument.")] = None,
    changes: Set = [],  # noqa: B006
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Print the module tree, its shapes, where the parameters are, and what a token costs."""
    if name is not None and model is not None:
        raise ConfigError(f"--model: expected one model; got {name!r} and {str(model)!r}", "leave one of them out")
    name = str(model) if model is not None else name
    path = model_file(name)
    file = None if path is None else modelfile.load(path)
    if file is not None:
        if changes:
            raise ConfigError("--set: expected a preset or a recipe to change; got a finished model")
        config = file.config
    else:
        config = settings.override(resolve(name or ""), changes)
    facts = describe(config, file)
    if as_json:
        print(json.dumps(facts, ensure_ascii=False, indent=2))
    else:
        wide_enough = Console().width >= 20
        show(
            name or (path.stem if path else ""),
            config.model,
            facts,
            Console(width=None if wide_enough else 80, emoji=False),
        )


def model_file(name: str | None) -> Path | None:
    """The model file that is meant; None for a preset or a recipe."""
    if name is not None and (name in presets.PRESETS or name.endswith(".toml")):
        return None
    path = find_model(name)
    return path if path.is_file() or path.suffix == MODEL_SUFFIX else None


def describe(config: Config, file: ModelFile | None) -> dict[str, Any]:
    shape = config.model
    parts = counts(shape)
    total = sum(parts.values())
    tokens = cost(shape, LENGTH)
    cache = 2 * shape.decoder_layers * shape.groups * shape.d_head * 4 if "decoder" in shape.stacks else 0
    facts: dict[str, Any] = {
        "kind": shape.kind,
        "parameters": total,
        "parts": {part: {"parameters": size, "share": round(size / total, 4)} for part, size in parts.items()},
        "flops_per_token": {"encoder": tokens.encoder, "decoder": tokens.decoder, "output": tokens.output,
                            "total": tokens.total, "at_length": LENGTH},
        "bytes": {"float32": 4 * total, "bfloat16": 2 * total, "int8": total, "training": 16 * total,
                  "cache_per_token": cache},
        "weights": {name: list(each) for name, each in shapes(shape).items()},
        "config": settings.to_dict(config),
    }  # fmt: skip
    if file is not None:
        facts["file"] = {"storage": file.storage, "checksum": file.checksum, "card": dict(file.card)}
        facts["file"]["other_settings"] = dict(file.other_settings)
        facts["file"]["tokenizer"] = file.tokenizer.algorithm if file.tokenizer else None
    return facts


def show(title: str, shape: ModelConfig, facts: dict[str, Any], console: Console) -> None:
    console.print(f"[bold]{escape(title)}[/]: {facts['kind']}, {facts['parameters']:,} parameters", highlight=False)
    console.print(module_tree(shapes(shape)))
    table = Table("part", "parameters", "share", box=None)
    for part, fact in facts["parts"].items():
        table.add_row(part, f"{fact['parameters']:,}", f"{fact['share']:.1%}")
    console.print(table)
    flops, size = facts["flops_per_token"], facts["bytes"]
    pieces = ", ".join(f"{name} {flops[name] / 1e6:.1f}M" for name in ("encoder", "decoder", "output") if flops[name])
    console.print(f"forward FLOPs a token at length {LENGTH}: {flops['total'] / 1e6:.1f}M ({pieces})", highlight=False)
    stored = ", ".join(f"{name} {size[name] / 2**20:.1f} MiB" for name in ("float32", "bfloat16", "int8"))
    console.print(f"memory: {stored}; training {size['training'] / 2**20:.0f} MiB plus activations", highlight=False)
    if size["cache_per_token"]:
        console.print(f"decoding cache: {size['cache_per_token'] / 2**10:.0f} KiB a token and row", highlight=False)
    for line in file_lines(facts.get("file", {})):
        console.print(line, highlight=False, markup=False)


def file_lines(file: dict[str, Any]) -> Iterator[str]:
    for name in ("storage", "checksum", "tokenizer"):
        if file.get(name):
            yield f"{name}: {file[name]}"
    for line in card_lines(file.get("card", {})):
        # A card comes from whoever made the file; a terminal must not obey it.
        yield "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line)


def card_lines(card: dict[str, Any], indent: str = "") -> Iterator[str]:
    """A table of tables a line each; of the validations of a run, the last."""
    for name, value in card.items():
        if isinstance(value, dict) and any(isinstance(inner, dict) for inner in value.values()):
            yield f"{indent}{name}:"
            yield from card_lines(value, indent + "  ")
        elif name == "validations" and isinstance(value, list) and len(value) > 3:
            yield f"{indent}{name}: {len(value)}, the last {brief(value[-1])}"
        elif isinstance(value, list) and len(value) > 3 and all(isinstance(inner, dict) for inner in value):
            yield f"{indent}{name}:"
            yield from (f"{indent}  {brief(inner)}" for inner in value)
        else:
            yield f"{indent}{name}: {brief(value)}"


def brief(value: Any) -> str:
    """Words and rounded numbers; `--json` has them all."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {brief(inner)}" for name, inner in value.items())
    if isinstance(value, list):
        return "; ".join(map(brief, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def module_tree(weights: dict[str, Shape]) -> Tree:
    """Weights by their dotted names; layers of the same shapes are written once."""
    root: dict[str, Any] = {}
    for name, shape in weights.items():
        *path, leaf = name.split(".")
        place = root
        for part in path:
            place = place.setdefault(part, {})
        place[leaf] = shape
    tree = Tree("model")
    _grow(tree, root)
    return tree


def _grow(tree: Tree, node: dict[str, Any]) -> None:
    names = list(node)
    while names:
        name = names.pop(0)
        same = [other for other in names if re.fullmatch(r"\d+", other) and node[other] == node[name]]
        names = [other for other in names if other not in same]
        label = f"{name} … {same[-1]}  ({len(same) + 1} ×)" if same else name
        children = node[name]
        if all(isinstance(child, tuple) for child in children.values()):
            sizes = ", ".join(f"{leaf} {'×'.join(map(str, child))}" for leaf, child in children.items())
            tree.add(f"{label}  [dim]{sizes}[/]")
        else:
            _grow(tree.add(label), children)
