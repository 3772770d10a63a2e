"""Glossary terms: how many a translation uses by itself, how many with a glossary, and what that does to BLEU.

Terms are dictionary entries (DATA/train/cedict.tsv.xz) whose word stands in a source and whose translation stands in
its reference. Each sentence has a glossary of those that its plain translation does not use.

    python benchmarks/glossary.py DATA --model MODEL     # DATA/dev/flores-dev.zh and .en; two CPU cores
"""

from __future__ import annotations

import argparse
import lzma
import re
from pathlib import Path

from sixfold import Translator
from sixfold.evaluation.scores import score
from sixfold.translation.glossary import Glossary, Term, has_term

WORD = re.compile(r"[a-z][a-z -]{3,30}[a-z]")
HAN = re.compile(r"[\u4e00-\u9fff]{2,6}")


def entries(data: Path) -> dict[str, set[str]]:
    """Chinese words and what they may be in English; only those with few translations."""
    found: dict[str, set[str]] = {}
    with lzma.open(data / "train" / "cedict.tsv.xz", "rt", encoding="utf-8") as file:
        for line in file:
            chinese, english = line.rstrip("\n").split("\t")[:2]
            if HAN.fullmatch(chinese) and WORD.fullmatch(english):
                found.setdefault(chinese, set()).add(english)
    return {word: said for word, said in found.items() if len(said) <= 2}


def terms_of(chinese: str, english: str, known: dict[str, set[str]], way: tuple[str, str]) -> list[Term]:
    """What both sides of a pair have; none inside another."""
    found: list[Term] = []
    words = {chinese[at : at + size] for size in range(6, 1, -1) for at in range(len(chinese) - size + 1)}
    for word in sorted(words & known.keys(), key=lambda each: (-len(each), each)):
        for said in sorted(known[word]):
            if re.search(rf"\b{re.escape(said)}\b", english) and not any(word in a.source + a.target for a in found):
                found.append(Term(word, said) if way[0] == "zh" else Term(said, word))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", type=Path, help="left out: the one that ships")
    parser.add_argument("--lines", type=int, default=10_000)
    args = parser.parse_args()
    known = entries(args.data)
    texts = {
        language: (args.data / "dev" / f"flores-dev.{language}").read_text(encoding="utf-8").split("\n")[:-1]
        for language in ("zh", "en")
    }
    with Translator(args.model, "cpu") as translator:
        for way in (("zh", "en"), ("en", "zh")):
            sources, references = (texts[language][: args.lines] for language in way)
            plain = [each.text for each in translator.translate_batch(sources, *way)]
            shared = [terms_of(*pair, known, way) for pair in zip(texts["zh"], texts["en"], strict=True)][: args.lines]
            hidden = [
                [term for term in its if not has_term(said, term, way[1])]
                for its, said in zip(shared, plain, strict=True)
            ]
            told = list(plain)
            for place, terms in enumerate(hidden):
                if terms:
                    glossary = Glossary(tuple(terms))
                    told[place] = translator.translate(sources[place], *way, glossary=glossary).text
            wanted = sum(map(len, hidden))
            kept = sum(has_term(told[place], term, way[1]) for place, terms in enumerate(hidden) for term in terms)
            both = [score(said, references, way[1]).bleu for said in (plain, told)]
            some = [place for place, terms in enumerate(hidden) if terms]
            meant = [references[at] for at in some]
            part = [score([said[at] for at in some], meant, way[1]).bleu for said in (plain, told)]
            print(f"{'→'.join(way)}: {sum(map(len, shared))} terms, {wanted} not used by itself, of these "
                  f"{kept} with a glossary, {kept / max(1, wanted):.1%}; BLEU {both[0]:.2f} → {both[1]:.2f}, of the "
                  f"{len(some)} sentences with such terms {part[0]:.2f} → {part[1]:.2f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
