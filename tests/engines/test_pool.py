import threading
import time

import pytest
from small_models import SMALL, in_memory, random_model

from sixfold.engines.cpu import CpuEngine
from sixfold.engines.pool import ModelPool, PooledEngine, PooledFile

SOURCE = [[5, 6, 7, 2]]


class Counted:
    """A model that counts how often it has been opened and how often closed."""

    def __init__(self, pool, seed, size):
        self.file = in_memory(SMALL, random_model(SMALL, seed))
        self.opened = self.closed = 0
        self.pooled_file = PooledFile(pool, 0, self.file.header)
        self.engine = PooledEngine(pool, SMALL, size, self.open, self.pooled_file)

    def open(self, _):
        self.opened += 1
        engine, counted = CpuEngine(self.file, "float32", threads=1), self

        class Closing(CpuEngine):
            def __init__(self):
                self.__dict__ = engine.__dict__

            def close(self):
                counted.closed += 1
                super().close()

        return Closing()


def test_the_least_recently_used_model_is_closed():
    pool = ModelPool(250)
    first, second, third = (Counted(pool, seed, 100) for seed in (1, 2, 3))
    assert [each.opened for each in (first, second, third)] == [0, 0, 0]
    for each in (first, second, first, third):
        each.engine.decode(SOURCE)
    assert [each.opened - each.closed for each in (first, second, third)] == [1, 0, 1]
    assert pool.open_bytes == 200
    expected = CpuEngine(second.file, "float32").decode(SOURCE)
    assert second.engine.decode(SOURCE)[0][0].tokens == expected[0][0].tokens
    assert (second.opened, pool.open_bytes) == (2, 200)
    first.engine.close()
    second.engine.close()
    assert pool.open_bytes <= 100


def test_every_method_gives_what_the_engine_gives():
    pooled = Counted(ModelPool(0), 1, 100)
    engine = CpuEngine(pooled.file, "float32", threads=1)
    assert pooled.engine.score(SOURCE, [[5, 6]])[0] == pytest.approx(engine.score(SOURCE, [[5, 6]])[0], abs=1e-5)
    assert (pooled.engine.align(SOURCE, [[5, 6]])[0] == engine.align(SOURCE, [[5, 6]])[0]).all()
    assert pooled.opened == pooled.closed == 2  # there is no room for it when it is not used


def test_a_model_in_use_stays_open():
    pool = ModelPool(100)
    first, second = (Counted(pool, seed, 100) for seed in (1, 2))
    with pool.use(first.engine) as engine:
        second.engine.decode(SOURCE)
        assert first.closed == 0
        engine.decode(SOURCE)
    assert pool.open_bytes <= 100


def test_many_threads_share_a_small_pool():
    pool = ModelPool(150)
    models = [Counted(pool, seed, 100) for seed in (1, 2, 3)]
    expected = [CpuEngine(each.file, "float32").decode(SOURCE)[0][0].tokens for each in models]
    wrong = []

    def work(number):
        for turn in range(12):
            index = (number + turn) % 3
            if models[index].engine.decode(SOURCE)[0][0].tokens != expected[index]:
                wrong.append(index)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert pool.open_bytes <= 150
    assert all(each.opened - each.closed in (0, 1) for each in models)


def test_a_model_that_cannot_be_opened_raises_each_time():
    pool = ModelPool(100)

    def fail(_):
        time.sleep(0)
        raise OSError("gone")

    engine = PooledEngine(pool, SMALL, 10, fail, PooledFile(pool, 0, in_memory(SMALL, random_model(SMALL)).header))
    for _ in range(2):
        with pytest.raises(OSError, match="gone"):
            engine.decode(SOURCE)
    assert pool.open_bytes == 0
