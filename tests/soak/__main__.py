"""A soak of the pandod that the variable PANDOD names; see soak.py.

usage: python -m soak [--seconds N] [--workers N] [--seed N], as `make soak` does
"""

import argparse
import secrets
import sys
import tempfile
from pathlib import Path

from soak.soak import Plan, Soak, SoakFailed


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    given = parser.parse_args()
    plan = Plan(given.seconds, given.workers, given.seed)
    print(f"soak: {plan.seconds:g} s, {plan.workers} workers, seed {plan.seed}")
    with tempfile.TemporaryDirectory(prefix="pando-soak-") as folder:
        try:
            Soak(plan, Path(folder)).run()
        except SoakFailed as failure:
            print(f"FAILED, seed {plan.seed}:\n{failure}")
            return 1
    print("all accounts are exact")
    return 0


if __name__ == "__main__":
    sys.exit(main())
