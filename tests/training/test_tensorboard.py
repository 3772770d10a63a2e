import math

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from sixfold.training import tensorboard
from sixfold.training.tensorboard import EventFile, crc32c


def read(folder):
    return EventAccumulator(str(folder)).Reload()


def test_the_checksum_is_crc_32c():
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"") == 0


def test_tensorboard_reads_the_curves_back(tmp_path):
    with EventFile(tmp_path / "new" / "run") as events:
        for step in (0, 127, 128, 2**40):
            events.scalars(step, {"loss": step / 2, "rate/学习": -0.25})
    found = read(tmp_path / "new" / "run")
    assert found.file_version == 2.0
    assert [(point.step, point.value) for point in found.Scalars("loss")] == [
        (0, 0.0), (127, 63.5), (128, 64.0), (2**40, 2.0**39),
    ]  # fmt: skip
    assert {point.value for point in found.Scalars("rate/学习")} == {-0.25}


def test_points_bear_the_time_they_were_logged(tmp_path, monkeypatch):
    monkeypatch.setattr(tensorboard.time, "time", lambda: 1234567890.5)
    with EventFile(tmp_path) as events:
        events.scalars(1, {"loss": 1.0})
    assert read(tmp_path).Scalars("loss")[0].wall_time == 1234567890.5
    assert [path.name.split(".")[3] for path in tmp_path.iterdir()] == ["1234567890"]


def test_a_loss_that_explodes_is_still_logged(tmp_path):
    with EventFile(tmp_path) as events:
        for step, loss in enumerate([1e39, -math.inf, math.nan]):
            events.scalars(step, {"loss": loss})
    large, low, nothing = (point.value for point in read(tmp_path).Scalars("loss"))
    assert (large, low) == (math.inf, -math.inf)
    assert math.isnan(nothing)


def test_tensorboard_finds_sample_translations_as_text(tmp_path):
    sample = "我爱你 → *I love you*\n" * 50
    with EventFile(tmp_path) as events:
        events.text(300, "samples", sample)
        events.text(301, "samples", "")
    found = read(tmp_path)
    assert list(found.PluginTagToContent("text")) == ["samples"]
    first, last = found.Tensors("samples")
    assert first.step == 300
    assert first.tensor_proto.string_val[0].decode() == sample
    assert list(last.tensor_proto.string_val) == [b""]


def test_what_is_flushed_can_be_read_while_the_run_goes_on(tmp_path):
    with EventFile(tmp_path) as events:
        events.scalars(1, {"loss": 1.0})
        events.flush()
        events.scalars(2, {"loss": 2.0})
        assert [point.step for point in read(tmp_path).Scalars("loss")] == [1]


def test_a_long_run_flushes_by_itself(tmp_path):
    with EventFile(tmp_path) as events:
        for step in range(2000):
            events.scalars(step, {"loss": 1.0})
        (path,) = tmp_path.iterdir()
        assert path.stat().st_size > tensorboard.FLUSH_BYTES


def test_a_run_resumed_within_the_second_adds_to_its_file(tmp_path, monkeypatch):
    monkeypatch.setattr(tensorboard.time, "time", lambda: 1.0)
    for step in (1, 2):
        with EventFile(tmp_path) as events:
            events.scalars(step, {"loss": 1.0})
    (path,) = tmp_path.iterdir()
    assert path.read_bytes().count(b"brain.Event:2") == 1
    assert [point.step for point in read(tmp_path).Scalars("loss")] == [1, 2]


def test_after_a_full_disk_the_file_goes_on_without_a_gap(tmp_path):
    resource = pytest.importorskip("resource", reason="Windows has no limit on the size of files")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with EventFile(tmp_path) as events:
        events.scalars(1, {"loss": 1.0})
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (50, hard))  # inside the second record
            with pytest.raises(OSError, match="too large"):
                events.flush()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        (path,) = tmp_path.iterdir()
        assert path.stat().st_size == 50
        events.scalars(2, {"loss": 2.0})
    assert [point.step for point in read(tmp_path).Scalars("loss")] == [1, 2]


def test_a_run_that_goes_back_draws_each_step_once(tmp_path):
    with EventFile(tmp_path) as events:
        for step in (1, 2, 3, 4):
            events.scalars(step, {"loss": 10.0 * step})
        events.restart(3)
        for step in (3, 4, 5):
            events.scalars(step, {"loss": float(step)})
    assert [(point.step, point.value) for point in read(tmp_path).Scalars("loss")] == [
        (1, 10.0), (2, 20.0), (3, 3.0), (4, 4.0), (5, 5.0),
    ]  # fmt: skip
