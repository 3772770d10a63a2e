"""Engines that translate on a CPU, each used as its documentation says: text in, text out.

They load a folder that translate_cpu.py has written. Only the imports of one engine are made, so that this file, run as
a program, measures the time from the start of a process to its first translation:

    python benchmarks/translate_peers.py NAME FOLDER TEXT
"""

from __future__ import annotations

import json
import math
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from tokenizers import Tokenizer

if TYPE_CHECKING:
    from sixfold.config import ModelConfig

BATCH_TOKENS = 1024  # of sources, in one batch of a long list of sentences
CORES = os.cpu_count() or 1


class Peer:
    """An engine, loaded from a prepared folder; it decodes `workers` batches at once."""

    can_share_cores = True  # whether it may also run as several workers with one core each

    def __init__(self, folder: Path, workers: int = 1, compute: Any = "int8") -> None:
        self.folder, self.workers, self.compute = folder, workers, compute
        self.shape = json.loads((folder / "shape.json").read_text(encoding="utf-8"))
        self.open()

    def open(self) -> None:
        self.tokenizer = Tokenizer.from_file(str(self.folder / "tokenizer.json"))

    def translate(self, texts: Sequence[str], beam: int, longest: int) -> list[str]:
        encoded = self.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        sources = [[*each.ids, self.shape["eos"]] for each in encoded]
        longest = min(longest, 2 * max(map(len, sources)) + 10)  # the rule of sixfold, for all engines
        specials = {self.shape[name] for name in ("pad", "bos", "eos")}
        targets = [[token for token in ids if token not in specials] for ids in self.decode(sources, beam, longest)]
        return [self.tokenizer.decode(ids, skip_special_tokens=False) for ids in targets]

    def decode(self, sources: list[list[int]], beam: int, longest: int) -> list[list[int]]:
        """Decode batches of sentences with similar lengths, divided among the workers."""
        results: list[list[int]] = [[]] * len(sources)
        batches = list(batches_of([len(source) for source in sources]))

        def decode_one(indices: list[int]) -> list[list[int]]:
            return self.decode_batch(pad([sources[index] for index in indices], self.shape["pad"]), beam, longest)

        with ThreadPoolExecutor(self.workers) as pool:
            decoded = pool.map(decode_one, batches) if self.workers > 1 else map(decode_one, batches)
            for indices, targets in zip(batches, decoded, strict=True):
                for index, target in zip(indices, targets, strict=True):
                    results[index] = target
        return results

    def decode_batch(self, source: np.ndarray, beam: int, longest: int) -> list[list[int]]:
        raise NotImplementedError

    def difference(self, source: np.ndarray, target: np.ndarray, expected: np.ndarray) -> float:
        """Return the largest difference of the log-probabilities after each prefix of a target from those expected."""
        raise NotImplementedError


def batches_of(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield batches as indices of `lengths`, the longest first; up to 64 sentences are always one batch."""
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    while order:
        count = len(order) if len(lengths) <= 64 else max(1, BATCH_TOKENS // lengths[order[0]])
        yield order[:count]
        order = order[count:]


def pad(rows: Sequence[Sequence[int]], filler: int) -> np.ndarray:
    table = np.full((len(rows), max(map(len, rows))), filler, np.int64)
    for index, row in enumerate(rows):
        table[index, : len(row)] = row
    return table


class HuggingFace(Peer):
    """`generate` of transformers in float32: Marian for a post-norm model, M2M100 for a pre-norm one."""

    def open(self) -> None:
        super().open()
        import torch
        import transformers

        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        self.torch = torch
        self.model = transformers.AutoModelForSeq2SeqLM.from_pretrained(self.folder / "huggingface").eval()
        set_positions(self.model, np.load(self.folder / "positions.npy"))

    def decode_batch(self, source: np.ndarray, beam: int, longest: int) -> list[list[int]]:
        self.torch.set_num_threads(max(1, CORES // self.workers))
        tokens = self.torch.from_numpy(source)
        with self.torch.inference_mode():
            generated = self.model.generate(
                input_ids=tokens, attention_mask=(tokens != self.shape["pad"]).long(), num_beams=beam,
                max_new_tokens=longest, do_sample=False,
            )  # fmt: skip
        return generated.tolist()

    def difference(self, source: np.ndarray, target: np.ndarray, expected: np.ndarray) -> float:
        tokens, prefix = self.torch.from_numpy(source), self.torch.from_numpy(target)
        mask = (tokens != self.shape["pad"]).long()
        with self.torch.inference_mode():
            logits = self.model(input_ids=tokens, attention_mask=mask, decoder_input_ids=prefix).logits
        return float(np.abs(logits.log_softmax(-1).numpy() - expected).max())


def set_positions(model: Any, table: np.ndarray) -> None:
    """Set the positions of a model: both families compute sinusoids in another order than ours."""
    import torch

    for stack in (model.model.encoder, model.model.decoder):
        positions = stack.embed_positions
        rows = torch.from_numpy(table)
        if model.config.model_type == "marian":
            positions.weight.data.copy_(rows[: len(positions.weight)])
        else:  # M2M100 counts from the row after that of padding
            first = positions.padding_idx + 1
            positions.weights[first : first + len(rows)] = rows[: len(positions.weights) - first]


def write_huggingface(config: ModelConfig, weights: dict[str, np.ndarray], folder: Path) -> bool:
    """Write a Marian model for post-norm, or an M2M100 model for pre-norm; return False if neither fits."""
    plain = config.norm == "layer" and config.norm_eps == 1e-5 and config.groups == config.heads and config.bias
    tied = config.share_embeddings and config.tie_output and not config.output_bias and not config.embedding_norm
    paper = config.positions == "sinusoidal" and config.feed_forward in ("relu", "gelu") and not config.share_layers
    if not (plain and tied and paper and not config.final_norm):
        return False
    import torch
    import transformers

    from sixfold.interop.huggingface import export_weights

    names = (
        ("Marian", "MarianMTModel") if config.norm_position == "post" else ("M2M100", "M2M100ForConditionalGeneration")
    )
    settings: Any = getattr(transformers, f"{names[0]}Config")
    model = getattr(transformers, names[1])(settings(
        vocab_size=config.vocab, d_model=config.d_model, activation_function=config.feed_forward, dropout=0.0,
        encoder_layers=config.encoder_layers, decoder_layers=config.decoder_layers, encoder_ffn_dim=config.d_ff,
        encoder_attention_heads=config.heads, decoder_attention_heads=config.heads, decoder_ffn_dim=config.d_ff,
        max_position_embeddings=config.max_length, pad_token_id=config.pad, bos_token_id=config.bos,
        eos_token_id=config.eos, decoder_start_token_id=config.bos, scale_embedding=config.scale_embeddings,
        forced_eos_token_id=None,
    ))  # fmt: skip
    ends = {name: weights.pop(name) for name in list(weights) if name.startswith(("encoder.norm.", "decoder.norm."))}
    named = export_weights(config, weights, "marian")
    named |= {f"model.{name.replace('.norm.', '.layer_norm.')}": array for name, array in ends.items()}
    state = {name: torch.from_numpy(np.array(array)) for name, array in named.items()}
    missing = model.load_state_dict(state, strict=False)
    assert not missing.unexpected_keys, missing.unexpected_keys
    assert all("embed_" in k or "lm_head" in k or "final_logits" in k for k in missing.missing_keys), missing
    transformers.logging.disable_progress_bar()
    model.save_pretrained(folder)
    return True


class CTranslate2(Peer):
    """CTranslate2 as in its documentation: int8, its own threads, long lists split into batches by tokens."""

    def open(self) -> None:
        super().open()
        import ctranslate2

        threads = {"inter_threads": self.workers, "intra_threads": 1} if self.workers > 1 else {}
        folder = self.folder / f"ctranslate2-{self.compute}"
        self.engine = ctranslate2.Translator(str(folder), device="cpu", compute_type=self.compute, **threads)

    def decode(self, sources: list[list[int]], beam: int, longest: int) -> list[list[int]]:
        split = {"max_batch_size": BATCH_TOKENS, "batch_type": "tokens"} if len(sources) > 64 else {}
        names = [list(map(str, source)) for source in sources]
        results = self.engine.translate_batch(names, beam_size=beam, max_decoding_length=longest, **split)
        return [list(map(int, result.hypotheses[0])) for result in results]

    def difference(self, source: np.ndarray, target: np.ndarray, expected: np.ndarray) -> float:
        sources = [row[row != self.shape["pad"]] for row in source]
        names = [[list(map(str, row.tolist())) for row in rows] for rows in (sources, target[:, 1:])]
        count = target.shape[1] - 1
        logprobs = np.array([result.log_probs[:count] for result in self.engine.score_batch(*names)])
        expected_logprobs = np.take_along_axis(expected[:, :-1], target[:, 1:, None], 2)[:, :, 0]
        return float(np.abs(logprobs - expected_logprobs).max())


class OnnxRuntime(Peer):
    """An encoder and a decoder with caches, int8 weights and activations; the search is written in NumPy.

    The choice of the best token, or of the best hypotheses, is part of the graph, and keys and values stay where ONNX
    Runtime put them.
    """

    def open(self) -> None:
        super().open()
        self.sessions: dict[str, Any] = {}
        self.session("encoder")
        self.session("step-4")

    def session(self, name: str) -> Any:
        import onnxruntime  # type: ignore[import-untyped]

        if name not in self.sessions:
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = max(1, CORES // self.workers)
            self.sessions[name] = onnxruntime.InferenceSession(
                self.folder / f"{name}-{self.compute}.onnx", options, providers=["CPUExecutionProvider"]
            )
        return self.sessions[name]

    def decode_batch(self, source: np.ndarray, beam: int, longest: int) -> list[list[int]]:
        stepper = OnnxStepper(self.session("encoder"), self.session(f"step-{beam}"), source, beam, self.shape)
        search = greedy if beam == 1 else beam_search
        return search(stepper, min(longest, self.shape["max_length"]))

    def difference(self, source: np.ndarray, target: np.ndarray, expected: np.ndarray) -> float:
        """The graph returns only the best of a beam: the first row holds the target, the others get low scores."""
        beam = 4
        stepper = OnnxStepper(self.session("encoder"), self.session(f"step-{beam}"), source, beam, self.shape)
        scores = np.tile(np.array([0.0] + [-1e9] * (beam - 1), np.float32), (len(source), 1))
        worst = 0.0
        for position in range(target.shape[1]):
            tokens = np.repeat(target[:, position, None], beam, 1)
            best, index = stepper.step(tokens, scores=scores, origin=np.zeros_like(tokens))
            worst = max(worst, float(np.abs(best - np.take_along_axis(expected[:, position], index, 1)).max()))
        return worst


class OnnxStepper:
    """The state of one batch: the memory of its sources, and the keys and values of earlier steps."""

    def __init__(self, encoder: Any, step: Any, source: np.ndarray, beam: int, shape: dict[str, int]) -> None:
        from onnxruntime import OrtValue

        self.value = OrtValue.ortvalue_from_numpy
        self.session, self.beam, self.shape, self.position = step, beam, shape, 0
        self.count = len(source)
        padding = source != shape["pad"]
        names = [output.name for output in encoder.get_outputs()]
        feed = {"source": self.value(source), "padding": self.value(padding)}
        self.memory = dict(zip(names, encoder.run_with_ort_values(names, feed), strict=True))
        self.memory["mask"] = self.value(padding)
        empty = np.zeros((len(source), beam, shape["heads"], 0, shape["d_model"] // shape["heads"]), np.float32)
        self.past = {each.name: self.value(empty) for each in step.get_inputs() if each.name.startswith("past")}
        self.outputs = [output.name for output in step.get_outputs()]

    def step(self, tokens: np.ndarray, **beams: np.ndarray) -> list[np.ndarray]:
        """Return the choice of the graph after these tokens: tokens, or for a beam scores and indices."""
        state = {"tokens": tokens, "position": np.array([self.position]), **beams}
        feed = {name: self.value(np.ascontiguousarray(array)) for name, array in state.items()}
        values = self.session.run_with_ort_values(self.outputs, feed | self.memory | self.past)
        self.position += 1
        choices = len(values) - len(self.past)
        self.past = dict(zip(self.past, values[choices:], strict=True))
        return [value.numpy() for value in values[:choices]]

    def keep(self, rows: np.ndarray) -> None:
        """Drop all sentences but these."""
        self.count = len(rows)
        for values in (self.memory, self.past):
            values.update({name: self.value(value.numpy()[rows]) for name, value in values.items()})


def worth_dropping(alive: np.ndarray) -> bool:
    """Return whether enough sentences have ended that copying the others pays off."""
    return 0 < alive.sum() <= 0.75 * len(alive)


def greedy(stepper: OnnxStepper, longest: int) -> list[list[int]]:
    eos = stepper.shape["eos"]
    results: list[list[int]] = [[] for _ in range(stepper.count)]
    sentences, alive = np.arange(stepper.count), np.ones(stepper.count, bool)
    tokens = np.full((stepper.count, 1), stepper.shape["bos"])
    for _ in range(longest):
        (tokens,) = stepper.step(tokens)
        alive &= tokens[:, 0] != eos
        for row in np.flatnonzero(alive):
            results[sentences[row]].append(int(tokens[row, 0]))
        if not alive.any():
            break
        if worth_dropping(alive):
            stepper.keep(np.flatnonzero(alive))
            sentences, tokens, alive = sentences[alive], tokens[alive], alive[alive]
    return results


def beam_search(stepper: OnnxStepper, longest: int) -> list[list[int]]:
    """Search as CTranslate2 does: scores over length; a sentence ends with as many hypotheses as the beam."""
    beam, eos, count = stepper.beam, stepper.shape["eos"], stepper.count
    ended: list[list[tuple[float, list[int]]]] = [[] for _ in range(count)]
    sentences: np.ndarray = np.arange(count)
    alive: np.ndarray = np.ones(count, bool)
    tokens: np.ndarray = np.full((count, beam), stepper.shape["bos"])
    scores: np.ndarray = np.tile(np.array([0.0] + [-1e9] * (beam - 1), np.float32), (count, 1))
    origin = np.tile(np.arange(beam), (count, 1))
    texts: np.ndarray = np.zeros((count, beam, 0), np.int64)
    for length in range(1, longest + 1):
        best, index = stepper.step(tokens, scores=scores, origin=origin)
        parent, token = np.divmod(index, stepper.shape["vocab"])
        stops = token == eos
        for row, rank in zip(*np.nonzero(stops[:, :beam] & alive[:, None]), strict=True):
            text = texts[row, parent[row, rank]].tolist()
            ended[sentences[row]].append((float(best[row, rank]) / length, text))
        chosen = np.argsort(stops, axis=1, kind="stable")[:, :beam]  # the best that continue
        scores, origin, tokens = (np.take_along_axis(each, chosen, 1) for each in (best, parent, token))
        texts = np.concatenate([np.take_along_axis(texts, origin[:, :, None], 1), tokens[:, :, None]], axis=2)
        alive = np.array([len(ended[row]) < beam for row in sentences])
        if not alive.any():
            break
        if worth_dropping(alive):
            stepper.keep(np.flatnonzero(alive))
            remaining: list[np.ndarray] = [each[alive] for each in (sentences, tokens, scores, origin, texts, alive)]
            sentences, tokens, scores, origin, texts, alive = remaining
    for row in np.flatnonzero(alive):
        ended[sentences[row]] += [(float(scores[row, k]) / longest, texts[row, k].tolist()) for k in range(beam)]
    return [max(hypotheses)[1] for hypotheses in ended]


class Sixfold(Peer):
    """Sixfold as in its documentation."""

    can_share_cores = False

    def open(self) -> None:
        from sixfold import TranslateOptions, Translator

        self.options = TranslateOptions
        self.translator = Translator(self.folder / "model.safetensors", device="cpu", compute=self.compute)

    def translate(self, texts: Sequence[str], beam: int, longest: int) -> list[str]:  # noqa: ARG002  it has this rule itself
        options = self.options(beam=beam, split=False)
        if len(texts) == 1:
            return [self.translator.translate(texts[0], options=options).text]
        return [each.text for each in self.translator.translate_batch(list(texts), options=options)]


PEERS: dict[str, type[Peer]] = {
    "HF generate f32": HuggingFace,
    "CTranslate2 int8": CTranslate2,
    "ONNX Runtime int8": OnnxRuntime,
    "sixfold int8": Sixfold,
}


def busy_seconds() -> float:
    """Return the busy seconds of all cores since the machine started."""
    fields = list(map(int, Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]))
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def start_up(name: str, folder: Path, text: str, times: int) -> dict[str, Any]:
    """Return medians of new processes, after one to warm up: time to load, time to the first translation, memory."""
    program = [__file__, name, str(folder)]
    if name == "sixfold translate":  # the command, beside the class
        program = ["-m", "sixfold", "translate", "--model", str(folder / "model.safetensors")]
    runs = []
    for _ in range(times + 1):
        start = time.perf_counter()
        with subprocess.Popen([sys.executable, *program, text], stdout=subprocess.PIPE, encoding="utf-8") as process:
            assert process.stdout is not None
            line = process.stdout.readline()
            seconds = time.perf_counter() - start
        if not line.strip():
            print(f"{name}: no translation in a fresh process")
            seconds = math.nan
        unknown = {"opened_s": math.nan, "resident_mb": math.nan}
        runs.append({"first_s": seconds, **(json.loads(line) if line.startswith("{") else unknown)})
    return {"name": name} | {key: statistics.median(each[key] for each in runs[1:]) for key in runs[0]}


def main() -> None:
    name, folder, text = sys.argv[1:]
    start = time.perf_counter()
    peer = PEERS[name](Path(folder))
    opened = time.perf_counter() - start
    peer.translate([text], 4, min(256, peer.shape["max_length"]))
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    print(json.dumps({"opened_s": opened, "resident_mb": pages * resource.getpagesize() / 1e6}), flush=True)


if __name__ == "__main__":
    main()
