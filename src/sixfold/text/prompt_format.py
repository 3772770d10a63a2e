"""How a decoder-only model is given a prompt: special tokens before it, tokens that end a text, and a chat template."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class PromptFormat:
    """What a checkpoint of another toolkit says about its prompts.

    `before` are the tokens before every prompt, such as <s> of LLaMA; GPT-2 has none. A text ends with any of `ends`.
    `chat_template` is in the language of Jinja, and `token_texts` are the special tokens that it names, such as
    `eos_token`.
    """

    before: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()
    chat_template: str = ""
    token_texts: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return the format as one line of JSON, as it is stored in a model file."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str, vocab: int) -> PromptFormat:
        """Read what `to_json` returned; ValueError is raised for anything else."""
        state: Any = json.loads(text)
        if not isinstance(state, dict) or set(state) != {"before", "ends", "chat_template", "token_texts"}:
            raise ValueError("the format of prompts has other entries")
        template, texts = state["chat_template"], dict(state["token_texts"])
        if not all(type(each) is str for each in (template, *texts, *texts.values())):
            raise ValueError("the chat template or its special tokens are no texts")
        ids = {name: tuple(state[name]) for name in ("before", "ends")}
        if not all(type(token) is int and 0 <= token < vocab for each in ids.values() for token in each):
            raise ValueError("the format of prompts has a token that the vocabulary does not have")
        return cls(ids["before"], ids["ends"], template, texts)
