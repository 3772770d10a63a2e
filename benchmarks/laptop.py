"""The BLEU that two CPU cores reach in half an hour: `sixfold train` on the German and English captions of Multi30k.

python benchmarks/laptop.py DATA --work DIR
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

RECIPE = """
preset = "tiny"
[training]
steps = {steps}
[[corpus]]
files = ["multi30k/train.de", "multi30k/train.en"]
[[dev]]
name = "val"
files = ["multi30k/val.de", "multi30k/val.en"]
[[test]]
name = "test2016"
files = ["multi30k/test_2016_flickr.de", "multi30k/test_2016_flickr.en"]
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=1400)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    recipe = args.work / "laptop.toml"
    recipe.write_text(RECIPE.format(steps=args.steps), encoding="utf-8")
    command = ["sixfold", "train", str(recipe), "--data", str(args.data), "--output", str(args.work / "run"), "--json"]
    start = time.perf_counter()
    program = [sys.executable, "-m", *command, "--device", "cpu"]
    process = subprocess.run(program, stdout=subprocess.PIPE, text=True, check=True)
    minutes = (time.perf_counter() - start) / 60
    scores = json.loads(process.stdout)["scores"]["test2016"]
    print(f"test2016 de→en: BLEU {scores['bleu']:.2f} ({scores['signature']}) after {minutes:.1f} minutes in total")


if __name__ == "__main__":
    main()
