"""Speed of an imported Marian model on a CPU: this project beside CTranslate2's own converter and transformers.

A Marian checkpoint of the paper's base shape with random weights is saved by transformers. It never chooses </s>, so
that all systems read and write the same number of tokens. The systems translate the same sentences from text to text,
one after another in every round; medians are reported.

    python benchmarks/imported.py                    # needs transformers, ctranslate2 and sentencepiece
    python benchmarks/imported.py --small            # a quick look
"""

from __future__ import annotations

import argparse
import io
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import ctranslate2
import sentencepiece
import torch
import transformers
from ctranslate2.converters import TransformersConverter

from sixfold import modelfile
from sixfold.decoding.options import SearchOptions
from sixfold.engines.cpu import CpuEngine, cores
from sixfold.interop.sources import read_source
from sixfold.translation.direction import directions_of

TOKENS = 25  # that are written for each sentence
TEXT = (
    "the river runs along old walls and every morning people cross its stone bridge to work in small shops "
    "that sell bread tools paper and fruit while children wait for buses near schools"
)
WORDS = TEXT.split()


def make_checkpoint(folder: Path, small: bool) -> None:
    """Save a Marian checkpoint with random weights, and tokenisers that are learnt from made-up sentences."""
    files = folder / "files"
    files.mkdir(parents=True)
    model = io.BytesIO()
    sentences = [" ".join(WORDS[(start * step) % len(WORDS)] for step in range(1, 13)) for start in range(1, 400)]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences), model_writer=model, vocab_size=200, hard_vocab_limit=False, minloglevel=2
    )
    for side in ("source", "target"):
        (files / f"{side}.spm").write_bytes(model.getvalue())
    library = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    size = 1000 if small else 32_000
    pieces = [library.id_to_piece(index) for index in range(3, len(library))]
    names = ["</s>", "<unk>", *pieces]
    names += [f"<unused {index}>" for index in range(len(names), size - 1)] + ["<pad>"]
    (files / "vocab.json").write_text(json.dumps({name: index for index, name in enumerate(names)}), encoding="utf-8")
    tokenizer = transformers.MarianTokenizer(
        str(files / "source.spm"),
        str(files / "target.spm"),
        str(files / "vocab.json"),
        source_lang="en",
        target_lang="fr",
    )
    torch.manual_seed(1)
    width, layers = (64, 1) if small else (512, 6)
    config = transformers.MarianConfig(
        vocab_size=size, d_model=width, encoder_layers=layers, decoder_layers=layers, encoder_ffn_dim=4 * width,
        decoder_ffn_dim=4 * width, encoder_attention_heads=8, decoder_attention_heads=8, pad_token_id=size - 1,
        eos_token_id=0, decoder_start_token_id=size - 1, activation_function="swish", scale_embedding=True,
        max_position_embeddings=512, forced_eos_token_id=None,
    )  # fmt: skip
    network = transformers.MarianMTModel(config)
    network.final_logits_bias[:, [0, *range(1 + len(pieces), size)]] = -1e4  # only pieces with text are written
    network.save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")


def systems(folder: Path, threads: int, beam: int) -> dict[str, Callable[[list[str]], list[str]]]:
    """Return functions that translate sentences, by name."""
    path = folder / "m.safetensors"
    imported = read_source(str(folder / "model"))
    modelfile.save(
        path, imported.config, imported.weights(), imported.tokenizer, imported.card, "int8",
        target_tokenizer=imported.target_tokenizer, sequence_format=imported.sequence_format,
    )  # fmt: skip
    file = modelfile.load(path)
    assert file.tokenizer is not None
    (direction,) = directions_of(file, CpuEngine(file, "int8", threads), file.tokenizer)
    TransformersConverter(str(folder / "model")).convert(str(folder / "ct2"), quantization="int8")
    translator = ctranslate2.Translator(
        str(folder / "ct2"), inter_threads=threads, intra_threads=1, compute_type="int8"
    )
    source, target = (
        sentencepiece.SentencePieceProcessor(model_file=str(folder / "model" / f"{side}.spm"))
        for side in ("source", "target")
    )
    torch.set_num_threads(threads)
    network = transformers.MarianMTModel.from_pretrained(folder / "model").eval()
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder / "model")

    def ours(sentences: list[str]) -> list[str]:
        ids = [direction.encoder_input(each) for each in direction.tokenizer.encode_batch(sentences)]
        results = direction.engine.decode(ids, SearchOptions(beam=beam, max_length=TOKENS, patience=1.0))
        return [direction.decode_target(hypotheses[0].tokens) for hypotheses in results]

    def converted(sentences: list[str]) -> list[str]:
        tokens = [[*source.encode(text, out_type=str), "</s>"] for text in sentences]
        results = translator.translate_batch(
            tokens, beam_size=beam, max_decoding_length=TOKENS, max_batch_size=512, batch_type="tokens"
        )
        return [target.decode_pieces(result.hypotheses[0]) for result in results]

    @torch.inference_mode()
    def original(sentences: list[str]) -> list[str]:
        texts = []
        for start in range(0, len(sentences), 16):
            batch = tokenizer(sentences[start : start + 16], return_tensors="pt", padding=True)
            output = network.generate(**batch, num_beams=beam, max_new_tokens=TOKENS, do_sample=False)
            texts += tokenizer.batch_decode(output, skip_special_tokens=True)
        return texts

    return {
        "sixfold, imported (int8)": ours,
        "CTranslate2's converter (int8)": converted,
        "transformers (float32)": original,
    }


def main() -> None:
    """Measure all systems and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="a small shape, for a quick look")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sentences", type=int, default=64)
    parser.add_argument("--beam", type=int, default=4)
    arguments = parser.parse_args()
    sentences = [
        " ".join(WORDS[(7 * number + step) % len(WORDS)] for step in range(12)) for number in range(arguments.sentences)
    ]
    with tempfile.TemporaryDirectory() as folder:
        make_checkpoint(Path(folder), arguments.small)
        contestants = systems(Path(folder), cores(), arguments.beam)
        seconds: dict[str, list[float]] = {name: [] for name in contestants}
        outputs = {name: translate(sentences) for name, translate in contestants.items()}  # a round to warm up
        for _ in range(arguments.rounds):
            for name, translate in contestants.items():
                start = time.perf_counter()
                translate(sentences)
                seconds[name].append(time.perf_counter() - start)
    first = next(iter(outputs.values()))
    print(f"{cores()} threads, {len(sentences)} sentences of 12 words, beam {arguments.beam}, {TOKENS} tokens written")
    for name, times in seconds.items():
        same = sum(a.split() == b.split() for a, b in zip(first, outputs[name], strict=True))
        rate = len(sentences) / statistics.median(times)
        print(f"{name}: {rate:.1f} sentences/s; {same} of {len(sentences)} the same as the first")


if __name__ == "__main__":
    main()
