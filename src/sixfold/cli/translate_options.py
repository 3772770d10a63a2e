"""The options of `sixfold translate`, for texts, files, pipes and documents alike."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sixfold.config import Compute
from sixfold.translation.documents.options import NO_OPTIONS, DocumentOptions
from sixfold.translation.loading import Device
from sixfold.translation.request import TranslationRequest
from sixfold.translation.translator import Translator


@dataclass(frozen=True)
class CommandOptions:
    """The options of the command, for texts, files and pipes alike."""

    models: list[Path]
    request: TranslationRequest
    compute: Compute
    device: Device | None
    threads: int | None
    as_json: bool
    details: bool
    output: Path | None
    resume: bool
    form: str | None = None
    document: DocumentOptions = NO_OPTIONS
    strict: bool = False

    def load_translator(self, device: Device) -> Translator:
        """Return a translator for these languages, on the device of the options or else on `device`."""
        translator = Translator(self.models, self.device or device, self.threads, self.compute)
        translator.check_languages(self.request.source, self.request.target, self.request.pivot)
        return translator
