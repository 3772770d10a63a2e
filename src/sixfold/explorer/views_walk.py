"""One token followed through one head: every number from its text to a probability, each with its equation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from sixfold.explorer.colours import shade
from sixfold.explorer.drawing import Box, Grid, Label, Line, Part, clipped
from sixfold.explorer.heads import Head, Kind
from sixfold.explorer.layout import MARGIN, SMALL, TEXT, Cell, Table, View, Wish, compose, place_of, top_of
from sixfold.explorer.pieces import piece_text
from sixfold.explorer.trace import Trace
from sixfold.weights import has_cross_attention

Array = np.ndarray
SHOWN, CELLS = 6, 64  # numbers that are written, and that are drawn


GATES = {"relu": "max(0, x W₁ + b₁)", "swiglu": "silu(x W_g) · (x W₁)"}


class Stage(NamedTuple):
    """What is computed, how, and what came out, in the order of drawing; `names` where numbers belong to pieces."""

    name: str
    equation: str
    numbers: Array
    names: Sequence[str] = ()
    note: str = ""


def walk(trace: Trace, wish: Wish) -> View:
    """A poster of one path through the model."""
    kind, layer, head = wish.settled(trace)
    chosen = Head(kind, layer, head or 0)
    place = place_of(wish.token, trace, kind)
    stages = list(stages_of(trace, chosen, place, wish.top))
    left, wide, high = MARGIN + 320, 560.0, 62.0
    top = top_of(trace) + 4
    parts: list[Part] = []
    for number, stage in enumerate(stages):
        y, said = top + number * high, clipped(stage.note or told(stage), SMALL, wide)
        parts += [
            Line([(MARGIN, y), (left + wide, y)]),
            Label(MARGIN, y + 20, f"{number + 1}", SMALL, fill="soft"),
            Label(MARGIN + 26, y + 20, stage.name, TEXT, weight=600),
            Label(MARGIN + 26, y + 41, clipped(stage.equation, SMALL, 285), SMALL, fill="accent", mono=True),
            Label(left, y + (41 if len(stage.numbers) else 31), said, SMALL, fill="soft", mono=True),
        ]
        drawn = np.where(np.isfinite(stage.numbers), stage.numbers, 0)[:CELLS]
        if len(drawn):
            largest = float(np.abs(drawn).max()) or 1.0
            parts += [
                Box(left - 1, y + 12, wide + 2, 16, "line"),
                Grid(left, y + 13, wide, 14, shade(drawn[None], "diverging", largest)),
            ]
    label = trace.labels(kind)[0][place]
    title = f"One token, step by step: “{label}” through {chosen}"
    scene = compose(trace, title, parts, (left + wide, top + high * len(stages)))
    rows: list[list[Cell]] = [
        [stage.name, stage.equation, len(stage.numbers), stage.note or told(stage)] for stage in stages
    ]
    return View(scene, [Table(title, ["stage", "equation", "size", "numbers"], rows)])


def told(stage: Stage) -> str:
    """The first numbers, in the order in which they are drawn, with the pieces that they belong to."""
    if stage.names:
        shown = zip(stage.names, stage.numbers[:SHOWN], strict=False)
        return "   ".join(f"{name} {figure(number)}" for name, number in shown)
    more = f"   … {len(stage.numbers)} numbers" if len(stage.numbers) > SHOWN else ""
    return "  ".join(f"{figure(number):>7}" for number in stage.numbers[:SHOWN]) + more


def figure(number: np.floating) -> str:
    if not np.isfinite(number):
        return "−∞"
    return (f"{number:.3f}" if abs(number) < 100 else f"{number:.0f}").replace("-", "−")


def stages_of(trace: Trace, chosen: Head, place: int, top: int) -> Iterator[Stage]:
    """In the order of computation."""
    config = trace.config
    stack = "encoder" if chosen.kind == "encoder" else "decoder"
    yield from entering(trace, chosen.kind, stack, place)
    read = before(trace, stack, chosen)
    if not read.startswith(f"{stack}.embedding"):
        yield Stage("What this layer reads", "x", trace[read][place])
    yield from looking(trace, chosen, place)
    layer = f"{stack}.layers.{chosen.layer}"
    yield from leaving(trace, chosen.place, place)
    gate = GATES.get(config.feed_forward, f"{config.feed_forward}(x W₁ + b₁)")
    hidden = trace[f"{layer}.feed_forward.hidden"][place]
    largest = np.argsort(-hidden, kind="stable")
    yield Stage("Feed-forward, inside, largest first", gate, hidden[largest], [f"#{number}" for number in largest])
    yield Stage("Feed-forward, out", "h W₂ + b₂", trace[f"{layer}.feed_forward.down"][place])
    yield from leaving(trace, f"{layer}.feed_forward", place)
    last = "Norm(x)" if config.ends_in_norm else "x"
    yield Stage(f"After all layers of the {stack}", last, trace[f"{stack}.output"][place])
    if stack == config.stacks[-1]:
        best = np.argsort(-trace["logits"][place], kind="stable")[:top]
        names = [piece_text(trace.tokenizer, int(each)) for each in best]
        yield Stage("Logits", "x Eᵀ" if config.tie_output else "x W", trace["logits"][place][best], names)
        yield Stage("Probability", "softmax(logits)", trace["probabilities"][place][best], names)


def entering(trace: Trace, kind: Kind, stack: str, place: int) -> Iterator[Stage]:
    """Text, id, embedding, position."""
    config, pieces = trace.config, trace.rows(kind)
    note = f"{pieces.texts[place]}  →  {pieces.ids[place]:,}"
    yield Stage("Text and id", f"one of {config.vocab:,} pieces", np.zeros(0), note=note)
    scaled = f"E[id] · √{config.d_model}" if config.scale_embeddings else "E[id]"
    yield Stage("Embedding", scaled, trace[f"{stack}.embedding.token"][place])
    name = f"{stack}.embedding.position"
    if name in trace.arrays:
        yield Stage("Position", f"PE({place + config.position_offset})", trace[name][place])
    yield Stage("Sum", "embedding + position", trace[f"{stack}.embedding.sum"][place])


def before(trace: Trace, stack: str, chosen: Head) -> str:
    """The array that a sublayer reads."""
    config = trace.config
    roles = ["self_attention", *(["cross_attention"] if has_cross_attention(config, stack) else []), "feed_forward"]
    order = [f"{stack}.layers.{layer}.{role}" for layer in range(chosen.layer + 1) for role in roles]
    index = order.index(chosen.place)
    if index == 0:
        return f"{stack}.embedding.norm" if config.embedding_norm else f"{stack}.embedding.sum"
    return f"{order[index - 1]}_norm" if config.norm_position == "post" else f"{order[index - 1]}.residual"


def looking(trace: Trace, chosen: Head, place: int) -> Iterator[Stage]:
    """Queries, keys and values; scores, mask, softmax, and what they bring.

    Scores, mask and weights are in one order, that of the weights, so that their bars can be compared.
    """
    config, at, head = trace.config, chosen.place, chosen.head
    if config.norm_position == "pre":
        yield Stage("Norm", "Norm(x)", trace[f"{at}_norm"][place])
    looked = trace.columns(chosen.kind).texts
    weights = trace[f"{at}.weights"][head, place]
    most = int(weights.argmax())
    shared = head // (config.heads // config.groups)
    suffix = "_rotated" if f"{at}.query_rotated" in trace.arrays else ""
    yield Stage("Query", "q = x W_Q", trace[f"{at}.query{suffix}"][head, place])
    m = "m" if chosen.kind == "cross" else "x"  # cross-attention looks at the memory
    yield Stage(f"Key of “{looked[most]}”", f"k = {m} W_K", trace[f"{at}.key{suffix}"][shared, most])
    yield Stage(f"Value of “{looked[most]}”", f"v = {m} W_V", trace[f"{at}.value"][shared, most])
    forms = {"additive": "wᵀ tanh(q + k)", "cosine": f"cos(q, k) · √{config.d_head}"}
    form = forms.get(config.compatibility, f"q · k / √{config.d_head}")
    order = np.argsort(-weights, kind="stable")
    names = [looked[column] for column in order]
    yield Stage("Scores, largest weight first", form, trace[f"{at}.scores"][head, place][order], names)
    masked = trace[f"{at}.masked_scores"][head, place][order]
    hidden = int(np.isinf(masked).sum())
    note = f"{hidden} of {len(masked)} pieces hidden" if hidden else "nothing is hidden here"
    yield Stage("Mask, in the same order", "−∞ where it may not look", masked, names, note)
    yield Stage("Weights, largest first", "softmax(scores)", weights[order], names)
    yield Stage("What the head found", "Σ weight · v", trace[f"{at}.heads"][head, place])
    yield Stage("All heads together", "concat(heads) W_O", trace[f"{at}.output"][place])


def leaving(trace: Trace, at: str, place: int) -> Iterator[Stage]:
    if trace.config.norm_position == "post":
        yield Stage("Residual and norm", "Norm(x + sublayer(x))", trace[f"{at}_norm"][place])
    else:
        yield Stage("Residual", "x + sublayer(Norm(x))", trace[f"{at}.residual"][place])
