"""Models of Marian itself, compared with what ctranslate2's converter makes of them."""

from dataclasses import replace

import ctranslate2
import numpy as np
import pytest
import sentencepiece
import yaml
from ctranslate2.converters import MarianConverter
from small_sentencepiece import TEXT, train

from sixfold import Translator
from sixfold.decoding.options import SearchOptions
from sixfold.engines.cpu import CpuEngine
from sixfold.errors import ModelFileError
from sixfold.explorer.forward import forward
from sixfold.interop.sources import read_source

D_MODEL, D_FF, HEADS = 32, 48, 4
SENTENCES = list(dict.fromkeys(TEXT))[:10]
SETTINGS = {
    "type": "transformer", "transformer-decoder-autoreg": "self-attention", "transformer-no-projection": False,
    "transformer-ffn-activation": "swish", "transformer-preprocess": "", "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d", "transformer-heads": HEADS, "enc-depth": 2, "dec-depth": 2,
    "transformer-guided-alignment-layer": "last",
}  # fmt: skip
PRE_NORM = {"transformer-preprocess": "n", "transformer-postprocess": "da", "transformer-postprocess-top": "n"}
CASES = {
    "post-norm": {}, "relu": {"transformer-ffn-activation": "relu"}, "pre-norm": PRE_NORM,
    "norm of embeddings": {"transformer-postprocess-emb": "nd"}, "separate": {"separate": True},
    "untied": {"untied": True}, "separate and untied": {"separate": True, "untied": True},
}  # fmt: skip


def save_model(folder, separate=False, untied=False, **changes):
    """Write model.npz, its vocabularies and its SentencePiece models; return the paths of the vocabularies."""
    settings = SETTINGS | changes
    folder.mkdir(parents=True)
    random = np.random.default_rng(3)
    libraries = {}
    for side, data in (("source", train()), ("target", train(model_type="bpe", vocab_size=240))):
        (folder / f"{side}.spm").write_bytes(data)
        libraries[side] = sentencepiece.SentencePieceProcessor(model_proto=data)

    def names(*sides):
        pieces = [libraries[side].id_to_piece(index) for side in sides for index in range(3, len(libraries[side]))]
        return list(dict.fromkeys(["</s>", "<unk>", *pieces]))

    tokens = [names("source"), names("target")] if separate else [names("source", "target")]
    paths = [folder / f"vocab.{side}.yml" for side in ("en", "fr")[: len(tokens)]]
    for path, table in zip(paths, tokens, strict=True):
        lines = [f'"{token}": {index}\n'.replace("\\", "\\\\") for index, token in enumerate(table)]
        path.write_text("".join(lines), encoding="utf-8")
    arrays = {}

    def norm(name, suffix=""):
        arrays[f"{name}_ln_scale{suffix}"] = 1 + 0.2 * random.standard_normal((1, D_MODEL))
        arrays[f"{name}_ln_bias{suffix}"] = 0.2 * random.standard_normal((1, D_MODEL))

    def linear(name, letter, inputs=D_MODEL, outputs=D_MODEL):
        arrays[f"{name}_W{letter}"] = 0.3 * random.standard_normal((inputs, outputs))
        arrays[f"{name}_b{letter}"] = 0.3 * random.standard_normal((1, outputs))

    suffix = "_pre" if settings["transformer-preprocess"] else ""
    if separate:
        for stack, table in zip(("encoder", "decoder"), tokens, strict=True):
            arrays[f"{stack}_Wemb"] = 0.3 * random.standard_normal((len(table), D_MODEL))
    else:
        arrays["Wemb"] = 0.3 * random.standard_normal((len(tokens[0]), D_MODEL))
    for stack in ("encoder", "decoder"):
        if "n" in settings["transformer-postprocess-emb"]:
            norm(f"{stack}_emb", "_pre")
        if suffix:
            norm(f"{stack}_top")
        for layer in (1, 2):
            for attention in ("self", "context")[: 1 + (stack == "decoder")]:
                for letter in "qkvo":
                    linear(f"{stack}_l{layer}_{attention}", letter)
                norm(f"{stack}_l{layer}_{attention}_Wo", suffix)
            linear(f"{stack}_l{layer}_ffn", "1", D_MODEL, D_FF)
            linear(f"{stack}_l{layer}_ffn", "2", D_FF, D_MODEL)
            norm(f"{stack}_l{layer}_ffn_ffn", suffix)
    size = len(tokens[-1])
    if untied:
        arrays["decoder_ff_logit_out_W"] = 0.4 * random.standard_normal((D_MODEL, size))
    arrays["decoder_ff_logit_out_b"] = 0.3 * random.standard_normal((1, size))
    arrays["decoder_ff_logit_out_b"][0, 0] += 2.5  # </s>
    if suffix:  # ctranslate2 looks for this name first
        for stack in ("encoder", "decoder"):
            for part in ("scale", "bias"):
                arrays[f"{stack}_top_ln_{part}"] = arrays.pop(f"{stack}_top_ln_{part}")
    arrays = {name: array.astype(np.float32) for name, array in arrays.items()}
    text = yaml.safe_dump(settings | {"vocabs": [path.name for path in paths]}).encode() + b"\0"
    np.savez(folder / "model.npz", **arrays, **{"special:model.yml": np.frombuffer(text, np.int8)})
    return paths


def as_ctranslate2(file):
    """Return a model with the positions and the epsilon of ctranslate2, which are not those of Marian."""
    model = replace(file.config.model, position_spacing="open", norm_eps=1e-5)
    return replace(file, config=replace(file.config, model=model))


@pytest.mark.parametrize("name", CASES)
def test_translations_are_those_of_ctranslate2(name, tmp_path):
    paths = save_model(tmp_path / "en-fr", **CASES[name])
    MarianConverter(str(tmp_path / "en-fr" / "model.npz"), list(map(str, paths))).convert(str(tmp_path / "ct2"))
    file = read_source(str(tmp_path / "en-fr" / "model.npz"))
    assert file.card["languages"] == {"source": "en", "target": "fr"}
    assert file.config.model.position_spacing == "closed"
    translator = ctranslate2.Translator(str(tmp_path / "ct2"), inter_threads=1, intra_threads=1)
    source = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "en-fr" / "source.spm"))
    tokens = [source.encode(text, out_type=str) for text in SENTENCES]
    theirs = translator.translate_batch(tokens, beam_size=4, patience=2.0, max_decoding_length=16, return_scores=True)
    engine = CpuEngine(as_ctranslate2(file), "float32", threads=1)
    ids = [[*file.tokenizer.encode(text), *file.sequence_format.after_source] for text in SENTENCES]
    ours = engine.decode(ids, SearchOptions(beam=4, max_length=16))
    names = (file.target_tokenizer or file.tokenizer).tokens
    for expected, (best,) in zip(theirs, ours, strict=True):
        assert [names[index] for index in best.tokens] == expected.hypotheses[0]
        assert best.score == pytest.approx(expected.scores[0], abs=1e-3)
    through = read_source(str(tmp_path / "ct2"))
    assert through.config.model.vocab == file.config.model.vocab
    batch = np.array([ids[0]]), np.array([[file.config.model.bos, 5, 9]])
    logits = [forward(each, *batch)["logits"] for each in (through, as_ctranslate2(file))]
    np.testing.assert_allclose(*logits, atol=1e-3)
    with Translator(file, "cpu") as opened:
        assert opened.translate("The machines are learning.").languages == ("en", "fr")


def test_positions_are_those_of_marian(tmp_path):
    """Feature i of the first half is sin(p · 10000^(-i / (d/2 - 1))), and of the second half the cosine."""
    save_model(tmp_path / "x")
    file = read_source(str(tmp_path / "x"))
    arrays = forward(file, np.array([[4, 5, 6, 7]]), np.array([[file.config.model.bos]]))
    for position in range(4):
        for index in range(D_MODEL // 2):
            angle = position * np.exp(-index * np.log(10000.0) / (D_MODEL / 2 - 1))
            got = arrays["encoder.embedding.position"][position]
            assert got[index] == pytest.approx(np.sin(angle), abs=1e-6)
            assert got[D_MODEL // 2 + index] == pytest.approx(np.cos(angle), abs=1e-6)


def test_a_vocabulary_may_be_a_sentencepiece_model(tmp_path):
    paths = save_model(tmp_path / "x")
    names = [line.rpartition(":")[0].strip('"') for line in paths[0].read_text(encoding="utf-8").splitlines()]
    with np.load(tmp_path / "x" / "model.npz") as archive:
        arrays = dict(archive)
    data = train(vocab_size=200, unk_id=1, eos_id=0, bos_id=-1, hard_vocab_limit=False)
    library = sentencepiece.SentencePieceProcessor(model_proto=data)
    for name in ("Wemb", "decoder_ff_logit_out_b"):
        arrays[name] = arrays[name][..., : len(library)] if name.endswith("_b") else arrays[name][: len(library)]
    assert len(library) < len(names)
    settings = SETTINGS | {"vocabs": ["vocab.spm", "vocab.spm"]}
    arrays["special:model.yml"] = np.frombuffer(yaml.safe_dump(settings).encode() + b"\0", np.int8)
    for path in list((tmp_path / "x").iterdir()):
        path.unlink()
    np.savez(tmp_path / "x" / "model.npz", **arrays)
    (tmp_path / "x" / "vocab.spm").write_bytes(data)
    file = read_source(str(tmp_path / "x"))
    assert file.tokenizer.encode("The machines") == library.encode("The machines")
    assert file.sequence_format.after_source == (library.eos_id(),)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"transformer-ffn-activation": "gelu"}, "transformer-ffn-activation = 'gelu'"),
        ({"type": "s2s"}, "type = 's2s'"),
        ({"transformer-postprocess": "n"}, "transformer-preprocess, -postprocess"),
        ({"enc-depth": 3}, r"missing encoder_l3_self_Wq; missing encoder_l3_self_Wk.*"),
        ({"transformer-heads": 5}, "model.heads"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(changes, message, tmp_path):
    save_model(tmp_path / "x", **changes)
    with pytest.raises(ModelFileError, match=message):
        read_source(str(tmp_path / "x" / "model.npz"))


def test_damaged_files_are_one_line(tmp_path):
    (path,) = save_model(tmp_path / "x")
    model = tmp_path / "x" / "model.npz"
    whole, lines = model.read_bytes(), path.read_text(encoding="utf-8")
    path.write_text(lines + "what is this\n", encoding="utf-8")
    with pytest.raises(ModelFileError, match=r"vocab\.en\.yml: expected lines such as"):
        read_source(str(model))
    path.unlink()
    with pytest.raises(ModelFileError, match=r"expected its vocabularies \(vocab\.en\.yml\)"):
        read_source(str(model))
    for content in (whole[:1000], whole[: len(whole) // 2], b"", b"PK\x03\x04"):
        model.write_bytes(content)
        with pytest.raises(ModelFileError, match=r"model\.npz: expected") as caught:
            read_source(str(model))
        assert "\n" not in str(caught.value)
    np.savez(model, **{"special:model.yml": np.array([print], object)}, allow_pickle=True)
    with pytest.raises(ModelFileError, match="arrays and nothing else"):
        read_source(str(model))
    np.savez_compressed(model, a=np.zeros(10**7))
    with pytest.raises(ModelFileError, match=r"expected at most .* bytes in it, 20 times its own size; got 80,"):
        read_source(str(model))
