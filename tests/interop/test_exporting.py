"""Exported models give the same translations in the toolkit that they are exported for."""

import json
import zipfile
from dataclasses import replace

import ctranslate2
import pytest
import sentencepiece
import small_checkpoints as checkpoints
import torch
import transformers
from commands import complaint, run_here
from small_models import random_model
from small_sentencepiece import TEXT

from sixfold import modelfile
from sixfold.cli.export import choose_pair, difference
from sixfold.config import Config, DataConfig, ModelConfig, TokenizerConfig
from sixfold.decoding.options import SearchOptions
from sixfold.engines.cpu import CpuEngine
from sixfold.errors import SixfoldError
from sixfold.interop.exporting import Export, export
from sixfold.interop.sources import read_source
from sixfold.model.transformer import weights_of
from sixfold.text.learn import train_tokenizer
from sixfold.translation.direction import directions_of

SENTENCES = list(dict.fromkeys(TEXT))[:8]
LENGTH = 14
SHAPE = ModelConfig(vocab=460, d_model=32, heads=4, d_ff=48, encoder_layers=2, decoder_layers=2, max_length=64)


def own_model(path, algorithm="bpe", both_ways=False, storage="float32", **changes):
    """Write a model of Sixfold with random weights and a tokeniser of its own; return it and its directions."""
    tags = ("zh", "en") if both_ways else ()
    tokenizer = train_tokenizer(TEXT, TokenizerConfig(algorithm=algorithm, vocab=SHAPE.vocab, tags=tags, max_piece=8))
    shape = replace(SHAPE, vocab=tokenizer.vocab, **changes)
    config = Config(model=shape, tokenizer=TokenizerConfig(tags=tags), data=DataConfig(both_ways=both_ways))
    card = {"languages": {"source": "zh", "target": "en"}, "licence": "CC0"}
    modelfile.save(path, config, weights_of(random_model(shape, spread=0.3)), tokenizer, card, storage)
    return modelfile.load(path)


def direction_of(file, pair=None):
    directions = directions_of(file, CpuEngine(file, "float32", threads=1), file.tokenizer)
    return next(each for each in directions if pair in (None, each.languages))


def translations(direction, beam=4):
    count = len(direction.special.before_target)
    options = SearchOptions(beam=beam, max_length=LENGTH - count, min_length=1, patience=1000.0)
    sources = [direction.encoder_input(direction.tokenizer.encode(text)) for text in SENTENCES]
    results = direction.engine.decode(sources, options)
    return [direction.decode_target(hypotheses[0].tokens) for hypotheses in results]


def write(file, form, folder, pair=None):
    direction = direction_of(file, pair)
    return direction, export(Export(file, direction.languages, direction.special), form, folder, difference)


OWN = {
    "BPE": {}, "unigram": {"algorithm": "unigram"}, "int8": {"storage": "int8"},
    "untied": {"tie_output": False, "share_embeddings": False}, "gelu": {"feed_forward": "gelu"},
}  # fmt: skip


@torch.no_grad()
@pytest.mark.parametrize("name", OWN)
def test_a_model_of_the_paper_becomes_a_marian_of_transformers(name, tmp_path):
    file = own_model(tmp_path / "m.safetensors", **OWN[name])
    direction, notes = write(file, "huggingface", tmp_path / "hf")
    assert not notes
    model = transformers.MarianMTModel.from_pretrained(tmp_path / "hf").eval()
    tokenizer = transformers.MarianTokenizer.from_pretrained(tmp_path / "hf")
    for text in SENTENCES:
        assert tokenizer(text)["input_ids"] == direction.encoder_input(direction.tokenizer.encode(text))
    batch = tokenizer(SENTENCES, return_tensors="pt", padding=True)
    output = model.generate(
        **batch, num_beams=4, early_stopping="never", length_penalty=1.0, max_new_tokens=LENGTH, min_new_tokens=1,
        forced_eos_token_id=None, bad_words_ids=None,
    )  # fmt: skip
    texts = [" ".join(text.split()) for text in tokenizer.batch_decode(output, skip_special_tokens=True)]
    same = sum(ours == theirs for ours, theirs in zip(translations(direction), texts, strict=True))
    assert same >= len(SENTENCES) - 1
    assert direction_of(read_source(str(tmp_path / "hf"))).tokenizer.encode("The machines") == (
        direction.tokenizer.encode("The machines")
    )


PAIRS = {
    checkpoints.marian: ("en", "fr"), checkpoints.m2m100: ("en", "zh"), checkpoints.nllb: ("en", "zh"),
    checkpoints.mbart: ("en", "ro"),
}  # fmt: skip


@pytest.mark.parametrize("make", PAIRS)
def test_an_imported_model_goes_back_to_transformers(make, tmp_path):
    first, _ = make(tmp_path)
    file = read_source(str(tmp_path / "model"))
    write(file, "huggingface", tmp_path / "again", PAIRS[make])
    again = type(first).from_pretrained(tmp_path / "again")
    for name, expected in first.state_dict().items():
        if name != "model.shared.weight":  # an untied model has one, which nothing reads
            torch.testing.assert_close(again.state_dict()[name], expected, msg=name)
    tokenizers = [transformers.AutoTokenizer.from_pretrained(tmp_path / name) for name in ("model", "again")]
    for text in SENTENCES:
        assert tokenizers[0](text)["input_ids"] == tokenizers[1](text)["input_ids"]


def ctranslate2_translations(folder, library, prefix=None):
    translator = ctranslate2.Translator(str(folder), compute_type="float32", inter_threads=1, intra_threads=1)
    tokens = [library.encode(text, out_type=str) for text in SENTENCES]
    results = translator.translate_batch(
        tokens, beam_size=4, patience=1000.0, max_decoding_length=LENGTH, max_input_length=0,
        min_decoding_length=2 if prefix else 1,
        target_prefix=[[prefix]] * len(tokens) if prefix else None,
    )  # fmt: skip
    return [result.hypotheses[0] for result in results]


@pytest.mark.parametrize("pair", [("zh", "en"), ("en", "zh")])
@pytest.mark.parametrize("storage", ["float32", "int8"])
def test_a_ctranslate2_folder_adds_the_tag_itself(pair, storage, tmp_path):
    file = own_model(tmp_path / "m.safetensors", both_ways=True, storage=storage, norm_position="pre")
    direction, _ = write(file, "ctranslate2", tmp_path / "ct2", pair)
    source, target = (
        sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "ct2" / f"{side}.spm"))
        for side in ("source", "target")
    )
    tokens = ctranslate2_translations(tmp_path / "ct2", source)
    assert [" ".join(target.decode_pieces(each).split()) for each in tokens] == translations(direction)


@pytest.mark.parametrize("make", [checkpoints.marian, checkpoints.m2m100])
def test_an_imported_model_becomes_an_argos_package(make, tmp_path):
    make(tmp_path)
    file = read_source(str(tmp_path / "model"))
    direction, _ = write(file, "argos", tmp_path / "argos")
    (package,) = (tmp_path / "argos").iterdir()
    with zipfile.ZipFile(package) as archive:
        archive.extractall(tmp_path / "package")
    (folder,) = (tmp_path / "package").iterdir()
    about = json.loads((folder / "metadata.json").read_text())
    assert (about["from_code"], about["to_code"]) == direction.languages
    library = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
    tokens = ctranslate2_translations(folder / "model", library, about.get("target_prefix"))
    names = direction.target_tokenizer.ids
    decoded = [direction.decode_target([names[token] for token in each]) for each in tokens]
    assert decoded == translations(direction)
    again = direction_of(read_source(str(package)))
    assert translations(again) == decoded


def test_what_transformers_cannot_compute_is_refused_by_name(tmp_path):
    file = own_model(tmp_path / "m.safetensors", norm_position="pre", feed_forward="swiglu")
    with pytest.raises(SixfoldError, match=r"nearest is .*model\.feed_forward = 'swiglu'"):
        write(file, "huggingface", tmp_path / "hf")
    assert not list(tmp_path.glob("*hf*"))


def test_a_folder_with_files_is_left_alone(tmp_path):
    file = own_model(tmp_path / "m.safetensors")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    with pytest.raises(SixfoldError, match="expected an empty folder"):
        write(file, "ctranslate2", tmp_path / "full")
    assert (tmp_path / "full" / "mine").read_text() == "mine"


def test_the_command_exports_a_direction(tmp_path, capsys):
    own_model(tmp_path / "m.safetensors", both_ways=True)
    output = run_here(
        capsys, "export", tmp_path / "m.safetensors", tmp_path / "out", "--to", "argos", "--direction", "en-zh"
    )
    assert output.out == f"{tmp_path / 'out'}\n"
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["translate-en_zh-1_0.argosmodel"]
    assert "expected one of huggingface" in complaint(
        "export", tmp_path / "m.safetensors", tmp_path / "x", "--to", "keras"
    )
    with pytest.raises(SixfoldError, match="--direction: expected one of zh-en, en-zh; got 'fr'"):
        choose_pair([("zh", "en"), ("en", "zh")], "fr")
