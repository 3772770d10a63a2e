"""The requests of OpenAI's interface as pydantic models, with the fields that decoder-only models here understand."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from sixfold.serving.generate_routes import MAX_LIKELIEST, MAX_SAMPLES, SamplingFields
from sixfold.serving.responses import HttpError
from sixfold.serving.schema import Text

# Fields that change nothing in a text: they are about accounts, storage and routing.
IGNORED = frozenset([
    "user", "store", "metadata", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention",
    "parallel_tool_calls", "reasoning_effort", "verbosity",
])  # fmt: skip
# Fields that would change a text, and the values with which they do not.
NEUTRAL: dict[str, tuple[Any, ...]] = {
    "frequency_penalty": (None, 0), "presence_penalty": (None, 0), "logit_bias": (None, {}), "suffix": (None, ""),
    "best_of": (None, 1), "tools": (None, []), "tool_choice": (None, "none", "auto"), "functions": (None, []),
    "function_call": (None, "none", "auto"), "response_format": (None, {"type": "text"}), "audio": (None,),
    "modalities": (None, ["text"]), "prediction": (None,), "web_search_options": (None,),
}  # fmt: skip


class StreamOptions(BaseModel):
    """What a stream has besides texts."""

    model_config = ConfigDict(extra="ignore")

    include_usage: Annotated[bool, Field(description="Send the numbers of tokens before the end.")] = False


class OpenAIRequest(SamplingFields):
    """What requests for completions and for chats have in common. `null` stands for the default of a field."""

    model: Annotated[str, Field(description="Name of a model, as /v1/models lists it.")]
    n: Annotated[int, Field(ge=1, le=MAX_SAMPLES, description="Number of texts.")] = 1
    stop: Annotated[
        Text | list[Text], Field(max_length=1000, description="A text ends before any of these strings.")
    ] = ""
    stream: Annotated[bool, Field(description="Send server-sent events while the text is written.")] = False
    stream_options: StreamOptions = StreamOptions()

    @model_validator(mode="before")
    @classmethod
    def _drop_fields(cls, values: Any) -> Any:
        """Drop fields without a value and those that change nothing; refuse those that would."""
        if not isinstance(values, dict):
            return values
        for name, allowed in NEUTRAL.items():
            if name in values and values[name] not in allowed:
                raise HttpError(400, f"{name}: this server cannot do what it asks for", "leave it out")
        return {
            name: value
            for name, value in values.items()
            if value is not None and name not in IGNORED and name not in NEUTRAL
        }

    @property
    def stop_strings(self) -> tuple[str, ...]:
        stops = [self.stop] if isinstance(self.stop, str) else self.stop
        return tuple(each for each in stops if each)


class CompletionRequest(OpenAIRequest):
    """Prompts to continue, as texts or token ids."""

    prompt: Annotated[Text | list[Text] | list[int] | list[list[int]], Field(examples=["Once upon a time"])]
    max_tokens: Annotated[int, Field(ge=1, le=10**6, description="Tokens of each text at most.")] = 16
    logprobs: Annotated[
        int | None, Field(ge=0, le=MAX_LIKELIEST, description="Likeliest tokens to list for each place.")
    ] = None
    echo: Annotated[bool, Field(description="Return the prompt before each text.")] = False


class TextPart(BaseModel):
    """A part of a message."""

    type: Literal["text"]
    text: Text


class OpenAIMessage(BaseModel):
    """A message of a conversation; its content is a text, or a list of parts that are texts."""

    model_config = ConfigDict(extra="ignore")

    role: Annotated[str, Field(min_length=1, max_length=100)]
    content: Text | list[TextPart]

    @property
    def text(self) -> str:
        return self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)


class ChatRequest(OpenAIRequest):
    """A conversation to answer."""

    messages: Annotated[list[OpenAIMessage], Field(min_length=1, max_length=10_000)]
    max_tokens: Annotated[int | None, Field(ge=1, le=10**6, description="Tokens of each answer at most.")] = None
    max_completion_tokens: Annotated[int | None, Field(ge=1, le=10**6, description="The same as max_tokens.")] = None
    logprobs: Annotated[bool, Field(description="Return the log-probability of each token.")] = False
    top_logprobs: Annotated[
        int, Field(ge=0, le=MAX_LIKELIEST, description="Likeliest tokens to list for each place.")
    ] = 0
