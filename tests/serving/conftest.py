import os

import pytest
from small_servers import Server
from small_translators import shared_models


@pytest.fixture(scope="package")
def models(tmp_path_factory):
    return shared_models(tmp_path_factory)


@pytest.fixture(scope="package")
def server(models, tmp_path_factory):
    """A server that translates between Chinese and English, with small limits."""
    os.environ["SIXFOLD_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    folder = tmp_path_factory.mktemp("suggestions")
    with Server(models["tagged"], suggestions=str(folder / "better.tsv"), max_characters=5000, max_texts=50) as running:
        running.folder = folder
        yield running
