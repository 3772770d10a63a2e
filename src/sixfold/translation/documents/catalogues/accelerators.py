"""Accelerators, the marks before the letter of a label that a key stands for, as in "&File" and "_File"."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from sixfold.text.languages import letters

MAX_LABEL = 80  # characters; longer texts are no labels of buttons or menus
_MARKED = re.compile(r"(?<![&\w])&(?=\w)|(?<=[a-z])&(?=[a-z])|(?<=\b[A-Z])&(?=[a-z])")
_ENTITY = re.compile(r"&(?:#\d+|#x[\da-fA-F]+|[A-Za-z]\w*);")
_UNDERSCORE = re.compile(r"(?<!\w)_(?=[A-Z])")
_LOWER_UNDERSCORE = re.compile(r"(?<=[A-Za-z])_(?=[a-z])|(?<!\w)_(?=[a-z])")
_NOT_LABEL = re.compile(r"[<>{}=/\\@\n`]|::|\(\)")
_UNMARKED_SCRIPTS = letters("Han", "Hiragana", "Katakana", "Hangul")  # whose letters are on no key
_END = re.compile(r"\s*(?:\.{3}|…|[:：])?\s*\Z")


def uses_underscores(texts: Iterable[str]) -> bool:
    """Return whether a catalogue has labels such as "_File", so that "E_xit" is one too, and no name with a _."""
    return any(len(text) <= MAX_LABEL and re.match(r"_[A-Z][a-z]", text) for text in texts)


def split_accelerator(text: str, has_underscores: bool) -> tuple[str, Callable[[str], str]]:
    """Return a label without its mark, and the function that marks a letter of its translation.

    The letter is the same one if the translation has it. A translation into Chinese, Japanese or Korean gets the letter
    in brackets, as "文件(&F)", before an ellipsis or a colon.
    """
    position = _accelerator(text, has_underscores)
    if position is None:
        return text, str
    mark, letter = text[position], text[position + 1]

    def place(translation: str) -> str:
        if _UNMARKED_SCRIPTS.search(translation) or not translation.strip():
            end = _END.search(translation)
            at = end.start() if end else len(translation)
            return f"{translation[:at]}({mark}{letter.upper()}){translation[at:]}"
        at = translation.lower().find(letter.lower())
        beginning = re.search(r"\w", translation)
        at = at if at >= 0 else beginning.start() if beginning else 0
        return translation[:at] + mark + translation[at:]

    return text[:position] + text[position + 1 :], place


def _accelerator(text: str, has_underscores: bool) -> int | None:
    """Return the position of the only mark of a label; None if it has none or is no label."""
    if len(text) > MAX_LABEL or _NOT_LABEL.search(text):
        return None
    if text.count("&") == 1:
        marks = [] if _ENTITY.search(text) else list(_MARKED.finditer(text))
    elif text.count("_") == 1 and "&" not in text:
        marks = [*_UNDERSCORE.finditer(text), *(_LOWER_UNDERSCORE.finditer(text) if has_underscores else ())]
    else:
        return None
    return marks[0].start() if len(marks) == 1 else None
