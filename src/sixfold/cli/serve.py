"""`sixfold serve`: translations over HTTP, for LibreTranslate's clients and for ours."""

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
    host: Annotated[str | None, typer.Option(help="Address to listen on; 0.0.0.0 for everyone.")] = None,
    port: Annotated[int | None, typer.Option(help="0: any that is free.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Left out: as many as there are cores.")] = None,
    api_key_file: Annotated[Path | None, typer.Option(help="Keys, hashed; with it every request needs one.")] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file with these and all other settings.")] = None,
    new_key: Annotated[str | None, typer.Option(help="Make a key of this name, print it, and stop.")] = None,
) -> None:
    """Serve translations over HTTP."""
    # NumPy's threads spin while they wait, and take the cores from those that translate.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from sixfold.serving.api_keys import make_key
    from sixfold.serving.options import read_options

    if new_key is not None:
        if api_key_file is None:
            raise ConfigError("--new-key: expected --api-key-file with it, to keep the hash in", "name a file")
        print(make_key(api_key_file, new_key))
        return
    told: dict[str, Any] = {
        "host": host, "port": port, "threads": threads,
        "api_key_file": None if api_key_file is None else str(api_key_file),
        "models": [str(path) for path in models] or None,
    }  # fmt: skip
    options = read_options(config, {name: value for name, value in told.items() if value is not None})
    from sixfold.serving.app import make_app
    from sixfold.serving.connection import listen, run
    from sixfold.serving.models import ReloadingModels
    from sixfold.translation.loading import find_model, shipped_models

    paths = [find_model(each) for each in options.models] or shipped_models()
    with listen(options) as listening:
        run(make_app(options, ReloadingModels(paths, options.threads or None)), options, listening)
