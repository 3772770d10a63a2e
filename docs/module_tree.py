"""Writes the tree of modules in docs/architecture.md from the first sentence of each module's docstring.

python docs/module_tree.py          writes it
python docs/module_tree.py --check  ends with status 1 if it would change
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "sixfold"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- tree: written by docs/module_tree.py -->\n```\n", "```\n<!-- end of tree -->"
# Folders in the order of the data, from text to a person; every folder must be named here.
ORDER = (
    "text", "data", "audit", "tasks", "model", "decoding", "engines", "interop", "training", "translation",
    "translation/documents", "translation/documents/office", "translation/documents/markup",
    "translation/documents/catalogues", "translation/documents/data", "translation/bulk", "generation", "evaluation",
    "reports", "explorer", "serving", "cli",
)  # fmt: skip


def summary(path: Path) -> str:
    """Return the first line of a module's docstring, without its full stop."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    if not docstring:
        raise SystemExit(f"{path}: expected a docstring")
    return docstring.splitlines()[0].rstrip(".")


def modules(folder: Path) -> list[str]:
    """Return a line for each module of a folder, its package excluded."""
    paths = sorted(path for path in folder.glob("*.py") if not path.name.startswith("__"))
    return [f"    {path.name:<24} {summary(path)}" for path in paths]


def tree() -> str:
    """Return the tree: the modules at the top, then each folder with its modules."""
    folders = {path.parent.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("__init__.py")} - {"."}
    if folders != set(ORDER):
        raise SystemExit(f"docs/module_tree.py: ORDER differs from the folders: {folders ^ set(ORDER)}")
    lines = ["src/sixfold/", *modules(SOURCE)]
    for name in ORDER:
        lines += ["", f"  {name + '/':<26} {summary(SOURCE / name / '__init__.py')}", *modules(SOURCE / name)]
    return "".join(f"{line}\n" for line in lines)


def page() -> str:
    """Return docs/architecture.md with the tree as it should be."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{tree()}{END}{after}"


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(page() != PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(page(), encoding="utf-8")
