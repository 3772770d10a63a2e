"""The Transformer and its relatives: an encoder, a decoder or both, and the output projection."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from sixfold.config import ModelConfig
from sixfold.errors import RequestError
from sixfold.model.attention import (
    AttentionFunction,
    KeyValueCache,
    Mask,
    MemoryMask,
    ProjectedMemory,
    causal_mask,
    padding_mask,
    same_segment_mask,
)
from sixfold.model.initialise import initialise
from sixfold.model.layers import ACTIVATIONS, Activations, Layer, make_norm
from sixfold.model.positions import (
    AngleScaling,
    LearnedPositions,
    Rotary,
    Sinusoid,
    VectorTable,
    positions_in_segments,
)
from sixfold.weights import canonical, check_weights, depth, has_cross_attention, has_token_types

Tokens = Int[Tensor, "rows length"]
Padding = Bool[Tensor, "rows length"]  # True: a real token; False: padding
Logits = Float[Tensor, "rows length vocab"]
Source = Int[Tensor, "rows source"]
SourcePadding = Bool[Tensor, "rows source"]
Target = Int[Tensor, "rows target"]
PositionVectors = Float[Tensor, "positions d_model"]


def call_module(module: nn.Module, *arguments: Any) -> Any:
    """Call a module. Training compiles this function, and all layers of a stack share what was compiled."""
    return module(*arguments)


class Execution(NamedTuple):
    """How to compute a stack: choices of the caller that change speed and memory, and the result only by rounding.

    They are passed with each call, and no module stores them. So training, an engine and a plain call can use one
    model in turns.
    """

    attend: AttentionFunction | None = None  # computes what the compatibility of every attention computes
    position_vectors: PositionVectors | None = None  # rows of sinusoids to look up instead of computing them
    recompute: bool = False  # the backward pass computes the activations inside layers again; they are not stored
    call: Callable[..., Any] = call_module  # calls the embedding and each layer


PLAIN = Execution()


class Embedding(nn.Module):
    """Token vectors times sqrt(d_model), plus positions (paper §3.4, §3.5), token types and a norm where configured."""

    def __init__(self, config: ModelConfig, stack: str) -> None:
        super().__init__()
        self.scale = math.sqrt(config.d_model) if config.scale_embeddings else 1.0
        self.token = VectorTable(config.vocab_read if stack == "encoder" else config.vocab, config.d_model)
        self.position = POSITIONS[config.positions](config)
        self.segment = VectorTable(config.token_types, config.d_model) if has_token_types(config, stack) else None
        self.norm = make_norm(config) if config.embedding_norm else None
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        tokens: Tokens,
        positions: Int[Tensor, "#rows length"],
        types: Tokens | None,
        position_vectors: PositionVectors | None = None,
    ) -> Activations:
        """Embed tokens. `position_vectors`, where given, holds the vector of each position: row i is position i."""
        x = self.token(tokens) * self.scale
        if self.position is not None:
            vectors = self.position(positions) if position_vectors is None else position_vectors[positions]
            x = x + vectors.to(x.dtype)
        if self.segment is not None:
            x = x + self.segment(torch.zeros_like(tokens) if types is None else types)
        if self.norm is not None:
            x = self.norm(x)
        return self.dropout(x.to(stream_type(x)))

    def extra_repr(self) -> str:
        return f"scale={self.scale:.4g}"


def stream_type(x: Tensor) -> torch.dtype:
    """Return the type of the activations between layers: that of autocast where it is enabled, else that of `x`."""
    device = x.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype


POSITIONS = {
    "sinusoidal": lambda config: Sinusoid(
        config.d_model, config.position_layout, config.position_offset, config.position_spacing
    ),
    "learned": lambda config: LearnedPositions(config.d_model, config.max_length, config.position_offset),
    "rotary": lambda config: None,  # every layer rotates its queries and keys instead
    "none": lambda config: None,
}


class Stack(nn.Module):
    """An encoder or a decoder: the embedding, N layers, and a final norm with pre-norm."""

    def __init__(self, config: ModelConfig, stack: str) -> None:
        super().__init__()
        self.causal = stack == "decoder"
        self.longest = config.max_length if config.positions == "learned" else None
        self.embedding = Embedding(config, stack)
        self.window = config.sliding_window if self.causal else 0
        self.rotary = _rotary(config) if config.positions == "rotary" else None
        number = depth(config, stack)
        cross = has_cross_attention(config, stack)
        shared = Layer(config, cross) if config.share_layers else None
        self.layers = nn.ModuleList(shared or Layer(config, cross) for _ in range(number))
        self.norm = make_norm(config) if config.ends_in_norm else None

    def forward(
        self,
        tokens: Tokens,
        mask: Mask | None = None,
        memory: Sequence[ProjectedMemory] | None = None,
        types: Tokens | None = None,
        caches: Sequence[KeyValueCache] | None = None,
        positions: Int[Tensor, "#rows length"] | None = None,
        execution: Execution = PLAIN,
    ) -> Activations:
        """Compute the activations of the last layer.

        With caches, one for each layer, the tokens continue the positions that the caches hold. Then there is no
        causal mask: `mask` alone says which of the cached positions each token may attend to.
        """
        if positions is None:
            self.check_length(tokens.size(1))
            positions = torch.arange(tokens.size(1), device=tokens.device)[None]
        causal = self.causal and caches is None
        if causal:
            mask, causal = self._causal_mask(tokens, mask)
        x = execution.call(self.embedding, tokens, positions, types, execution.position_vectors)
        rotation = None if self.rotary is None else self.rotary(positions)
        for index, layer in enumerate(self.iter_layers()):
            x = execution.call(
                layer,
                x,
                mask,
                causal,
                rotation,
                None if caches is None else caches[index],
                None if memory is None else memory[index],
                execution.attend,
                execution.recompute,
            )
        return x if self.norm is None else self.norm(x)

    def _causal_mask(self, tokens: Tokens, mask: Mask | None) -> tuple[Mask | None, bool]:
        """Return the mask of causal attention, combined once for all layers, or None and True for the plain one."""
        length = tokens.size(1)
        if mask is None and not 0 < self.window < length:
            return None, True
        causal = causal_mask(length, length, tokens.device, self.window)
        return (causal[None, None] if mask is None else mask & causal), False

    def cross_attention_weights(
        self, tokens: Tokens, memory: Sequence[ProjectedMemory], index: int
    ) -> Float[Tensor, "rows heads length keys"]:
        """Return the cross-attention weights of the layer with this index."""
        positions = torch.arange(tokens.size(1), device=tokens.device)[None]
        rotation = None if self.rotary is None else self.rotary(positions)
        mask, causal = self._causal_mask(tokens, None)
        x = self.embedding(tokens, positions, None)
        *lower_layers, last_layer = list(self.iter_layers())[: index + 1]
        for layer, projected in zip(lower_layers, memory, strict=False):
            x = layer(x, mask, causal, rotation, None, projected)
        x = last_layer.self_attend(x, mask, causal, rotation)
        return last_layer.cross_attention_weights(x, memory[index])

    def project_memory(
        self, memory: Float[Tensor, "rows keys d_model"], mask: MemoryMask | None
    ) -> list[ProjectedMemory]:
        """Return the keys and values of the encoder's output for each layer; they are computed once for a sentence."""
        attentions = [layer.cross_attention for layer in self.iter_layers()]
        return [attention.project_memory(memory, mask) for attention in attentions if attention is not None]

    def iter_layers(self) -> Iterator[Layer]:
        """Iterate over the layers, typed as such."""
        return cast("Iterator[Layer]", iter(self.layers))

    def check_length(self, length: int) -> None:
        """Raise RequestError if a learned position table has fewer rows than `length`."""
        if self.longest is not None and length > self.longest:
            raise RequestError(
                f"tokens: expected at most {self.longest}, the rows of the learned position table; got {length}",
                "split the text, or train with a larger model.max_length",
            )


def _rotary(config: ModelConfig) -> Rotary:
    scaling = AngleScaling(
        config.rotary_scaling, config.rotary_factor, config.rotary_low, config.rotary_high,
        config.rotary_original_length,
    )  # fmt: skip
    return Rotary(config.d_head, config.position_layout, config.rotary_base, scaling)


class Output(nn.Module):
    """The linear projection to the logits of the vocabulary (paper §3.4)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.activation = config.feed_forward
        self.transform = nn.Linear(config.d_model, config.d_model) if config.output_transform else None
        self.norm = make_norm(config) if config.output_transform else None
        self.projection = nn.Linear(config.d_model, config.vocab, config.output_bias)

    def forward(self, x: Float[Tensor, "*rows d_model"]) -> Float[Tensor, "*rows vocab"]:
        return self.projection(self.prepare(x))

    def prepare(self, x: Float[Tensor, "*rows d_model"]) -> Float[Tensor, "*rows d_model"]:
        """Compute the input of the projection. Training applies the projection itself, to one piece after another."""
        if self.transform is None or self.norm is None:
            return x
        return self.norm(ACTIVATIONS[self.activation](self.transform(x)))


class EncoderDecoder(nn.Module):
    """The paper's model: the encoder reads a source, the decoder writes a target."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.encoder = Stack(config, "encoder")
        self.decoder = Stack(config, "decoder")
        self.output = Output(config)
        if config.share_embeddings:
            self.decoder.embedding.token = self.encoder.embedding.token
        if config.tie_output:
            self.output.projection.weight = self.decoder.embedding.token.weight

    def forward(
        self, source: Source, target: Target, padding: SourcePadding | None = None, types: Source | None = None
    ) -> Float[Tensor, "rows target vocab"]:
        """Return the logits at all target positions (teacher forcing). `padding` and `types` are the source's."""
        return self.output(self.hidden(source, target, padding, types))

    def hidden(
        self,
        source: Source,
        target: Target,
        source_padding: SourcePadding | None = None,
        types: Source | None = None,
        source_segments: Source | None = None,
        target_segments: Target | None = None,
        *,
        execution: Execution = PLAIN,
    ) -> Float[Tensor, "rows target d_model"]:
        """Return the activations of the decoder's last layer.

        A target that is padded on its right needs no mask: the causal mask hides the padding. Packed rows hold
        several texts. For these, `source_segments` and `target_segments` number the texts of each row from 1, with 0
        for padding, and each text is computed as if it were alone.
        """
        if source_segments is None or target_segments is None:
            mask = padding_mask(source_padding)
            memory = self.decoder.project_memory(self.encoder(source, mask, types=types, execution=execution), mask)
            return self.decoder(target, memory=memory, execution=execution)
        mask, positions = same_segment_mask(source_segments, source_segments), positions_in_segments(source_segments)
        encoded = self.encoder(source, mask, types=types, positions=positions, execution=execution)
        memory = self.decoder.project_memory(encoded, same_segment_mask(target_segments, source_segments))
        mask, positions = same_segment_mask(target_segments, target_segments), positions_in_segments(target_segments)
        return self.decoder(target, mask, memory, positions=positions, execution=execution)

    def cross_attention_weights(
        self, source: Source, target: Target, layer: int
    ) -> Float[Tensor, "rows heads target source"]:
        """Return how much each target position attends to each source position in one layer of the decoder."""
        memory = self.decoder.project_memory(self.encoder(source), None)
        return self.decoder.cross_attention_weights(target, memory, layer)


class EncoderOnly(nn.Module):
    """The architecture of BERT: every token attends to all tokens, and the output predicts masked ones."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.encoder = Stack(config, "encoder")
        self.output = Output(config)
        if config.tie_output:
            self.output.projection.weight = self.encoder.embedding.token.weight

    def forward(self, tokens: Tokens, padding: Padding | None = None, types: Tokens | None = None) -> Logits:
        return self.output(self.hidden(tokens, padding, types))

    def hidden(
        self,
        tokens: Tokens,
        padding: Padding | None = None,
        types: Tokens | None = None,
        *,
        execution: Execution = PLAIN,
    ) -> Activations:
        """Return the activations of the last layer."""
        return self.encoder(tokens, padding_mask(padding), types=types, execution=execution)


class DecoderOnly(nn.Module):
    """The architecture of GPT and LLaMA: each token attends to earlier ones, and the output predicts the next."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.decoder = Stack(config, "decoder")
        self.output = Output(config)
        if config.tie_output:
            self.output.projection.weight = self.decoder.embedding.token.weight

    def forward(self, tokens: Tokens) -> Logits:
        return self.output(self.hidden(tokens))

    def hidden(self, tokens: Tokens, segments: Tokens | None = None, *, execution: Execution = PLAIN) -> Activations:
        """Return the activations of the last layer.

        Texts that are padded on their right need no mask: the causal mask hides the padding. Rows that hold several
        texts have `segments`, which number them from 1, with 0 for padding. Each text is then computed as if it were
        alone: it attends to nothing before it in its row, and its positions begin at 0.
        """
        if segments is None:
            return self.decoder(tokens, execution=execution)
        mask, positions = same_segment_mask(segments, segments), positions_in_segments(segments)
        return self.decoder(tokens, mask, positions=positions, execution=execution)


Transformer = EncoderDecoder | EncoderOnly | DecoderOnly
KINDS: dict[str, type[EncoderDecoder] | type[EncoderOnly] | type[DecoderOnly]] = {
    "encoder-decoder": EncoderDecoder,
    "encoder": EncoderOnly,
    "decoder": DecoderOnly,
}


def build(config: ModelConfig, seed: int = 1) -> Transformer:
    """Return a model with new random weights. To open a model that has weights, use `load_model`."""
    model = KINDS[config.kind](config)
    initialise(model, seed)
    return model


def load_model(
    config: ModelConfig,
    weights: Mapping[str, np.ndarray],
    where: str = "weights",
    device: torch.device | str = "cpu",
    dtype: torch.dtype | None = None,
) -> Transformer:
    """Return a model with these weights, on a device and in a type; they must be exactly those of the config.

    Nothing is initialised at random: the modules are built on the meta device, which has no memory, and each weight
    is copied to its device and assigned. `where` names the weights in errors. `dtype` is torch's default if None.
    """
    with torch.device("meta"):
        model = KINDS[config.kind](config)
    expected = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    check_weights(where, expected, {name: array.shape for name, array in weights.items()})
    dtype = dtype or torch.get_default_dtype()
    loaded = {name: nn.Parameter(_tensor(weights[name]).to(device, dtype)) for name in expected}
    # Tied weights have several names in a state dict. One Parameter under all of them keeps them tied.
    model.load_state_dict({name: loaded[canonical(config, name)] for name in model.state_dict()}, assign=True)
    assert not any(tensor.is_meta for tensor in chain(model.parameters(), model.buffers()))
    return model


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Switch dropout off inside the block, and restore the mode of every module after it."""
    modules = [module for module in model.modules() if module.training] if model.training else []
    if modules:
        model.eval()
    try:
        yield
    finally:
        for module in modules:
            module.training = True


def weights_of(model: nn.Module) -> dict[str, np.ndarray]:
    """Return the weights by name as float32, tied ones once, as a model file stores them."""
    return {name: weight.detach().float().cpu().numpy() for name, weight in model.named_parameters()}


def load_weights(model: nn.Module, weights: Mapping[str, np.ndarray], where: str = "weights") -> None:
    """Copy weights into a model; they must be exactly those that it has. `where` names them in errors."""
    parameters = dict(model.named_parameters())
    expected = {name: tuple(parameter.shape) for name, parameter in parameters.items()}
    check_weights(where, expected, {name: array.shape for name, array in weights.items()})
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(_tensor(weights[name]))


def _tensor(array: np.ndarray) -> Tensor:
    """Copy an array, which may be a read-only view of a file."""
    return torch.from_numpy(np.array(array))
