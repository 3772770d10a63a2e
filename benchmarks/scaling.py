"""The expected speed of several GPUs, computed from the measured speed of one; the table of docs/guides/distributed.md.

python benchmarks/scaling.py --rate 752630 --tokens 49152 --weights 60.8e6
"""

from __future__ import annotations

import argparse


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, required=True, help="target tokens/s of one GPU")
    parser.add_argument("--tokens", type=int, required=True, help="tokens of a micro-batch, padding included")
    parser.add_argument("--filled", type=float, default=0.97, help="the share of these tokens that is not padding")
    parser.add_argument(
        "--weights", type=float, required=True, help="number of weights; each has a gradient of 4 bytes"
    )
    parser.add_argument("--inside", type=float, default=300e9, help="bytes/s between GPUs of one machine")
    parser.add_argument("--between", type=float, default=40e9, help="bytes/s between machines")
    parser.add_argument(
        "--hidden", type=float, default=0.5, help="the share of the exchange that overlaps with the backward pass"
    )
    args = parser.parse_args()
    compute = args.tokens * args.filled / args.rate
    print("| GPUs | tokens a step | exchange | step | target tokens/s | efficiency |\n|---|---|---|---|---|---|")
    for gpus in (1, 2, 4, 8, 16, 32):
        # A ring all-reduce sends each byte in two rounds through all other GPUs.
        exchange = 2 * (gpus - 1) / gpus * 4 * args.weights / (args.inside if gpus <= 8 else args.between)
        step = compute + (1 - args.hidden) * exchange
        name = f"{gpus}, {gpus // 8} machines" if gpus > 8 else str(gpus)
        print(
            f"| {name} | {gpus * args.tokens:,} | {1000 * exchange:.1f} ms | {1000 * step:.1f} ms "
            f"| {gpus * args.rate * compute / step:,.0f} | {compute / step:.0%} |"
        )


if __name__ == "__main__":
    main()
