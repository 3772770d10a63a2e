"""One token followed through one head: every array from its text to a probability, each with its equation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from sixfold.explorer.drawing import Box, Grid, Label, Line, Part, clip_text, colormap
from sixfold.explorer.heads import Head, Kind
from sixfold.explorer.pieces import piece_text
from sixfold.explorer.trace import Trace
from sixfold.explorer.views_layout import (
    MARGIN,
    SMALL,
    TEXT,
    Cell,
    Table,
    View,
    ViewOptions,
    content_top,
    scene_with_heading,
    token_index,
)
from sixfold.weights import has_cross_attention

Array = np.ndarray
MAX_NUMBERS, MAX_CELLS = 6, 64  # of a stage: numbers that are printed, and numbers that are drawn as cells
FEED_FORWARD_EQUATIONS = {"relu": "max(0, x W₁{})", "swiglu": "silu(x W_g{}) · (x W₁{})"}


class Stage(NamedTuple):
    """One step of the computation: its name, its equation and its result.

    Numbers are in the order of drawing; `names` has the piece of each number where numbers belong to pieces. A `note`
    is printed instead of the numbers.
    """

    name: str
    equation: str
    numbers: Array
    names: Sequence[str] = ()
    note: str = ""


def walk(trace: Trace, options: ViewOptions) -> View:
    """Draw every stage of one path through the model, from the text of a token to a probability."""
    kind, layer, head = options.resolve(trace)
    chosen = Head(kind, layer, head or 0)
    index = token_index(options.token, trace, kind)
    stages = list(stages_of(trace, chosen, index, options.top))
    left, width, height = MARGIN + 320, 560.0, 62.0
    top = content_top(trace) + 4
    parts: list[Part] = []
    for number, stage in enumerate(stages):
        y, text = top + number * height, clip_text(stage.note or numbers_text(stage), SMALL, width)
        parts += [
            Line([(MARGIN, y), (left + width, y)]),
            Label(MARGIN, y + 20, f"{number + 1}", SMALL, fill="soft"),
            Label(MARGIN + 26, y + 20, stage.name, TEXT, weight=600),
            Label(MARGIN + 26, y + 41, clip_text(stage.equation, SMALL, 285), SMALL, fill="accent", mono=True),
            Label(left, y + (41 if len(stage.numbers) else 31), text, SMALL, fill="soft", mono=True),
        ]
        cells = np.where(np.isfinite(stage.numbers), stage.numbers, 0)[:MAX_CELLS]
        if len(cells):
            largest = float(np.abs(cells).max()) or 1.0
            parts += [
                Box(left - 1, y + 12, width + 2, 16, "line"),
                Grid(left, y + 13, width, 14, colormap(cells[None], "diverging", largest)),
            ]
    label = trace.labels(kind)[0][index]
    title = f"One token, step by step: “{label}” through {chosen}"
    scene = scene_with_heading(trace, title, parts, (left + width, top + height * len(stages)))
    rows: list[list[Cell]] = [
        [stage.name, stage.equation, len(stage.numbers), stage.note or numbers_text(stage)] for stage in stages
    ]
    return View(scene, [Table(title, ["stage", "equation", "size", "numbers"], rows)])


def numbers_text(stage: Stage) -> str:
    """Return the first numbers in the order of drawing, each with its piece where it has one."""
    if stage.names:
        named = zip(stage.names, stage.numbers[:MAX_NUMBERS], strict=False)
        return "   ".join(f"{name} {number_text(number)}" for name, number in named)
    more = f"   … {len(stage.numbers)} numbers" if len(stage.numbers) > MAX_NUMBERS else ""
    return "  ".join(f"{number_text(number):>7}" for number in stage.numbers[:MAX_NUMBERS]) + more


def number_text(number: np.floating) -> str:
    """Return a number with three decimals, or none from 100 on, and a real minus sign."""
    if not np.isfinite(number):
        return "−∞"
    return (f"{number:.3f}" if abs(number) < 100 else f"{number:.0f}").replace("-", "−")


def stages_of(trace: Trace, chosen: Head, index: int, top: int) -> Iterator[Stage]:
    """Yield all stages of the token at `index`, in the order of computation; `top` is how many logits are shown."""
    config = trace.config
    stack = "encoder" if chosen.kind == "encoder" else "decoder"
    yield from embedding_stages(trace, chosen.kind, stack, index)
    layer_input = sublayer_input(trace, stack, chosen)
    if not layer_input.startswith(f"{stack}.embedding"):
        yield Stage("Input of this layer", "x", trace[layer_input][index])
    yield from attention_stages(trace, chosen, index)
    layer = f"{stack}.layers.{chosen.layer}"
    yield residual_stage(trace, chosen.module_path, index)
    equation = FEED_FORWARD_EQUATIONS.get(config.feed_forward, config.feed_forward + "(x W₁{})")
    biases = (" + b_g", " + b₁") if config.feed_forward == "swiglu" else (" + b₁",)
    equation = equation.format(*(bias if config.bias else "" for bias in biases))
    hidden = trace[f"{layer}.feed_forward.hidden"][index]
    order = np.argsort(-hidden, kind="stable")
    units = [f"#{unit}" for unit in order]
    yield Stage("Feed-forward, hidden, largest first", equation, hidden[order], units)
    yield Stage(
        "Feed-forward, output", "h W₂ + b₂" if config.bias else "h W₂", trace[f"{layer}.feed_forward.down"][index]
    )
    yield residual_stage(trace, f"{layer}.feed_forward", index)
    last = "Norm(x)" if config.ends_in_norm else "x"
    of_stack = f" of the {stack}" if len(config.stacks) > 1 else ""
    yield Stage(f"After all layers{of_stack}", last, trace[f"{stack}.output"][index])
    if stack == config.stacks[-1]:
        best = np.argsort(-trace["logits"][index], kind="stable")[:top]
        names = [piece_text(trace.target_tokenizer, int(token)) for token in best]
        yield Stage("Logits", "x Eᵀ" if config.tie_output else "x W", trace["logits"][index][best], names)
        yield Stage("Probability", "softmax(logits)", trace["probabilities"][index][best], names)


def embedding_stages(trace: Trace, kind: Kind, stack: str, index: int) -> Iterator[Stage]:
    """Yield text and id, embedding, position, and their sum; rotary positions come later, with queries and keys."""
    config, pieces = trace.config, trace.rows(kind)
    note = f"{pieces.texts[index]}  →  {pieces.ids[index]:,}"
    yield Stage("Text and id", f"one of {config.vocab:,} pieces", np.zeros(0), note=note)
    scaled = f"E[id] · √{config.d_model}" if config.scale_embeddings else "E[id]"
    yield Stage("Embedding", scaled, trace[f"{stack}.embedding.token"][index])
    name = f"{stack}.embedding.position"
    if name in trace.arrays:
        yield Stage("Position", f"PE({index + config.position_offset})", trace[name][index])
        yield Stage("Sum", "embedding + position", trace[f"{stack}.embedding.sum"][index])


def sublayer_input(trace: Trace, stack: str, chosen: Head) -> str:
    """Return the name of the array that the attention sublayer of this head takes as input."""
    config = trace.config
    roles = ["self_attention", *(["cross_attention"] if has_cross_attention(config, stack) else []), "feed_forward"]
    sublayers = [f"{stack}.layers.{layer}.{role}" for layer in range(chosen.layer + 1) for role in roles]
    index = sublayers.index(chosen.module_path)
    if index == 0:
        return f"{stack}.embedding.norm" if config.embedding_norm else f"{stack}.embedding.sum"
    previous = sublayers[index - 1]
    return f"{previous}_norm" if config.norm_position == "post" else f"{previous}.residual"


def attention_stages(trace: Trace, chosen: Head, index: int) -> Iterator[Stage]:
    """Yield query, key and value, then scores, mask, weights, and the output of the head and of all heads.

    Scores, mask and weights are in one order, that of the weights, so that their bars can be compared.
    """
    config, name, head = trace.config, chosen.module_path, chosen.head
    if config.norm_position == "pre":
        yield Stage("Norm", "Norm(x)", trace[f"{name}_norm"][index])
    columns = trace.columns(chosen.kind).texts
    weights = trace[f"{name}.weights"][head, index]
    strongest = int(weights.argmax())
    kv_head = head // (config.heads // config.groups)
    suffix = "_rotated" if f"{name}.query_rotated" in trace.arrays else ""
    b = " + b" if config.bias else ""
    rotations = (f", rotated by {index} · θ", f", rotated by {strongest} · θ") if suffix else ("", "")
    yield Stage("Query", f"q = x W_Q{b}{rotations[0]}", trace[f"{name}.query{suffix}"][head, index])
    m = "m" if chosen.kind == "cross" else "x"  # cross-attention takes keys and values from the memory
    shared = f", head {kv_head} of {config.groups}" if config.groups < config.heads else ""
    key, value = trace[f"{name}.key{suffix}"], trace[f"{name}.value"]
    equation = f"k = {m} W_K{b}{shared}{rotations[1]}"
    yield Stage(f"Key of “{columns[strongest]}”", equation, key[kv_head, strongest])
    yield Stage(f"Value of “{columns[strongest]}”", f"v = {m} W_V{b}{shared}", value[kv_head, strongest])
    equations = {"additive": "wᵀ tanh(q + k)", "cosine": f"cos(q, k) · √{config.d_head}"}
    equation = equations.get(config.compatibility, f"q · k / √{config.d_head}")
    order = np.argsort(-weights, kind="stable")
    names = [columns[column] for column in order]
    yield Stage("Scores, largest weight first", equation, trace[f"{name}.scores"][head, index][order], names)
    masked = trace[f"{name}.masked_scores"][head, index][order]
    count = int(np.isinf(masked).sum())
    note = f"{count} of {len(masked)} pieces masked" if count else "nothing is masked here"
    yield Stage("Mask, in the same order", "−∞ where it may not look", masked, names, note)
    yield Stage("Weights, largest first", "softmax(scores)", weights[order], names)
    yield Stage("Output of the head", "Σ weight · v", trace[f"{name}.heads"][head, index])
    yield Stage("All heads together", f"concat(heads) W_O{b}", trace[f"{name}.output"][index])


def residual_stage(trace: Trace, name: str, index: int) -> Stage:
    """Return the stage that adds a sublayer's output to its input."""
    if trace.config.norm_position == "post":
        return Stage("Residual and norm", "Norm(x + sublayer(x))", trace[f"{name}_norm"][index])
    return Stage("Residual", "x + sublayer(Norm(x))", trace[f"{name}.residual"][index])
