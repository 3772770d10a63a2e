from dataclasses import replace

import pytest
import torch
from small_models import SMALL, random_batch, random_model
from torch import nn

from sixfold.interop.torch_nn import to_torch_nn
from sixfold.model.transformer import weights_of

SHAPES = {
    "small": SMALL,
    "unequal depths": replace(SMALL, encoder_layers=1, decoder_layers=3),
    "wide": replace(SMALL, d_model=64, heads=8, d_ff=128),
    "gelu": replace(SMALL, feed_forward="gelu"),
    "pre-norm": replace(SMALL, norm_position="pre"),
}


# What torch says of its own fast path.
@pytest.mark.filterwarnings(
    "ignore:enable_nested_tensor is True:UserWarning", "ignore:The PyTorch API of nested:UserWarning"
)
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.usefixtures("double_precision")
@torch.no_grad()
def test_logits_equal_torch_nn_transformer(name):
    # torch.nn.Transformer ends both stacks in a norm, whatever the order of its norms.
    config = replace(SHAPES[name], final_norm=True)
    model = random_model(config)
    torch_model = nn.Transformer(
        config.d_model,
        config.heads,
        config.encoder_layers,
        config.decoder_layers,
        config.d_ff,
        activation=config.feed_forward,
        batch_first=True,
        norm_first=config.norm_position == "pre",
    ).eval()
    weights = {name: torch.from_numpy(array) for name, array in to_torch_nn(weights_of(model)).items()}
    torch_model.load_state_dict(weights, strict=True)
    sources, targets, padding = random_batch(config)

    def embed(stack, tokens):
        return stack.embedding(tokens, torch.arange(tokens.size(1))[None], None)

    hidden = torch_model(
        embed(model.encoder, sources),
        embed(model.decoder, targets),
        tgt_mask=torch.ones(5, 5, dtype=torch.bool).triu(1),
        src_key_padding_mask=~padding,
        memory_key_padding_mask=~padding,
    )
    torch.testing.assert_close(model(sources, targets, padding), model.output(hidden), rtol=0, atol=1e-5)
