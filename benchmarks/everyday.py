"""How many of 300 things that people type first into a translator the model gets right, by accepted answers.

Greetings, words, questions, requests, idioms, dishes, headlines, signs; capitals, lower case, typos, full-width Latin,
traditional characters, emoji, mixed languages, odd spaces. `everyday.tsv` holds kind, direction, text and accepted
answers, which were written before a model was judged by them; `answers.py` says what a pattern accepts.

    python benchmarks/everyday.py                           # the model that ships
    python benchmarks/everyday.py DATA --show               # what stands in DATA/train counted apart; what is wrong
    python benchmarks/everyday.py --model MODEL --json results.json
    python benchmarks/everyday.py --table                   # only the whole sentences, as the docs show them
"""

from __future__ import annotations

import argparse
from pathlib import Path

from answers import add_options, is_accepted, read_items, run, translate

ITEMS = Path(__file__).with_name("everyday.tsv")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--table", action="store_true", help="print the kind `sentence` and its translations")
    args = parser.parse_args()
    items = read_items(ITEMS)
    if args.table:
        sentences = [item for item in items if item.kind == "sentence"]
        print("| | |\n|---|---|")
        for item, text in zip(sentences, translate(sentences, args.model), strict=True):
            print(f"| {item.source} | {text} |")
    else:
        run(items, lambda item, text: is_accepted(text, item.accepted), args)


if __name__ == "__main__":
    main()
