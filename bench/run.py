"""Runs the benchmarks and prints one table: figure, floor, ratio, target.

A floor is measured in the same run, on the same machine: an echo of the same
message sizes, a memcmp of the same bytes. Ratios travel between machines;
absolute figures do not, and targets in absolute figures were set on a machine
whose echo of 64 tokens takes 25 us. The rows also go to
build/bench/summary.json.

usage: python bench/run.py [--build build/release] [--trace FILE]
"""

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXCERPT = ROOT / "bench/data/conversation_excerpt.jsonl"


@dataclass
class Row:
    """One line of the table; a target is a bound on value or on ratio."""

    name: str
    value: float
    unit: str
    floor: float
    ratio: float
    target: str
    ok: bool


def json_of(*command: str | Path) -> dict:
    """What a benchmark program prints, as JSON."""
    return json.loads(subprocess.check_output([str(part) for part in command]))


def core_rows(build: Path) -> list[Row]:
    """The match of 8192 tokens in the core, beside a memcmp of the same bytes."""
    report = json_of(build / "bin/core_bench", "--benchmark_format=json")
    ns = {run["name"]: run["cpu_time"] for run in report["benchmarks"]}
    floor = ns["BM_Memcmp8192"] / 1000
    rows = []
    for nodes, limit in ((1, None), (5, 5.0), (64, None)):
        us = ns[f"BM_Match8192/{nodes}"] / 1000
        rows.append(
            Row(
                f"core match, 8192 tokens, {nodes} nodes",
                us,
                "us",
                floor,
                us / floor,
                f"<= {limit} us" if limit else "",
                limit is None or us <= limit,
            )
        )
    return rows


def rpc_rows(report: dict) -> list[Row]:
    """MatchPrefix over the Unix socket beside an echo of the same sizes."""
    limit = 1.15
    return [
        Row(
            f"plain MatchPrefix, {match['tokens']} tokens, p50",
            match["match_us"],
            "us",
            match["echo_us"],
            match["match_us"] / match["echo_us"],
            f"ratio <= {limit}",
            match["match_us"] / match["echo_us"] <= limit,
        )
        for match in report["matches"]
    ]


def replay(build: Path, trace: Path) -> dict:
    """Replays the trace from one process, at a pool of 5 million tokens."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run(
            [build / "bin/replay", trace, "--pandod", build / "bin/pandod"]
            + ["--pool-tokens", "5000000", "--same-core", "--json", out.name],
            check=True,
            stdout=sys.stderr,
        )
        return json.load(open(out.name))


def replay_rows(report: dict, echo_us: float) -> list[Row]:
    """The replay of a trace, beside two echoes of its mean prompt."""
    mean_us = report["request_us"]["mean"]
    rate = report["requests_per_second_in_calls"]
    rpcs = report["rpcs_per_request"]
    floor = 1e6 / echo_us
    wanted = 12_000
    return [
        Row("replay: RPCs per request", rpcs, "", 2, rpcs / 2, "= 2", rpcs == 2),
        Row(
            "replay: a request's two calls, mean",
            mean_us,
            "us",
            echo_us,
            mean_us / echo_us,
            "",
            True,
        ),
        Row(
            "replay: requests/s in calls, serial",
            rate,
            "1/s",
            floor,
            rate / floor,
            f">= {wanted} 1/s",
            rate >= wanted,
        ),
    ]


def print_table(rows: list[Row]) -> None:
    line = "{:<44} {:>10} {:>4} {:>10} {:>7}  {:<14} {}"
    print(line.format("what", "measured", "", "floor", "ratio", "target", "ok"))
    for row in rows:
        print(
            line.format(
                row.name,
                f"{row.value:,.2f}",
                row.unit,
                f"{row.floor:,.2f}",
                f"{row.ratio:.2f}",
                row.target,
                ("yes" if row.ok else "NO") if row.target else "",
            )
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument(
        "--trace",
        type=Path,
        default=EXCERPT,
        help="trace to replay; default: the excerpt in bench/data",
    )
    options = parser.parse_args()
    build = options.build
    replayed = replay(build, options.trace)
    prompt_tokens = replayed["input_tokens"] // replayed["requests"]
    rpc = json_of(
        build / "bin/rpc_bench",
        "--pandod",
        build / "bin/pandod",
        "--echo-server",
        build / "bin/echo_server",
        "--prompt-tokens",
        str(prompt_tokens),
    )
    rows = (
        core_rows(build)
        + rpc_rows(rpc)
        + replay_rows(replayed, rpc["request_echo_us"])
    )
    print_table(rows)
    summary = ROOT / "build/bench/summary.json"
    summary.parent.mkdir(parents=True, exist_ok=True)
    summary.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    print(f"\nthe same rows: {summary.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
