"""The Python client beside SGLang's own cache in process, in one run.

Both serve the same requests with the same tokens in the same order, on one CPU. Each
round runs all of them once; the figures are medians over the rounds. SGLang runs in an
environment of its own, outside the clone, and so does the client then; its package is
put beside it, in build/bench.

usage: python bench/sglang.py --python PYTHON [--build build/release] [--traces FOLDER]
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

from python_calls import python_trace, sglang_trace
from replays import add_traces_option, find_traces
from rows import Row, print_rows

ROOT = Path(__file__).resolve().parent.parent
# Bounds on the ratio to SGLang: of the mean, and of the p99.
LIMITS = {"whole prompts": (0.35, 0.5), "handles": (0.10, None)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    add_traces_option(parser)
    parser.add_argument(
        "--python",
        required=True,
        help="of an environment with SGLang 0.5.23",
    )
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    _install_client(options.python)
    chats, agents = find_traces(options.traces)
    rows, summary = [], {}
    for trace, requests, ways in (
        (chats, 3000, ("whole prompts",)),
        (agents, 1000, ("whole prompts", "handles")),
    ):
        rounds: dict[str, list[dict]] = {}
        for _ in range(options.rounds):
            made = {
                "SGLang": sglang_trace(options.python, "rust", trace.path, requests)
            }
            for transport in ("lane", "grpc"):
                for way in ways:
                    made[f"{transport}, {way}"] = python_trace(
                        options.build,
                        trace.path,
                        transport,
                        handles=way == "handles",
                        requests=requests,
                        python=options.python,
                    )
            for name, result in made.items():
                rounds.setdefault(name, []).append(result)
        middle = {
            name: {
                figure: median(result[figure] for result in results)
                for figure in ("mean", "p50", "p99", "hit_rate")
            }
            for name, results in rounds.items()
        }
        summary[trace.name] = middle
        rows += _rows(trace.name, ways, middle)
    print_rows(rows)
    for name, middle in summary.items():
        hits = ", ".join(f"{n}: {100 * r['hit_rate']:.2f} %" for n, r in middle.items())
        print(f"{name}, hit rates: {hits}")
    path = ROOT / "build/bench/sglang.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(summary, indent=2) + "\n")
    return 0


def _install_client(python: str) -> None:
    """For the programs that are started from here on."""
    folder = ROOT / "build/bench/packages"
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        + ["--no-deps", "--upgrade", "--target", folder, ROOT / "clients/python"],
        check=True,
    )
    os.environ["PYTHONPATH"] = str(folder)


def _rows(trace: str, ways: tuple[str, ...], middle: dict[str, dict]) -> list[Row]:
    rows = []
    for transport in ("lane", "grpc"):
        for way in ways:
            # A target of whole prompts is one of chats alone.
            is_target = transport == "lane" and (
                way == "handles" or trace == "conversation"
            )
            limits = LIMITS[way] if is_target else (None, None)
            for figure, limit in (
                ("mean", limits[0]),
                ("p99", limits[1]),
                ("p50", None),
            ):
                rows.append(
                    Row(
                        f"{trace}, Pando {transport}, {way}, {figure}; floor: SGLang",
                        middle[f"{transport}, {way}"][figure],
                        "us",
                        middle["SGLang"][figure],
                        ratio_limit=limit,
                    )
                )
    return rows


if __name__ == "__main__":
    sys.exit(main())
