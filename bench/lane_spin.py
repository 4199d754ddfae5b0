"""Measures the costs and gains of --lane-spin, on one CPU and on two.

A worker matches 1,024 tokens on a lane three times: in calls one after the other, then
in one call each millisecond, then in one call each millisecond while another process
computes on pandod's CPU. The table has the median time of a call, the CPU time that
pandod takes, and the share of its speed that the other process keeps.

usage: python bench/lane_spin.py [--build build/release]
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from pando_kv import Client
from python_calls import cpu_seconds
from rows import print_table
from started_pandod import SMALLEST_LAYOUT, started_pandod

ROOT = Path(__file__).resolve().parent.parent
SPINS = ("0", "5us", "20us", "100us", "1ms")
TOKENS = 1024
ROUND_SECONDS = 1.5
PAUSE_SECONDS = 1e-3
# A program that counts for the given number of seconds, and prints its count.
COUNTER = """
import sys, time
end, count = time.time() + float(sys.argv[1]), 0
while time.time() < end:
    count += 1
print(count)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    build = parser.parse_args().build
    table = [["CPUs", "--lane-spin", "p50 us", "pandod", "each ms: p50 us", "pandod"]]
    table[0] += ["beside another: p50 us", "the other's speed"]
    os.sched_setaffinity(0, {0})
    for cpus in (2, 1):
        for spin in SPINS:
            table.append([str(cpus), spin, *measure(build, cpus - 1, spin)])
    print_table(table)


def measure(build: Path, cpu: int, spin: str) -> list[str]:
    options = (*SMALLEST_LAYOUT, "--lane-spin", spin)
    with (
        started_pandod(build, *options, cpu=cpu) as (address, pid),
        Client(address) as client,
    ):
        return figures(client, pid, cpu)


def figures(client: Client, pid: int, cpu: int) -> list[str]:
    prompt = np.arange(TOKENS, dtype=np.uint32)
    match = client.match_prefix(prompt, lock=True, reserve_tokens=TOKENS)
    client.insert(
        (), match.reserved_page_ids, lock=match.lock, unlock=True, prompt_tokens=TOKENS
    )
    made = []
    for pause in (0.0, PAUSE_SECONDS):
        calls(client, prompt, pause, ROUND_SECONDS / 5)
        before = cpu_seconds(pid)
        p50 = calls(client, prompt, pause, ROUND_SECONDS)
        share = (cpu_seconds(pid) - before) / ROUND_SECONDS
        made += [f"{p50:.1f}", f"{100 * share:.0f} %"]
    alone = start_counter(cpu)
    alone_count = int(alone.communicate()[0])
    beside = start_counter(cpu)
    p50 = calls(client, prompt, PAUSE_SECONDS, ROUND_SECONDS)
    speed = int(beside.communicate()[0]) / alone_count
    return [*made, f"{p50:.1f}", f"{speed:.2f}"]


def calls(client: Client, prompt: np.ndarray, pause: float, seconds: float) -> float:
    """Calls match_prefix for `seconds`, with `pause` seconds between calls; returns the
    median time of a call in microseconds."""
    spent = []
    now = time.perf_counter_ns
    end = now() + seconds * 1e9
    while (begin := now()) < end:
        client.match_prefix(prompt)
        spent.append(now() - begin)
        if pause:
            time.sleep(pause)
    return statistics.median(spent) / 1000


def start_counter(cpu: int) -> subprocess.Popen:
    return subprocess.Popen(
        ["taskset", "-c", str(cpu), sys.executable, "-c", COUNTER, str(ROUND_SECONDS)],
        stdout=subprocess.PIPE,
    )


if __name__ == "__main__":
    main()
