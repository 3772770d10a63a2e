"""A deeper model that computes the same as the one it is made from, and can learn more.

    python recipes/zh_en_deeper.py MODEL --encoder-layers 14 --decoder-layers 4 --output DEEPER

A new layer follows each of the first layers. It is a copy of that layer, except that the matrices which write to the
residual stream are zero, so that it changes nothing until it is trained (pre-norm models only).
"""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from sixfold import modelfile
from sixfold.modelfile import ModelFile

_LAYER = re.compile(r"(encoder|decoder)\.layers\.(\d+)\.(.+)")
_WRITES_TO_RESIDUAL = re.compile(r"\b(?:output|down)\.(?:weight|bias)$")


def layer_origins(layers: int, wanted: int) -> list[tuple[int, bool]]:
    """Return for each layer of the deeper stack the layer that it is from, and whether it is a new one.

    Three layers that become five: (0, old) (0, new) (1, old) (1, new) (2, old).
    """
    if not layers <= wanted <= 2 * layers:
        raise SystemExit(f"expected {layers} to {2 * layers} layers; got {wanted}")
    origins = []
    for layer in range(layers):
        origins.append((layer, False))
        if layer < wanted - layers:
            origins.append((layer, True))
    return origins


def deepen(file: ModelFile, wanted: dict[str, int]) -> dict[str, np.ndarray]:
    """Return the weights of the deeper model in float32; `wanted` are the layers of encoder and decoder."""
    depth = {"encoder": file.config.model.encoder_layers, "decoder": file.config.model.decoder_layers}
    origins = {stack: layer_origins(depth[stack], wanted[stack]) for stack in depth}
    weights: dict[str, np.ndarray] = {}
    for name, values in file.weights().items():
        array = np.asarray(values, np.float32)
        layer = _LAYER.fullmatch(name)
        if layer is None:
            weights[name] = array
            continue
        stack, number, rest = layer[1], int(layer[2]), layer[3]
        for position, (origin, is_new) in enumerate(origins[stack]):
            if origin == number:
                silent = is_new and _WRITES_TO_RESIDUAL.search(rest) is not None
                weights[f"{stack}.layers.{position}.{rest}"] = np.zeros_like(array) if silent else array
    return weights


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--encoder-layers", type=int, required=True)
    parser.add_argument("--decoder-layers", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    file = modelfile.load(args.model)
    if file.config.model.norm_position != "pre":
        raise SystemExit(f"{args.model}: expected a pre-norm model; got {file.config.model.norm_position}-norm")
    weights = deepen(file, {"encoder": args.encoder_layers, "decoder": args.decoder_layers})
    shape = replace(file.config.model, encoder_layers=args.encoder_layers, decoder_layers=args.decoder_layers)
    config = replace(file.config, model=shape)
    modelfile.save(args.output, config, weights, file.tokenizer, file.card, profiles=file.profiles)


if __name__ == "__main__":
    main()
