"""What a translation must copy: placeholders, tags, addresses, code, names of programs, emoji.

A model whose tokeniser has span tokens reads each of these parts as one such token, copies it, and the part is put back
in its place: "Open {file} now" is read as "Open ⟨0⟩ now". Any other model reads the parts as they are. Either way
`ModelText.target_edits` says whether a translation has every part exactly once, and what to change in it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sixfold.text.tokenizer import FIRST_SPAN
from sixfold.translation.result import Span

_FIRST = chr(FIRST_SPAN)
# Every alternative is linear: what repeats is limited in number, or possessive (++).
_PRIVATE = "\ue000-\uf8ff\U000f0000-\U0010ffff"
_PRINTF = r"%(?:\(\w{1,60}\)|\d{1,2}\$)?[-+#0]{0,2}\d{0,3}(?:\.\d{1,3})?(?:hh|ll|[hlLzjt])?[sdiufFxXoeEgGcrpq](?![a-z])"
_EXTENSIONS = (
    "aac|avi|bak|bat|bin|bmp|bz2|cfg|class|conf|cpp|crt|cs|css|csv|dat|deb|dll|dmg|docx?|env|epub|exe|flac|gif|gz|h|hpp|"
    "html?|ico|ini|ipynb|iso|jar|java|jpe?g|js|json|jsx|key|kt|lock|log|lua|md|mjs|mk|mkv|mo|mov|mp[34]|o|odt|pdf|pem|"
    "php|pl|png|pot?|pptx?|properties|py|pyc|rb|rpm|rs|rst|sh|so|sql|srt|svg|swift|tar|tex|tgz|tiff?|toml|tsx?|tsv|txt|"
    "vtt|wav|webm|webp|whl|xhtml|xliff|xlsx?|xml|xz|ya?ml|zip|zsh|zst"
)
# A hyphen behind a quotation goes on with its word, as in "Perry"-class; that of L"-m" begins an option.
_NOT_QUOTED = r"(?<![\wÀ-ɏ.,!?)][\"'])"
_NOT_QUOTED_WORD = r"(?<![\wÀ-ɏ\-][\wÀ-ɏ.,!?)][\"'])"
_AFTER_DASH = r"(?:the|but|just|which|because)(?!\w)"  # words that a hyphen for a dash may touch
_EMOJI_BASE = "\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u231a-\u23ff"
_EMOJI = f"[{_EMOJI_BASE}][\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff]*+"
_PATTERNS = {
    "private": f"[{_PRIVATE}]",  # a character without a meaning of its own; documents use them for what stays
    "code": r"(?<!`)(?P<ticks>`{1,3})(?!`)[^`\n]{1,300}+(?P=ticks)(?!`)"
    r"|<(?P<element>code|kbd|samp|tt|var)>[^<>\n]{1,300}+</(?P=element)>",
    "maths": r"\$\$[^$\n]{1,500}+\$\$|\\\((?:[^\\\n]|\\(?!\))){1,300}+\\\)|\\\[(?:[^\\\n]|\\(?!\])){1,300}+\\\]"
    r"|(?<![\w$\\])\$(?=[^$\n]{0,200}[\\^_={])[^\s$](?:[^$\n]{0,200}[^\s$])?\$(?![\w$])"
    r"|(?<![\w$\\])\$[A-Za-z]\$(?![\w$])",
    "template": r"\{\{[^{}\n]{1,200}\}\}|\{%[^%\n]{1,200}%\}|<%[^%\n]{1,200}%>|[$#]\{[^{}\n]{1,100}\}"
    r"|\$t\([^()\n]{1,100}\)|\{[^{}\s]{0,100}\}|\{[\w.]{1,60}(?:, ?\w{1,40}){1,2}\}"
    r"|\{ ?\w{1,60} ?, ?(?:number|date|time|duration|ordinal|spellout) ?,[^{}\n]{1,60}\}",
    "printf": rf"{_PRINTF}|%\{{\w{{1,60}}\}}|%@|(?<!%)%%(?=\s|\Z)|%[A-Z][A-Z_]{{2,40}}%"
    r"|(?<![\w%])%(?:[1-9]\d?|n)(?![\w.%])"  # of Qt
    r"|(?<![\w#&/])#(?![\w#])",  # the number in a plural of ICU
    "tag": r"<!--[^\n]{0,300}?-->|</?[A-Za-z][\w:.-]{0,60}+(?:\s[^<>\n]{0,500}+(?:\n[^<>\n]{0,500}+){0,9}+)?/?>"
    r"|&(?:#\d{1,7}|#x[\da-fA-F]{1,6}|[A-Za-z]\w{1,30});",
    "address": r"(?:https?|ftps?|file|git|ssh|wss?)://[!#-;=?-~]*[\w/#=]|www\.[!#-;=?-~]*[\w/#=]|mailto:[!#-;=?-~]*\w"
    r"|(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}",
    "option": r"(?<![\w-])--[A-Za-z][\w-]*+(?:=[!-~]*[\w/])?"
    rf"|(?<![^\s\xa0(\[\"'“‘「《（【，、：；。一-鿿]){_NOT_QUOTED_WORD}-[A-Za-z?](?![\w-])"
    rf"|(?<=[\s\xa0(\[\"'“‘「《（【，、：；。一-鿿]){_NOT_QUOTED}-(?!{_AFTER_DASH})(?:[a-z][a-z\d]{{1,12}}|[A-Z]{{2,8}})"
    r"(?![\w-])",  # -nw and -HUP
    "path": r"(?<![\w/.~])(?:~|\.{1,2})(?:/(?:\.{2,3}(?![\w.])|[\w.+@-]*[\w+@-]))+/?"
    r"|(?<![\w/.~])(?:/[\w.+@-]*[\w+@-]){2,}/?"
    r"|(?<!\w)[A-Za-z]:\\[!-~]*[\w\\]"
    r"|(?<![\w/.-])(?![\w-]{1,80}\./[\w+-]{0,80}\.[a-z\d]{1,5}(?!\w))(?:[\w+-][\w.+-]{0,80}/){1,12}"
    r"(?!(?:sq|cu)\.(?:mi|k?m|ft|in|yd)(?!\w))[\w+-]{0,80}\.[a-z\d]{1,5}(?!\w)"  # no hab./sq.mi
    rf"|(?<![\w/.-])(?:[A-Za-z\d_*](?:[\w-]|\.(?!\.)){{0,80}})?\.(?:{_EXTENSIONS})(?![\w/-])",
    "identifier": r"(?<![\w.])(?:[A-Za-z]\w*_\w+|_{1,2}[A-Za-z]\w*+)(?:\(\))?"  # snake_case
    r"|(?<![\w.])(?![ie][A-Z][a-z])[a-z][a-z\d]+[A-Z]\w*+(?:\.\w+){0,8}(?:\(\))?"  # camelCase
    r"|(?<![\w.])[A-Za-z_]\w*+(?:(?:\.|::)[A-Za-z_]\w*+){0,8}\(\)"  # calls
    r"|(?<![\w.])[A-Za-z_]\w+(?:::[A-Za-z_]\w+){1,8}"
    r"|(?<![\w.])v?\d+(?:\.\d+){2,5}(?:[-+.]?[a-z]+\d*)?(?![\w.]*\d)|(?<!\w)v\d+(?:\.\d+){0,3}(?!\w)"  # versions
    r"|(?<![\w-])[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}(?!\w)"
    r"|(?<![\w@])@[A-Za-z]\w+|(?<![\w:]):[a-z]+_[a-z_]+:",
    "emoji": f"{_EMOJI}(?:\u200d{_EMOJI})*+|[\\d#*]\ufe0f?\u20e3",
}
PROTECTED = re.compile("|".join(f"(?:{pattern})" for pattern in _PATTERNS.values()), re.ASCII)
# Parts that mean something to a program wherever they are: a translation may not have one that its source lacks. Others
# it may have: a translation can be the first to write "JavaScript" or "and/or".
_MEANINGFUL = re.compile(
    "|".join(f"(?:{_PATTERNS[kind]})" for kind in ("private", "template", "printf", "tag", "address")), re.ASCII
)
# What comes before the second part of words that share their first one: "Western-style and " before "-quality".
_SHARED_FIRST_PART = re.compile(r"[^\W\d_](?:-[^\W\d_]{2,20}(?:,|,? (?:and|or|nor|to|but|than)) )++\Z")
_LONG_OPTION = re.compile("-[a-z]{3,}")
# No part can be in a text without one of these.
_HINT = re.compile(
    rf"[{_PRIVATE}{_EMOJI_BASE}\u20e3`$\\{{%<&/@_~#]|[a-z\d][A-Z]|\d\.\d|\bv\d|-[A-Za-z?]|::|\(\)|\.[a-z]|www"
)
# They end lines or pages, or are no characters of XML: a translation may have only those of its source.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_TAG = re.compile(r"<(?P<close>/?)(?P<name>[A-Za-z][\w:.-]*)[^<>]*?(?P<empty>/?)>", re.ASCII)

# Placeholders that take their values from a list by their order, which a translation must keep.
_BY_ORDER = re.compile(rf"(?!%\(|%\d+\$)(?:{_PRINTF})|%@|\{{(?:[:!][^{{}}\s]*)?\}}", re.ASCII)
_VOID_TAGS = frozenset(["br", "hr", "img", "input", "wbr"])  # of HTML; they have no closing tag


class Edit(NamedTuple):
    """A change of a text: what replaces a span of it."""

    span: Span
    text: str


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """Return a text with edits, which are in the order of their spans."""
    pieces, position = [], 0
    for (start, end), replacement in edits:
        pieces += [text[position:start], replacement]
        position = end
    return "".join([*pieces, text[position:]])


def move_span(span: Span, edits: Sequence[Edit]) -> Span:
    """Return where a span of a text is after edits. What is inserted at either end of the span is outside it."""
    growth = [(edit.span, len(edit.text) - (edit.span[1] - edit.span[0])) for edit in edits]
    start = span[0] + sum(size for (_, end), size in growth if end <= span[0])
    is_empty = span[0] == span[1]
    end = start if is_empty else span[1] + sum(size for edited, size in growth if edited[1] <= span[1] > edited[0])
    return start, end


class ModelText(NamedTuple):
    """A sentence as the model reads it, and the parts that its translation must have."""

    text: str
    parts: tuple[str, ...] = ()  # in their order in the sentence
    tokens: str = ""  # the span token that stands for each part in `text`; empty: the parts stand there themselves
    spans: int = 0  # span tokens of each kind
    is_capitals: bool = False  # the sentence is in capitals, and `text` in sentence case

    def source_edits(self) -> list[Edit]:
        """Return the edits that make the sentence again of what the model reads."""
        positions = [index for index, char in enumerate(self.text) if char in self.tokens]
        return [Edit((at, at + 1), part) for at, part in zip(positions, self.parts, strict=False)]

    def mask_target(self, text: str) -> str:
        """Return a text in the target language with the span tokens of the sentence in the place of its parts."""
        remaining = self._parts_by_token()
        tokens = {part: token for token, parts in remaining.items() for part in parts}
        if not tokens:
            return text
        longest_first = sorted(tokens, key=len, reverse=True)
        return re.sub("|".join(map(re.escape, longest_first)), lambda match: tokens[match[0]], text)

    def target_edits(self, translation: str) -> list[Edit] | None:
        """Return the edits that put the parts into a translation.

        The result is None if the translation lacks a part, has one too often or one that the sentence does not have,
        has tags that are not nested as in the sentence, or has placeholders in another order if their order says what
        they stand for. Where a word of the translation would touch a part, but none does in the sentence, the edit adds
        a space.
        """
        if not self.spans:
            return [] if has_same_parts(self.text, translation) else None
        last = chr(ord(_FIRST) + 3 * self.spans)
        positions = [index for index, char in enumerate(translation) if _FIRST <= char < last]
        order = "".join(translation[index] for index in positions)
        if sorted(order) != sorted(self.tokens) or _nesting(order, self.spans) != _nesting(self.tokens, self.spans):
            return None
        if any(not _FIRST <= match[0] < last for match in _MEANINGFUL.finditer(translation)):
            return None
        if _has_new_signs(self.text, translation):
            return None
        parts, source_positions = self._parts_by_token(), self._positions_by_token()
        in_order, edits = [], []
        for at in positions:
            in_order.append(parts[translation[at]].popleft())
            source_at = source_positions[translation[at]].popleft()
            left, right = _missing_spaces(in_order[-1], (self.text, source_at), (translation, at))
            follows_part = at > 0 and translation[at - 1] in self.tokens
            if follows_part and self.text[max(0, source_at - 1)] not in self.tokens:
                left = " " if would_join(*in_order[-2:]) else ""
            edits.append(Edit((at, at + 1), f"{left}{in_order[-1]}{right}"))
        return edits if parts_by_order(in_order) == parts_by_order(self.parts) else None

    def _parts_by_token(self) -> dict[str, deque[str]]:
        """Return the parts that each span token stands for; there are several if numbers were used again."""
        parts: defaultdict[str, deque[str]] = defaultdict(deque)
        for token, part in zip(self.tokens, self.parts, strict=False):
            parts[token].append(part)
        return parts

    def _positions_by_token(self) -> dict[str, deque[int]]:
        """Return where in `text` each span token is."""
        positions: defaultdict[str, deque[int]] = defaultdict(deque)
        for index, char in enumerate(self.text):
            if char in self.tokens:
                positions[char].append(index)
        return positions


def _missing_spaces(part: str, source: tuple[str, int], target: tuple[str, int]) -> tuple[str, str]:
    """Return the spaces that a part needs before and after it in a translation.

    `source` and `target`: a text, and where in it one character stands for the part. In Chinese a word may touch a
    placeholder; in English it would become a part of an address or of a name.
    """
    if part[0] in "<&":
        return "", ""
    sides = []
    for step, edge, signs in ((-1, part[0], "$#%{"), (1, part[-1], "}")):
        before, after = (text[at + step : at + step + 1] if at + step >= 0 else "" for text, at in (source, target))
        is_word = (is_alphabetic(after) and not is_alphabetic(before)) or (after == "_" and before != "_")
        is_sign = part[0] in "%{" and after in signs and after != before  # that would make it another one: ${0}, %%s
        sides.append(" " if edge.isascii() and after and (is_word or is_sign) else "")
    return sides[0], sides[1]


def would_join(left: str, right: str) -> bool:
    """Return whether two parts that are not beside each other in the source would be read as one."""
    return left[-1].isascii() and left[-1].isalnum() and (right[0].isalnum() or right[0] in "-./~")


def is_alphabetic(char: str) -> bool:
    """Return whether a character belongs to words of a script that puts spaces between words."""
    return char.isalnum() and char < "\u2e80"  # where Chinese, Japanese and Korean begin


def protected_spans(text: str) -> list[Span]:
    """Return the spans of the parts of a text that a translation must copy, from left to right."""
    matches = PROTECTED.finditer(text) if _HINT.search(text) else ()
    return [match.span() for match in matches if not _is_second_part(match)]


def _is_second_part(match: re.Match[str]) -> bool:
    """Return whether what looks like an option is the rest of a word, as "-quality" in "Western-style and -quality"."""
    if not _LONG_OPTION.fullmatch(match[0]):
        return False
    start = match.start()
    return _SHARED_FIRST_PART.search(match.string, max(0, start - 80), start) is not None


def has_same_parts(text: str, translation: str) -> bool:
    """Return whether a translation has every part of a text that must be copied, as often as the text has it.

    Those that take their values by their order must be in the order of the text. Those that mean something to programs
    wherever they are may not be in the translation alone.
    """
    parts, translated_parts = ([of[slice(*span)] for span in protected_spans(of)] for of in (text, translation))
    if parts_by_order(parts) != parts_by_order(translated_parts):
        return False
    if _meaningful_parts(text) != _meaningful_parts(translation) or _has_new_signs(text, translation):
        return False
    return all(translation.count(part) == text.count(part) for part in set(parts))


def _has_new_signs(text: str, translation: str) -> bool:
    """Return whether a translation has control characters that its source lacks, or more braces outside of its parts.

    Beside a placeholder, a brace alone is an error for most programs that fill placeholders in.
    """
    if any(translation.count(brace) > text.count(brace) for brace in "{}"):
        return True
    return not set(_CONTROL.findall(translation)) <= set(_CONTROL.findall(text))


def _meaningful_parts(text: str) -> Counter[str]:
    return Counter(match[0] for match in _MEANINGFUL.finditer(text)) if _HINT.search(text) else Counter()


def parts_by_order(parts: Iterable[str]) -> list[str]:
    """Return the placeholders among some parts that take their values from a list by their order, such as %s."""
    return [part for part in parts if _BY_ORDER.fullmatch(part)]


def remove_protected(text: str) -> str:
    """Return a text with a space in the place of each part that a translation must copy."""
    return apply_edits(text, [Edit(span, " ") for span in protected_spans(text)])


def model_text(text: str, spans: int) -> ModelText:
    """Return a sentence as a model reads it whose tokeniser has this many span tokens of each kind.

    A pair of tags around words has an opening and a closing token of one number, so that the model sees what it
    encloses. In a sentence with more parts than there are numbers, tags are placeholders, and numbers are used again.
    """
    protected = protected_spans(text)
    parts = tuple(text[slice(*span)] for span in protected)
    if not parts or not spans:
        return ModelText(text, parts, spans=spans)
    tokens = _tokens(parts, spans)
    edits = [Edit(span, token) for span, token in zip(protected, tokens, strict=True)]
    return ModelText(apply_edits(text, edits), parts, tokens, spans)


def _tokens(parts: Sequence[str], spans: int) -> str:
    """Return the span token for each part."""
    partners = pairs_of_tags(parts)
    tokens = [""] * len(parts)
    number = 0
    for index in range(len(parts)):
        if tokens[index]:  # a closing tag
            continue
        closing = partners.get(index) if len(parts) <= spans else None
        tokens[index] = chr(ord(_FIRST) + number % spans + (0 if closing is None else spans))
        if closing is not None:
            tokens[closing] = chr(ord(_FIRST) + number % spans + 2 * spans)
        number += 1
    return "".join(tokens)


def pairs_of_tags(parts: Sequence[str]) -> dict[int, int]:
    """Return the index of the closing tag for that of each opening tag, where tags are nested."""
    partners: dict[int, int] = {}
    open_tags: list[tuple[str, int]] = []
    for index, part in enumerate(parts):
        tag = _TAG.fullmatch(part)
        if tag is None or tag["empty"] or tag["name"].lower() in _VOID_TAGS:
            continue
        if not tag["close"]:
            open_tags.append((tag["name"], index))
        elif open_tags and open_tags[-1][0] == tag["name"]:
            partners[open_tags.pop()[1]] = index
        else:
            open_tags.clear()
    return partners


def _nesting(tokens: str, spans: int) -> dict[str, str] | None:
    """Return the opening token around each opening token, "" for none; None if pairs overlap or are turned round."""
    parents: dict[str, str] = {}
    open_tokens: list[str] = []
    for token in tokens:
        kind = (ord(token) - ord(_FIRST)) // spans
        if kind == 1:
            parents[token] = open_tokens[-1] if open_tokens else ""
            open_tokens.append(token)
        elif kind == 2 and (not open_tokens or ord(open_tokens.pop()) != ord(token) - spans):
            return None
    return parents
