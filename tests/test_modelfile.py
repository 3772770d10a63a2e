import json
import os
import pickle
import struct
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import safetensors
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import SMALL, random_model
from small_profiles import profile_of

from sixfold import modelfile, quantization, tensorfile
from sixfold.config import Config, TokenizerConfig
from sixfold.errors import ModelFileError
from sixfold.model.transformer import load_weights, weights_of
from sixfold.modelfile import load, save
from sixfold.text.learn import train_tokenizer
from sixfold.weights import shapes

CONFIG = Config(model=SMALL)
CARD = {"languages": ["zh", "en"], "note": "机器"}


@pytest.fixture(scope="module")
def weights():
    return weights_of(random_model(SMALL))


@pytest.fixture(scope="module")
def path(weights, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    save(path, CONFIG, weights, card=CARD)
    return path


def test_what_is_saved_comes_back(path, weights):
    model = load(path)
    assert model.config == CONFIG
    assert model.card == CARD
    assert model.storage == "float32"
    for name, array in weights.items():
        np.testing.assert_array_equal(model.weight(name), array)


def test_saving_what_was_loaded_gives_the_same_bytes(path, tmp_path):
    model = load(path)
    save(tmp_path / "again.safetensors", model.config, model.weights(), model.tokenizer, model.card)
    assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()


def test_profiles_of_languages_come_back_and_a_file_without_them_has_none(path, weights, tmp_path):
    profiles = {"en": profile_of("en"), "zh-Hant": profile_of("zh")}
    first, second = tmp_path / "first.safetensors", tmp_path / "second.safetensors"
    save(first, CONFIG, weights, card=CARD, profiles=profiles)
    model = load(first)
    assert model.profiles == profiles
    save(second, model.config, model.weights(), model.tokenizer, model.card, profiles=model.profiles)
    assert second.read_bytes() == first.read_bytes()
    assert load(path).profiles == {}
    save(second, CONFIG, weights, card=CARD, profiles={})
    assert second.read_bytes() == path.read_bytes(), "older versions write the same file"


def test_a_profile_of_a_newer_version_is_left_out(path, tmp_path):
    tensors, metadata = tensorfile.read(path)
    metadata.pop("checksum")
    profiles = json.dumps({"en": profile_of("en").to_json(), "zh": {"version": 99}})
    tensorfile.write(tmp_path / "new.safetensors", tensors, metadata | {"profiles": profiles, "more": "…"})
    assert load(tmp_path / "new.safetensors").profiles == {"en": profile_of("en")}


def test_the_safetensors_library_reads_it(path, weights):
    with safetensors.safe_open(path, framework="np") as file:
        assert set(file.keys()) == set(shapes(SMALL))
        assert json.loads(file.metadata()["config"])["model"]["d_model"] == SMALL.d_model
        for name in file.keys():  # noqa: SIM118 -- not a dict
            np.testing.assert_array_equal(file.get_tensor(name), weights[name])


def test_shared_weights_answer_to_each_of_their_names(path):
    model = load(path)
    shared = model.weight("encoder.embedding.token.weight")
    np.testing.assert_array_equal(model.weight("decoder.embedding.token.weight"), shared)
    np.testing.assert_array_equal(model.weight("output.projection.weight"), shared)


def test_bfloat16_rounds_as_torch_does(weights, tmp_path):
    save(tmp_path / "m.safetensors", CONFIG, weights, storage="bfloat16")
    model = load(tmp_path / "m.safetensors")
    assert model.storage == "bfloat16"
    for name, array in weights.items():
        expected = torch.from_numpy(array).bfloat16().float().numpy()
        np.testing.assert_array_equal(model.weight(name), expected)


def test_bfloat16_keeps_special_values():
    values = np.array([np.inf, -np.inf, np.nan, -0.0, 3e38, 1e-40], np.float32)
    result = tensorfile.bfloat16(values).float32()
    np.testing.assert_array_equal(result, torch.from_numpy(values).bfloat16().float().numpy())


def test_int8_is_the_scheme_of_ctranslate2(weights):
    from ctranslate2.specs import common_spec

    for name in ("encoder.embedding.token.weight", "encoder.layers.0.feed_forward.up.weight"):
        spec = common_spec.LinearSpec()
        spec.weight = weights[name].copy()
        spec.validate()
        spec.optimize("int8")
        rows, scale = quantization.quantize(weights[name])
        np.testing.assert_array_equal(rows, spec.weight.numpy())
        np.testing.assert_array_equal(scale, spec.weight_scale.numpy())


def test_int8_is_within_half_a_step_and_quantising_again_changes_nothing(weights, tmp_path):
    save(tmp_path / "m.safetensors", CONFIG, weights, storage="int8")
    model = load(tmp_path / "m.safetensors")
    assert model.storage == "int8"
    assert (tmp_path / "m.safetensors").stat().st_size < 0.5 * sum(array.nbytes for array in weights.values()) + 12000
    for name, array in weights.items():
        step = np.abs(array).max(axis=-1, keepdims=True) / 127 if model.tensors[name].dtype == "I8" else 0
        assert np.all(np.abs(model.weight(name) - array) <= 0.5001 * step)
    save(tmp_path / "n.safetensors", CONFIG, model.weights(), storage="int8")
    second = load(tmp_path / "n.safetensors")
    assert all(np.array_equal(second.tensors[name].data, model.tensors[name].data) for name in weights)


def test_a_row_of_zeros_survives_int8():
    rows, scale = quantization.quantize(np.zeros((2, 3), np.float32))
    np.testing.assert_array_equal(quantization.dequantize(rows, scale), np.zeros((2, 3)))


def test_every_cut_is_noticed(path, tmp_path):
    data = path.read_bytes()
    cut = tmp_path / "cut.safetensors"
    for size in [0, 1, 7, 8, 9, 100, len(data) // 2, len(data) - 1]:
        cut.write_bytes(data[:size])
        with pytest.raises(ModelFileError, match=r"cut"):
            load(cut)


def test_added_bytes_are_noticed(path, tmp_path):
    (tmp_path / "long.safetensors").write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(ModelFileError, match="added to"):
        load(tmp_path / "long.safetensors")


@settings(max_examples=150, deadline=None)
@given(position=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_every_flipped_bit_is_noticed(position, bit, path, tmp_path_factory):
    content = bytearray(path.read_bytes())
    content[int(position * len(content))] ^= 1 << bit
    broken = tmp_path_factory.getbasetemp() / "broken.safetensors"
    broken.write_bytes(content)
    with pytest.raises(ModelFileError) as caught:
        load(broken)
    assert "\n" not in str(caught.value)


@settings(max_examples=60, deadline=None)
@given(
    header=st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_a_nonsense_header_is_refused(header, tmp_path_factory):
    raw = json.dumps(header).encode()
    file = tmp_path_factory.getbasetemp() / "nonsense.safetensors"
    file.write_bytes(struct.pack("<Q", len(raw)) + raw)
    with pytest.raises(ModelFileError):
        load(file)


def test_a_pickle_is_refused_unread(tmp_path):
    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "boom"),)

    (tmp_path / "a.safetensors").write_bytes(pickle.dumps(Bomb()))
    torch.save({"weight": torch.zeros(2)}, tmp_path / "b.safetensors")
    for name in ("a", "b"):
        with pytest.raises(ModelFileError, match="got a pickle"):
            load(tmp_path / f"{name}.safetensors")
    assert not (tmp_path / "boom").exists()


def test_a_header_whose_length_looks_like_a_pickle_is_read(weights, tmp_path):
    for padding in range(0, 70000, 8):
        path = tmp_path / "m.safetensors"
        save(path, CONFIG, weights, card={"note": "x" * (58000 + padding)})
        if path.read_bytes()[:2] in tensorfile.PICKLE_BEGINNINGS:
            break
    assert load(path).card["note"].startswith("xxx")


@pytest.mark.parametrize(
    "change",
    [
        {"version": None},
        {"config": None},
        {"tokenizer": None},
        {"config": "[]"},
        {"config": "3"},
        {"card": "3"},
        {"profiles": "3"},
        {"profiles": '{"en": {"version": 1}}'},
        {"version": "-1"},
    ],
)
def test_odd_metadata_is_one_line(change, path, tmp_path):
    tensors, metadata = tensorfile.read(path)
    metadata.pop("checksum")
    changed = {key: value for key, value in (metadata | change).items() if value is not None}
    tensorfile.write(tmp_path / "odd.safetensors", tensors, changed)
    with pytest.raises(ModelFileError):
        load(tmp_path / "odd.safetensors")


@pytest.mark.parametrize("shape", [[0, 2**70], [1] * 70, {}, [-1], [True], [1.0]])
def test_an_impossible_shape_is_one_line(shape, tmp_path):
    raw = json.dumps({"a": {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}}).encode()
    (tmp_path / "x.safetensors").write_bytes(struct.pack("<Q", len(raw)) + raw)
    with pytest.raises(ModelFileError):
        load(tmp_path / "x.safetensors")


def test_many_can_save_to_one_name_at_once(weights, tmp_path):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: save(tmp_path / "m.safetensors", CONFIG, weights), range(16)))
    assert [each.name for each in tmp_path.iterdir()] == ["m.safetensors"]
    load(tmp_path / "m.safetensors")


def test_a_saved_file_has_the_usual_permissions(path, tmp_path):
    (tmp_path / "plain").write_text("")
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_future_format_says_upgrade(path, tmp_path):
    tensors, metadata = tensorfile.read(path)
    metadata.pop("checksum")
    tensorfile.write(tmp_path / "future.safetensors", tensors, {**metadata, "version": "2"})
    with pytest.raises(ModelFileError, match="expected format 1; got '2'") as caught:
        load(tmp_path / "future.safetensors")
    assert caught.value.hint == "upgrade sixfold"


def test_a_foreign_safetensors_file_is_refused(tmp_path):
    tensorfile.write(tmp_path / "x.safetensors", {"a": tensorfile.Tensor.of(np.zeros(3, np.float32))}, {})
    with pytest.raises(ModelFileError, match="not a Sixfold model"):
        load(tmp_path / "x.safetensors")


def test_all_wrong_weights_are_named_at_once(weights, tmp_path):
    bad_weights = dict(weights)
    del bad_weights["encoder.layers.1.feed_forward.up.bias"]
    bad_weights["extra"] = np.zeros(1, np.float32)
    bad_weights["encoder.layers.0.feed_forward.up.bias"] = np.zeros(5, np.float32)
    with pytest.raises(ModelFileError) as caught:
        save(tmp_path / "m.safetensors", CONFIG, bad_weights)
    message = str(caught.value)
    assert "missing encoder.layers.1.feed_forward.up.bias" in message
    assert "unexpected extra" in message
    assert "encoder.layers.0.feed_forward.up.bias is (5,), expected (24,)" in message
    with pytest.raises(ModelFileError, match="unexpected extra"):
        load_weights(random_model(SMALL), bad_weights)


def test_a_tokeniser_may_be_smaller_than_the_table_but_not_larger(weights, tmp_path):
    tokenizer = train_tokenizer(["some words"] * 5, TokenizerConfig(vocab=280))
    with pytest.raises(ModelFileError, match=r"at most model\.vocab = 23 pieces; got 2\d\d"):
        save(tmp_path / "m.safetensors", CONFIG, weights, tokenizer)
    roomy = replace(SMALL, vocab=tokenizer.vocab + 7)
    save(tmp_path / "m.safetensors", Config(model=roomy), weights_of(random_model(roomy)), tokenizer)
    assert load(tmp_path / "m.safetensors").tokenizer.decode(tokenizer.encode("words 字")) == "words 字"


def test_a_failed_write_leaves_the_old_file_and_nothing_else(path, tmp_path, monkeypatch, weights):
    target = tmp_path / "model.safetensors"
    target.write_bytes(path.read_bytes())

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ModelFileError, match="No space left on device"):
        save(target, CONFIG, weights)
    assert target.read_bytes() == path.read_bytes()
    assert [each.name for each in tmp_path.iterdir()] == ["model.safetensors"]


def test_a_missing_folder_is_one_line(weights, tmp_path):
    with pytest.raises(ModelFileError, match="No such file or directory"):
        save(tmp_path / "none" / "m.safetensors", CONFIG, weights)


LISTS = modelfile.Shortlist(np.array([2, 4]), np.array([0, 3, *[3] * 21, 5]), np.array([7, 8, 9, 9, 10]))


def test_a_shortlist_travels_in_the_file_and_is_no_weight(weights, tmp_path):
    save(tmp_path / "m.safetensors", CONFIG, weights, storage="int8", shortlist=LISTS)
    model = load(tmp_path / "m.safetensors")
    assert model.shortlist is not None
    assert model.shortlist.candidates([0, 5, 0]).tolist() == [2, 4, 7, 8, 9]
    assert model.shortlist.candidates([0, 22]).tolist() == [2, 4, 7, 8, 9, 10]
    assert model.weights().keys() == weights.keys()


def test_a_shortlist_of_many_comes_back_and_takes_little_more_than_a_byte_an_id():
    chance = np.random.default_rng(1)
    lists = [np.sort(chance.choice(32_000, chance.integers(0, 600), replace=False)) for _ in range(400)]
    lists[7:9], lists[-1] = [np.array([31_999]), np.arange(32_000)], np.array([], int)
    begins, targets = np.cumsum([0, *map(len, lists)]), np.concatenate(lists)
    shuffled = np.concatenate([chance.permutation(each) for each in lists])
    tensors = modelfile.Shortlist(np.array([5]), begins, shuffled).tensors()
    assert sum(tensor.data.nbytes for tensor in tensors.values()) < 1.5 * len(targets)
    shortlist = modelfile.Shortlist.of(tensors)
    for array, expected in ((shortlist.begins, begins), (shortlist.targets, targets), (shortlist.always, [5])):
        np.testing.assert_array_equal(array, expected)
    assert {array.dtype for array in (shortlist.begins, shortlist.targets)} == {np.dtype(np.int32)}


STORED = {name.split(".")[1]: tensor.data for name, tensor in LISTS.tensors().items()}


@pytest.mark.parametrize(
    "change",
    [
        {"steps": np.array([7, 1, 1, 9, 14], np.uint8)},
        {"steps": np.array([7, 1, 1, 255, 1, 1], np.uint8)},
        {"steps": np.array([7, 1, 1], np.uint8)},
        {"steps": np.array([7, 1, 1, 9, 1, 1], np.uint8)},
        {"steps": np.array([7, 1, 1, 9, 255], np.uint8)},
        {"steps": np.array([], np.uint8)},
        {"always": np.array([99], np.int32)},
        {"sizes": np.array([3, 2], np.int32)},
        {"sizes": np.array([-3, 8, *[0] * 21], np.int32)},
        {"sizes": np.array([6, -1, *[0] * 21], np.int32)},
        {"sizes": None},
    ],
)
def test_a_shortlist_that_does_not_fit_is_refused(weights, tmp_path, change, monkeypatch):
    arrays = {name: array for name, array in (STORED | change).items() if array is not None}
    tensors = {f"shortlist.{name}": tensorfile.Tensor.of(array) for name, array in arrays.items()}
    monkeypatch.setattr(modelfile.Shortlist, "tensors", lambda _: tensors)
    save(tmp_path / "m.safetensors", CONFIG, weights, shortlist=LISTS)
    with pytest.raises(ModelFileError, match="its shortlist does not fit its vocabulary"):
        load(tmp_path / "m.safetensors")
