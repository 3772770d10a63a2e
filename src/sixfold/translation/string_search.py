"""The positions of many strings in a text, found in one pass over the text (Aho and Corasick, 1975)."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable

MAX_STRINGS_WITHOUT_AUTOMATON = 8  # up to this number, strings are searched for one after another


def find_strings(text: str, strings: Iterable[str]) -> dict[str, list[int]]:
    """Return where each string starts, from left to right; occurrences of the same string do not overlap.

    The time is proportional to the text, the strings and the occurrences, not to the text times the strings:
    `find_strings("abcab", ["ab", "bc"])` is `{"ab": [0, 3], "bc": [1]}`.
    """
    distinct = [string for string in dict.fromkeys(strings) if string]
    if len(distinct) <= MAX_STRINGS_WITHOUT_AUTOMATON:
        return {string: [match.start() for match in re.finditer(re.escape(string), text)] for string in distinct}
    automaton = _Automaton(distinct)
    starts: dict[str, list[int]] = {string: [] for string in distinct}
    state = 0
    for end, character in enumerate(text, start=1):
        state = automaton.next_state(state, character)
        ending = state if automaton.strings[state] else automaton.shorter[state]
        while ending:
            string = automaton.strings[ending]
            positions = starts[string]
            if not positions or positions[-1] + len(string) <= end - len(string):
                positions.append(end - len(string))
            ending = automaton.shorter[ending]
    return starts


class _Automaton:
    """A trie of the strings, in which each state has a link to its longest proper suffix that is a state as well."""

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
        self.shorter = [0] * len(self.edges)  # the longest proper suffix in which a string ends, or 0
        queue = deque(self.edges[0].values())
        while queue:  # in the order of length, since the suffixes of a state are shorter than the state
            state = queue.popleft()
            suffix = self.suffix[state]
            self.shorter[state] = suffix if self.strings[suffix] else self.shorter[suffix]
            for character, longer in self.edges[state].items():
                self.suffix[longer] = self.next_state(suffix, character)
                queue.append(longer)

    def next_state(self, state: int, character: str) -> int:
        """Return the state of the longest suffix of the text read so far, with one more character, in the trie."""
        while state and character not in self.edges[state]:
            state = self.suffix[state]
        return self.edges[state].get(character, 0)
