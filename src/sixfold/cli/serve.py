"""`sixfold serve`: models over HTTP, for the clients of LibreTranslate and of OpenAI, and Sixfold's own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from sixfold.cli.options import MODELS_HELP, Command
from sixfold.errors import ConfigError


def register(app: typer.Typer, name: str) -> None:
    app.command(name, cls=Command)(serve)


def serve(
    models: Annotated[list[Path], typer.Option("--model", "-m", help=MODELS_HELP)] = [],  # noqa: B006
    models_folder: Annotated[
        Path | None,
        typer.Option(
            "--models",
            metavar="DIR",
            help="Serve all models in this folder: model files (*.safetensors), Argos packages and CTranslate2 "
            "folders. Each is opened when it is first used.",
        ),
    ] = None,
    memory: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Close the least recently used models of the folder when all open ones take more bytes. "
            "Default: 2000000000.",
        ),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(help="Listen on this address. Default: 127.0.0.1. With 0.0.0.0 other machines can connect."),
    ] = None,
    port: Annotated[int | None, typer.Option(help="Listen on this port. Default: 5000. 0 takes a free port.")] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Use this many threads. Default: the number of cores.")
    ] = None,
    api_key_file: Annotated[
        Path | None,
        typer.Option(help="Require an API key for all but the page itself. This file holds the hashed keys."),
    ] = None,
    url_prefix: Annotated[
        str | None, typer.Option(help="Serve everything below this path, such as /translate-app. Default: the root.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="Read these options and all other settings of the server from this TOML file.")
    ] = None,
    new_key: Annotated[
        str | None, typer.Option(help="Create an API key with this name, print it, and exit. Needs --api-key-file.")
    ] = None,
) -> None:
    """Serve translations over HTTP, and texts of decoder-only models, with a web page to translate, write and explore.

    The clients of LibreTranslate and of OpenAI can use it.
    """
    # NumPy's threads spin while they wait, and would take the cores away from translation.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from sixfold.serving.api_keys import make_key
    from sixfold.serving.options import read_options

    if new_key is not None:
        if api_key_file is None:
            raise ConfigError("--new-key: expected --api-key-file with it, for the hash of the key", "name a file")
        print(make_key(api_key_file, new_key))
        return
    overrides: dict[str, Any] = {
        "host": host, "port": port, "threads": threads, "url_prefix": url_prefix,
        "api_key_file": None if api_key_file is None else str(api_key_file),
        "models": [str(path) for path in models] or None, "memory": memory,
        "models_folder": None if models_folder is None else str(models_folder),
    }  # fmt: skip
    options = read_options(config, {name: value for name, value in overrides.items() if value is not None})
    from sixfold.serving.app import make_app
    from sixfold.serving.connection import listen, run
    from sixfold.serving.models import ReloadingModels
    from sixfold.serving.writing import Ending
    from sixfold.translation.loading import find_model, shipped_models

    folder = Path(options.models_folder) if options.models_folder else None
    paths = [find_model(each, as_is=True) for each in options.models] or ([] if folder else shipped_models())
    with listen(options) as listening:
        memory = options.memory if folder else None
        models_in_use = ReloadingModels(paths, options.threads or None, folder, memory)
        ending = Ending()
        run(make_app(options, models_in_use, ending=ending), options, listening, ending)
