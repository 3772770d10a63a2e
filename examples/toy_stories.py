"""Write small stories for a small language model, and questions about them with answers.

    python examples/toy_stories.py stories.txt --answers answers.jsonl

A story follows one animal through a day, so that a model must remember its name, its colour and what it has found.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

NAMES = ("Tom", "Lily", "Max", "Anna", "Ben", "Mia")
ANIMALS = ("cat", "dog", "bear", "fox", "duck")
COLOURS = ("brown", "white", "black", "grey")
THINGS = ("a red ball", "an old shoe", "a big fish", "a blue stone", "a warm hat")
PLACES = ("by the river", "in the garden", "under a tree", "near the house")
ENDS = ("was happy all day", "took it home", "showed it to a friend", "fell asleep beside it")


def story(choose: random.Random) -> tuple[str, dict[str, str]]:
    """Return a story, and a question about it with its answer."""
    name, animal, colour, thing, place, end = map(choose.choice, (NAMES, ANIMALS, COLOURS, THINGS, PLACES, ENDS))
    lines = [
        f"{name} was a {colour} {animal}.",
        f"One day {name} went for a walk {place}.",
        f"There the {colour} {animal} found {thing}.",
    ]
    if choose.random() < 0.5:
        lines.append(f"“Is {thing} mine now?” asked {name}.")
    lines.append(f"{name} {end}.")
    text = "\n".join(lines)
    question, answer = choose.choice(((f"What did {name} find?", thing), (f"What was {name}?", f"a {colour} {animal}")))
    return text, {"prompt": f"{text}\n{question}", "answer": answer}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stories", type=Path, help="Write the stories to this file, with blank lines between them.")
    parser.add_argument("--answers", type=Path, help="Write prompts with answers to this file, as JSON lines.")
    parser.add_argument("--count", type=int, default=600, help="Write this many stories.")
    options = parser.parse_args()
    choose = random.Random(1)
    written = [story(choose) for _ in range(options.count)]
    options.stories.write_text("\n\n".join(text for text, _ in written) + "\n", encoding="utf-8")
    if options.answers:
        lines = [json.dumps(record, ensure_ascii=False) + "\n" for _, record in written]
        options.answers.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
