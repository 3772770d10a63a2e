"""What a user would pick instead, made ready for the same work: tokens in, label-smoothed loss out."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sixfold.config import ModelConfig
from sixfold.interop.huggingface import export_weights
from sixfold.interop.torch_nn import to_torch_nn
from sixfold.model.positions import Sinusoid
from sixfold.model.transformer import EncoderDecoder, weights_of
from sixfold.tasks.loss import smoothed_cross_entropy


def loss_of(logits: Tensor, labels: Tensor) -> Tensor:
    return smoothed_cross_entropy(logits.flatten(0, 1), labels.flatten(), 0.1) / labels.numel()


class Ours(nn.Module):
    def __init__(self, _: ModelConfig, model: EncoderDecoder) -> None:
        super().__init__()
        self.model = model

    def forward(self, source: Tensor, target: Tensor, labels: Tensor) -> Tensor:
        return loss_of(self.model(source, target), labels)


class TorchNN(nn.Module):
    """torch.nn.Transformer with the embeddings, positions and output that it leaves to its user."""

    def __init__(self, config: ModelConfig, model: EncoderDecoder) -> None:
        super().__init__()
        self.config = config
        shape = (config.d_model, config.heads, config.encoder_layers, config.decoder_layers, config.d_ff)
        self.transformer = nn.Transformer(*shape, config.dropout, batch_first=True)
        if not config.ends_in_norm:  # torch.nn adds a norm that the paper does not have
            self.transformer.encoder.norm = self.transformer.decoder.norm = None
        weights = {name: torch.from_numpy(array) for name, array in to_torch_nn(weights_of(model)).items()}
        self.transformer.load_state_dict(weights, strict=True)
        self.token = nn.Embedding.from_pretrained(model.encoder.embedding.token.weight.detach().clone(), freeze=False)
        self.position = Sinusoid(config.d_model, config.position_layout, 0)
        self.dropout = nn.Dropout(config.dropout)

    def embed(self, tokens: Tensor) -> Tensor:
        positions = torch.arange(tokens.size(1), device=tokens.device)[None]
        return self.dropout(self.token(tokens) * math.sqrt(self.config.d_model) + self.position(positions))

    def forward(self, source: Tensor, target: Tensor, labels: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(target.size(1), device=target.device)
        x = self.transformer(self.embed(source), self.embed(target), tgt_mask=mask, tgt_is_causal=True)
        return loss_of(F.linear(x, self.token.weight), labels)


class HuggingFace(nn.Module):
    """MarianMTModel of transformers, attention by scaled_dot_product_attention."""

    def __init__(self, config: ModelConfig, model: EncoderDecoder) -> None:
        super().__init__()
        from transformers import MarianConfig, MarianMTModel

        settings = MarianConfig(
            vocab_size=config.vocab, d_model=config.d_model, activation_function="relu", dropout=config.dropout,
            encoder_layers=config.encoder_layers, decoder_layers=config.decoder_layers,
            encoder_attention_heads=config.heads, decoder_attention_heads=config.heads,
            encoder_ffn_dim=config.d_ff, decoder_ffn_dim=config.d_ff, max_position_embeddings=config.max_length,
            pad_token_id=config.pad, eos_token_id=config.eos, decoder_start_token_id=config.bos,
            scale_embedding=True, attn_implementation="sdpa",
        )  # fmt: skip
        self.model = MarianMTModel(settings)
        weights = export_weights(config, weights_of(model), "marian")
        missing = self.model.load_state_dict({k: torch.from_numpy(v) for k, v in weights.items()}, strict=False)
        assert not missing.unexpected_keys, missing.unexpected_keys
        assert all("embed_" in k or "lm_head" in k or "final_logits" in k for k in missing.missing_keys), missing

    def forward(self, source: Tensor, target: Tensor, labels: Tensor) -> Tensor:
        logits = self.model(input_ids=source, decoder_input_ids=target, use_cache=False).logits
        return loss_of(logits, labels)


class PlainAttention(nn.Module):
    def __init__(self, d_model: int, heads: int, cross: bool) -> None:
        super().__init__()
        self.heads, self.cross = heads, cross
        self.query = nn.Linear(d_model, d_model) if cross else None
        self.rest = nn.Linear(d_model, (2 if cross else 3) * d_model)
        self.output = nn.Linear(d_model, d_model)

    def forward(self, x: Tensor, memory: Tensor | None, causal: bool) -> Tensor:
        if self.query is not None:
            query, (key, value) = self.query(x), self.rest(memory).chunk(2, -1)
        else:
            query, key, value = self.rest(x).chunk(3, -1)
        heads = [t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in (query, key, value)]
        mixed = F.scaled_dot_product_attention(*heads, is_causal=causal)
        return self.output(mixed.transpose(1, 2).flatten(2))


class PlainLayer(nn.Module):
    def __init__(self, config: ModelConfig, cross: bool) -> None:
        super().__init__()
        d = config.d_model
        self.attentions = nn.ModuleList(
            PlainAttention(d, config.heads, is_cross) for is_cross in (False, True)[: 1 + cross]
        )
        self.feed_forward = nn.Sequential(nn.Linear(d, config.d_ff), nn.ReLU(), nn.Linear(config.d_ff, d))
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(2 + cross))
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, memory: Tensor | None = None) -> Tensor:
        for norm, attention in zip(self.norms, self.attentions, strict=False):
            x = norm(x + self.dropout(attention(x, memory, causal=memory is not None and not attention.cross)))
        return self.norms[-1](x + self.dropout(self.feed_forward(x)))


class Plain(nn.Module):
    """What a good engineer writes in an hour: fused projections, SDPA, post-norm, tied embeddings."""

    def __init__(self, config: ModelConfig, model: EncoderDecoder) -> None:
        super().__init__()
        self.config = config
        self.token = nn.Embedding.from_pretrained(model.encoder.embedding.token.weight.detach().clone(), freeze=False)
        self.position = nn.Parameter(torch.randn(512, config.d_model) * 0.02)
        self.encoder = nn.ModuleList(PlainLayer(config, False) for _ in range(config.encoder_layers))
        self.decoder = nn.ModuleList(PlainLayer(config, True) for _ in range(config.decoder_layers))

    def embed(self, tokens: Tensor) -> Tensor:
        return self.token(tokens) * math.sqrt(self.config.d_model) + self.position[: tokens.size(1)]

    def forward(self, source: Tensor, target: Tensor, labels: Tensor) -> Tensor:
        memory = self.embed(source)
        for layer in self.encoder:
            memory = layer(memory)
        x = self.embed(target)
        for layer in self.decoder:
            x = layer(x, memory)
        return loss_of(F.linear(x, self.token.weight), labels)


PEERS = {"sixfold": Ours, "nn.Transformer": TorchNN, "HF Marian": HuggingFace, "plain SDPA": Plain}
# These compute the same function; the plain model is there for its speed.
SAME_WEIGHTS = ("sixfold", "nn.Transformer", "HF Marian")
