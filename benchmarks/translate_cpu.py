"""Translation on a CPU: this project beside Hugging Face generate, plain CTranslate2 and ONNX Runtime.

All run the same weights, tokeniser and search, from text to text, one after another in every round; medians are
reported. Before anything is timed, their float32 logits must agree to 1e-4. Without --model the weights are random and
never choose <eos>, so that all engines read 25 tokens and write 25.

    python benchmarks/translate_cpu.py --small                       # a quick look; needs transformers and onnxruntime
    python benchmarks/translate_cpu.py                               # random weights, both shapes
    python benchmarks/translate_cpu.py DATA --model MODEL --json results.json
"""

from __future__ import annotations

import argparse
import copy
import json
import logging
import math
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic  # type: ignore[import-untyped]
from onnxruntime.quantization.shape_inference import quant_pre_process  # type: ignore[import-untyped]
from torch import Tensor, nn
from translate_peers import CORES, PEERS, Peer, Sixfold, busy_seconds, start_up, write_huggingface

from sixfold import modelfile
from sixfold.config import Config, ModelConfig
from sixfold.engines.cpu import vocabularies
from sixfold.evaluation.scores import score
from sixfold.interop.ctranslate2 import convert
from sixfold.model.attention import Attention
from sixfold.model.positions import Sinusoid
from sixfold.model.transformer import EncoderDecoder, build, load_weights, weights_of
from sixfold.presets import preset
from sixfold.text.tokenizer import Tokenizer
from sixfold.weights import shapes

LENGTH = 25  # tokens in and out, of random models
SMALL = replace(preset("small").model, dropout=0.0, max_length=LENGTH + 1)  # ours writes one token less
BASE = replace(SMALL, d_model=512, heads=8, d_ff=2048, encoder_layers=6, decoder_layers=6)
SHAPES = {"small": SMALL, "base": BASE}
TINY = replace(SMALL, d_model=128, heads=4, d_ff=256, encoder_layers=2, decoder_layers=2)
SETS = ("flores-dev", "wmt17", "tatoeba")
BEAMS = (1, 4)
Tensors = list[Tensor]
EXAMPLE = (3, 5, 7)  # batch, source and past while a graph is traced; no other size may be one of these


def random_model(config: ModelConfig, path: Path) -> None:
    """Save a model with a tokeniser of numbered words, and random weights that never end a sentence."""
    names = ["<pad>", "<bos>", "<eos>", "<unk>", *(f"w{index}" for index in range(4, config.vocab))]
    rust = tokenizers.Tokenizer(tokenizers.models.WordLevel({name: i for i, name in enumerate(names)}, "<unk>"))
    rust.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    weights = weights_of(build(config))
    # The bias of the last norm points one way, and the embeddings of the special tokens point the other way.
    bias = np.random.default_rng(1).standard_normal(config.d_model).astype(np.float32)
    bias /= np.linalg.norm(bias)
    weights["decoder.norm.bias"] = 4 * bias
    weights["encoder.embedding.token.weight"][:4] = -bias
    modelfile.save(path, Config(model=config), weights, Tokenizer(rust, "foreign"))


def prepare(path: Path, folder: Path) -> list[str]:
    """Write the files that all engines load, check that the engines agree, and return those that can run this model."""
    model = modelfile.load(path)
    config, tokenizer = model.config.model, model.tokenizer
    assert tokenizer is not None, "expected a model with a tokeniser"
    assert tokenizer.algorithm != "wordpiece", "expected a tokeniser that spells unknown characters by itself"
    torch_model = build(config).eval()
    assert isinstance(torch_model, EncoderDecoder), "expected an encoder-decoder"
    load_weights(torch_model, model.weights())
    tokenizer.rust.save(str(folder / "tokenizer.json"))
    (folder / "shape.json").write_text(json.dumps(asdict(config)), encoding="utf-8")
    (folder / "model.safetensors").symlink_to(path.resolve())
    # The same as the converter of CTranslate2 writes for `--quantization int8`.
    modelfile.save(folder / "int8.safetensors", model.config, model.weights(), tokenizer, storage="int8")
    for part, files in {"ctranslate2-int8": "int8.safetensors", "ctranslate2-float32": "model.safetensors"}.items():
        (folder / part).mkdir()
        stored = modelfile.load(folder / files)
        for name, data in convert(stored, *vocabularies(stored)).items():
            (folder / part / name).write_bytes(data)
    positions = Sinusoid(config.d_model, config.position_layout, config.position_offset)
    table = positions(torch.arange(config.max_length)[None])[0]
    np.save(folder / "positions.npy", table.numpy())
    unsupported = {}
    if not write_huggingface(config, weights_of(torch_model), folder / "huggingface"):
        unsupported["HF generate f32"] = "transformers has no model of these options that reads our weights"
    if config.positions == "sinusoidal" and config.groups == config.heads:
        export_onnx(config, copy.deepcopy(torch_model), table, folder)
    else:
        unsupported["ONNX Runtime int8"] = "our graphs for it support neither other positions nor grouped heads"
    print("".join(f"{name} is left out: {reason}\n" for name, reason in unsupported.items()), end="")
    names = [name for name in PEERS if name not in unsupported]
    check_agreement(config, torch_model, [PEERS[name] for name in names if PEERS[name] is not Sixfold], folder)
    return names


class Reader(nn.Module):
    """The encoder, and its output projected to the keys and values of every decoder layer."""

    def __init__(self, model: EncoderDecoder) -> None:
        super().__init__()
        self.model = model

    def forward(self, source: Tensor, padding: Tensor) -> tuple[Tensor, ...]:
        encoded = self.model.encoder(source, padding[:, None, None, :])
        memory = self.model.decoder.project_memory(encoded, None)
        return tuple(each for layer in memory for each in (layer.key, layer.value))


class Step(nn.Module):
    """One token for every row; the rows of a sentence attend to one copy of its memory.

    Written out with constant shapes: our own attention, exported, computes shapes at every step.
    """

    def __init__(self, model: EncoderDecoder, beam: int) -> None:
        super().__init__()
        self.model, self.beam = model, beam

    def forward(
        self, tokens: Tensor, position: Tensor, mask: Tensor, memory: Tensors, past: Tensors, beams: Tensors
    ) -> tuple[Tensor, ...]:
        decoder: Any = self.model.decoder
        present: Tensors = []
        x = decoder.embedding(tokens, position[None], None)
        hidden = torch.zeros_like(mask, dtype=x.dtype).masked_fill(~mask, -1e9)[:, None, None]
        if beams:
            past = [each[torch.arange(each.size(0))[:, None], beams[1]] for each in past]
        for index, layer in enumerate(decoder.iter_layers()):
            pair = slice(2 * index, 2 * index + 2)
            first, second, third = layer.self_attention_norm, layer.cross_attention_norm, layer.feed_forward_norm
            y, keys_values = self.self_attend(layer.self_attention, x if layer.post_norm else first(x), past[pair])
            x = layer.add(x, y, first)
            y = self.cross_attend(layer.cross_attention, x if layer.post_norm else second(x), memory[pair], hidden)
            x = layer.add(x, y, second)
            x = layer.add(x, layer.feed_forward(x if layer.post_norm else third(x)), third)
            present += keys_values
        logits = self.model.output(x if decoder.norm is None else decoder.norm(x))
        if not beams:
            return logits[:, 0].argmax(-1, keepdim=True), *present
        totals = logits.log_softmax(-1) + beams[0][:, :, None]
        return *totals.view(-1, self.beam * totals.size(2)).topk(2 * self.beam), *present

    def self_attend(self, part: Attention, x: Tensor, past: Tensors) -> tuple[Tensor, Tensors]:
        width = part.heads * part.d_head
        query, *new = (
            each.view(-1, self.beam, part.heads, 1, part.d_head) for each in part.query_key_value(x).split(width, -1)
        )
        key, value = present = [torch.cat(each, 3) for each in zip(past, new, strict=True)]
        mixed = (query * part.d_head**-0.5 @ key.transpose(-1, -2)).softmax(-1) @ value
        return part.output(mixed.view(-1, self.beam, width)), present

    def cross_attend(self, part: Attention, x: Tensor, memory: Tensors, hidden: Tensor) -> Tensor:
        width, (key, value) = part.heads * part.d_head, memory
        query = nn.functional.linear(x, part.query_key_value.weight[:width], part.query_key_value.bias[:width])
        query = query.view(-1, self.beam, part.heads, part.d_head).transpose(1, 2) * part.d_head**-0.5
        mixed = (query @ key.transpose(-1, -2) + hidden).softmax(-1) @ value
        return part.output(mixed.transpose(1, 2).contiguous().view(-1, self.beam, width))


def export_onnx(config: ModelConfig, model: EncoderDecoder, table: Tensor, folder: Path) -> None:
    """Write the encoder, and a step for each beam; positions are a table, while our model computes them every time."""
    model.encoder.embedding.position = model.decoder.embedding.position = nn.Embedding.from_pretrained(table)
    pairs = [f"{kind}_{layer}" for layer in range(config.decoder_layers) for kind in ("key", "value")]
    memories, pasts, presents = ([f"{prefix}_{pair}" for pair in pairs] for prefix in ("memory", "past", "present"))
    batch, source, length = EXAMPLE
    padding = torch.ones(batch, source, dtype=torch.bool)
    write_graph(folder / "encoder", Reader(model), (padding.long(), padding), ["source", "padding"], memories)
    memory = [torch.randn(batch, config.heads, source, config.d_head) for _ in pairs]
    for beam in BEAMS:
        past = [torch.randn(batch, beam, config.heads, length, config.d_head) for _ in pairs]
        beams = [torch.randn(batch, beam), torch.zeros(batch, beam, dtype=torch.long)] if beam > 1 else []
        write_graph(
            folder / f"step-{beam}", Step(model, beam),
            (torch.full((batch, beam), 9), torch.tensor([length]), padding, memory, past, beams),
            ["tokens", "position", "mask", *memories, *pasts, *["scores", "origin"][: len(beams)]],
            [*["best", "index"][: beam], *presents],
        )  # fmt: skip


def write_graph(path: Path, module: nn.Module, example: tuple[Any, ...], inputs: list[str], outputs: list[str]) -> None:
    """Write a module in float32, and with int8 weights that have a scale for each output."""
    plain, ready = f"{path}-float32.onnx", f"{path}-ready.onnx"
    free = torch.utils._pytree.tree_map(
        lambda each: {axis: torch.export.Dim.AUTO for axis, size in enumerate(each.shape) if size in EXAMPLE}, example
    )
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings(action="ignore"), torch.no_grad():
        torch.onnx.export(
            module.eval(), example, plain, dynamic_shapes=free, input_names=inputs, output_names=outputs,
            external_data=False, verbose=False,
        )  # fmt: skip
        # This folds expressions of weights into weights, which would stay float32 otherwise.
        quant_pre_process(plain, ready, skip_symbolic_shape=True)
        quantize_dynamic(
            ready, f"{path}-int8.onnx", per_channel=True, weight_type=QuantType.QInt8, op_types_to_quantize=["MatMul"]
        )
    Path(ready).unlink()


def check_agreement(config: ModelConfig, model: EncoderDecoder, peers: Sequence[type[Peer]], folder: Path) -> None:
    """Check the log-probabilities after each prefix of a target, in float32, against those of our torch model."""
    random = np.random.default_rng(1)
    source, target = (random.integers(4, config.vocab, (3, 9)) for _ in range(2))
    source[:, -1], target[:, 0] = config.eos, config.bos
    source[1, 5:] = [config.eos, *[config.pad] * 3]
    with torch.inference_mode():
        logits = model(*map(torch.from_numpy, (source, target, source != config.pad)))
    for peer in peers:
        difference = peer(folder, compute="float32").difference(source, target, logits.log_softmax(-1).numpy())
        print(f"{peer.__name__}: float32 log-probabilities within {difference:.1e} of ours")
        assert difference < 1e-4, f"{peer.__name__} computes other values"


@dataclass(frozen=True)
class Cell:
    """A measurement: calls, each with its texts, at one beam."""

    name: str
    beam: int
    calls: Sequence[Sequence[str]]


def make_cells(average: Sequence[str], file: Sequence[str]) -> list[Cell]:
    """Return the measurements; small batches have several calls, so that no single sentence decides."""
    cells = []
    for beam in BEAMS:
        for batch, count in ((1, 8), (8, 2), (64, 1)):
            calls = [average[index * batch : (index + 1) * batch] for index in range(count)]
            cells.append(Cell(f"batch {batch}", beam, calls))
        cells.append(Cell("file", beam, [file]))
    return cells


def measure(cell: Cell, peers: Mapping[str, Sequence[Peer]], longest: int, args: argparse.Namespace) -> dict[str, Any]:
    """Return the median seconds of a call; peers run with their own threads and with one per batch, the best counts."""
    runs = [(name, peer) for name, variants in peers.items() for peer in variants]
    seconds: list[list[float]] = [[] for _ in runs]
    outputs: dict[str, list[str]] = {}
    for _, peer in runs:
        peer.translate(cell.calls[0][:64], cell.beam, longest)
    busy, own, start_time = busy_seconds(), time.process_time(), time.perf_counter()
    rounds = args.rounds
    while any(not times or (times[0] <= args.once and len(times) < rounds) for times in seconds):
        for (name, peer), times in zip(runs, seconds, strict=True):
            if times and times[0] > args.once:
                continue
            time.sleep(0.1)  # threads of the previous engine may still be spinning
            start = time.perf_counter()
            outputs[name] = [text for texts in cell.calls for text in peer.translate(texts, cell.beam, longest)]
            times.append((time.perf_counter() - start) / len(cell.calls))
        if max(times[0] for times in seconds) < 1:
            rounds = max(args.rounds, 5)
    other_seconds = busy_seconds() - busy - (time.process_time() - own)
    tried = [(name, peer.workers, times) for (name, peer), times in zip(runs, seconds, strict=True)]
    medians = {
        name: min(statistics.median(times) for candidate, _, times in tried if candidate == name) for name in peers
    }
    share = max(0.0, other_seconds / (time.perf_counter() - start_time) / CORES)
    return {"cell": cell.name, "beam": cell.beam, "s": medians, "tried": tried, "others": share, "outputs": outputs}


def add_floor(row: dict[str, Any], cell: Cell, model: modelfile.ModelFile, args: argparse.Namespace) -> None:
    """Add the seconds at the machine's peaks: weights read once a step, multiplied once a row, in batches up to 64."""
    config, tokenizer = model.config.model, model.tokenizer
    assert tokenizer is not None
    matrices = {name: math.prod(size) for name, size in shapes(config).items() if len(size) == 2}
    encoder, decoder = (sum(n for name, n in matrices.items() if f"{stack}.layers" in name) for stack in config.stacks)
    keys = config.decoder_layers * 2 * config.groups * config.d_head * config.d_model  # computed once, from the source
    step = decoder - keys + config.vocab * config.d_model

    operations, from_cache, from_memory, cache_size = args.peaks

    def pass_seconds(weights: int, rows: float) -> float:
        reading = weights / (from_cache if weights <= cache_size * 1e6 else from_memory)
        return max(reading, 2 * weights * rows / operations) / 1e9 / CORES

    texts = [[text for call in cell.calls for text in call], list(row["outputs"].values())[-1]]
    source, target = (sum(map(len, tokenizer.encode_batch(each))) / len(each) + 1 for each in texts)
    batch = min(len(cell.calls[0]), 64)
    once = pass_seconds(encoder + keys, batch * source) + target * pass_seconds(step, batch * cell.beam)
    row |= {"floor": once * len(cell.calls[0]) / batch, "source_tokens": source, "target_tokens": target}


def show(title: str, results: Sequence[dict[str, Any]], names: Sequence[str]) -> None:
    """Print milliseconds of a call, or seconds of the file; then the ratio to the last engine; then the floor."""
    *peers, last = names
    heads = [*names, *(f"{name.split()[0]} ÷ {last.split()[0]}" for name in peers), "floor", "÷ floor", "others"]
    print(f"\n{title:18}" + "".join(f"{head:>22}" for head in heads))
    for row in results:
        unit = 1 if row["cell"] == "file" else 1e3
        figures = [row["s"][name] * unit for name in names] + [row["s"][name] / row["s"][last] for name in peers]
        figures += [row["floor"] * unit, row["s"][last] / row["floor"]]
        cell = f"{row['cell']} " + (f"beam {row['beam']}" if row["beam"] > 1 else "greedy")
        print(f"{cell:18}" + "".join(f"{figure:22.2f}" for figure in figures) + f"{row['others']:22.0%}")


def show_texts(results: Sequence[dict[str, Any]], references: Sequence[str], language: str) -> None:
    """Print for the file how often each engine has the text of the first, and its BLEU if there are references."""
    for row in results:
        outputs = row.pop("outputs")
        first, first_texts = next(iter(outputs.items()))
        for name, texts in outputs.items() if row["cell"] == "file" else ():
            share = statistics.fmean(a == b for a, b in zip(texts, first_texts, strict=True))
            bleu = score(texts, references, language).bleu if references else math.nan
            row.setdefault("texts", {})[name] = {"same": share, "bleu": bleu}
            print(f"file, beam {row['beam']}: {name:18} same text as {first}: {share:.1%}, BLEU {bleu:.2f}")


def real_texts(model: modelfile.ModelFile, args: argparse.Namespace) -> tuple[list[str], list[str], list[str]]:
    """Return sentences of about the mean length, the sentences of the file, and the references of these."""
    assert model.tokenizer is not None
    pairs: list[tuple[str, ...]] = []
    for name in SETS:
        sides = [(args.data / "dev" / f"{name}.{code}").read_text(encoding="utf-8").splitlines() for code in args.pair]
        pairs += [pair for pair in zip(*sides, strict=True) if pair[0].strip()]
    chosen = np.random.default_rng(1).permutation(len(pairs))[: args.sentences]
    sources, references = ([pairs[index][side] for index in chosen] for side in (0, 1))
    lengths = np.array([len(ids) for ids in model.tokenizer.encode_batch(sources)])
    indices = np.argsort(np.abs(lengths - lengths.mean()), kind="stable")[:64]
    return [sources[index] for index in np.random.default_rng(2).permutation(indices)], sources, references


def compare_engines(title: str, path: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Run and print all measurements of one model."""
    model = modelfile.load(path)
    assert not (model.tokenizer and model.tokenizer.tags), "peers would not know the tags"
    if args.model:
        average, file, references = real_texts(model, args)
    else:
        words = np.random.default_rng(1).integers(4, model.config.model.vocab, (args.sentences, LENGTH - 1))
        file, references = [" ".join(f"w{word}" for word in row) for row in words], []
        average = file[:64]
    with tempfile.TemporaryDirectory() as temporary:
        names = [name for name in prepare(path, Path(temporary)) if not args.only or name.split()[0] in args.only]
        peers = {name: [PEERS[name](Path(temporary))] for name in names}
        for name in names:
            if PEERS[name].can_share_cores and CORES > 1:
                peers[name].append(PEERS[name](Path(temporary), workers=CORES))
        results = []
        for cell in make_cells(average, file):
            if cell.beam not in args.beams or (args.cells and cell.name not in args.cells):
                continue
            results.append(measure(cell, peers, 256 if args.model else LENGTH, args))
            add_floor(results[-1], cell, model, args)
            print(json.dumps({key: results[-1][key] for key in ("cell", "beam", "s", "others")}), flush=True)
        show(title, results, names)
        show_texts(results, references, args.pair[1])
        programs = [*names, "sixfold translate"] if args.model else names
        starts = [start_up(name, Path(temporary), average[0], args.starts) for name in programs]
    print(f"\n{'a fresh process':20}{'opened, s':>12}{'first translation, s':>22}{'resident, MB':>14}")
    for row in starts:
        print(f"{row['name']:20}{row['opened_s']:12.2f}{row['first_s']:22.2f}{row['resident_mb']:14.0f}")
    return {"title": title, "results": results, "starts": starts}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", help="folder with dev/flores-dev.zh and .en, wmt17 and tatoeba")
    parser.add_argument("--model", type=Path, help="a trained model file; else random weights")
    parser.add_argument("--pair", nargs=2, default=("zh", "en"), help="languages, as the files are named")
    parser.add_argument("--shapes", nargs="*", default=list(SHAPES), help="of random models")
    parser.add_argument("--only", nargs="*", help="first words of the engines' names: HF CTranslate2 ONNX sixfold")
    parser.add_argument("--beams", type=int, nargs="*", default=list(BEAMS))
    parser.add_argument("--cells", nargs="*", help="such as 'batch 1' and file; default: all")
    parser.add_argument("--sentences", type=int, default=2000, help="of the file")
    parser.add_argument("--rounds", type=int, default=3, help="at least 5 where all take less than a second")
    parser.add_argument("--once", type=float, default=120.0, help="engines that take more seconds run once")
    parser.add_argument("--starts", type=int, default=5, help="new processes of each engine")
    parser.add_argument("--small", action="store_true", help="a tiny random model and few sentences")
    peaks = "of a core: 10⁹ int8 operations a second, GB/s from cache, GB/s from memory, MB that stay in the cache"
    parser.add_argument("--peaks", type=float, nargs=4, default=(496.0, 30.0, 12.0, 16.0), help=peaks)
    parser.add_argument("--json", type=Path, help="write the results here")
    args = parser.parse_args()
    if args.model and not args.data:
        parser.error("--model needs DATA, the folder of its sentences")
    chosen = {name: config for name, config in SHAPES.items() if name in args.shapes}
    if args.small:
        args.sentences, args.starts, chosen = min(args.sentences, 100), 1, {"tiny": TINY}
    load = os.getloadavg()[0]
    versions = {name: version(name) for name in ("transformers", "ctranslate2", "onnxruntime", "torch")}
    print(f"{CORES} cores, load of the last minute {load:.2f}, {versions}")
    with tempfile.TemporaryDirectory() as temporary:
        models = {args.model.stem: args.model} if args.model else {}
        for name, config in () if args.model else chosen.items():
            models[name] = Path(temporary) / f"{name}.safetensors"
            random_model(config, models[name])
        measurements = [compare_engines(name, path, args) for name, path in models.items()]
    if args.json:
        report = {"load": load, "cores": CORES, "versions": versions, "models": measurements}
        args.json.write_text(json.dumps(report, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
