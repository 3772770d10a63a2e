"""One model for all these tests, since it takes some seconds to train."""

import pytest
from small_translators import shared_models

from sixfold.translation import translator as translators
from sixfold.translation.translator import Translator


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    return shared_models(tmp_path_factory)


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    """Set a cache folder for fixtures that live longer than a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SIXFOLD_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def translator(models, cache):  # noqa: ARG001
    with Translator(models["zh-en"], "cpu", 1, "float32") as translator:
        yield translator


class CountingEngine:
    """A real engine that records the sources it decodes."""

    def __init__(self, engine):
        self.engine, self.config, self.sources = engine, engine.config, []

    def decode(self, sources, options=None, prefixes=None):
        self.sources += map(tuple, sources)
        return self.engine.decode(sources, options, prefixes)

    def close(self):
        self.engine.close()


@pytest.fixture
def counting(models, monkeypatch):
    open_engine = translators.open_engine
    monkeypatch.setattr(translators, "open_engine", lambda *arguments: CountingEngine(open_engine(*arguments)))
    with Translator(models["zh-en"], "cpu", 1, "float32") as translator:
        yield translator
