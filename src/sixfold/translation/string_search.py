"""Where any of many strings stand in a text, found in one pass over the text (Aho and Corasick, 1975)."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable

FEW = 8  # strings; so few are searched for one after another, without an automaton


def occurrences(text: str, strings: Iterable[str]) -> dict[str, list[int]]:
    """The places where each string begins, from left to right; occurrences of the same string do not overlap.

    The time is proportional to the text, the strings and the occurrences, not to the text times the strings:
    `occurrences("abcab", ["ab", "bc"])` is `{"ab": [0, 3], "bc": [1]}`.
    """
    distinct = [string for string in dict.fromkeys(strings) if string]
    if len(distinct) <= FEW:
        return {string: [match.start() for match in re.finditer(re.escape(string), text)] for string in distinct}
    automaton = _Automaton(distinct)
    found: dict[str, list[int]] = {string: [] for string in distinct}
    state = 0
    for end, character in enumerate(text, start=1):
        state = automaton.following(state, character)
        ending = state if automaton.strings[state] else automaton.shorter[state]
        while ending:
            string = automaton.strings[ending]
            places = found[string]
            if not places or places[-1] + len(string) <= end - len(string):
                places.append(end - len(string))
            ending = automaton.shorter[ending]
    return found


class _Automaton:
    """A trie of the strings, in which each state knows the longest proper suffix of it that is a state as well."""

    def __init__(self, strings: Iterable[str]) -> None:
        self.edges: list[dict[str, int]] = [{}]
        self.strings: list[str] = [""]  # the string that ends in a state
        for string in strings:
            state = 0
            for character in string:
                if character not in self.edges[state]:
                    self.edges[state][character] = len(self.edges)
                    self.edges.append({})
                    self.strings.append("")
                state = self.edges[state][character]
            self.strings[state] = string
        self.suffix = [0] * len(self.edges)
        self.shorter = [0] * len(self.edges)  # the longest suffix in which a string ends, or 0
        waiting = deque(self.edges[0].values())
        while waiting:  # by length, as the suffixes of a state are shorter than it
            state = waiting.popleft()
            suffix = self.suffix[state]
            self.shorter[state] = suffix if self.strings[suffix] else self.shorter[suffix]
            for character, longer in self.edges[state].items():
                self.suffix[longer] = self.following(suffix, character)
                waiting.append(longer)

    def following(self, state: int, character: str) -> int:
        """The state for the longest suffix of what has been read, with one more character, that is in the trie."""
        while state and character not in self.edges[state]:
            state = self.suffix[state]
        return self.edges[state].get(character, 0)
