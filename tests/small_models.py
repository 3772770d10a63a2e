"""Small models with random weights, and the grid of options that tests cover."""

import itertools
from dataclasses import replace

import torch

from sixfold.config import Config, ModelConfig
from sixfold.model.transformer import Transformer, build, weights_of
from sixfold.modelfile import ModelFile
from sixfold.tensorfile import Tensor

SMALL = ModelConfig(
    vocab=23, d_model=16, heads=4, d_ff=24, encoder_layers=2, decoder_layers=2, max_length=24, norm_eps=1e-5
)

OPTIONS = {
    "grouped queries": {"kv_heads": 2},
    "one key head": {"kv_heads": 1},
    "wide heads": {"head_width": 6},
    "sliding window": {"sliding_window": 3},
    "unequal depths": {"encoder_layers": 1, "decoder_layers": 3},
    "shared layers": {"share_layers": True},
    "sinusoids in halves": {"position_layout": "halves"},
    "learned positions": {"positions": "learned"},
    "rotary": {"positions": "rotary", "rotary_base": 100.0},
    "rotary linear": {"positions": "rotary", "rotary_scaling": "linear", "rotary_factor": 4.0},
    "rotary llama3": {
        "positions": "rotary",
        "rotary_base": 100.0,
        "rotary_scaling": "llama3",
        "rotary_factor": 8.0,
        "rotary_original_length": 16,
    },
    "no positions": {"positions": "none"},
    "position offset": {"position_offset": 2},
    "closed spacing": {"position_spacing": "closed"},
    "cosine": {"compatibility": "cosine"},
    "additive": {"compatibility": "additive"},
    "gelu": {"feed_forward": "gelu"},
    "tanh gelu": {"feed_forward": "gelu-tanh"},
    "silu": {"feed_forward": "silu"},
    "gated silu": {"feed_forward": "swiglu"},
    "no biases": {"bias": False},
    "query, key and value biases": {"bias": False, "query_key_value_bias": True},
    "RMSNorm": {"norm": "rms"},
    "large epsilon": {"norm_eps": 0.1},
    "pre-norm": {"norm_position": "pre"},
    "final norm": {"final_norm": True},
    "unscaled embeddings": {"scale_embeddings": False},
    "separate embeddings": {"share_embeddings": False},
    "embedding norm": {"embedding_norm": True},
    "token types": {"token_types": 2},
    "separate vocabularies": {"share_embeddings": False, "source_vocab": 29},
    "untied output": {"tie_output": False},
    "output bias": {"output_bias": True},
    "output transform": {"output_transform": True},
}


# Only the angles differ from those of "rotary", which pairs combine with everything else.
WITHOUT_PAIRS = ("rotary linear", "rotary llama3")


def variants(pairs: bool = True) -> dict[str, ModelConfig]:
    """Return the small model, every single change of it, and every pair of changes of different settings."""
    configs = {"as is": SMALL} | {name: replace(SMALL, **change) for name, change in OPTIONS.items()}
    paired = {name: change for name, change in OPTIONS.items() if name not in WITHOUT_PAIRS}
    for (a, first), (b, second) in itertools.combinations(paired.items(), 2):
        if pairs and not first.keys() & second.keys():
            configs[f"{a} + {b}"] = replace(SMALL, **first, **second)
    return configs


def random_model(config: ModelConfig, seed: int = 1, spread: float = 0.2) -> Transformer:
    """Return a model without initial values: a bias of 0 or a gain of 1 could hide a mistake."""
    model = build(config, seed).eval()
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            weight += spread * torch.randn(weight.shape, generator=random)
    return model


def in_memory(config: ModelConfig, model: Transformer) -> ModelFile:
    return ModelFile(Config(model=config), {name: Tensor.of(array) for name, array in weights_of(model).items()})


def random_batch(config: ModelConfig, rows: int = 3, source: int = 7, target: int = 5, seed: int = 0):
    """Return source and target tokens and the padding mask of the source; row i has i padded positions."""
    random = torch.Generator().manual_seed(seed)
    sources = torch.randint(4, config.vocab_read, (rows, source), generator=random)
    targets = torch.randint(4, config.vocab, (rows, target), generator=random)
    padding = torch.arange(source)[None] < (source - torch.arange(rows))[:, None]
    return sources.masked_fill(~padding, config.pad), targets, padding


def run(model, config, sources, targets, padding):
    """Return the logits of a model of any kind."""
    if config.kind == "encoder-decoder":
        return model(sources, targets, padding)
    return model(sources, padding) if config.kind == "encoder" else model(targets)
