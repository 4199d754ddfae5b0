"""Starts pandod and the programs of bench/python beside it, on one CPU or on two."""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from pando_kv import Client
from started_pandod import SMALLEST_LAYOUT, started_pandod

PROGRAMS = Path(__file__).resolve().parent / "python"
PAGE_TOKENS = 16
POOL_TOKENS = 5_000_000
IDLE_SESSIONS = 64
IDLE_SECONDS = 5


def python_calls(build: Path) -> dict[str, float]:
    """Returns the median times in microseconds, by the name of the call."""
    with serving(build) as address:
        return _json_of(sys.executable, "call_times.py", address)


def python_trace(
    build: Path,
    trace: Path,
    transport: str,
    *,
    handles: bool = False,
    begun: bool = False,
    on_two_cpus: bool = False,
    requests: int = 3000,
    python: str = sys.executable,
) -> dict[str, float]:
    """Returns the figures that bench/python/pando_trace.py prints. Raises RuntimeError
    if `on_two_cpus` is set and this process may use only one CPU."""
    cpu = max(os.sched_getaffinity(0)) if on_two_cpus else _first_cpu()
    if on_two_cpus and cpu == _first_cpu():
        raise RuntimeError("this needs two CPUs")
    with _serving(build, cpu) as (address, _):
        more = ["--handles"] if handles else []
        more += ["--begun"] if begun else []
        more += ["--requests", str(requests)]
        return _json_of(python, "pando_trace.py", address, transport, trace, *more)


def sglang_trace(python: str, core: str, trace: Path, requests: int) -> dict:
    """Returns the figures that bench/python/sglang_trace.py prints."""
    sizes = (str(PAGE_TOKENS), str(POOL_TOKENS), str(requests))
    return _json_of(python, "sglang_trace.py", core, trace, *sizes)


def _json_of(python: str, program: str, *arguments: str | Path) -> dict:
    """Runs a program of bench/python on the first CPU; returns the JSON of its last
    line."""
    command = ["taskset", "--cpu-list", str(_first_cpu()), python]
    command += [str(PROGRAMS / program), *map(str, arguments)]
    print(" ".join(command), file=sys.stderr)
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def idle_share(build: Path, *, lane: bool) -> float:
    """Returns the percentage of a CPU that pandod takes for sessions that make no
    calls."""
    with (
        _serving(build, _first_cpu()) as (address, pid),
        contextlib.ExitStack() as stack,
    ):
        for _ in range(IDLE_SESSIONS):
            client = stack.enter_context(Client(address, lane=lane))
            client.match_prefix(np.arange(PAGE_TOKENS))
        before = cpu_seconds(pid)
        time.sleep(IDLE_SECONDS)
        return 100 * (cpu_seconds(pid) - before) / IDLE_SECONDS


def cpu_seconds(pid: int) -> float:
    """Returns the CPU time in seconds that the threads of a process have spent."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


@contextlib.contextmanager
def serving(build: Path, *, on_one_cpu: bool = True) -> Iterator[str]:
    """Yields the address of a pandod, which runs while the block does."""
    with _serving(build, _first_cpu() if on_one_cpu else None) as (address, _):
        yield address


def _serving(
    build: Path, cpu: int | None
) -> contextlib.AbstractContextManager[tuple[str, int]]:
    pool = ("--page-tokens", PAGE_TOKENS)
    pool += ("--pool-pages", POOL_TOKENS // PAGE_TOKENS + 1)
    return started_pandod(build, *pool, *SMALLEST_LAYOUT, cpu=cpu)


def _first_cpu() -> int:
    return min(os.sched_getaffinity(0))
