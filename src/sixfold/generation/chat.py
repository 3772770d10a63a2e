"""Chat templates: a conversation as the prompt that a model was taught to continue with an answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from sixfold.errors import RequestError
from sixfold.text.prompt_format import PromptFormat

Message = Mapping[str, str]  # has a role, such as user, system or assistant, and a content
ROLES = ("system", "user", "assistant")


def render_chat(layout: PromptFormat | None, messages: Sequence[Message]) -> str:
    """Return the prompt of a conversation, which ends where the answer begins.

    The template of the checkpoint writes it, in the sandbox of Jinja: it sees the messages and its special tokens, and
    can neither change them nor reach anything else.
    """
    check_chat(layout)
    assert layout is not None
    check_messages(messages)
    template = _compile(layout.chat_template)
    try:
        copies = [dict(message) for message in messages]
        settings = {"add_generation_prompt": True, "tools": None, "documents": None}
        return str(template.render(messages=copies, **settings, **layout.token_texts))
    except Exception as error:  # a template may refuse a conversation, or fail in any way that Python can
        raise RequestError(f"chat: the template of this model refuses the conversation: {error}") from None


def check_chat(layout: PromptFormat | None) -> None:
    """Raise RequestError for a model without a chat template."""
    if layout is None or not layout.chat_template:
        raise RequestError(
            "chat: expected a model with a chat template; this one has none", "continue a plain prompt instead"
        )


def check_messages(messages: Sequence[Message]) -> None:
    """Raise RequestError unless every message has a role and a content."""
    if not messages:
        raise RequestError("chat: expected at least one message; got none")
    for index, message in enumerate(messages):
        is_valid = isinstance(message, Mapping) and all(
            isinstance(message.get(key), str) for key in ("role", "content")
        )
        if not is_valid:
            raise RequestError(
                f"chat: expected a role and a content, both texts, in message {index + 1}; got {message!r:.80}",
                f"the usual roles are {', '.join(ROLES)}",
            )


@lru_cache(maxsize=16)
def _compile(source: str) -> Any:
    """Return the template, with the functions and settings that transformers gives to templates."""
    try:
        from jinja2 import TemplateError, nodes
        from jinja2.ext import Extension, loopcontrols
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        raise RequestError(
            "chat: the template of a model needs jinja2, which is not installed", "pip install 'sixfold[chat]'"
        ) from None

    class Generation(Extension):
        """The tag {% generation %}, which marks an answer for training: here its content is left as it is."""

        tags = {"generation"}  # noqa: RUF012

        def parse(self, parser: Any) -> nodes.Node:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body, lineno=line)

    def refuse(message: str) -> None:
        raise TemplateError(message)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals |= {"raise_exception": refuse, "strftime_now": lambda form: datetime.now().strftime(form)}
    try:
        return environment.from_string(source)
    except TemplateError as error:
        raise RequestError(f"chat: the template of this model is not valid Jinja: {error}") from None


def _to_json(value: Any, **options: Any) -> str:
    """Return JSON as templates expect it: Jinja's own filter would escape it for HTML."""
    return json.dumps(value, **({"ensure_ascii": False} | options))
