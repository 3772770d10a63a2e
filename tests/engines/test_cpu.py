import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from small_models import SMALL, in_memory, random_model

from sixfold import modelfile
from sixfold.config import Config
from sixfold.decoding.options import SearchOptions
from sixfold.engines import cpu
from sixfold.engines.cpu import CpuEngine, cache_home, cached_folder
from sixfold.errors import ConfigError
from sixfold.model.transformer import weights_of

GREEDY = SearchOptions(beam=1, max_length=9)
BEAM = SearchOptions(beam=3, n_best=2, max_length=9)
SOURCES = [[5, 6, 7, 2], [9, 2], [4, 5, 4, 5, 4, 2]]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "m.safetensors"
    modelfile.save(path, Config(model=SMALL), weights_of(random_model(SMALL)))
    return modelfile.load(path)


def test_the_converted_model_is_kept_by_checksum(file, monkeypatch):
    first = CpuEngine(file, "float32").decode(SOURCES, GREEDY)
    folder = cached_folder(file)
    assert folder is not None
    assert file.checksum.removeprefix("sha256:") in folder.name
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.bin", "shared_vocabulary.json"]
    assert json.loads((folder / "config.json").read_text())["eos_token"] == "2"
    monkeypatch.setattr(cpu, "convert", None)  # a second conversion would fail
    assert CpuEngine(file, "float32").decode(SOURCES, GREEDY) == first


def test_other_weights_are_another_folder(file, tmp_path):
    modelfile.save(tmp_path / "n.safetensors", Config(model=SMALL), weights_of(random_model(SMALL, seed=2)))
    assert cached_folder(file) != cached_folder(modelfile.load(tmp_path / "n.safetensors"))


def test_nothing_half_written_is_left_when_writing_fails(file, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cpu, "_write", full)
    assert cached_folder(file) is None
    assert list((cache_home() / "ctranslate2").iterdir()) == []
    assert CpuEngine(file, "float32").decode(SOURCES, GREEDY)


def test_it_works_where_nothing_can_be_written(file, tmp_path, monkeypatch):
    expected = CpuEngine(file, "float32").decode(SOURCES, GREEDY)
    blocked = tmp_path / "a-file"
    blocked.write_text("")  # a folder cannot be made below a file, even by root
    monkeypatch.setenv("SIXFOLD_CACHE", str(blocked))
    assert cached_folder(file) is None
    assert CpuEngine(file, "float32").decode(SOURCES, GREEDY) == expected


def test_many_can_convert_at_once(file):
    barrier = threading.Barrier(8)

    def convert():
        barrier.wait()
        return cached_folder(file)

    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(lambda _: convert(), range(8)))
    assert len(set(folders)) == 1
    assert os.listdir(cache_home() / "ctranslate2") == [folders[0].name]  # noqa: PTH208


def test_threads_share_an_engine(file):
    engine = CpuEngine(file, "float32", threads=2)
    expected = engine.decode(SOURCES, BEAM)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: engine.decode(SOURCES, BEAM), range(64)))
    assert all(result == expected for result in results)


def test_a_batch_decodes_as_each_source_does_alone(file):
    engine = CpuEngine(file, "float32")
    batch = engine.decode(SOURCES, BEAM)
    for source, hypotheses in zip(SOURCES, batch, strict=True):
        (expected,) = engine.decode([source], BEAM)
        assert [c.tokens for c in expected] == [c.tokens for c in hypotheses]


def test_a_target_ends_where_the_position_table_does(file):
    (hypotheses,) = CpuEngine(file).decode([[5, 6, 2]], SearchOptions(min_length=200))
    assert len(hypotheses[0].tokens) == SMALL.max_length


def test_a_continuation_ends_there_too():
    config = replace(SMALL, kind="decoder")
    model = in_memory(config, random_model(config))
    (hypotheses,) = CpuEngine(model).decode([[5] * 20], SearchOptions(min_length=200))
    assert len(hypotheses[0].tokens) == SMALL.max_length - 20


def test_the_n_best_are_found_whatever_the_patience(file):
    options = SearchOptions(beam=4, n_best=4, patience=0.25, max_length=9)
    assert all(len(each) == 4 for each in CpuEngine(file).decode(SOURCES, options))


def test_a_damaged_cache_is_made_again(file):
    expected = CpuEngine(file, "float32").decode(SOURCES, GREEDY)
    (cached_folder(file) / "model.bin").write_bytes(b"")
    assert CpuEngine(file, "float32").decode(SOURCES, GREEDY) == expected
    assert (cached_folder(file) / "model.bin").stat().st_size > 0


def test_a_shortlist_bounds_what_is_written(tmp_path):
    weights = weights_of(random_model(SMALL))
    allowed = {1, 2, 3, 6, 11, 12}  # CTranslate2 adds <bos> and <unk>
    begins = np.zeros(SMALL.vocab + 1, np.int64)
    begins[6:] = 2  # what source piece 5 may become
    lists = modelfile.Shortlist(np.array([2, 6]), begins, np.array([11, 12]))
    modelfile.save(tmp_path / "m.safetensors", Config(model=SMALL), weights, shortlist=lists)
    engine = CpuEngine(modelfile.load(tmp_path / "m.safetensors"), "float32")
    free = CpuEngine(modelfile.load(tmp_path / "m.safetensors"), "float32", shortlist=False)
    for options in (GREEDY, BEAM):
        (hypotheses,) = engine.decode([[5, 7, 2]], options)
        assert all(set(hypothesis.tokens) <= allowed for hypothesis in hypotheses)
        assert hypotheses[0].tokens != free.decode([[5, 7, 2]], options)[0][0].tokens
    assert engine.decode([[5, 7, 2]], GREEDY, [[9, 8]])[0][0].tokens[:2] == [9, 8]  # a prefix may hold any token


def test_a_long_neighbour_does_not_make_a_short_source_run_on(file):
    options = SearchOptions(beam=2, min_length=20, max_length=24, max_ratio=1.0)
    engine = CpuEngine(file, "float32", threads=1)
    sources = [[5, 6] * 5 + [4, 2]] * 10 + [[5, 6] * 4 + [2]] * 10  # 12 and 9 tokens: some share a batch
    expected = [engine.decode([source], options)[0] for source in sources]
    assert len(expected[0][0].tokens) > len(expected[-1][0].tokens)
    batch = engine.decode(sources, options)
    assert [[c.tokens for c in each] for each in batch] == [[c.tokens for c in each] for each in expected]


def test_many_sources_are_shared_out_and_come_back_in_order(file):
    engine = CpuEngine(file, "float32", threads=3)
    sources = [[4 + n % 19] * (1 + n % 20) + [2] for n in range(90)]
    batch = engine.decode(sources, BEAM)
    assert [[c.tokens for c in each] for each in batch] == [
        [c.tokens for c in engine.decode([source], BEAM)[0]] for source in sources
    ]


def test_what_is_banned_is_not_written(file):
    engine = CpuEngine(file, "float32")
    for best, *_ in engine.decode(SOURCES, BEAM):
        banned = tuple(set(best.tokens))
        results = engine.decode(SOURCES, replace(BEAM, banned=banned))
        assert all(set(banned).isdisjoint(each.tokens) for hypotheses in results for each in hypotheses)
    with pytest.raises(ConfigError, match="banned: expected a list of whole numbers"):
        replace(BEAM, banned=("5",))


def test_many_are_aligned_and_scored_as_each_alone(file):
    engine = CpuEngine(file, "float32")
    sources, targets = SOURCES * 7, [[7, 8], [], [4, 5, 6, 9, 8]] * 7
    batch = list(zip(engine.align(sources, targets), engine.score(sources, targets), strict=True))
    for source, target, (weights, logprobs) in zip(sources, targets, batch, strict=True):
        assert weights.shape == (len(target), len(source))
        np.testing.assert_allclose(weights, engine.align([source], [target])[0], atol=1e-5)
        np.testing.assert_allclose(logprobs, engine.score([source], [target])[0], atol=1e-5)
