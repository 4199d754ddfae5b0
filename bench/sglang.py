"""The Python client beside SGLang's own cache in process, in one run.

Both serve the same requests with the same tokens in the same order, on one CPU; other
rows give the client one CPU and pandod another. Each round runs all ways once; the
figures are medians over the rounds. SGLang comes from an environment of its own,
outside the clone. The client runs in that environment, too; its package is installed
into build/bench.

usage: python bench/sglang.py --python PYTHON [--build build/release] [--traces FOLDER]
"""

import argparse
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from python_calls import python_trace, sglang_trace
from replays import add_traces_option, find_traces
from rows import Row, print_rows

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Way:
    """A way in which a worker uses Pando, with bounds on the ratios of its mean and p99
    to those of SGLang."""

    name: str
    mean_limit: float | None = None
    p99_limit: float | None = None
    transport: str = "lane"
    handles: bool = False
    begun: bool = False
    on_two_cpus: bool = False


CHATS = (
    Way("whole prompts", 0.25, 0.35),
    Way("whole prompts, publications begun", 0.25, 0.35, begun=True),
    Way("whole prompts, a CPU each", 0.15, 0.25, on_two_cpus=True),
    Way(
        "whole prompts, publications begun, a CPU each",
        *(0.15, 0.25),
        begun=True,
        on_two_cpus=True,
    ),
    Way("whole prompts, over gRPC", transport="grpc"),
)
AGENTS = (
    Way("whole prompts"),
    Way("from handles", 0.10, 0.25, handles=True),
    Way(
        "from handles, publications begun, a CPU each",
        *(0.10, 0.25),
        handles=True,
        begun=True,
        on_two_cpus=True,
    ),
    Way("from handles, over gRPC", transport="grpc", handles=True),
)


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
    for trace, requests, ways in ((chats, 3000, CHATS), (agents, 1000, AGENTS)):
        rounds: dict[str, list[dict]] = {}
        for _ in range(options.rounds):
            made = {
                "SGLang": sglang_trace(options.python, "rust", trace.path, requests)
            }
            for way in ways:
                made[way.name] = python_trace(
                    options.build,
                    trace.path,
                    way.transport,
                    handles=way.handles,
                    begun=way.begun,
                    on_two_cpus=way.on_two_cpus,
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
    """Installs the client into build/bench and puts it on PYTHONPATH for the programs
    that are started from here on."""
    folder = ROOT / "build/bench/packages"
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        + ["--no-deps", "--upgrade", "--target", folder, ROOT / "clients/python"]
        + ["nanobind-backend>=1,<2"],
        check=True,
    )
    os.environ["PYTHONPATH"] = str(folder)


def _rows(trace: str, ways: tuple[Way, ...], middle: dict[str, dict]) -> list[Row]:
    return [
        Row(
            f"{trace}, {way.name}, {figure}; floor: SGLang",
            middle[way.name][figure],
            "us",
            middle["SGLang"][figure],
            ratio_limit=limit,
        )
        for way in ways
        for figure, limit in (
            ("mean", way.mean_limit),
            ("p99", way.p99_limit),
            ("p50", None),
        )
    ]


if __name__ == "__main__":
    sys.exit(main())
