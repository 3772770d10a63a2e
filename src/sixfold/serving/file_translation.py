"""Files that clients upload: read, translated, and kept for download."""

from __future__ import annotations

import codecs
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

from starlette.datastructures import UploadFile
from starlette.requests import Request

from sixfold.serving.admission import Admission
from sixfold.serving.downloads import Downloads
from sixfold.serving.responses import HttpError
from sixfold.serving.service import Caller
from sixfold.serving.text_progress import TextProgress
from sixfold.translation.documents.document import Document
from sixfold.translation.documents.formats import FORMATS, format_of
from sixfold.translation.request import TranslationRequest

FILE_SUFFIXES = (".txt", *(suffix for form in FORMATS.values() for suffix in form.suffixes))


@dataclass(frozen=True)
class UploadedFile:
    """A file that has been read: its bytes, and the document or the plain text in it."""

    name: PurePath
    data: bytes
    document: Document | None  # None: plain text
    text: str  # of a document, its prose


class FileTranslation:
    """Translates uploaded files."""

    def __init__(self, admission: Admission, downloads: Downloads) -> None:
        self._admission, self._downloads, self._service = admission, downloads, admission.service

    async def read(self, request: Request, upload: UploadFile) -> UploadedFile:
        """Read the file of a request that has been admitted, and check its format and its number of characters."""
        name = file_name(upload)
        if name.suffix.lower() not in FILE_SUFFIXES:
            raise HttpError(400, "Invalid request: file format not supported")
        data = await upload.read()
        form = format_of(Path(name.name))
        document = await self._service.read_document(data, form, name.name) if form else None
        text = decode_text(data, name.name) if document is None else document.prose
        self._admission.admit_document(request, len(text))
        return UploadedFile(name, data, document, text)

    async def translate(
        self, file: UploadedFile, request: TranslationRequest, caller: Caller, progress: TextProgress
    ) -> str:
        """Translate a file and return the address of the translation; the request names both languages."""
        if request.source == request.target:
            translated = file.data
        elif file.document is None:
            bom = codecs.BOM_UTF8 if file.data.startswith(codecs.BOM_UTF8) else b""
            (translation,) = await self._service.translate([file.text], request, caller, progress)
            translated = bom + translation.text.encode()
        else:
            own = replace(request, details=False)
            translated, _ = await self._service.translate_document(file.document, own, caller, progress)
        return self._downloads.add(translated, f"{file.name.stem}_{request.target}{file.name.suffix}")


def file_name(upload: UploadFile) -> PurePath:
    """Return the name of an uploaded file without any folders, or raise HttpError 400 if it has none."""
    name = PurePath((upload.filename or "").replace("\\", "/"))
    if not name.name:
        raise HttpError(400, "Invalid request: missing file parameter")
    return name


def decode_text(data: bytes, name: str) -> str:
    """Return the text of a plain text file without byte order mark, or raise HttpError 400 if it is not UTF-8."""
    try:
        return data.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError:
        raise HttpError(400, f"{name[:60]}: expected UTF-8") from None


def download_url(request: Request, address: str) -> dict[str, Any]:
    """Return the response with the address of a translated file."""
    return {"translatedFileUrl": f"{request.base_url}download_file/{address}"}
