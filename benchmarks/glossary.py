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
    """Return Chinese words and their English translations; only words with at most two."""
    translations: dict[str, set[str]] = {}
    with lzma.open(data / "train" / "cedict.tsv.xz", "rt", encoding="utf-8") as file:
        for line in file:
            chinese, english = line.rstrip("\n").split("\t")[:2]
            if HAN.fullmatch(chinese) and WORD.fullmatch(english):
                translations.setdefault(chinese, set()).add(english)
    return {word: english for word, english in translations.items() if len(english) <= 2}


def shared_terms(chinese: str, english: str, dictionary: dict[str, set[str]], languages: tuple[str, str]) -> list[Term]:
    """Return the entries of a dictionary that both sides of a pair have; no term is part of another."""
    terms: list[Term] = []
    words = {chinese[at : at + size] for size in range(6, 1, -1) for at in range(len(chinese) - size + 1)}
    for word in sorted(words & dictionary.keys(), key=lambda word: (-len(word), word)):
        for translation in sorted(dictionary[word]):
            is_new = not any(word in term.source + term.target for term in terms)
            if re.search(rf"\b{re.escape(translation)}\b", english) and is_new:
                terms.append(Term(word, translation) if languages[0] == "zh" else Term(translation, word))
    return terms


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", type=Path, help="default: the model of the package")
    parser.add_argument("--lines", type=int, default=10_000)
    args = parser.parse_args()
    dictionary = entries(args.data)
    texts = {
        language: (args.data / "dev" / f"flores-dev.{language}").read_text(encoding="utf-8").split("\n")[:-1]
        for language in ("zh", "en")
    }
    with Translator(args.model, "cpu") as translator:
        for languages in (("zh", "en"), ("en", "zh")):
            sources, references = (texts[language][: args.lines] for language in languages)
            plain = [each.text for each in translator.translate_batch(sources, *languages)]
            pairs = list(zip(texts["zh"], texts["en"], strict=True))[: args.lines]
            terms = [shared_terms(*pair, dictionary, languages) for pair in pairs]
            missing = [
                [term for term in of_pair if not has_term(translation, term, languages[1])]
                for of_pair, translation in zip(terms, plain, strict=True)
            ]
            with_glossary = list(plain)
            for index, of_pair in enumerate(missing):
                if of_pair:
                    glossary = Glossary(tuple(of_pair))
                    with_glossary[index] = translator.translate(sources[index], *languages, glossary=glossary).text
            expected = sum(map(len, missing))
            used = sum(
                has_term(with_glossary[index], term, languages[1])
                for index, of_pair in enumerate(missing)
                for term in of_pair
            )
            systems = (plain, with_glossary)
            bleu = [score(translations, references, languages[1]).bleu for translations in systems]
            indices = [index for index, of_pair in enumerate(missing) if of_pair]
            chosen = [references[index] for index in indices]
            part = [score([side[index] for index in indices], chosen, languages[1]).bleu for side in systems]
            print(f"{'→'.join(languages)}: {sum(map(len, terms))} terms, {expected} not used by itself, of these "
                  f"{used} with a glossary, {used / max(1, expected):.1%}; BLEU {bleu[0]:.2f} → {bleu[1]:.2f}, of the "
                  f"{len(indices)} sentences with such terms {part[0]:.2f} → {part[1]:.2f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
