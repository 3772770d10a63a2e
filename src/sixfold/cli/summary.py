"""`sixfold summary`: the parts of a model, from a model file, a preset or a recipe. It does not need torch."""

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
from sixfold.cli.config import load_config
from sixfold.cli.options import Command, JsonOption, SetOption
from sixfold.config import Config, ModelConfig
from sixfold.errors import ConfigError
from sixfold.modelfile import ModelFile
from sixfold.translation.loading import MODEL_SUFFIX, find_model
from sixfold.weights import Shape, cost, counts, shapes

SENTENCE_TOKENS = 64  # length that the FLOPs are computed for


def register(app: typer.Typer, name: str) -> None:
    app.command(name, cls=Command)(summary)


def summary(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL|PRESET|FILE.toml",
            help="Describe this preset, recipe, model file, run folder, or shipped model. Default: zh-en.",
        ),
    ] = None,
    model: Annotated[
        Path | None, typer.Option("--model", "-m", help="Describe this model. The same as the argument.")
    ] = None,
    changes: SetOption = [],  # noqa: B006
    as_json: JsonOption = False,
) -> None:
    """Print the modules of a model, the shapes of its weights, its number of parameters, and its cost per token."""
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
        config = settings.override(load_config(name or ""), changes)
    facts = describe(config, file)
    if as_json:
        print(json.dumps(facts, ensure_ascii=False, indent=2))
    else:
        is_wide = Console().width >= 20
        show(
            name or (path.stem if path else ""),
            config.model,
            facts,
            Console(width=None if is_wide else 80, emoji=False),
        )


def model_file(name: str | None) -> Path | None:
    """Return the model file of this name, or None if it is a preset or a recipe."""
    if name is not None and (name in presets.PRESETS or name.endswith(".toml")):
        return None
    path = find_model(name)
    return path if path.is_file() or path.suffix == MODEL_SUFFIX else None


def describe(config: Config, file: ModelFile | None) -> dict[str, Any]:
    """Return everything that `--json` prints. The cache is in bytes per token and row, for float32."""
    shape = config.model
    parts = counts(shape)
    total = sum(parts.values())
    tokens = cost(shape, SENTENCE_TOKENS)
    cache = 2 * shape.decoder_layers * shape.groups * shape.d_head * 4 if "decoder" in shape.stacks else 0
    facts: dict[str, Any] = {
        "kind": shape.kind,
        "parameters": total,
        "parts": {part: {"parameters": size, "share": round(size / total, 4)} for part, size in parts.items()},
        "flops_per_token": {"encoder": tokens.encoder, "decoder": tokens.decoder, "output": tokens.output,
                            "total": tokens.total, "at_length": SENTENCE_TOKENS},
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
    by_part = ", ".join(f"{name} {flops[name] / 1e6:.1f}M" for name in ("encoder", "decoder", "output") if flops[name])
    console.print(
        f"forward FLOPs per token at length {SENTENCE_TOKENS}: {flops['total'] / 1e6:.1f}M ({by_part})", highlight=False
    )
    stored = ", ".join(f"{name} {size[name] / 2**20:.1f} MiB" for name in ("float32", "bfloat16", "int8"))
    console.print(f"memory: {stored}; training {size['training'] / 2**20:.0f} MiB plus activations", highlight=False)
    if size["cache_per_token"]:
        console.print(f"decoding cache: {size['cache_per_token'] / 2**10:.0f} KiB per token and row", highlight=False)
    for line in file_lines(facts.get("file", {})):
        console.print(line, highlight=False, markup=False)


def file_lines(file: dict[str, Any]) -> Iterator[str]:
    for name in ("storage", "checksum", "tokenizer"):
        if file.get(name):
            yield f"{name}: {file[name]}"
    for line in card_lines(file.get("card", {})):
        # The card comes from the author of the file; the terminal must not interpret its control characters.
        yield "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line)


def card_lines(card: dict[str, Any], indent: str = "") -> Iterator[str]:
    """Yield the lines of a card. Nested tables are indented; of a run's validations only the last is shown."""
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
    """Return a value in one line, with rounded numbers; `--json` has it in full."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {brief(inner)}" for name, inner in value.items())
    if isinstance(value, list):
        return "; ".join(map(brief, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def module_tree(weights: dict[str, Shape]) -> Tree:
    """Return a tree of weights by their dotted names. Layers with the same shapes are shown once."""
    root: dict[str, Any] = {}
    for name, shape in weights.items():
        *path, leaf = name.split(".")
        node = root
        for part in path:
            node = node.setdefault(part, {})
        node[leaf] = shape
    tree = Tree("model")
    _add_branches(tree, root)
    return tree


def _add_branches(tree: Tree, node: dict[str, Any]) -> None:
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
            _add_branches(tree.add(label), children)
