"""Texts of decoder-only models over HTTP, with all that is known of each token: /api/v1/generate."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import asdict
from typing import Annotated, Any, cast

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from sixfold.decoding.options import SamplingOptions
from sixfold.generation.generator import Prompt
from sixfold.generation.options import GenerateOptions
from sixfold.serving.admission import Admission
from sixfold.serving.api import ERROR_RESPONSES as COMMON_ERRORS
from sixfold.serving.events import event, event_response
from sixfold.serving.responses import JsonResponse
from sixfold.serving.schema import ErrorResponse, RequestBody, Text
from sixfold.serving.writing import WritingJob, WritingService

MAX_SAMPLES = 64  # texts for each prompt
MAX_LIKELIEST = 100  # tokens that are listed for each place
MAX_SEED = 2**63 - 1
WRITTEN_TOKENS = 32  # that count as one request of the limit per minute


ERROR_RESPONSES: dict[int | str, dict[str, Any]] = COMMON_ERRORS | {
    404: {"model": ErrorResponse, "description": "The server has no such model, or none that writes texts."}
}


class SamplingFields(RequestBody):
    """How tokens are taken. The defaults draw from all tokens with the model's own probabilities."""

    temperature: Annotated[
        float, Field(ge=0, le=100, description="Below 1, likely tokens are drawn more often; 0 takes the likeliest.")
    ] = 1.0
    top_p: Annotated[
        float, Field(gt=0, le=1, description="Draw from the fewest tokens whose probabilities sum up to this.")
    ] = 1.0
    top_k: Annotated[int, Field(ge=0, le=10**7, description="Draw from this many likeliest tokens. 0: all.")] = 0
    min_p: Annotated[
        float, Field(ge=0, le=1, description="Draw from tokens with this share of the likeliest's probability.")
    ] = 0.0
    repetition_penalty: Annotated[
        float, Field(gt=0, le=100, description="Above 1, tokens that are in the text already become less likely.")
    ] = 1.0
    seed: Annotated[
        int | None, Field(ge=0, le=MAX_SEED, description="The same seed draws the same text. Default: a random one.")
    ] = None

    def sampling(self) -> SamplingOptions:
        """Return these fields as the engines need them."""
        seed = secrets.randbelow(2**31) if self.seed is None else self.seed
        return SamplingOptions(
            float(self.repetition_penalty), float(self.temperature), self.top_k, float(self.top_p), float(self.min_p),
            seed,
        )  # fmt: skip


class ChatMessage(BaseModel):
    """A message of a conversation."""

    role: Annotated[str, Field(min_length=1, max_length=100, examples=["user"])]
    content: Text


class GenerateRequest(SamplingFields):
    """A prompt, and how it is continued: a text, a conversation, or token ids."""

    prompt: Annotated[Text | list[ChatMessage] | list[int], Field(examples=["Once upon a time"])]
    model: Annotated[str | None, Field(description="Name of a model. Default: the first that writes texts.")] = None
    max_tokens: Annotated[int, Field(ge=1, le=10**6, description="Tokens of each text at most.")] = 256
    n: Annotated[int, Field(ge=1, le=MAX_SAMPLES, description="Number of texts.")] = 1
    stop: Annotated[
        list[Text], Field(max_length=16, default_factory=list, description="A text ends before any of these strings.")
    ]
    likeliest: Annotated[int, Field(ge=0, le=MAX_LIKELIEST, description="Tokens to list for each place.")] = 0

    def options(self) -> GenerateOptions:
        """Return these fields as `Generator` needs them."""
        stop = tuple(each for each in self.stop if each)
        return GenerateOptions(self.max_tokens, stop, self.n, self.likeliest, self.sampling())


class NextRequest(SamplingFields):
    """A prompt, and how the next token would be drawn."""

    prompt: Annotated[Text | list[ChatMessage] | list[int], Field(examples=["Once upon a time"])]
    model: Annotated[str | None, Field(description="Name of a model. Default: the first that writes texts.")] = None
    count: Annotated[int, Field(ge=1, le=MAX_LIKELIEST, description="Number of tokens to return.")] = 20
    include: Annotated[
        list[int], Field(max_length=100, default_factory=list, description="Ids of tokens to return in any case.")
    ]


class NextTokenResponse(BaseModel):
    """A token: its log-probability for the model, and the probability that it is drawn."""

    id: int
    text: str
    logprob: float
    drawn: float


class NextResponse(BaseModel):
    """What may come next, the likeliest token first."""

    model: str
    ids: Annotated[list[int], Field(description="The tokens of the prompt.")]
    tokens: list[NextTokenResponse]
    kept: Annotated[int, Field(description="Tokens of the vocabulary that may be drawn at all.")]
    entropy: Annotated[float, Field(description="Of the model's distribution, in bits.")]


class WrittenTextResponse(BaseModel):
    """A text, why it ended, and its tokens with their log-probabilities."""

    text: str
    finish: Annotated[str, Field(description="stop: the model or a stop string ended it; length: its limit did.")]
    stop: Annotated[str | None, Field(description="The stop string that ended the text.")]
    logprob: float
    tokens: list[dict[str, Any]]


class GenerateResponse(BaseModel):
    """The texts for a prompt. At the deadline they are what is written by then, and `complete` is false."""

    model: str
    prompt_ids: Annotated[list[int], Field(description="The tokens of the prompt, as the model has read them.")]
    texts: list[WrittenTextResponse]
    complete: bool


class GenerateRoutes:
    """The routes of /api/v1/generate. Their docstrings are their descriptions in OpenAPI."""

    def __init__(self, admission: Admission, writing: WritingService) -> None:
        self._admission, self._writing = admission, writing

    async def generate(self, body: GenerateRequest, request: Request) -> JsonResponse:
        """Continue a prompt with a decoder-only model. Each token has its log-probability for the model."""
        job = await admit(self._admission, self._writing, request, body.model, [prompt_of(body)], body.options())
        (texts,), is_complete = await self._writing.write_whole(job)
        charge(self._admission, request, sum(len(text.tokens) for text in texts))
        return JsonResponse({
            "model": job.name, "prompt_ids": job.prompts[0], "texts": [text.to_dict() for text in texts],
            "complete": is_complete,
        })  # fmt: skip

    async def next(self, body: NextRequest, request: Request) -> JsonResponse:
        """List what may come next, with the probabilities of the model and those of drawing with these options."""
        job = await admit(self._admission, self._writing, request, body.model, [prompt_of(body)], GenerateOptions())
        tokens = await self._writing.next_tokens(job, body.sampling(), body.count, body.include)
        return JsonResponse({"model": job.name, "ids": job.prompts[0], **asdict(tokens)})

    async def stream(self, body: GenerateRequest, request: Request) -> StreamingResponse:
        """Continue a prompt and send server-sent events as tokens are written.

        - `prompt`: the `model`, and the prompt's tokens as `ids`, each with its text in `pieces`.
        - `text`: what was added to the text with the number `index`, with its `tokens`. `finish` is null until it ends.
        - `done`: the end. `error`: the end too, with what went wrong.
        """
        job = await admit(self._admission, self._writing, request, body.model, [prompt_of(body)], body.options())
        return event_response(self._events(job, request))

    async def _events(self, job: WritingJob, request: Request) -> AsyncGenerator[bytes]:
        pieces = await self._writing.pieces(job)
        yield event("prompt", {"model": job.name, "ids": job.prompts[0], "pieces": pieces[0]})
        async with aclosing(self._writing.write(job)) as chunks:
            async for chunk in chunks:
                if chunk.text or chunk.tokens or chunk.finish:
                    tokens = [token.to_dict() for token in chunk.tokens]
                    values = {"text": chunk.text, "tokens": tokens, "finish": chunk.finish, "stop": chunk.stop}
                    charge(self._admission, request, len(tokens))
                    yield event("text", {"index": chunk.sample, **values})
        yield event("done", {})


def prompt_of(body: GenerateRequest | NextRequest) -> Prompt:
    """Return the prompt of a request as `Generator` takes it."""
    if isinstance(body.prompt, str):
        return body.prompt
    if all(isinstance(each, int) for each in body.prompt):
        return cast("list[int]", body.prompt)
    return [{"role": each.role, "content": each.content} for each in cast("list[ChatMessage]", body.prompt)]


async def admit(
    admission: Admission, writing: WritingService, request: Request, name: str | None, prompts: Sequence[Prompt],
    options: GenerateOptions,
) -> WritingJob:  # fmt: skip
    """Admit a request for texts, and return its job: the limits of texts hold for prompts and for what they become."""
    texts = [text_of(prompt) for prompt in prompts]
    client = admission.admit(request, texts * options.n)
    return await writing.encode(name, prompts, options, client)


def text_of(prompt: Prompt) -> str:
    """Return a text as long as a prompt, for the limit of characters. A token id counts as a character."""
    if isinstance(prompt, str):
        return prompt
    return "".join(" " if isinstance(each, int) else str(each.get("content", "")) for each in prompt)


def charge(admission: Admission, request: Request, tokens: int) -> None:
    """Charge a request for tokens that were written; the first `WRITTEN_TOKENS` of each text are paid for already."""
    state = request.scope["state"]
    before = state.get("written", 0)
    state["written"] = before + tokens
    admission.charge_requests(request, state["written"] // WRITTEN_TOKENS - before // WRITTEN_TOKENS)


def generate_router(admission: Admission, writing: WritingService) -> APIRouter:
    """Return a router with /api/v1/generate and its stream."""
    routes, router = GenerateRoutes(admission, writing), APIRouter(prefix="/api/v1", tags=["sixfold"])
    stream = {**ERROR_RESPONSES, 200: {"content": {"text/event-stream": {}}, "description": "Events with tokens."}}
    router.add_api_route(
        "/generate", routes.generate, methods=["POST"], response_model=GenerateResponse, responses=ERROR_RESPONSES
    )
    router.add_api_route(
        "/generate/next", routes.next, methods=["POST"], response_model=NextResponse, responses=ERROR_RESPONSES
    )
    router.add_api_route(
        "/generate/stream", routes.stream, methods=["POST"], response_class=StreamingResponse, responses=stream
    )
    return router
