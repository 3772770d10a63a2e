"""The Transformer and its family: a stack that encodes, a stack that decodes, or both, under one output."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from sixfold.config import ModelConfig
from sixfold.errors import RequestError
from sixfold.model.attention import KeyValueCache, Mask, Memory, MemoryMask, causal_mask
from sixfold.model.initialise import initialise
from sixfold.model.layers import ACTIVATIONS, Activations, Layer, make_norm
from sixfold.model.positions import LearnedPositions, Rotary, Sinusoid
from sixfold.weights import check_weights, depth, has_cross_attention, has_token_types

Tokens = Int[Tensor, "rows length"]
Padding = Bool[Tensor, "rows length"]  # True = a real token
Logits = Float[Tensor, "rows length vocab"]
Source = Int[Tensor, "rows source"]
SourcePadding = Bool[Tensor, "rows source"]
Target = Int[Tensor, "rows target"]


class Embedding(nn.Module):
    """Token vectors times sqrt(d_model), plus positions (paper §3.4, §3.5), plus what the options add."""

    def __init__(self, config: ModelConfig, stack: str) -> None:
        super().__init__()
        self.scale = math.sqrt(config.d_model) if config.scale_embeddings else 1.0
        self.token = nn.Embedding(config.vocab, config.d_model)
        self.position = POSITIONS[config.positions](config)
        self.segment = nn.Embedding(config.token_types, config.d_model) if has_token_types(config, stack) else None
        self.norm = make_norm(config) if config.embedding_norm else None
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, tokens: Tokens, positions: Int[Tensor, "#rows length"], types: Tokens | None) -> Activations:
        x = self.token(tokens) * self.scale
        if self.position is not None:
            x = x + self.position(positions).to(x.dtype)
        if self.segment is not None:
            x = x + self.segment(torch.zeros_like(tokens) if types is None else types)
        if self.norm is not None:
            x = self.norm(x)
        return self.dropout(x.to(stream_type(x)))

    def extra_repr(self) -> str:
        return f"scale={self.scale:.4g}"


def stream_type(x: Tensor) -> torch.dtype:
    """What flows between the layers: autocast's type, where that is on."""
    kind = x.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype


POSITIONS = {
    "sinusoidal": lambda config: Sinusoid(config.d_model, config.position_layout, config.position_offset),
    "learned": lambda config: LearnedPositions(config.d_model, config.max_length, config.position_offset),
    "rotary": lambda config: None,  # turned into queries and keys instead, layer by layer
    "none": lambda config: None,
}


class Stack(nn.Module):
    """An encoder or a decoder: the embedding, N layers, and the norm that ends a pre-norm stack."""

    def __init__(self, config: ModelConfig, stack: str) -> None:
        super().__init__()
        self.causal = stack == "decoder"
        self.longest = config.max_length if config.positions == "learned" else None
        self.embedding = Embedding(config, stack)
        rotary = config.positions == "rotary"
        self.rotary = Rotary(config.d_head, config.position_layout, config.rotary_base) if rotary else None
        number = depth(config, stack)
        cross = has_cross_attention(config, stack)
        shared = Layer(config, cross) if config.share_layers else None
        self.layers = nn.ModuleList(shared or Layer(config, cross) for _ in range(number))
        self.norm = make_norm(config) if config.ends_in_norm else None

    def forward(
        self,
        tokens: Tokens,
        mask: Mask | None = None,
        memory: Sequence[Memory] | None = None,
        types: Tokens | None = None,
        caches: Sequence[KeyValueCache] | None = None,
        positions: Int[Tensor, "#rows length"] | None = None,
    ) -> Activations:
        """With caches, tokens continue what the caches hold, and `mask` alone says which of it they may look at."""
        if positions is None:
            self.check_length(tokens.size(1))
            positions = torch.arange(tokens.size(1), device=tokens.device)[None]
        causal = self.causal and caches is None
        if causal and mask is not None:  # once for all layers
            mask, causal = mask & causal_mask(tokens.size(1), tokens.size(1), tokens.device), False
        x = self.embedding(tokens, positions, types)
        rotation = None if self.rotary is None else self.rotary(positions)
        for index, layer in enumerate(self.each_layer()):
            x = layer(
                x,
                mask,
                causal,
                rotation,
                None if caches is None else caches[index],
                None if memory is None else memory[index],
            )
        return x if self.norm is None else self.norm(x)

    def looks(self, tokens: Tokens, memory: Sequence[Memory], index: int) -> Float[Tensor, "rows heads length keys"]:
        """The weights of the cross-attention of a layer, by its index."""
        positions = torch.arange(tokens.size(1), device=tokens.device)[None]
        rotation = None if self.rotary is None else self.rotary(positions)
        x = self.embedding(tokens, positions, None)
        *lower, wanted = list(self.each_layer())[: index + 1]
        for layer, projected in zip(lower, memory, strict=False):
            x = layer(x, None, True, rotation, None, projected)
        return wanted.looks(x, memory[index], rotation)

    def remember(self, memory: Float[Tensor, "rows keys d_model"], mask: MemoryMask | None) -> list[Memory]:
        """What each layer's cross-attention will look at; computed once a sentence."""
        return [layer.cross_attention.remember(memory, mask) for layer in self.each_layer() if layer.cross_attention]

    def each_layer(self) -> Iterator[Layer]:
        return cast("Iterator[Layer]", iter(self.layers))

    def check_length(self, length: int) -> None:
        if self.longest is not None and length > self.longest:
            raise RequestError(
                f"tokens: expected at most {self.longest}, the rows of the learned position table; got {length}",
                "split the text, or train with a larger model.max_length",
            )


class Output(nn.Module):
    """Linear projection to the vocabulary (paper §3.4); a softmax of it gives probabilities."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.activation = config.feed_forward
        self.transform = nn.Linear(config.d_model, config.d_model) if config.output_transform else None
        self.norm = make_norm(config) if config.output_transform else None
        self.projection = nn.Linear(config.d_model, config.vocab, config.output_bias)

    def forward(self, x: Float[Tensor, "*rows d_model"]) -> Float[Tensor, "*rows vocab"]:
        return self.projection(self.prepare(x))

    def prepare(self, x: Float[Tensor, "*rows d_model"]) -> Float[Tensor, "*rows d_model"]:
        """All but the projection, which training does in pieces."""
        if self.transform is None or self.norm is None:
            return x
        return self.norm(ACTIVATIONS[self.activation](self.transform(x)))


class EncoderDecoder(nn.Module):
    """The paper's model: reads a source, writes a target."""

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
        """Teacher forcing: all positions of the target at once. `padding` and `types` are the source's."""
        return self.output(self.hidden(source, target, padding, types))

    def hidden(
        self,
        source: Source,
        target: Target,
        source_padding: SourcePadding | None = None,
        types: Source | None = None,
        source_segments: Source | None = None,
        target_segments: Target | None = None,
    ) -> Float[Tensor, "rows target d_model"]:
        """The decoder's last activations. A target padded on its right needs no mask: causality hides the padding.

        Where rows hold several texts, `source_segments` and `target_segments` number them from 1, and 0 is padding.
        Each text is then read as if it were alone.
        """
        if source_segments is None or target_segments is None:
            mask = padding_mask(source_padding)
            return self.decoder(target, memory=self.decoder.remember(self.encoder(source, mask, types=types), mask))
        mask = same_text(source_segments, source_segments)
        encoded = self.encoder(source, mask, types=types, positions=position_in_text(source_segments))
        memory = self.decoder.remember(encoded, same_text(target_segments, source_segments))
        mask = same_text(target_segments, target_segments)
        return self.decoder(target, mask, memory, positions=position_in_text(target_segments))

    def looks(self, source: Source, target: Target, layer: int) -> Float[Tensor, "rows heads target source"]:
        """How much each position of the target attends to each of the source, in one layer of the decoder."""
        return self.decoder.looks(target, self.decoder.remember(self.encoder(source), None), layer)


class EncoderOnly(nn.Module):
    """BERT's shape: every token sees every token; the output predicts masked ones."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.encoder = Stack(config, "encoder")
        self.output = Output(config)
        if config.tie_output:
            self.output.projection.weight = self.encoder.embedding.token.weight

    def forward(self, tokens: Tokens, padding: Padding | None = None, types: Tokens | None = None) -> Logits:
        return self.output(self.hidden(tokens, padding, types))

    def hidden(self, tokens: Tokens, padding: Padding | None = None, types: Tokens | None = None) -> Activations:
        return self.encoder(tokens, padding_mask(padding), types=types)


class DecoderOnly(nn.Module):
    """GPT's and LLaMA's shape: every token sees those before it; the output predicts the next."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.decoder = Stack(config, "decoder")
        self.output = Output(config)
        if config.tie_output:
            self.output.projection.weight = self.decoder.embedding.token.weight

    def forward(self, tokens: Tokens) -> Logits:
        return self.output(self.hidden(tokens))

    def hidden(self, tokens: Tokens) -> Activations:
        return self.decoder(tokens)


Transformer = EncoderDecoder | EncoderOnly | DecoderOnly
KINDS: dict[str, type[EncoderDecoder] | type[EncoderOnly] | type[DecoderOnly]] = {
    "encoder-decoder": EncoderDecoder,
    "encoder": EncoderOnly,
    "decoder": DecoderOnly,
}


def build(config: ModelConfig, seed: int = 1) -> Transformer:
    """A freshly initialised model."""
    model = KINDS[config.kind](config)
    initialise(model, seed)
    return model


def padding_mask(padding: Padding | None) -> Mask | None:
    """From True = a real token to the shape that attention broadcasts."""
    return None if padding is None else padding[:, None, None, :]


def same_text(queries: Int[Tensor, "rows length"], keys: Int[Tensor, "rows keys"]) -> Mask:
    """Each token may look at its own text. Padding looks at the first: whoever may look at nothing becomes NaN."""
    looking = torch.where(queries == 0, queries[:, :1], queries)
    return (looking[:, :, None] == keys[:, None, :])[:, None]


def position_in_text(texts: Int[Tensor, "rows length"]) -> Int[Tensor, "rows length"]:
    """Counted from the first token of each text; padding is at 0, which every table of positions has."""
    places = torch.arange(texts.size(1), device=texts.device).expand_as(texts)
    begins = torch.ones_like(texts, dtype=torch.bool)
    begins[:, 1:] = texts[:, 1:] != texts[:, :-1]
    return torch.where(texts == 0, 0, places - torch.where(begins, places, 0).cummax(1).values)


def weights_of(model: nn.Module) -> dict[str, np.ndarray]:
    """The weights by name, shared ones once, as a model file stores them."""
    return {name: weight.detach().float().cpu().numpy() for name, weight in model.named_parameters()}


def load_weights(model: nn.Module, weights: Mapping[str, np.ndarray], where: str = "weights") -> None:
    """Set all weights in place; they must be exactly those the model has."""
    parameters = dict(model.named_parameters())
    expected = {name: tuple(parameter.shape) for name, parameter in parameters.items()}
    check_weights(where, expected, {name: array.shape for name, array in weights.items()})
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(torch.from_numpy(np.array(weights[name])))
