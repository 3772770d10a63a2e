"""Texts and languages as LibreTranslate has them: its fields, codes, errors, and the shape of its responses."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from sixfold.errors import RequestError
from sixfold.serving.admission import Admission
from sixfold.serving.responses import HttpError
from sixfold.serving.service import INLINE_TEXTS, Caller, gather
from sixfold.serving.text_progress import TextProgress
from sixfold.text.chinese import chinese_variant
from sixfold.text.detection import LanguageCandidate
from sixfold.text.language_codes import matching_codes, normalise_code
from sixfold.translation.options import TranslateOptions
from sixfold.translation.prepare import replace_surrogates
from sixfold.translation.request import TranslationRequest
from sixfold.translation.result import Translation
from sixfold.translation.routing import TRADITIONAL, SourceChoice, TargetFinder

CLIENT_CODES = {"zh": "zh-Hans"}  # codes that differ between models and LibreTranslate's clients
FALLBACK_LANGUAGE = "en"  # what LibreTranslate detects, with a confidence of 0, where nothing can be detected
MAX_HTML_TEXTS = 16  # of a list that are translated at the same time
LANGUAGE_NAMES = {
    "ar": "Arabic", "cs": "Czech", "de": "German", "en": "English", "es": "Spanish", "fr": "French", "hi": "Hindi",
    "it": "Italian", "ja": "Japanese", "ko": "Korean", "nl": "Dutch", "pl": "Polish", "pt": "Portuguese",
    "ru": "Russian", "tr": "Turkish", "uk": "Ukrainian", "vi": "Vietnamese", "zh": "Chinese",
    TRADITIONAL: "Chinese (traditional)",
}  # fmt: skip
Value = TypeVar("Value")


def require_text(fields: dict[str, Any], name: str) -> str:
    """Return a field that must be a string, or raise HttpError 400."""
    value = fields.get(name)
    if value is None or value == "" or value == []:
        raise HttpError(400, f"Invalid request: missing {name} parameter")
    if not isinstance(value, str):
        raise HttpError(400, f"Invalid request: {name} parameter is not a string")
    return replace_surrogates(value)


def require_texts(fields: dict[str, Any]) -> list[str]:
    """Return the texts of the field `q`, which is a string or a list of strings."""
    value = fields.get("q")
    if isinstance(value, list) and value:
        if not all(isinstance(text, str) for text in value):
            raise HttpError(400, "Invalid request: q parameter is not a string or a list of strings")
        return [replace_surrogates(text) for text in value]
    return [require_text(fields, "q")]


def client_code(code: str) -> str:
    """Return the code that clients use for a language of a model."""
    return CLIENT_CODES.get(code, code)


class TextTranslation:
    """Translates texts as LibreTranslate does: languages, HTML, alternatives, and one response for a list of texts."""

    def __init__(self, admission: Admission) -> None:
        self._service, self._options = admission.service, admission.options

    def languages(self, fields: dict[str, Any], text: str) -> tuple[str, str, dict[str, Any]]:
        """Return source, target and what was detected; the last is empty unless the source is `auto`."""
        source, target = (self.supported(require_text(fields, name)) for name in ("source", "target"))
        if target == "auto":
            raise HttpError(400, "auto is not supported")
        if source != "auto":
            return source, target, {}
        choice = self.choose_source(text, target)
        detected = self.detected(text, choice)
        return choice.language or target, target, detected

    def supported(self, code: str) -> str:
        """Return a code as the models spell it, or raise HttpError 400 if no model has the language."""
        normalised = normalise_code(code)
        if normalised == "auto":
            return normalised
        matching = self._matching(normalised)
        if not matching:
            raise HttpError(400, f"{normalised} is not supported")
        return TRADITIONAL if normalised == TRADITIONAL else matching[0]

    def choose_source(self, text: str, target: str | None = None) -> SourceChoice:
        """Return the language that a text is translated from, as all interfaces of Sixfold choose it."""
        with self._service.models.borrow() as loaded:
            try:
                return loaded.translator.choose_source(text, None, target, self._options.pivot)
            except RequestError:  # no model has the target, which `check_direction` says as clients know it
                return loaded.translator.choose_source(text)

    def detected(self, text: str, choice: SourceChoice) -> dict[str, Any]:
        """Return the detected language, which is one that models have, and a confidence from 0 to 100."""
        language, confidence = choice.language, choice.confidence
        if not language and choice.detected and self._matching(choice.detected.language):
            language, confidence = choice.detected.language, choice.detected.confidence
        language = language or self.fallback_language()
        variant = TRADITIONAL if language == "zh" and chinese_variant(text) == "traditional" else language
        return {"confidence": round(100 * confidence, 1), "language": client_code(variant)}

    def fallback_language(self) -> str:
        """Return the language for a text that shows none: English if a model reads it."""
        sources = [source for source, _ in self._service.models.directions]
        return FALLBACK_LANGUAGE if FALLBACK_LANGUAGE in sources else sources[0]

    def _matching(self, code: str) -> list[str]:
        """Return the codes of the models that fit a code."""
        return matching_codes(code, [each for direction in self._service.models.directions for each in direction])

    def check_direction(self, source: str, target: str) -> None:
        """Raise HttpError 400 if no model translates from source to target, not even through another language."""
        if source == target:
            return
        try:
            self._service.check_routes([""], self.request(source, target))
        except RequestError:
            names = [f"{LANGUAGE_NAMES.get(code, code)} ({code})" for code in (target, source)]
            raise HttpError(400, f"{names[0]} is not available as a target language from {names[1]}") from None

    def request(self, source: str, target: str, alternatives: int = 0) -> TranslationRequest:
        """Return the request for a translation between two languages."""
        options = TranslateOptions(self._options.beam, alternatives + 1)
        return TranslationRequest(source, target, options, pivot=self._options.pivot)

    async def respond(self, fields: dict[str, Any], texts: list[str], client: str) -> dict[str, Any]:
        """Return the response of /translate. If `q` is a list, its fields are lists too."""
        is_list = isinstance(fields.get("q"), list)
        count = parse_alternatives(fields, self._options.max_alternatives)
        form = fields.get("format") or "text"
        if form not in ("text", "html"):
            raise HttpError(400, f"{str(form)[:40]} format is not supported")
        # With source `auto`, each text has its own language.
        languages = await self._service.maybe_in_thread(
            len(texts) > INLINE_TEXTS, lambda: [self.languages(fields, text) for text in texts]
        )
        for source, target in {(source, target): None for source, target, _ in languages}:
            self.check_direction(source, target)
        pairs = [(source, target) for source, target, _ in languages]
        caller, progress = Caller(client, has_deadline=True, needs_all=True), TextProgress()
        translate = self._translate_html if form == "html" else self._translate_texts
        work = gather(
            translate([texts[index] for index in indices], self.request(source, target, count), caller, progress)
            for (source, target), indices in group_indices(pairs).items()
        )
        groups = await self._service.before_deadline(work, progress)
        results = {
            index: result
            for indices, group in zip(group_indices(pairs).values(), groups, strict=True)
            for index, result in zip(indices, group, strict=True)
        }
        response: dict[str, Any] = {"translatedText": [results[index][0] for index in range(len(texts))]}
        if count:
            response["alternatives"] = [results[index][1:] for index in range(len(texts))]
        if languages[0][2]:
            response["detectedLanguage"] = [detected for _, _, detected in languages]
        return {name: response[name] if is_list else response[name][0] for name in sorted(response)}

    async def _translate_texts(
        self, texts: list[str], request: TranslationRequest, caller: Caller, progress: TextProgress
    ) -> list[list[str]]:
        """Return the translation of each text, followed by its alternatives."""
        if request.source == request.target:
            return [[text] for text in texts]
        translations = await self._service.translate(texts, request, caller, progress)
        count = request.options.n_best - 1
        return [[each.text, *alternative_texts(each, count)] for each in translations]

    async def _translate_html(
        self, texts: list[str], request: TranslationRequest, caller: Caller, progress: TextProgress
    ) -> list[list[str]]:
        """Return the translation of each piece of HTML; several are translated at the same time."""
        if request.source == request.target:
            return [[text] for text in texts]
        slots = asyncio.Semaphore(MAX_HTML_TEXTS)
        best_only = replace(request, options=replace(request.options, n_best=1))

        async def translate(text: str) -> list[str]:
            async with slots:
                document = await self._service.read_document(text.encode(), "html")
                translated, _ = await self._service.translate_document(document, best_only, caller, progress)
                return [translated.decode()]

        return await gather(map(translate, texts))


def group_indices(values: Sequence[Value]) -> dict[Value, list[int]]:
    """Return the indices of each distinct value."""
    indices: dict[Value, list[int]] = {}
    for index, value in enumerate(values):
        indices.setdefault(value, []).append(index)
    return indices


def alternative_texts(translation: Translation, count: int) -> list[str]:
    """Return up to `count` of the n best texts, without empty and repeated ones and the translation itself."""
    texts = dict.fromkeys(each.text for each in translation.n_best if each.text.strip())
    texts.pop(translation.text, None)
    return list(texts)[:count]


def parse_alternatives(fields: dict[str, Any], limit: int) -> int:
    """Return the number of alternatives that a request asks for."""
    value = fields.get("alternatives", 0)
    if value is None or value == "":
        return 0
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,9}", value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise HttpError(400, "Invalid request: alternatives parameter is not a number")
    if value > limit:
        raise HttpError(400, f"Invalid request: alternatives parameter must be <= {limit}")
    return max(0, value)


def detected_languages(candidates: Sequence[LanguageCandidate]) -> list[dict[str, Any]]:
    """Return candidates as LibreTranslate lists them; there is always at least one."""
    return [
        {
            "confidence": round(100 * each.confidence, 1),
            "language": TRADITIONAL if each.variant == "traditional" else client_code(each.language),
        }
        for each in candidates
    ] or [{"confidence": 0.0, "language": FALLBACK_LANGUAGE}]


def list_languages(directions: list[tuple[str, str]], pivot: bool, traditional: bool) -> list[dict[str, Any]]:
    """Return the languages with their targets, English first, then by name. Each language is a target of itself.

    With `traditional`, traditional Chinese is listed wherever a model has Chinese: it is converted.
    """
    codes = dict.fromkeys(code for direction in directions for code in direction)
    finder = TargetFinder(directions)
    reachable = {code: {code, *finder.targets(code, pivot)} for code in codes}
    if traditional and "zh" in reachable:
        for source, targets in reachable.items():
            if "zh" in targets and source != "zh":
                targets.add(TRADITIONAL)
        reachable[TRADITIONAL] = {TRADITIONAL} | reachable["zh"] - {"zh"}
    languages = [
        {
            "code": client_code(code),
            "name": LANGUAGE_NAMES.get(code, code),
            "targets": sorted(map(client_code, targets)),
        }
        for code, targets in reachable.items()
    ]
    return sorted(languages, key=lambda language: (language["code"] != "en", language["name"]))
