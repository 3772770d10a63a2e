"""What a server may be told: addresses, models and every limit, on the command line or in a TOML file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sixfold.configfile import check_types, read_toml, require, section_from
from sixfold.errors import ConfigError


@dataclass(frozen=True)
class ServeOptions:
    """Sizes are in bytes, times in seconds; 0 switches a limit off where it says so."""

    host: str = "127.0.0.1"
    port: int = 5000
    models: tuple[str, ...] = ()  # files; none: the model that ships
    threads: int = 0  # sentences in work at once; 0: as many as there are cores
    beam: int = 4
    pivot: bool = False  # LibreTranslate's clients are led through English where no model goes straight
    api_key_file: str = ""  # with one, every request needs a key that is in it
    suggestions: str = ""  # a TSV file that /suggest adds to; none: suggestions are refused
    cors: tuple[str, ...] = ()  # origins that a browser may ask from; none: only this server's own pages
    max_body: int = 1_000_000
    max_file: int = 10_000_000  # that /translate_file takes; the text of a DOCX may be as large when it is unpacked
    max_bodies: int = 64_000_000  # of all requests in memory at once; more are told to come back
    max_characters: int = 100_000  # of all texts of a request together
    max_texts: int = 1000  # of a request
    max_alternatives: int = 10
    max_connections: int = 2000  # at once; more are told to come back
    queue: int = 400_000  # characters that may wait; what comes on top is told to come back
    deadline: float = 60.0  # for the answer to a request
    patience: float = 15.0  # for a client to send its request
    requests_per_minute: int = 0  # of one key or address; 0: any number
    concurrent: int = 0  # requests of one key or address in work; 0: any number
    cache: int = 64_000_000  # of translations that are remembered; 0: none
    reload: float = 2.0  # how often model files are looked at; 0: never

    def __post_init__(self) -> None:
        check_types(self, "serve")
        require(0 <= self.port < 65536, "serve.port", "0 to 65535", self.port)
        for name in (
            "max_body",
            "max_file",
            "max_bodies",
            "max_characters",
            "max_texts",
            "max_connections",
            "queue",
            "beam",
        ):
            require(getattr(self, name) >= 1, f"serve.{name}", "at least 1", getattr(self, name))
        for name in ("threads", "requests_per_minute", "concurrent", "cache", "reload", "max_alternatives"):
            require(getattr(self, name) >= 0, f"serve.{name}", "0 or more", getattr(self, name))
        for name in ("deadline", "patience"):
            require(getattr(self, name) > 0, f"serve.{name}", "more than 0", getattr(self, name))


def read_options(path: Path | None, told: dict[str, Any]) -> ServeOptions:
    """A file's, and what the command line says instead. Paths in a file are seen from its folder."""
    values = {} if path is None else read_toml(path)
    if path is not None:
        for name in ("models", "api_key_file", "suggestions"):
            if isinstance(values.get(name), str):
                values[name] = str(path.parent / values[name])
            elif isinstance(values.get(name), list):
                values[name] = [str(path.parent / each) for each in values[name] if isinstance(each, str)]
    try:
        return section_from(ServeOptions, "serve", values | told)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}" if path and not told else str(error), error.hint) from None
