"""The exceptions for mistakes of the user; each message says where, what was expected, and how to fix it.

SixfoldError
├── ConfigError      a setting, a preset or a combination of settings
├── DataError        text, a corpus, a tokeniser file
├── ModelFileError   a model file or a foreign checkpoint
└── RequestError     a request that a model or an installation cannot serve
"""


class SixfoldError(Exception):
    """A mistake of the user. `hint` is how to fix it; the command line prints it on a line of its own."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class ConfigError(SixfoldError):
    """A setting that is unknown, mistyped or does not fit the others."""


class DataError(SixfoldError):
    """Text that cannot be read or encoded."""


class ModelFileError(SixfoldError):
    """A model file that is damaged, of another program, too new, or does not fit its own config."""


class RequestError(SixfoldError):
    """A request that this model or this installation cannot serve."""
