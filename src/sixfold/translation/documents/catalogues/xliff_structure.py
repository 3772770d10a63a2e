"""The structure of XLIFF: elements and texts outside targets, and whether targets have the codes of their sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from sixfold.translation.documents import xml
from sixfold.translation.documents.catalogues.xliff import ENDS
from sixfold.translation.documents.catalogues.xliff_segments import SKIPPED
from sixfold.translation.documents.structure import Structure, StructureBuilder

LANGUAGE_ATTRIBUTES = frozenset(["target-language", "trgLang"])
STATE_ATTRIBUTES = frozenset(["state", "subState"])  # of targets and segments
CODE_TAGS = ("ph", "bpt", "ept", "it", "protected")  # whose texts must stay


def structure(text: str) -> Structure:
    """Return the structure of a document; an empty one has none."""
    return _Reader().read(text) if text.strip() else []


class _Reader:
    """Collects the structure of a document, without translations, their states and their language."""

    def __init__(self) -> None:
        self.builder = StructureBuilder()
        self.path: list[str] = []
        self.around: Counter[str] = Counter()  # how often each name is in the path
        self.skipped = 0  # elements around the position whose targets are no translations of the document
        self.source: list[str] = []  # the codes of the last source
        self.target: list[str] | None = None  # of the current target
        self.source_starts: set[tuple[str, str | None]] = set()  # the names and ids of their elements
        self.target_starts: set[tuple[str, str | None]] = set()
        self.text: list[str] = []
        self.is_blank = True

    def read(self, text: str) -> Structure:
        xml.parse_events(text, self.start, self.end, self.characters)
        return self.builder.build()

    def start(self, name: str, values: dict[str, str]) -> None:
        self.end_text()
        local = xml.local_name(name)
        is_target = local == "target" and self.path[-1:] in (["trans-unit"], ["segment"]) and not self.skipped
        is_code = self.around["source"] or self.around["seg-source"]
        self.enter(local, values)
        left_out = LANGUAGE_ATTRIBUTES | (STATE_ATTRIBUTES if local in ("target", "segment") else frozenset())
        tag = f"<{local}{''.join(f' {key}={values[key]!r}' for key in sorted(values) if key not in left_out)}>"
        start = local, values.get("rid") or values.get("id")
        if is_target:
            self.target, self.is_blank = [], True
            self.target_starts.clear()
        elif self.target is not None:
            self.target.append(self.order_fault(local, values) + tag)
            self.target_starts.add(start)
        else:
            if local in ("trans-unit", "segment", "source", "seg-source") and not self.skipped:
                self.source = []
                self.source_starts.clear()
            elif is_code and not self.skipped:
                self.source.append(tag)
                self.source_starts.add(start)
            self.builder.block(tag)

    def enter(self, local: str, values: Mapping[str, str]) -> None:
        is_protected = local == "mrk" and (values.get("translate") == "no" or values.get("mtype") == "protected")
        self.path.append("protected" if is_protected else local)
        self.around[self.path[-1]] += 1
        self.skipped += local in SKIPPED

    def order_fault(self, local: str, values: Mapping[str, str]) -> str:
        """Return a remark about a code for an end tag that comes before the one for its start tag."""
        if local not in ENDS:
            return ""
        start = ENDS[local], values.get("startRef") or values.get("rid") or values.get("id")
        return "before its start: " if start in self.source_starts and start not in self.target_starts else ""

    def end(self, _name: str) -> None:
        self.end_text()
        local = self.path.pop()
        self.around[local] -= 1
        self.skipped -= local in SKIPPED
        if self.target is None:
            self.builder.block(f"</{local}>")
        elif local == "target" and not self.around["target"]:
            if (self.target or not self.is_blank) and sorted(self.target) != sorted(self.source):
                self.builder.block(f"<target> with {' '.join(sorted(self.target)) or 'no codes'}")
            self.target = None

    def characters(self, content: str) -> None:
        code = [f"the code {content!r}"] if self.is_in_code() else []
        if self.target is not None:
            self.is_blank = self.is_blank and not content.strip()
            self.target += code
            return
        self.text.append(content)
        if self.around["source"] or self.around["seg-source"]:
            self.source += code

    def is_in_code(self) -> bool:
        """Return whether the text at the position must stay: a sub-flow in a code is text again."""
        innermost = next((name for name in reversed(self.path) if name in (*CODE_TAGS, "sub")), "sub")
        return innermost != "sub" or self.around["protected"] > 0

    def end_text(self) -> None:
        content = " ".join("".join(self.text).split())
        self.text.clear()
        if content:
            self.builder.block(f"the text {content!r}")
