"""The settings of a server: address, models and every limit, from the command line or a TOML file."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sixfold.configfile import check_types, read_toml, require, section_from
from sixfold.errors import ConfigError

# Settings that must match a pattern, and what to say that was expected. A list must match in every item.
PATTERNS = {
    "url_prefix": (r"(/?[\w.~-]+(/[\w.~-]+)*/?)?", "a path of letters, digits and - such as /translate-app"),
    "hosts": (r"\*|(\*\.)?[\w.-]+", "a host name without a port, *.example.org, or * for all"),
    "cors": (r"\*|https?://[^/\s]+|null", "an origin such as https://example.org, without a path, or * for all"),
}


@dataclass(frozen=True)
class ServeOptions:
    """The settings of `sixfold serve`. Sizes are in bytes and times in seconds, unless a comment says otherwise."""

    host: str = "127.0.0.1"
    port: int = 5000
    models: tuple[str, ...] = ()  # model files; empty: the model that ships with the package
    models_folder: str = ""  # folder of model files that are opened when they are first used; empty: none
    memory: int = 2_000_000_000  # of the open models of a folder; the least recently used ones are closed
    threads: int = 0  # sentences translated at the same time; 0: the number of cores
    beam: int = 4  # hypotheses of the beam search, for LibreTranslate's routes
    pivot: bool = False  # LibreTranslate's routes translate through English where no model has the direction
    url_prefix: str = ""  # path below which everything is served, such as /translate-app; empty: the root
    hosts: tuple[str, ...] = ()  # host names that are served, beside IP addresses and this machine's own; *: all
    trusted_proxies: tuple[str, ...] = ()  # addresses and networks whose X-Forwarded headers are believed
    api_key_file: str = ""  # file of API keys; if set, all but the page, its settings and its documentation needs one
    suggestions: str = ""  # TSV file that /suggest appends to; empty: suggestions are refused
    cors: tuple[str, ...] = ()  # origins of other web pages that may send requests; *: all; empty: only this server's
    max_body: int = 1_000_000  # of a request
    max_file: int = 10_000_000  # of a file for /translate_file; the unpacked text of a DOCX file may be as large
    max_bodies: int = 64_000_000  # of all requests in memory at the same time; more get status 503
    max_characters: int = 100_000  # of each text of a request, and of a document
    max_texts: int = 1000  # in a request
    max_alternatives: int = 10  # that a request to /translate may ask for
    max_connections: int = 2000  # at the same time; more get status 503
    queue: int = 20_000  # sentences that may wait to be translated; more get status 503
    deadline: float = 60.0  # for the response to a request; what is translated by then is kept
    patience: float = 15.0  # for a client to send its request; later it gets status 408
    requests_per_minute: int = 0  # of one key or address; 0: no limit
    concurrent: int = 0  # requests of one key or address at the same time; 0: no limit
    cache: int = 64_000_000  # size of the cache of translations; 0: no cache
    reload: float = 2.0  # seconds between checks whether model files have changed; 0: no checks

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
            "memory",
        ):
            require(getattr(self, name) >= 1, f"serve.{name}", "at least 1", getattr(self, name))
        for name in ("threads", "requests_per_minute", "concurrent", "cache", "reload", "max_alternatives"):
            require(getattr(self, name) >= 0, f"serve.{name}", "0 or more", getattr(self, name))
        for name in ("deadline", "patience"):
            require(getattr(self, name) > 0, f"serve.{name}", "more than 0", getattr(self, name))
        for name, (pattern, expected) in PATTERNS.items():
            value = getattr(self, name)
            for each in [value] if isinstance(value, str) else value:
                require(re.fullmatch(pattern, each) is not None, f"serve.{name}", expected, each)
        for each in self.trusted_proxies:
            require(is_network(each), "serve.trusted_proxies", "an IP address or a network such as 10.0.0.0/8", each)


def is_network(text: str) -> bool:
    """Return whether a text is an IP address or a network."""
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True


def read_options(path: Path | None, overrides: dict[str, Any]) -> ServeOptions:
    """Return the settings of a TOML file, replaced by `overrides`. Paths in the file are relative to its folder."""
    values = {} if path is None else read_toml(path)
    if path is not None:
        for name in ("models", "models_folder", "api_key_file", "suggestions"):
            if isinstance(values.get(name), str):
                values[name] = str(path.parent / values[name])
            elif isinstance(values.get(name), list):
                values[name] = [str(path.parent / each) for each in values[name] if isinstance(each, str)]
    try:
        return section_from(ServeOptions, "serve", values | overrides)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}" if path and not overrides else str(error), error.hint) from None
