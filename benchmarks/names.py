"""How many of 300 famous people, places and companies the model names right: half alone, half in a short sentence.

`names.tsv` holds kind, direction, text, accepted forms and the name itself. A name is right if an accepted form stands
in the translation; `answers.py` says what a pattern accepts. Counted apart are names that are a whole line of
`train/`, as in a list of names.

    python benchmarks/names.py                              # the model that ships
    python benchmarks/names.py DATA --show                  # what stands in DATA/train counted apart; what is wrong
    python benchmarks/names.py --model MODEL --json results.json
"""

from __future__ import annotations

import argparse
from pathlib import Path

from answers import add_options, read_items, run, stands_in

ITEMS = Path(__file__).with_name("names.tsv")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    run(read_items(ITEMS), lambda item, text: stands_in(text, item.accepted), parser.parse_args())


if __name__ == "__main__":
    main()
