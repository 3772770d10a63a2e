"""What several GPUs should reach, from what one was measured to reach; the table of docs/guides/distributed.md.

python benchmarks/scaling.py --rate 752630 --tokens 49152 --weights 60.8e6
"""

from __future__ import annotations

import argparse


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, required=True, help="target tokens/s of one GPU")
    parser.add_argument("--tokens", type=int, required=True, help="of a micro-batch, padding included")
    parser.add_argument("--filled", type=float, default=0.97, help="the share of them that is no padding")
    parser.add_argument("--weights", type=float, required=True, help="each has a gradient of 4 bytes")
    parser.add_argument("--inside", type=float, default=300e9, help="bytes/s between GPUs of one machine")
    parser.add_argument("--between", type=float, default=40e9, help="bytes/s between machines")
    parser.add_argument("--hidden", type=float, default=0.5, help="the share of the exchange behind the backward pass")
    args = parser.parse_args()
    alone = args.tokens * args.filled / args.rate
    print("| GPUs | tokens a step | exchange | step | target tokens/s | efficiency |\n|---|---|---|---|---|---|")
    for gpus in (1, 2, 4, 8, 16, 32):
        # A ring passes each byte on in two rounds, to all but oneself.
        exchange = 2 * (gpus - 1) / gpus * 4 * args.weights / (args.inside if gpus <= 8 else args.between)
        step = alone + (1 - args.hidden) * exchange
        name = f"{gpus}, {gpus // 8} machines" if gpus > 8 else str(gpus)
        print(
            f"| {name} | {gpus * args.tokens:,} | {1000 * exchange:.1f} ms | {1000 * step:.1f} ms "
            f"| {gpus * args.rate * alone / step:,.0f} | {alone / step:.0%} |"
        )


if __name__ == "__main__":
    main()
