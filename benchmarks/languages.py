"""How well the language of a text is detected: recall by length, other languages, calibration, size and time.

    python benchmarks/languages.py DATA

DATA has train/*.tsv.xz with Chinese and English columns, which the profiles of these languages are learnt from;
dev/*.en and dev/*.zh; and multi30k/val.* and test_2016_flickr.* in cs, de and fr, a sentence a line. Models of Chinese
and English are loaded; no model reads Czech, German or French.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from sixfold.data.corpus import Corpus
from sixfold.text.detection import LanguageCandidate, detect
from sixfold.text.identification import other_language
from sixfold.text.language_profiles import LanguageProfile, ProfileLearner
from sixfold.text.languages import letters
from sixfold.text.word_lists import latin_words

EXPECTED = ("zh", "en")  # the languages of the models
DECIDED = 0.5  # the least confidence of a language that is likelier than all others together
BINS = (0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 1.001)
Profiles = Mapping[str, LanguageProfile]


def learn(folder: Path) -> Profiles:
    """Learn profiles from all training pairs, as training does."""
    learner = ProfileLearner(EXPECTED)
    for file in sorted(folder.glob("*.tsv.xz")):
        for pair in Corpus(file.stem, (file,), columns=("1", "2")).pairs():
            learner.add((pair.source, pair.target))
    return learner.profiles()


def sentences(data: Path) -> dict[str, list[str]]:
    """Return the sentences of each language."""
    files = {language: sorted((data / "dev").glob(f"*.{language}")) for language in EXPECTED}
    for language in ("de", "fr", "cs"):
        files[language] = [data / "multi30k" / f"{name}.{language}" for name in ("val", "test_2016_flickr")]
    return {
        language: [line.strip() for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
        for language, paths in files.items()
    }


def first_words(line: str) -> str:
    """Return the first five words of a sentence, or ten characters of Chinese."""
    return line[:10] if letters("Han").search(line) else " ".join(line.split()[:5])


def one_word(line: str) -> str:
    """Return one word of a sentence, or two characters of Chinese; "" if it has none."""
    if han := letters("Han").findall(line):
        return random.Random(line).choice(han)[:2]
    return random.Random(line).choice(latin_words(line) or [""])


CUTS: dict[str, Callable[[str], str]] = {"line": str, "5 words or 10 characters": first_words, "1 word": one_word}
Result = tuple[str, str, list[LanguageCandidate]]  # language, length, candidates


def results(texts: Mapping[str, Sequence[str]], profiles: Profiles) -> Iterator[Result]:
    """Detect the language of every sentence at every length; what has no letters is left out."""
    for language, lines in texts.items():
        for length, cut in CUTS.items():
            for text in map(cut, lines):
                if any(map(str.isalpha, text)):
                    yield language, length, detect(text, EXPECTED, profiles)


def print_recall(found: Sequence[Result]) -> None:
    """Print for each language how often it is the likeliest, how often English is, and the mean confidence."""
    print("language, length: texts; named right, undecided; taken for English, with 0.9 and more; mean confidence")
    for language, length in dict.fromkeys(result[:2] for result in found):
        own = [candidates for *key, candidates in found if tuple(key) == (language, length)]
        top = [candidates[0] if candidates else LanguageCandidate("", 0.0) for candidates in own]
        decided = [each for each in top if each.confidence >= DECIDED]
        right = sum(each.language == language for each in decided) / len(own)
        undecided = 1 - len(decided) / len(own)
        english = sum(each.language == "en" for each in decided) / len(own)
        sure = sum(each.language == "en" and each.confidence >= 0.9 for each in top) / len(own)
        mean = sum(each.confidence for each in top) / len(own)
        print(
            f"  {language}, {length}: {len(own):,}; {right:.1%}, {undecided:.1%}; {english:.1%}, {sure:.2%}; {mean:.2f}"
        )


def print_reliability(found: Sequence[Result]) -> None:
    """Print how often the likeliest language is right, by its confidence."""
    print("confidence: share of texts, mean confidence, share that is right")
    top = [(candidates[0], language) for language, _, candidates in found if candidates]
    for low, high in pairwise(BINS):
        inside = [
            (each.confidence, each.language == language) for each, language in top if low <= each.confidence < high
        ]
        if inside:
            mean, right = (sum(values) / len(inside) for values in zip(*inside, strict=True))
            print(f"  {low:.2f}-{min(high, 1):.2f}: {len(inside) / len(found):.1%}, {mean:.3f}, {right:.3f}")
    print(f"  no candidate: {1 - len(top) / len(found):.1%}")


def print_flagged(texts: Mapping[str, Sequence[str]], profiles: Profiles) -> None:
    """Print how many sentences raise the warning that they are in another language than the model reads."""
    for language, lines in texts.items():
        expected = language if language in EXPECTED else "en"
        flagged = sum(bool(other_language(line, expected, profiles)) for line in lines)
        print(f"  {language}, expected {expected}: {flagged:,} of {len(lines):,} flagged ({flagged / len(lines):.1%})")


def print_seconds(lines: Sequence[str], profiles: Profiles) -> None:
    """Print the CPU time of a sentence and of the longest text that is read."""
    for name, text in (("a sentence", lines[0]), ("2,000 characters", " ".join(lines)[:2000])):
        start = time.process_time()
        for _ in range(100):
            detect(text, EXPECTED, profiles)
        print(f"  {name}: {(time.process_time() - start) * 10:.2f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    data: Path = parser.parse_args().data
    texts, profiles = sentences(data), learn(data / "train")
    for language, profile in profiles.items():
        print(f"profile of {language}: {len(json.dumps(profile.to_json())):,} bytes in a model file")
    for name, own in (("without profiles", {}), ("with profiles", profiles)):
        print(f"\n{name}")
        found = list(results(texts, own))
        print_recall(found)
        print_reliability(found)
        print_flagged(texts, own)
        print_seconds(texts["en"], own)


if __name__ == "__main__":
    main()
