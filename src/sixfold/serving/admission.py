"""Who is asking: the key or address of a request, what it costs, and what of it may be counted and logged."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request

from sixfold.serving.api_keys import Keys, Limits
from sixfold.serving.options import ServeOptions
from sixfold.serving.responses import Refusal
from sixfold.serving.service import Service


@dataclass
class Desk:
    """What every route needs."""

    service: Service
    options: ServeOptions
    limits: Limits
    keys: Keys | None

    def admit(self, request: Request, key: str, texts: list[str]) -> None:
        """Refuse one that is unknown, too much or too often; others count as in work until they are answered."""
        who = self._who(request, key)
        size = sum(map(len, texts))
        request.scope["state"]["told"] = {"who": who, "texts": len(texts), "characters": size}
        most = self.options
        if len(texts) > most.max_texts:
            raise Refusal(400, f"Invalid request: request ({len(texts)}) exceeds text limit ({most.max_texts})")
        self._check_size(size)
        self.limits.take(who, max(1, len(texts)))
        request.scope["state"]["held"].enter_context(self.limits.working(who))

    def admit_document(self, request: Request, size: int) -> None:
        """Refuse a document that was admitted before it was read, and has too many characters of text."""
        request.scope["state"]["told"] |= {"texts": 1, "characters": size}
        self._check_size(size)

    def _check_size(self, size: int) -> None:
        most = self.options.max_characters
        if size > most:
            raise Refusal(400, f"Invalid request: request ({size}) exceeds text limit ({most})")

    def _who(self, request: Request, key: str) -> str:
        """The name of a key, or an address."""
        if not key:
            scheme, _, told = request.headers.get("authorization", "").partition(" ")
            key = told.strip() if scheme.lower() == "bearer" else ""
        if self.keys is None:
            return request.client.host if request.client else "local"
        if not key:
            raise Refusal(400, "Please contact the server operator to get an API key")
        name = self.keys.name(key)
        if name is None:
            raise Refusal(403, "Invalid API key")
        return name


def suggest(path: Path, source: str, target: str) -> None:
    """A line of TSV that `sixfold finetune` reads; a single write, so that lines never mix."""
    line = "\t".join(" ".join(text.split()) for text in (source, target)) + "\n"
    with path.open("ab", buffering=0) as file:
        file.write(line.encode("utf-8", "replace"))
