"""Models are loaded on the devices that there are, with or without torch; what cannot work is refused."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from small_models import SMALL, in_memory, random_model

from sixfold import modelfile
from sixfold.engines.gpu import GpuEngine
from sixfold.errors import ConfigError, ModelFileError, RequestError
from sixfold.modelfile import Shortlist
from sixfold.translation import translator as translators
from sixfold.translation.options import TranslateOptions
from sixfold.translation.translator import Translator


def test_a_model_that_does_not_translate_is_refused(tmp_path, models):
    encoder = replace(SMALL, kind="encoder")
    tokenizer = modelfile.load(models["zh-en"]).tokenizer
    for model, complaint in (
        (replace(in_memory(encoder, random_model(encoder)), tokenizer=tokenizer), "is of the kind 'encoder'"),
        (in_memory(SMALL, random_model(SMALL)), "has no tokeniser"),
    ):
        with pytest.raises(RequestError, match=f"model: expected a model that translates; this one {complaint}"):
            Translator(model, "cpu")
    with pytest.raises(ModelFileError, match=r"none\.safetensors"):
        Translator(tmp_path / "none.safetensors", "cpu")


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"device": "tpu"}, "device: expected auto, cpu or cuda; got 'tpu'"),
        ({"device": None}, "device: expected auto, cpu or cuda; got None"),
        ({"device": "cudabra"}, "device: expected auto, cpu or cuda; got 'cudabra'"),
        ({"threads": 0}, "threads: expected at least 1, or None for all cores; got 0"),
        ({"threads": "2"}, "threads: expected at least 1, or None for all cores; got '2'"),
        ({"compute": "int4"}, "compute: expected one of int8, float32 on a CPU; got 'int4'"),
        ({"model": []}, "model: expected a model file, or a list of them; got"),
        ({"model": 5}, "model: expected a model file, or a list of them; got 5"),
    ],
)
def test_bad_settings_are_refused(models, settings, complaint):
    with pytest.raises(ConfigError, match=complaint):
        Translator(**{"model": models["zh-en"], "device": "cpu"} | settings)


def test_a_gpu_that_is_not_there_is_refused(models, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(RequestError, match="device: expected a GPU that torch can use, for 'cuda'; found none"):
        Translator(models["zh-en"], "cuda")


@pytest.mark.parametrize("wrong", [{"beam": 0}, {"n_best": 0}, {"beam": -1}, {"prefix": None}])
def test_bad_options_are_refused(wrong):
    with pytest.raises(ConfigError):
        TranslateOptions(**wrong)


def test_without_a_model_the_shipped_ones_are_taken(models, monkeypatch, tmp_path):
    monkeypatch.setattr("sixfold.translation.loading.SHIPPED_FOLDER", models["zh-en"].parent)
    assert ("zh", "en") in Translator(device="cpu").directions
    monkeypatch.setattr("sixfold.translation.loading.SHIPPED_FOLDER", tmp_path)
    with pytest.raises(RequestError, match="none was named, and this version of sixfold ships none"):
        Translator(device="cpu")


def test_a_shortlist_of_everything_changes_nothing_and_a_short_one_can_be_switched_off(models, tmp_path, translator):
    file = modelfile.load(models["zh-en"])
    vocab, encode = file.config.model.vocab, file.tokenizer.encode
    every = Shortlist(np.arange(vocab), np.zeros(vocab + 1, int), np.zeros(0, int))
    # Only cats, dogs and <eos>: no other word can be decoded.
    few = Shortlist(np.array(sorted({2, *encode("cats dogs")})), np.zeros(vocab + 1, int), np.zeros(0, int))
    for name, shortlist in (("every", every), ("few", few)):
        path = tmp_path / name
        modelfile.save(path, file.config, file.weights(), file.tokenizer, file.card, shortlist=shortlist)
        expected = translator.translate("我爱猫。狗").text
        with Translator(path, "cpu", 1, "float32") as limited, Translator(path, "cpu", 1, "float32", False) as full:
            assert full.translate("我爱猫。狗").text == expected
            unguarded = TranslateOptions(guard=False)
            assert (limited.translate("我爱猫。狗", options=unguarded).text == expected) == (name == "every")
            assert set(limited.translate("猫狗").text.split()) == {"cats", "dogs"}


WITHOUT_TORCH = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "transformers", "safetensors"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

if sys.argv[2] == "blocked":
    sys.meta_path.insert(0, Blocked())
from sixfold.translation.translator import Translator
with Translator(sys.argv[1], "cpu") as translator:
    translation = translator.translate("我爱猫。")
    assert translation.text == "I love cats.", translation
    assert translation.tokens and translation.alignment
    assert translator.alternatives("我爱猫", "I") and translator.score("我", "I").score < 0
assert "torch" not in sys.modules
if sys.argv[2] == "blocked":
    assert Translator(sys.argv[1]).translate("猫").text == "cats"
"""


@pytest.mark.parametrize("torch_is", ["blocked", "installed"])
def test_on_a_cpu_it_neither_needs_nor_imports_torch(models, torch_is):
    program = [sys.executable, "-c", WITHOUT_TORCH, models["zh-en"], torch_is]
    process = subprocess.run(program, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr


def test_both_engines_translate_alike(models, translator, monkeypatch):
    monkeypatch.setattr(translators, "open_engine", lambda file, *_: GpuEngine.load(file, "cpu", "float32"))
    text, options = "我爱猫。你看山！\n花", TranslateOptions(n_best=2)
    with Translator(models["zh-en"]) as gpu_translator:
        cpu, gpu = (each.translate(text, options=options) for each in (translator, gpu_translator))
        assert gpu.text == cpu.text
        assert gpu.score == pytest.approx(cpu.score, abs=1e-3)
        assert [each.text for each in gpu.n_best] == [each.text for each in cpu.n_best]
        assert [token.span for token in gpu.tokens] == [token.span for token in cpu.tokens]
        assert [link[:2] for link in gpu.alignment] == [link[:2] for link in cpu.alignment]
        for token, cpu_token in zip(gpu.tokens, cpu.tokens, strict=True):
            assert token.probability == pytest.approx(cpu_token.probability, abs=1e-4)
        with_prefix = TranslateOptions(prefix="books water books water books water books water books water books")
        assert gpu_translator.translate(text, options=with_prefix).text.startswith(with_prefix.prefix)
        alternatives = gpu_translator.alternatives("我爱猫", "I", 3)
        assert alternatives[0].text == "I love cats"
        assert all(each.text.startswith("I") for each in alternatives)
        for each in alternatives:
            score = translator.score("我爱猫", each.text).score
            assert each.text.endswith(">") or each.score == pytest.approx(score, abs=1e-3)
