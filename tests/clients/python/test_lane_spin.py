"""The spinning of pandod on a lane: only for callers on another CPU, and briefly."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from eventually import eventually
from lanes import needs_lane
from metrics_page import MetricsPage
from pando_kv import Client
from pandod_process import Pandod, serving
from prompts import prompt

pytestmark = needs_lane

# The spin is much longer than a call takes.
SPIN = "10ms"
CALLS = 50
# A call arrives during a spin as soon as both CPUs are free for a moment.
MOST_ROUNDS = 2000
CPUS = sorted(os.sched_getaffinity(0))


@contextlib.contextmanager
def on_cpu(cpu: int) -> Iterator[None]:
    """Runs this thread and everything that it starts on one CPU."""
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, CPUS)


def spins(http: str) -> dict[str, float]:
    return MetricsPage(http).by("outcome", "pando_lane_spins_total")


def make_calls(client: Client) -> None:
    assert client.transport == "lane"
    for _ in range(CALLS):
        client.match_prefix(prompt(1))


def test_with_one_cpu_it_never_spins(tmp_path, http):
    with (
        on_cpu(CPUS[0]),
        serving(tmp_path, http=http, lane_spin=SPIN) as pandod,
        Client(pandod.address) as client,
    ):
        make_calls(client)
        assert spins(http) == {"call": 0, "none": 0}


@pytest.mark.skipif(len(CPUS) < 2, reason="it spins only where there are two CPUs")
def test_it_spins_at_most_once_a_call_and_then_sleeps(tmp_path, http):
    with contextlib.ExitStack() as stack:
        with on_cpu(CPUS[0]):
            pandod = stack.enter_context(serving(tmp_path, http=http, lane_spin=SPIN))
        stack.enter_context(on_cpu(CPUS[1]))
        client = stack.enter_context(Client(pandod.address))
        other = stack.enter_context(Client(pandod.address, lane=False))

        rounds = 0
        while rounds < MOST_ROUNDS and spins(http)["call"] == 0:
            make_calls(client)
            rounds += 1
        eventually(lambda: lane_thread_sleeps(pandod))
        after_calls = spins(http)
        assert after_calls["call"] > 0
        assert sum(after_calls.values()) <= rounds * CALLS

        ran = time_on_cpu(pandod)
        for _ in range(CALLS):
            other.match_prefix(prompt(1))
        assert time_on_cpu(pandod) == ran
        assert spins(http) == after_calls


def lane_thread(pandod: Pandod) -> Path:
    (thread,) = (
        task
        for task in Path(f"/proc/{pandod.pid}/task").iterdir()
        if (task / "comm").read_text() == "lanes\n"
    )
    return thread


def lane_thread_sleeps(pandod: Pandod) -> bool:
    # The state follows the name, which stands in parentheses.
    state = (lane_thread(pandod) / "stat").read_text().rpartition(") ")[2][0]
    return state == "S"


def time_on_cpu(pandod: Pandod) -> str:
    """Returns nanoseconds run, nanoseconds waited for a CPU, and time slices."""
    return (lane_thread(pandod) / "schedstat").read_text()
