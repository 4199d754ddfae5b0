"""A run of all threads of pandod at once, under the thread sanitizer: `make test-tsan`.

The run exercises pandod's own threads: polling, timers, events, those for routers too,
disk tier, regret meter, process watcher, memory socket, acceptors, HTTP and log. A race
ends pandod with a status that the test rejects. Without the sanitizer the test would
show nothing, so pytest does not collect it by itself.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pytest
from fleet.subscriber import Subscriber, replay
from marked_prompts import random_prompt
from metrics_page import MetricsPage, free_address, get
from pando_kv import Client, SnapshotEnd
from pandod_process import PAGE_TOKENS, Pandod, clean_environment, serving
from worker_process import WorkerProcess

SECONDS = 15
LOAD_CLIENT = Path(__file__).parents[1] / "support" / "load_client.py"
SUPPRESSIONS = Path(__file__).parents[1] / "support" / "tsan" / "suppressions.txt"

Deed = Callable[[], None]


@contextmanager
def again_and_again(*deeds: Deed) -> Iterator[None]:
    """Repeats each deed on its own thread until the block ends, but at least once."""
    is_over = threading.Event()
    failed: list[BaseException] = []

    def repeat(deed: Deed) -> None:
        try:
            while True:
                deed()
                if is_over.is_set():
                    return
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=repeat, args=(deed,)) for deed in deeds]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    if failed:
        raise failed[0]


def scrape(http: str) -> None:
    for path in ("/metrics", "/healthz", "/readyz"):
        assert get(http, path)[0] == 200


def look_at_the_console(http: str) -> None:
    for what in ("stats", "tree", "sessions", "locks", "search?name=worker"):
        assert get(http, f"/console/api/{what}")[0] in (200, 404)
    prompt = json.dumps({"tokens": [1, 2, 3]}).encode()
    request = urllib.request.Request(
        f"http://{http}/console/api/explain",
        prompt,
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 200


def watch_events(pandod: Pandod) -> None:
    with Client(pandod.address) as client, client.watch_events() as events:
        while not isinstance(next(events), SnapshotEnd):
            pass


def follow_as_a_router(events: str, replays: str) -> None:
    """Learns which blocks are cached, then asks for all of them again."""
    with Subscriber(events) as subscriber:
        announced = subscriber.next().sequence
        assert replay(replays, announced)[0].sequence == announced
        replay(replays, 0)


def wait_for_the_disk(pandod: Pandod, random: np.random.Generator) -> None:
    """Waits for a prompt that another worker may have cached, now perhaps evicted."""
    prompt = random_prompt(random, PAGE_TOKENS)
    with Client(pandod.address) as client:
        match = client.match_prefix(
            prompt.tokens, namespace=prompt.namespace, lock=True, pending_wait=1
        )
        match.lock.release()


def ask_as_an_operator(pandod: Pandod) -> None:
    with Client(pandod.address) as client:
        client.stats()
        client.namespaces()
        client.sessions()
        client.locks()
        client.dump_tree()
        client.check_invariants()


def die(pandod: Pandod) -> None:
    """Kills a worker that has the pool mapped, holds a lock and has reserved pages."""
    with WorkerProcess(pandod.address) as worker:
        worker.do("attach", "lock", "reserve")


def read_options_again(pandod: Pandod) -> None:
    os.kill(pandod.pid, signal.SIGHUP)
    # The pause sets the pace; nothing waits for it.
    time.sleep(0.05)


@pytest.fixture(autouse=True)
def sanitizer(monkeypatch) -> None:
    monkeypatch.setenv("TSAN_OPTIONS", f"suppressions={SUPPRESSIONS} history_size=4")
    assert "TSAN_OPTIONS" in clean_environment()


@contextmanager
def load(pandod: Pandod) -> Iterator[None]:
    """Runs workers that check every page they read, and waits until they end."""
    commands = [
        [sys.executable, LOAD_CLIENT, pandod.address, str(seed), "0", str(SECONDS)]
        for seed in range(2)
    ]
    with ExitStack() as stack:
        workers = [
            stack.enter_context(subprocess.Popen(command, stdout=subprocess.DEVNULL))
            for command in commands
        ]
        yield
        assert [worker.wait() for worker in workers] == [0, 0]


def test_the_threads_of_pandod_do_not_race(tmp_path):
    http = free_address()
    events, replays = (f"tcp://{free_address()}" for _ in range(2))
    options = {
        "http": http,
        "kv_events": events,
        "kv_events_replay": replays,
        "low_free_pages": 4,
        "high_free_pages": 8,
        "check_invariants_every": "1s",
        "verify_pages": 1,
        "log_level": "debug",
        "model": "a",
        "tier_disk": tmp_path / "tier",
        "tier_disk_bytes": "16MiB",
        "tier_min_load_tokens": PAGE_TOKENS,
    }
    random = np.random.default_rng(1)
    with serving(tmp_path, **options) as pandod:
        deeds: list[Deed] = [
            lambda: scrape(http),
            lambda: look_at_the_console(http),
            lambda: watch_events(pandod),
            lambda: follow_as_a_router(events, replays),
            lambda: wait_for_the_disk(pandod, random),
            lambda: ask_as_an_operator(pandod),
            lambda: die(pandod),
            lambda: read_options_again(pandod),
        ]
        with again_and_again(*deeds), load(pandod):
            pass
        assert pandod.running, pandod.log()
        page = MetricsPage(http)
        assert page.sum("pando_tier_copied_pages_total", direction="store") > 0
        assert page.sum("pando_tier_copied_pages_total", direction="load") > 0
    assert "ThreadSanitizer" not in pandod.log()
