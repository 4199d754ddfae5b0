"""Something to watch in the console: agents share one cache, until Ctrl-C.

Starts pandod, and workers that serve recorded conversations of coding agents. No model
computes: a worker holds a request's lock and pages for as long as an engine might take,
and publishes pages without KV. The pool is small, so within a minute the tree grows,
splits, gets locks, and shrinks again.
"""

import argparse
import contextlib
import itertools
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pando_kv
from agents import AgentRequest, Conversation, read_conversations
from pandod import console_address, running_pandod

ROOT = Path(__file__).parents[2]

WORKERS = "ABCD"
AGENTS = 20
PAGE_TOKENS = 16
OPTIONS = {
    "--model": "show",
    "--pool-pages": 50_000,
    "--page-tokens": PAGE_TOKENS,
    # The smallest layout, because the contents of the pages do not matter.
    "--layers": 1,
    "--heads": 1,
    "--head-size": 8,
    "--dtype": "bfloat16",
}

# The speeds of an imagined engine in tokens per second, and the least and most seconds
# for which an agent's tools run.
PREFILL_RATE = 20_000
DECODE_RATE = 200
TOOL_SECONDS = (0.5, 4.0)
# Every third conversation belongs to a tenant, whose namespace shares no prefixes.
TENANTS = [None, None, pando_kv.Namespace("tenant-a")]
REPORT_SECONDS = 10


class Stopped(Exception):
    """The exception that ends waiting agents when the show is over."""


class Work:
    """An endless supply of conversations for free agents, and the signal to stop.

    Threads of all agents share one object; `_mutex` guards the two iterators.
    """

    def __init__(self, conversations: list[Conversation]) -> None:
        self._conversations = (
            conversation.requests(round_)
            for round_ in itertools.count()
            for conversation in conversations
        )
        self._tenants = itertools.cycle(TENANTS)
        self._mutex = threading.Lock()
        self._is_over = threading.Event()

    def take(self) -> tuple[pando_kv.Namespace | None, Iterator[AgentRequest]]:
        with self._mutex:
            return next(self._tenants), next(self._conversations)

    def stop(self) -> None:
        self._is_over.set()

    def wait(self, seconds: float) -> None:
        if self._is_over.wait(seconds):
            raise Stopped


class Agent:
    """An agent that has one conversation after another with its worker, on its own
    thread."""

    def __init__(self, client: pando_kv.Client, work: Work) -> None:
        self._client = client
        self._work = work

    def run(self) -> None:
        with contextlib.suppress(Stopped):
            self._work.wait(random.uniform(0, 8))
            while True:
                tenant, requests = self._work.take()
                for request in requests:
                    self._serve(request, tenant)
                    self._work.wait(random.uniform(*TOOL_SECONDS))

    def _serve(self, request: AgentRequest, tenant: pando_kv.Namespace | None) -> None:
        match = self._admit(request, tenant)
        rest = request.prompt[match.matched_tokens :]
        self._work.wait(len(rest) / PREFILL_RATE + request.output_tokens / DECODE_RATE)
        whole = len(rest) // PAGE_TOKENS
        pages = match.reserved_page_ids
        self._client.insert(
            rest,
            pages[:whole],
            lock=match.lock,
            unlock=True,
            free_page_ids=pages[whole:],
        )

    def _admit(
        self, request: AgentRequest, tenant: pando_kv.Namespace | None
    ) -> pando_kv.Match:
        while True:
            try:
                return self._client.match_prefix(
                    request.prompt,
                    namespace=tenant,
                    max_tokens=len(request.prompt) - 1,
                    lock=True,
                    reserve_tokens=len(request.prompt) + request.output_tokens,
                )
            except pando_kv.PoolExhaustedError:
                # The agent tries again until another request has ended, as a scheduler
                # does.
                self._work.wait(0.2)


def report(operator: pando_kv.Client, seconds: float) -> str:
    stats = operator.stats()
    counters = stats.counters
    found = counters.hit_tokens / max(1, counters.query_tokens)
    evicted = (
        counters.evicted_pages_for_allocation + counters.evicted_pages_for_watermark
    )
    return (
        f"{seconds:5.0f} s  {counters.matches:6,} requests, {found:4.0%} of their "
        f"tokens found  {stats.nodes:5,} nodes  {evicted:9,} pages evicted"
    )


def run_show(pandod: Path, trace: Path, seconds: float) -> None:
    work = Work(read_conversations(trace))
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="pando-show-"))
        http = console_address()
        address = stack.enter_context(
            running_pandod(pandod, Path(folder), http, OPTIONS)
        )
        clients = [
            stack.enter_context(pando_kv.Client(address, name=f"worker {letter}"))
            for letter in WORKERS
        ]
        print(f"\n  Watch it:  http://{http}/console/\n  Ctrl-C ends it.\n", flush=True)
        begin = time.monotonic()
        agents = [
            threading.Thread(target=Agent(client, work).run)
            for client in itertools.islice(itertools.cycle(clients), AGENTS)
        ]
        for agent in agents:
            agent.start()
        try:
            while (left := begin + seconds - time.monotonic()) > 0:
                time.sleep(min(REPORT_SECONDS, left))
                print(report(clients[0], time.monotonic() - begin), flush=True)
        finally:
            work.stop()
            for agent in agents:
                agent.join()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--pandod", type=Path, default=ROOT / "build/release/bin/pandod"
    )
    parser.add_argument(
        "--trace", type=Path, default=ROOT / "bench/data/agentic_excerpt.jsonl"
    )
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="end after so long"
    )
    options = parser.parse_args()
    if not options.pandod.is_file():
        parser.error(f"argument --pandod: there is no {options.pandod}")
    for stop in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(stop, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        run_show(options.pandod, options.trace, options.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
