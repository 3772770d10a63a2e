"""Speed of writing texts: this project beside transformers, and llama.cpp where its Python package is there.

Shapes with random weights are saved by transformers: that of stories15M (LLaMA) and that of GPT-2 with 124M weights.
Each system continues prompts of 16 tokens by 128 tokens, greedily and by drawing, one prompt at a time and several at
once. The systems take turns in every round; medians are reported. `--gguf` compares with llama.cpp on a real file.

    python benchmarks/generate.py                               # needs transformers
    python benchmarks/generate.py --device cuda --shapes 124M 1B
    python benchmarks/generate.py --gguf smollm2.gguf           # needs llama_cpp
    python benchmarks/generate.py --draft                       # a draft of 3 layers for a model of 12
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
import transformers

from sixfold import modelfile
from sixfold.decoding.options import GREEDY, SamplingOptions
from sixfold.engines.cpu import CpuEngine, cores
from sixfold.engines.sampling import SamplingEngine
from sixfold.engines.writing import WritingEngine, WritingOptions
from sixfold.interop.huggingface import load_folder
from sixfold.interop.sources import read_source
from sixfold.modelfile import ModelFile

PROMPT_TOKENS, TOKENS = 16, 128
SHAPES: dict[str, Callable[[], transformers.PreTrainedModel]] = {
    "15M": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=32000, hidden_size=288, intermediate_size=768, num_hidden_layers=6, num_attention_heads=6,
        max_position_embeddings=512, tie_word_embeddings=True,
    )),
    "124M": lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config()),
    "1B": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=32000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=22, num_attention_heads=32,
        num_key_value_heads=4, max_position_embeddings=2048,
    )),
}  # fmt: skip
Prompts = Sequence[list[int]]
Write = Callable[[Prompts, bool], int]  # prompts and whether tokens are drawn: the number of tokens that were written


def write_with(engine: WritingEngine) -> Write:
    """Return a function that writes with an engine of this project."""

    def write(prompts: Prompts, draws: bool) -> int:
        options = WritingOptions((), TOKENS, sampling=SamplingOptions(seed=1) if draws else GREEDY)
        count = 0

        def take(_: object) -> bool:
            nonlocal count
            count += 1
            return False

        engine.write(prompts, options, take)
        return count

    return write


def write_with_transformers(model: transformers.PreTrainedModel, device: str) -> Write:
    """Return a function that writes with `generate`."""

    @torch.inference_mode()
    def write(prompts: Prompts, draws: bool) -> int:
        tokens = torch.tensor(prompts, device=device)
        output = model.generate(
            tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=TOKENS, min_new_tokens=TOKENS,
            do_sample=draws, top_k=0, pad_token_id=0,
        )  # fmt: skip
        return int(output[:, tokens.size(1) :].numel())

    return write


def write_with_llama_cpp(path: Path, threads: int) -> Write:
    """Return a function that writes with llama.cpp, one prompt after another."""
    import llama_cpp

    model = llama_cpp.Llama(str(path), n_ctx=512, n_threads=threads, n_threads_batch=threads, verbose=False, seed=1)

    def write(prompts: Prompts, draws: bool) -> int:
        count = 0
        for prompt in prompts:
            model.reset()
            settings = {"temp": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0} if draws else {"temp": 0.0}
            for _, _token in zip(range(TOKENS), model.generate(prompt, repeat_penalty=1.0, **settings), strict=False):
                count += 1
        return count

    return write


def systems_of_shape(name: str, device: str, folder: Path) -> tuple[dict[str, Write], int]:
    """Return the systems for a shape with random weights, and the size of its vocabulary."""
    torch.manual_seed(1)
    model = SHAPES[name]().eval()
    model.save_pretrained(folder)
    file = load_folder(folder)
    writers: dict[str, WritingEngine] = {}
    if device == "cpu":
        packed = folder / "int8.safetensors"
        modelfile.save(packed, file.config, file.weights(), None, {}, "int8")
        writers["sixfold, CTranslate2 (int8)"] = CpuEngine(modelfile.load(packed), "int8")
        writers["sixfold, CTranslate2 (float32)"] = CpuEngine(file, "float32")
    writers["sixfold, torch (float32)"] = SamplingEngine.load(file, device)
    systems = {name: write_with(writer) for name, writer in writers.items()}
    systems["transformers (float32)"] = write_with_transformers(model.to(device), device)
    return systems, file.config.model.vocab


def systems_of_gguf(path: Path) -> tuple[dict[str, Write], int]:
    """Return the systems for a GGUF file."""
    file = read_source(str(path))
    with tempfile.TemporaryDirectory() as folder:
        packed = Path(folder) / "int8.safetensors"
        modelfile.save(packed, file.config, file.weights(), None, {}, "int8")
        int8 = CpuEngine(modelfile.load(packed), "int8")
    systems = {
        "sixfold, CTranslate2 (int8)": write_with(int8),
        "sixfold, torch (float32)": write_with(SamplingEngine.load(file)),
        "llama.cpp": write_with_llama_cpp(path, cores()),
    }
    return systems, file.config.model.vocab


def with_few_layers(file: ModelFile, layers: int) -> ModelFile:
    """Return a model of the first layers of another one."""
    config = replace(file.config, model=replace(file.config.model, decoder_layers=layers))
    dropped = tuple(f"decoder.layers.{index}." for index in range(layers, file.config.model.decoder_layers))
    tensors = {name: tensor for name, tensor in file.tensors.items() if not name.startswith(dropped)}
    return replace(file, config=config, tensors=tensors)


def systems_with_draft(folder: Path) -> tuple[dict[str, Write], int]:
    """Return a model with a draft of its first layers, and the same model without one.

    The upper layers add little, as in a draft that is often right: `--draft` prints how often it was.
    """
    torch.manual_seed(1)
    model = SHAPES["124M"]().eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "c_proj" in name and int(name.split(".")[2]) >= 3:
                weight *= 0.2
    model.save_pretrained(folder)
    file = load_folder(folder)
    small = with_few_layers(file, 3)
    return {
        "sixfold, torch, draft of 3 layers": write_with(SamplingEngine.load(file, draft=small)),
        "sixfold, torch": write_with(SamplingEngine.load(file)),
        "sixfold, CTranslate2 (float32)": write_with(CpuEngine(file, "float32")),
    }, file.config.model.vocab


def measure(systems: dict[str, Write], vocab: int, batch: int, draws: bool, rounds: int, shared: int) -> None:
    """Print the tokens per second of each system that can do this. All prompts begin with the same `shared` tokens."""
    random = np.random.default_rng(1)
    beginning = random.integers(4, vocab, (1, shared)).repeat(batch, axis=0)
    seconds: dict[str, list[float]] = {}
    for number in range(rounds + 1):  # the first is to warm up
        ends = random.integers(4, vocab, (batch, PROMPT_TOKENS))
        prompts = np.concatenate((beginning, ends), axis=1).tolist()
        for name, write in systems.items():
            if draws and "CTranslate2" in name:
                continue
            start = time.perf_counter()
            count = write(prompts, draws)
            assert count == batch * TOKENS, (name, count)
            if number:
                seconds.setdefault(name, []).append(time.perf_counter() - start)
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    slowest = max(medians.values())
    print(f"\nbatch {batch}, {'drawn' if draws else 'greedy'}")
    for name, median in medians.items():
        print(f"  {name:34} {batch * TOKENS / median:8.1f} tokens/s   {slowest / median:5.2f} x")


def main() -> None:
    """Measure all systems and print tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--shapes", nargs="*", default=["15M", "124M"], choices=list(SHAPES))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batches", type=int, nargs="*", default=[1, 8])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--gguf", type=Path)
    parser.add_argument("--draft", action="store_true")
    parser.add_argument("--shared", type=int, default=0, help="tokens that all prompts have before their own")
    arguments = parser.parse_args()
    torch.set_num_threads(cores())
    with tempfile.TemporaryDirectory() as folder:
        if arguments.gguf:
            contests = {arguments.gguf.name: systems_of_gguf(arguments.gguf)}
        elif arguments.draft:
            contests = {"124M": systems_with_draft(Path(folder))}
        else:
            contests = {
                name: systems_of_shape(name, arguments.device, Path(folder) / name) for name in arguments.shapes
            }
        for name, (systems, vocab) in contests.items():
            print(f"\n{name}: {arguments.shared} + {PROMPT_TOKENS} tokens read, {TOKENS} written, {cores()} threads")
            for batch in arguments.batches:
                for draws in (False, True):
                    measure(systems, vocab, batch, draws, arguments.rounds, arguments.shared)


if __name__ == "__main__":
    main()
