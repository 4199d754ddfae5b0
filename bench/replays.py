"""Replays the recorded traces: on the cache alone, and through pandod."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "bench/data"
ALL_POLICIES = ["lru", "lfu", "fifo", "mru", "filo", "priority", "slru", "reuse"]
MILLION = 1_000_000


@dataclass(frozen=True)
class Trace:
    name: str
    path: Path
    # The sizes of the pools whose hit rates are measured, in tokens.
    capacities: tuple[int, ...]
    # The known hit rates of an LRU of blocks on the whole trace in per cent, by
    # capacity.
    recorded_block_lru: dict[int, float] = field(default_factory=dict, hash=False)
    # The bound on the mean time of a request through pandod with handles.
    handles_limit_us: float | None = None
    # A remark that is printed after the trace's path.
    note: str = ""


@dataclass
class Way:
    """One way to replay a trace, and the report of its replay."""

    name: str
    report: dict
    is_target: bool = False


def add_traces_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--traces",
        type=Path,
        # Takes the variable out of the environment, because pandod refuses a variable
        # PANDO_* that names none of its options.
        default=os.environ.pop("PANDO_TRACES", ROOT / "../shared/traces"),
        help="folder of the whole traces; default: PANDO_TRACES",
    )


def find_traces(folder: Path) -> list[Trace]:
    """Returns each trace: the whole trace if the folder has it, else its excerpt."""

    def place(whole: str, excerpt: str) -> tuple[Path, bool]:
        path = Path(folder) / whole
        return (path, True) if path.exists() else (DATA / excerpt, False)

    chat, is_whole_chat = place(
        "mooncake_conversation.jsonl.gz", "conversation_excerpt.jsonl"
    )
    agents, is_whole_agents = place("agentic_coding.jsonl.gz", "agentic_excerpt.jsonl")
    excerpt = " (an excerpt: the whole trace is not at hand)"
    anchors = {1: 5.52, 2: 8.81, 5: 21.55, 10: 29.36, 20: 35.83}
    return [
        Trace(
            name="conversation",
            path=chat,
            capacities=tuple(millions * MILLION for millions in anchors),
            recorded_block_lru={
                millions * MILLION: rate
                for millions, rate in anchors.items()
                if is_whole_chat
            },
            note="" if is_whole_chat else excerpt,
        ),
        Trace(
            name="agentic",
            path=agents,
            capacities=(
                MILLION // 2,
                *(millions * MILLION for millions in (1, 2, 5, 20)),
            ),
            handles_limit_us=70,
            note="" if is_whole_agents else excerpt,
        ),
    ]


class Replays:
    """The replays, each of which runs once, on one CPU, with a pool of 5 million
    tokens."""

    def __init__(self, build: Path):
        self._build = build
        self._ways: dict[str, list[Way]] = {}
        self._hit_rates: dict[str, list[dict]] = {}

    def of(self, trace: Trace) -> list[Way]:
        if trace.name not in self._ways:
            socket = ["--pandod", self._build / "bin/pandod"] + [
                "--echo-server",
                self._build / "bin/echo_server",
            ]
            ways = []
            places = (
                ("in process", ["--in-process"]),
                ("pandod", [*socket, "--transport", "grpc"]),
                ("lane", [*socket, "--transport", "lane"]),
            )
            for place, flags in places:
                for what, more in (("whole prompts", []), ("handles", ["--handles"])):
                    ways.append(
                        Way(
                            name=f"{place}, {what}",
                            report=self._run(trace, *flags, *more)[0],
                            is_target=place == "pandod" and what == "handles",
                        )
                    )
            self._ways[trace.name] = ways
        return self._ways[trace.name]

    def hit_rates(self, trace: Trace) -> list[dict]:
        """Returns a report for each policy and capacity."""
        if trace.name not in self._hit_rates:
            self._hit_rates[trace.name] = self._run(
                trace,
                "--in-process",
                *("--policy", ",".join(ALL_POLICIES)),
                *("--pool-tokens", ",".join(map(str, trace.capacities))),
            )
        return self._hit_rates[trace.name]

    def summary(self) -> dict:
        return {
            "ways": {
                name: {way.name: way.report for way in ways}
                for name, ways in self._ways.items()
            },
            "hit_rates": self._hit_rates,
        }

    def _run(self, trace: Trace, *flags: str | Path) -> list[dict]:
        with tempfile.NamedTemporaryFile(suffix=".json") as out:
            command = [self._build / "bin/replay", trace.path, *flags]
            command += ["--same-core", "--json", out.name]
            print(" ".join(map(str, command[:-2])), file=sys.stderr)
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            return json.load(out)
