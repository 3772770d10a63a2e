"""The specification's examples and twenty everyday sentences as the shipped model translates them, for the docs.

python benchmarks/everyday.py [--model MODEL] [--data DATA]     # DATA: also check that none is in DATA/train
"""

from __future__ import annotations

import argparse
import lzma
import sys
from pathlib import Path

from sixfold import Translator

EXAMPLES = (
    "我爱机器学习",
    "机器学习很有趣",
    "The animal didn't cross the street because it was too tired",
    "The animal didn't cross the street because it was too wide",
)
CHINESE = (
    "你昨天晚上几点到家的？",
    "附近有没有好吃又便宜的面馆？",
    "我的手机快没电了，能借一下充电器吗？",
    "医生让我多喝水，早点睡觉。",
    "下周三的会议改到下午三点半了。",
    "她一边做饭一边听音乐。",
    "如果明天不下雨，我们就去爬山。",
    "这件衣服有大一号的吗？",
    "孩子们在公园里放风筝，玩得很开心。",
    "銀行離這裡遠嗎？走路要多久？",
)
ENGLISH = (
    "Could you turn the music down a little, please?",
    "My flight was delayed for three hours because of the storm.",
    "We ran out of milk, so I had my coffee black.",
    "She has been learning the piano since she was six.",
    "The new library downtown opens at nine on Saturdays.",
    "I forgot my umbrella on the bus this morning.",
    "How much would it cost to repair this bicycle?",
    "Scientists say the glacier is melting faster than expected.",
    "Please sign here and keep the second copy for yourself.",
    "Although he was late, nobody seemed to mind.",
)


def seen(data: Path, sentences: set[str]) -> set[str]:
    """Those that stand in a corpus, word for word."""
    found = set()
    for path in sorted((data / "train").glob("*.tsv.xz")):
        with lzma.open(path, "rt", encoding="utf-8") as file:
            found.update(side for line in file for side in line.rstrip("\n").split("\t") if side in sentences)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="left out: the one that ships")
    parser.add_argument("--data", type=Path)
    args = parser.parse_args()
    print("| | |\n|---|---|")
    with Translator(args.model, "cpu") as translator:
        for text in (*EXAMPLES, *CHINESE, *ENGLISH):
            print(f"| {text} | {translator.translate(text).text} |")
    if args.data and (known := seen(args.data, {*CHINESE, *ENGLISH})):
        sys.exit(f"in the training data: {known}")


if __name__ == "__main__":
    main()
