"""Runs the benchmarks and prints tables: figure, floor, ratio, target.

Each floor is measured in the same run, on the same machine: an echo of the same message
sizes, or a memcmp or copy of the same bytes. Ratios hold on other machines, too;
absolute figures do not. Targets in absolute figures were set on a machine whose echo of
64 tokens takes 25 us. The whole recorded traces are replayed if they are at hand
(--traces), else the excerpts of bench/data. All figures are also written to
build/bench/summary.json.

usage: python bench/run.py [--build build/release] [--traces FOLDER]
"""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from statistics import median, quantiles

from core_rows import core_rows
from python_calls import IDLE_SESSIONS, idle_share, python_calls, python_trace
from replays import ALL_POLICIES, Replays, Trace, add_traces_option, find_traces
from restart_rows import restart_rows
from rows import Row, json_of, print_rows, print_table
from tier_rows import tier_rows
from waits.table import wait_rows

ROOT = Path(__file__).resolve().parent.parent
PARTS = [
    "core",
    "rpc",
    "python",
    "scrape",
    "kv_events",
    "tiers",
    "waits",
    "restart",
    "replay",
]


# Limits on a machine with two CPUs, by the number of tokens.
LANE_LIMITS_US = {64: 3, 8192: 6}


def rpc_rows(build: Path) -> list[Row]:
    """Compares MatchPrefix over the Unix socket and on a lane with an echo of the same
    sizes over the socket."""
    report = json_of(
        build / "bin/rpc_bench",
        *("--pandod", build / "bin/pandod"),
        *("--echo-server", build / "bin/echo_server"),
    )
    rows = []
    for match in report["matches"]:
        tokens, echo = match["tokens"], match["echo_us"]
        rows.append(
            Row(
                f"plain MatchPrefix, {tokens} tokens, p50",
                match["match_us"],
                "us",
                echo,
                ratio_limit=1.15,
            )
        )
        rows.append(
            Row(
                f"the same on a lane, one CPU; floor: echo over gRPC, {tokens} tokens",
                match["lane_us"],
                "us",
                echo,
                ratio_limit=0.25,
            )
        )
        rows.append(
            Row(
                f"the same on a lane; floor: its score, without page ids, {tokens} tokens",
                match["lane_us"],
                "us",
                match["lane_score_us"],
                ratio_limit=1.15,
            )
        )
        if match["far_lane_us"]:
            rows.append(
                Row(
                    f"the same on a lane, two CPUs awake, {tokens} tokens",
                    match["far_lane_us"],
                    "us",
                    limit=LANE_LIMITS_US.get(tokens),
                )
            )
    return rows


def python_rows(build: Path, traces: list[Trace]) -> list[Row]:
    """Compares the Python client on a lane with the client over gRPC, on one CPU."""
    calls = python_calls(build)
    rows = [
        Row(
            "Python: match_prefix, 1,024 tokens, on a lane, p50; floor: over gRPC",
            calls["match_lane"],
            "us",
            calls["match_grpc"],
            ratio_limit=0.15,
        ),
        Row(
            "Python: the same; floor: its score, without page ids",
            calls["match_lane"],
            "us",
            calls["score_lane"],
            ratio_limit=1.15,
        ),
        Row(
            "Python: match_prefixes, 128 prompts of 2,000 tokens; floor: over gRPC",
            calls["queue_lane"],
            "us",
            calls["queue_grpc"],
            limit=400,
        ),
        Row("Python: gauges", calls["gauges"], "us"),
        Row(
            f"pandod with {IDLE_SESSIONS} lanes without calls; floor: without lanes",
            idle_share(build, lane=True),
            "% of a CPU",
            idle_share(build, lane=False),
            limit=0.5,
        ),
    ]
    for trace in traces:
        for handles in (False, True):
            lane, grpc = (
                python_trace(build, trace.path, transport, handles=handles)
                for transport in ("lane", "grpc")
            )
            what = "handles" if handles else "whole prompts"
            rows += [
                Row(
                    f"Python: {trace.name}, {what}, {figure}; floor: over gRPC",
                    lane[figure],
                    "us",
                    grpc[figure],
                )
                for figure in ("mean", "p50", "p99")
            ]
    return rows


def scrape_rows(build: Path) -> list[Row]:
    """Compares calls while /metrics is scraped with calls while it is not.

    The figures are lower quartiles over the rounds, because other work on the machine
    slows some rounds down, and slows the slowest calls far more than a scrape does. The
    second row compares rounds without scrapes with each other; its ratio shows how far
    chance alone changes the figure.
    """
    report = json_of(build / "bin/scrape_bench", "--pandod", build / "bin/pandod")
    alone, scraped = report["alone_p99_us"], report["scraped_p99_us"]
    calls = "calls of 4 clients, p99"
    return [
        Row(
            f"{calls}, a scrape a second; floor: no scrapes",
            lower_quartile(scraped),
            "us",
            lower_quartile(alone),
            ratio_limit=1.1,
        ),
        Row(
            f"{calls}, no scrapes; floor: the same",
            lower_quartile(alone[::2]),
            "us",
            lower_quartile(alone[1::2]),
        ),
        Row(
            f"a scrape of {report['series']:,} series beside them",
            median(report["scrape_ms"]),
            "ms",
        ),
    ]


def kv_events_rows(build: Path) -> list[Row]:
    """Measures what events for routers cost, and how soon routers get them."""
    report = json_of(build / "bin/kv_events_bench", "--pandod", build / "bin/pandod")
    rows = []
    for calls in report["calls"]:
        rows += kv_events_calls_rows(calls)
    return [
        *rows,
        Row(
            "from the insert of 64 blocks to their frame, p99",
            quantiles(report["insert_to_frame_ms"], n=100)[-1],
            "ms",
            limit=5,
        ),
        Row(
            "20,000 blocks announced to a new router, worst of 5",
            max(report["announcement_ms"]),
            "ms",
            limit=1000,
        ),
    ]


def kv_events_calls_rows(calls: dict) -> list[Row]:
    """Compares calls with events to calls without.

    On a machine with few CPUs the figure includes the work of the routers that read
    events. The second floor has no events, but sends as many bytes to as many readers,
    and so shows how large that part is.
    """
    workers = {
        "flood": "4 clients",
        "engine": "a client with 200 requests/s",
    }[calls["load"]]
    count = calls["subscribers"]
    routers = f"{count} router{'' if count == 1 else 's'}"
    on, off = (lower_quartile(calls[f"{name}_p99_us"]) for name in ("on", "off"))
    rows = [
        Row(
            f"calls of {workers}, p99, with events, {routers}; floor: without",
            on,
            "us",
            off,
            ratio_limit=1.05,
        )
    ]
    if count:
        plain = lower_quartile(calls["plain_p99_us"])
        rows.append(
            Row("the same; floor: without, as many bytes to as many", on, "us", plain)
        )
    return [
        *rows,
        Row(
            f"blocks stored and removed in a second of them, {routers}",
            calls["blocks"] / calls["seconds"],
            "",
        ),
        Row(
            f"publishing threads' share of a CPU, {routers}",
            100 * calls["publishing_seconds"] / calls["seconds"],
            "%",
        ),
        Row(
            f"their time for 1,000 blocks, {routers}",
            1e6 * calls["publishing_seconds"] / (max(calls["blocks"], 1) / 1000),
            "us",
        ),
    ]


def lower_quartile(values: list[float]) -> float:
    return quantiles(values, n=4)[0]


def replay_rows(traces: list[Trace], replays: Replays) -> list[Row]:
    """Returns the rows with the targets of the replays."""
    rows = []
    for trace in traces:
        by_name = {way.name: way.report for way in replays.of(trace)}
        lane = by_name["lane, whole prompts"]["request_us"]["mean"]
        for name, limit in (("pandod", 0.25), ("in process", 2.5)):
            floor = by_name[f"{name}, whole prompts"]["request_us"]["mean"]
            is_target = trace.name == "conversation"
            rows.append(
                Row(
                    f"{trace.name}, whole prompts, on a lane, mean; floor: {name}",
                    lane,
                    "us",
                    floor,
                    ratio_limit=limit if is_target else None,
                )
            )
        for way in replays.of(trace):
            rows.append(
                Row(
                    f"{trace.name}, {way.name}: a request, mean",
                    way.report["request_us"]["mean"],
                    "us",
                    way.report["floor_us"]["mean"],
                    limit=trace.handles_limit_us if way.is_target else None,
                )
            )
        differences = [
            100 * abs(report["hit_rate"] - report["block_lru_hit_rate"])
            for report in replays.hit_rates(trace)
            if report["policy"] == "lru"
        ]
        rows.append(
            Row(
                f"{trace.name}: hit rate of LRU off block LRU, worst",
                max(differences),
                "pt",
                limit=0.1,
            )
        )
        rows += reuse_rows(trace, replays.hit_rates(trace))
    return rows


def reuse_rows(trace: Trace, reports: list[dict]) -> list[Row]:
    """Returns the figures that `reuse` would have to keep to become the default."""
    rows = []
    for tokens in trace.capacities:
        lru, reuse = (report_of(reports, policy, tokens) for policy in ("lru", "reuse"))
        where = f"{trace.name}, {tokens:,} tokens, reuse"
        rows.append(
            Row(
                f"{where}: hit rate above lru's",
                100 * (reuse["hit_rate"] - lru["hit_rate"]),
                "pt",
                limit=-0.15,
                is_minimum=True,
            )
        )
        rows.append(
            Row(
                f"{where}: a request, mean; floor: lru",
                reuse["request_us"]["mean"],
                "us",
                lru["request_us"]["mean"],
                ratio_limit=1.2,
            )
        )
    return rows


def report_of(reports: list[dict], policy: str, tokens: int) -> dict:
    [report] = [
        each
        for each in reports
        if (each["policy"], each["pool_tokens"]) == (policy, tokens)
    ]
    return report


def replay_table(traces: list[Trace], replays: Replays) -> list[list[str]]:
    table = [
        ["trace", "way", "sent", "requests/s", "mean us", "p50", "p99"]
        + ["floor mean", "p50", "ratio", "hit rate"]
    ]
    for trace in traces:
        for way in replays.of(trace):
            report = way.report
            times, floor = report["request_us"], report["floor_us"]
            table.append(
                [
                    trace.name,
                    way.name,
                    f"{report['sent_tokens'] / report['requests']:,.0f}",
                    f"{report['requests_per_second']:,.0f}",
                    f"{times['mean']:.1f}",
                    f"{times['p50']:.1f}",
                    f"{times['p99']:.1f}",
                    f"{floor['mean']:.1f}",
                    f"{floor['p50']:.1f}",
                    f"{times['mean'] / floor['mean']:.2f}",
                    f"{100 * report['hit_rate']:.2f} %",
                ]
            )
    return table


def hit_rate_table(traces: list[Trace], replays: Replays) -> list[list[str]]:
    table = [["trace", "tokens", *ALL_POLICIES, "block LRU", "recorded", "unlimited"]]
    for trace in traces:
        reports = replays.hit_rates(trace)
        for tokens in trace.capacities:
            by_policy = {
                policy: report_of(reports, policy, tokens) for policy in ALL_POLICIES
            }
            lru = by_policy["lru"]
            recorded = trace.recorded_block_lru.get(tokens)
            table.append(
                [trace.name, f"{tokens:,}"]
                + [f"{100 * by_policy[p]['hit_rate']:.2f}" for p in ALL_POLICIES]
                + [f"{100 * lru['block_lru_hit_rate']:.2f}"]
                + [f"{recorded:.2f}" if recorded else "-"]
                + [f"{100 * lru['unlimited_hit_rate']:.2f}"]
            )
    return table


def policy_time_table(traces: list[Trace], replays: Replays) -> list[list[str]]:
    table = [["trace", "tokens", *ALL_POLICIES]]
    for trace in traces:
        reports = replays.hit_rates(trace)
        for tokens in trace.capacities:
            table.append(
                [trace.name, f"{tokens:,}"]
                + [
                    f"{report_of(reports, policy, tokens)['request_us']['mean']:.1f}"
                    for policy in ALL_POLICIES
                ]
            )
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    add_traces_option(parser)
    parser.add_argument(
        "--only",
        choices=PARTS,
        action="append",
        help="leave the others out; may be given more than once",
    )
    options = parser.parse_args()
    wanted = options.only or PARTS
    traces = find_traces(options.traces)
    replays = Replays(options.build)
    rows = []
    if "core" in wanted:
        rows += core_rows(options.build)
    if "rpc" in wanted:
        rows += rpc_rows(options.build)
    if "python" in wanted:
        rows += python_rows(options.build, traces)
    if "scrape" in wanted:
        rows += scrape_rows(options.build)
    if "kv_events" in wanted:
        rows += kv_events_rows(options.build)
    if "tiers" in wanted:
        rows += tier_rows(options.build, traces)
    if "waits" in wanted:
        rows += wait_rows(options.build)
    if "restart" in wanted:
        rows += restart_rows(options.build)
    if "replay" in wanted:
        rows += replay_rows(traces, replays)
    print_rows(rows)
    summary = {"rows": [asdict(row) | {"verdict": row.verdict} for row in rows]}
    if "replay" in wanted:
        for trace in traces:
            print(f"\n{trace.name}: {trace.path}{trace.note}")
        print("\nEach request: match + lock + reserve, then publish + unlock + free.")
        print_table(replay_table(traces, replays))
        print("\nHit rates in per cent, by policy and size of the pool:")
        print_table(hit_rate_table(traces, replays))
        print("\nMean time of a request in process, us, by policy and pool:")
        print_table(policy_time_table(traces, replays))
        summary["replays"] = replays.summary()
    path = ROOT / "build/bench/summary.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(summary, indent=2) + "\n")
    print(f"\nthe same: {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
