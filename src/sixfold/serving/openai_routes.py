"""OpenAI's HTTP interface for its clients: /v1/models, /v1/completions and /v1/chat/completions."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from starlette.responses import Response

from sixfold.errors import ModelFileError, SixfoldError
from sixfold.generation.generator import Prompt
from sixfold.generation.options import Continuation, GenerateOptions, TextChunk, TextToken
from sixfold.generation.text_stream import INCOMPLETE
from sixfold.serving.admission import Admission
from sixfold.serving.events import STREAM_HEADERS, with_keep_alive
from sixfold.serving.generate_routes import ERROR_RESPONSES, admit, charge
from sixfold.serving.openai_schema import ChatRequest, CompletionRequest
from sixfold.serving.responses import CHANGED_MODEL, HttpError, JsonResponse, openai_error
from sixfold.serving.writing import WritingJob, WritingService

UNLIMITED = 10**6  # tokens of an answer without a limit: the model's length ends it

# It makes the entry of `choices` for a part of a text, or for a whole one.
MakeChoice = Callable[[int, str, Sequence[TextToken], str | None], dict[str, Any]]


ERROR_SCHEMA = {
    "type": "object", "required": ["error"],
    "properties": {"error": {
        "type": "object", "required": ["message", "type"],
        "properties": {"message": {"type": "string"}, "type": {"type": "string"}},
    }},
}  # fmt: skip


class OpenAIRoutes:
    """The routes. Their docstrings are their descriptions in OpenAPI."""

    def __init__(self, admission: Admission, writing: WritingService) -> None:
        self._admission, self._writing, self._started = admission, writing, int(time.time())

    async def models(self) -> Response:
        """List the models that write texts."""
        return JsonResponse({"object": "list", "data": [self._model(name) for name in self._writing.names]})

    async def model(self, name: str) -> Response:
        """Return one of the models that write texts."""
        if name not in self._writing.names:
            raise HttpError(404, f"model: expected one of {', '.join(self._writing.names)}; got {name!r:.60}")
        return JsonResponse(self._model(name))

    async def completions(self, body: CompletionRequest, request: Request) -> Response:
        """Continue prompts. With several prompts, the texts for the first come first."""
        prompts = prompts_of(body)
        if body.echo and body.logprobs is not None:
            raise HttpError(400, "logprobs: expected none together with echo")
        options = GenerateOptions(body.max_tokens, body.stop_strings, body.n, body.logprobs or 0, body.sampling())
        job = await admit(self._admission, self._writing, request, body.model, prompts, options)
        echoed = [each if isinstance(each, str) else "".join(pieces) for each, pieces in zip(
            prompts, await self._writing.pieces(job), strict=True
        )] if body.echo else [""] * len(prompts)  # fmt: skip
        positions: dict[int, int] = {}  # in each text, of its next token

        def choice(index: int, text: str, tokens: Sequence[TextToken], finish: str | None) -> dict[str, Any]:
            before = echoed[index // body.n] if index not in positions else ""
            position = positions.get(index, len(before))
            positions[index] = position + sum(len(token.text) for token in tokens)
            logprobs = None if body.logprobs is None else completion_logprobs(tokens, position)
            return {"index": index, "text": before + text, "logprobs": logprobs, "finish_reason": finish}

        return await self._respond(job, request, body, choice, "cmpl", ("text_completion", "text_completion"))

    async def chat(self, body: ChatRequest, request: Request) -> Response:
        """Answer in a conversation, with the chat template of the model."""
        limit = body.max_completion_tokens or body.max_tokens or UNLIMITED
        likeliest = body.top_logprobs if body.logprobs else 0
        options = GenerateOptions(limit, body.stop_strings, body.n, likeliest, body.sampling())
        messages = [{"role": each.role, "content": each.text} for each in body.messages]
        job = await admit(self._admission, self._writing, request, body.model, [messages], options)
        begun: set[int] = set()

        def choice(index: int, text: str, tokens: Sequence[TextToken], finish: str | None) -> dict[str, Any]:
            content = {"content": [chat_logprob(token) for token in tokens], "refusal": None}
            part = {"index": index, "logprobs": content if body.logprobs else None, "finish_reason": finish}
            if not body.stream:
                return {**part, "message": {"role": "assistant", "content": text, "refusal": None}}
            role = {} if index in begun else {"role": "assistant"}
            begun.add(index)
            return {**part, "delta": {**role, "content": text}}

        kinds = ("chat.completion", "chat.completion.chunk")
        return await self._respond(job, request, body, choice, "chatcmpl", kinds)

    async def _respond(
        self, job: WritingJob, request: Request, body: CompletionRequest | ChatRequest, choice: MakeChoice,
        prefix: str, kinds: tuple[str, str],
    ) -> Response:  # fmt: skip
        """Write the texts of a job. `kinds` names the whole response, and a part of a stream."""
        head = {"id": f"{prefix}-{secrets.token_hex(12)}", "created": int(time.time()), "model": job.name}
        if body.stream:
            head["object"] = kinds[1]
            stream = self._stream(job, request, head, choice, body.stream_options.include_usage)
            return StreamingResponse(with_keep_alive(stream), headers=STREAM_HEADERS, media_type="text/event-stream")
        texts, _ = await self._writing.write_whole(job)
        flat: list[Continuation] = [text for of_prompt in texts for text in of_prompt]
        count = sum(len(text.tokens) for text in flat)
        charge(self._admission, request, count)
        choices = [choice(index, each.text, each.tokens, each.finish) for index, each in enumerate(flat)]
        return JsonResponse({**head, "object": kinds[0], "choices": choices, "usage": usage(job, count)})

    async def _stream(
        self, job: WritingJob, request: Request, head: dict[str, Any], choice: MakeChoice, include_usage: bool
    ) -> AsyncGenerator[bytes]:
        """Yield a part of a text an event, perhaps the numbers of tokens, and the end. An error ends it too."""
        count = 0
        try:
            async with aclosing(self._writing.write(job)) as chunks:
                async for chunk in chunks:
                    if not has_content(chunk):
                        continue
                    count += len(chunk.tokens)
                    charge(self._admission, request, len(chunk.tokens))
                    index = chunk.prompt * job.options.n + chunk.sample
                    part = {**head, "choices": [choice(index, chunk.text, chunk.tokens, chunk.finish)]}
                    yield data(part | ({"usage": None} if include_usage else {}))
            if include_usage:
                yield data({**head, "choices": [], "usage": usage(job, count)})
            yield b"data: [DONE]\n\n"
        except ModelFileError:  # its message has the name of the file, which the client need not know
            yield data(openai_error(503, CHANGED_MODEL, None))
        except (SixfoldError, HttpError) as error:
            status = error.status if isinstance(error, HttpError) else 400
            yield data(openai_error(status, str(error), error.hint))

    def _model(self, name: str) -> dict[str, Any]:
        return {"id": name, "object": "model", "created": self._started, "owned_by": "sixfold"}


def data(values: dict[str, Any]) -> bytes:
    """Return a server-sent event without a name."""
    return f"data: {json.dumps(values, ensure_ascii=False)}\n\n".encode("utf-8", "replace")


def has_content(chunk: TextChunk) -> bool:
    return bool(chunk.text or chunk.tokens or chunk.finish)


def usage(job: WritingJob, written: int) -> dict[str, int]:
    """Return the numbers of tokens of a request. A prompt of several texts counts once."""
    prompt = job.prompt_tokens
    return {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written}


def prompts_of(body: CompletionRequest) -> list[Prompt]:
    """Return the prompts of a request: one or several, as texts or as token ids."""
    prompt = body.prompt
    if isinstance(prompt, str):
        return [prompt]
    if not prompt:
        raise HttpError(400, "prompt: expected at least one text or token; got an empty list")
    if isinstance(prompt[0], int):
        return [prompt]
    return list(prompt)


def completion_logprobs(tokens: Sequence[TextToken], offset: int) -> dict[str, Any]:
    """Return log-probabilities as completions have them: a list for each thing that a token has."""
    offsets = []
    for token in tokens:
        offsets.append(offset)
        offset += len(token.text)
    return {
        "tokens": [token.text for token in tokens], "token_logprobs": [token.logprob for token in tokens],
        "top_logprobs": [{each.text: each.logprob for each in token.likeliest} for token in tokens],
        "text_offset": offsets,
    }  # fmt: skip


def chat_logprob(token: TextToken) -> dict[str, Any]:
    """Return the log-probability of a token as chats have it."""
    likeliest = [{"token": each.text, "logprob": each.logprob, "bytes": utf8(each.text)} for each in token.likeliest]
    return {"token": token.text, "logprob": token.logprob, "bytes": utf8(token.text), "top_logprobs": likeliest}


def utf8(text: str) -> list[int] | None:
    """Return the bytes of a token; None for one that holds a part of a character, whose bytes are not known here."""
    return None if not text or INCOMPLETE in text else list(text.encode("utf-8", "replace"))


def openai_router(admission: Admission, writing: WritingService) -> APIRouter:
    """Return a router with the routes of /v1."""
    routes, router = OpenAIRoutes(admission, writing), APIRouter(prefix="/v1", tags=["openai"])
    shape = {"content": {"application/json": {"schema": ERROR_SCHEMA}}}
    responses: dict[int | str, dict[str, Any]] = {
        status: {"description": content["description"], **shape} for status, content in ERROR_RESPONSES.items()
    }
    del responses[403], responses[422]
    responses |= {
        200: {"description": "As in OpenAI's interface. With `stream`, events that are parts of texts."},
        401: {"description": "The request has no API key, or an unknown one.", **shape},
    }
    router.add_api_route("/models", routes.models, methods=["GET"], responses=responses)
    router.add_api_route("/models/{name}", routes.model, methods=["GET"], responses=responses)
    router.add_api_route("/completions", routes.completions, methods=["POST"], responses=responses)
    router.add_api_route("/chat/completions", routes.chat, methods=["POST"], responses=responses)
    return router
