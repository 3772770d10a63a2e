"""The container holds every type of the safetensors specification, and a file that changes while in use is an error."""

import json
import os
import pickle
import struct
import subprocess
import sys
import threading
import tracemalloc
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import deserialize
from safetensors.torch import save_file
from small_translators import shared_models

from sixfold import tensorfile
from sixfold.errors import ModelFileError
from sixfold.interop.huggingface import translate
from sixfold.tensorfile import Tensor

BITS = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 16), **dict.fromkeys(("U32", "I32", "F32"), 32),
    **dict.fromkeys(("U64", "I64", "F64", "C64"), 64), "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}  # fmt: skip
TORCH = {
    "BOOL": torch.bool, "U8": torch.uint8, "I8": torch.int8, "U16": torch.uint16, "I16": torch.int16,
    "U32": torch.uint32, "I32": torch.int32, "U64": torch.uint64, "I64": torch.int64,
    "F16": torch.float16, "BF16": torch.bfloat16, "F32": torch.float32, "F64": torch.float64,
    "F8_E5M2": torch.float8_e5m2, "F8_E4M3": torch.float8_e4m3fn, "F8_E8M0": torch.float8_e8m0fnu,
    "F8_E5M2FNUZ": torch.float8_e5m2fnuz, "F8_E4M3FNUZ": torch.float8_e4m3fnuz,
}  # fmt: skip
UNSUPPORTED = ["F4", "F6_E2M3", "F6_E3M2", "C64"]


def write(path, table, data):
    raw = json.dumps(table).encode()
    path.write_bytes(struct.pack("<Q", len(raw)) + raw + data)
    return path


@pytest.mark.parametrize("dtype", BITS)
def test_what_the_library_reads_is_read_and_written_again_as_the_same_bytes(dtype, tmp_path):
    data = bytes(np.random.default_rng(1).integers(0, 2, BITS[dtype], np.uint8))
    table = {"a": {"dtype": dtype, "shape": [2, 4], "data_offsets": [0, len(data)]}}
    path = write(tmp_path / "x.safetensors", table, data)
    [(name, expected)] = deserialize(path.read_bytes())
    tensor = tensorfile.read(path)[0][name]
    assert (tensor.dtype, list(tensor.shape), tensor.data.tobytes()) == (
        dtype,
        expected["shape"],
        bytes(expected["data"]),
    )
    tensorfile.write(tmp_path / "y.safetensors", {"a": tensor}, {})
    [(_, entry)] = deserialize((tmp_path / "y.safetensors").read_bytes())
    assert (entry["dtype"], entry["shape"], bytes(entry["data"])) == (dtype, [2, 4], data)


@pytest.mark.parametrize("dtype", TORCH)
def test_values_become_float32_as_in_torch(dtype, tmp_path):
    bits = torch.arange(256).to(torch.uint8)
    if BITS[dtype] > 8:
        bits = torch.from_numpy(np.random.default_rng(1).integers(0, 256, 800, np.uint8))
    values = (bits % 2).bool() if dtype == "BOOL" else bits.view(TORCH[dtype])
    save_file({"a": values}, tmp_path / "x.safetensors")
    tensor = tensorfile.read(tmp_path / "x.safetensors")[0]["a"]
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(tensor.float32(), values.float().numpy())


@pytest.mark.parametrize("dtype", [*UNSUPPORTED, "F2_OF_TOMORROW"])
def test_a_type_that_cannot_be_converted_is_named_with_its_tensor_when_it_is_used(dtype, tmp_path):
    size = BITS.get(dtype, 16)
    table = {"some.weight": {"dtype": dtype, "shape": [8], "data_offsets": [0, size]}}
    tensor = tensorfile.read(write(tmp_path / "x.safetensors", table, bytes(size)))[0]["some.weight"]
    expected = f"x.safetensors: some.weight: tensors of the type {dtype} cannot be converted to float32"
    with pytest.raises(ModelFileError, match=expected):
        tensor.float32()


def test_a_tensor_that_a_family_ignores_may_have_any_type():
    sizes = {"vocab_size": 7, "n_embd": 4, "n_head": 2, "n_layer": 1, "n_inner": 8, "n_positions": 5}
    settings = {"model_type": "gpt2", "bos_token_id": 1, "eos_token_id": 1, **sizes}
    shapes = {
        "wte.weight": (7, 4), "wpe.weight": (5, 4), "ln_f.weight": (4,), "ln_f.bias": (4,),
        **{f"h.0.{name}.{part}": (4,) for name in ("ln_1", "ln_2") for part in ("weight", "bias")},
        "h.0.attn.c_attn.weight": (4, 12), "h.0.attn.c_attn.bias": (12,), "h.0.attn.c_proj.weight": (4, 4),
        "h.0.attn.c_proj.bias": (4,), "h.0.mlp.c_fc.weight": (4, 8), "h.0.mlp.c_fc.bias": (8,),
        "h.0.mlp.c_proj.weight": (8, 4), "h.0.mlp.c_proj.bias": (4,),
    }  # fmt: skip
    tensors = {f"transformer.{name}": Tensor.of(np.zeros(shape, np.float32)) for name, shape in shapes.items()}
    ignored = {"transformer.h.0.attn.bias": Tensor("F4", np.zeros(8, np.uint8), (16,))}
    assert len(translate(settings, {**tensors, **ignored})[1]) == len(shapes)
    bad_tensors = {"transformer.wte.weight": Tensor("F4", np.zeros(14, np.uint8), (7, 4))}
    with pytest.raises(ModelFileError, match="type F4 cannot be converted"):
        translate(settings, tensors | bad_tensors)


@pytest.mark.parametrize("dtype", BITS)
def test_a_size_that_does_not_fit_the_type_is_damage(dtype, tmp_path):
    table = {"a": {"dtype": dtype, "shape": [8], "data_offsets": [0, BITS[dtype] + 1]}}
    with pytest.raises(ModelFileError, match="header is damaged"):
        tensorfile.read(write(tmp_path / "x.safetensors", table, bytes(BITS[dtype] + 1)))


@pytest.fixture
def stored(tmp_path):
    arrays = {name: Tensor.of(np.arange(50_000, dtype=np.float32)) for name in ("a", "b")}
    tensorfile.write(tmp_path / "x.safetensors", arrays, {})
    return tmp_path / "x.safetensors"


def cut(path):
    os.truncate(path, 1000)


def overwrite(path):
    content = path.read_bytes()
    path.write_bytes(bytes(len(content)))
    os.utime(path, (0, 0))


@pytest.mark.parametrize("change", [cut, overwrite])
def test_a_file_that_is_changed_in_place_while_in_use_is_an_error_and_what_was_read_stays(stored, change):
    tensors, _ = tensorfile.read(stored)
    first = tensors["a"].data
    change(stored)
    with pytest.raises(ModelFileError, match="changed or cut short after it had been opened"):
        _ = tensors["b"].data
    np.testing.assert_array_equal(tensors["a"].data, np.arange(50_000))
    assert first is tensors["a"].data


def test_a_file_that_is_replaced_or_deleted_while_in_use_is_read_as_it_was(stored):
    tensors, _ = tensorfile.read(stored)
    tensorfile.write(stored, {"a": Tensor.of(np.zeros(3))}, {})
    np.testing.assert_array_equal(tensors["a"].data, np.arange(50_000))
    stored.unlink()
    np.testing.assert_array_equal(tensors["b"].data, np.arange(50_000))


def open_files():
    return list(Path("/proc/self/fd").iterdir())


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs a list of open files")
def test_a_file_is_closed_when_nothing_of_it_is_needed(stored):
    before = len(open_files())
    tensors, _ = tensorfile.read(stored)
    assert len(open_files()) == before + 1
    del tensors
    assert len(open_files()) == before


def test_tensors_are_read_by_many_threads_at_once(stored):
    tensors, _ = tensorfile.read(stored)
    sums = []
    threads = [threading.Thread(target=lambda: sums.append(tensors["b"].data.sum())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == [np.arange(50_000, dtype=np.float32).sum()] * 8


def test_a_system_that_cannot_read_at_a_position_reads_the_same(stored, monkeypatch):
    monkeypatch.delattr(os, "preadv")
    tensors, _ = tensorfile.read(stored)
    np.testing.assert_array_equal(tensors["b"].data, np.arange(50_000))


def test_what_is_read_can_be_sent_to_another_process(stored):
    tensors, _ = tensorfile.read(stored)
    copy = pickle.loads(pickle.dumps(tensors["a"]))
    np.testing.assert_array_equal(copy.data, np.arange(50_000))
    assert copy.dtype == "F32"


CUT_WHILE_IN_USE = """
import os, sys
from sixfold import Translator, explore, modelfile
from sixfold.errors import ModelFileError

path = sys.argv[1]
content = open(path, "rb").read()

def cut_short():
    os.truncate(path, 8192)

def attempt(name, action):
    try:
        print(name, "works" if action() else "fails")
    except ModelFileError as error:
        print(name, "cut short" in str(error))
    with open(path, "r+b") as file:
        file.write(content)

with Translator(path, "cpu") as translator:
    expected = translator.translate("我爱猫").text
    cut_short()
    attempt("translator", lambda: translator.translate("我爱猫。").text)
file = modelfile.load(path)
cut_short()
attempt("explorer", lambda: explore("我爱猫", model=file))
file = modelfile.load(path)
cut_short()
attempt("weights", file.weights)
attempt("opened again", lambda: Translator(path, "cpu").translate("我爱猫").text == expected)
"""


def test_a_model_that_is_cut_short_while_in_use_ends_no_process(tmp_path, tmp_path_factory):
    model = shared_models(tmp_path_factory)["zh-en"]
    (tmp_path / "m.safetensors").write_bytes(model.read_bytes())
    command = [sys.executable, "-c", CUT_WHILE_IN_USE, str(tmp_path / "m.safetensors")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr  # a negative one is a signal
    assert result.stdout.splitlines() == ["translator works", "explorer True", "weights True", "opened again works"]


def test_tensors_are_computed_and_written_one_after_another(tmp_path):
    size = 2**18

    def values(index):
        return np.full(size, index, np.float32)

    tensors = {
        f"t{index}": tensorfile.computed("F32", (size,), partial(values, index), f"t{index}") for index in range(12)
    }
    tracemalloc.start()
    tensorfile.write(tmp_path / "a.safetensors", tensors, {"key": "value"})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * 4 * size  # of 12 tensors
    again, metadata = tensorfile.read(tmp_path / "a.safetensors")
    assert metadata["key"] == "value"
    assert all((again[f"t{index}"].data == index).all() for index in range(12))
    arrays = {name: Tensor.of(tensor.read()) for name, tensor in tensors.items()}
    tensorfile.write(tmp_path / "b.safetensors", arrays, {"key": "value"})
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
