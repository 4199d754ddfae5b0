"""Traffic that changes every metric: hits, misses, evictions, waits, failures."""

import contextlib
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from blocks import MIB, keys, of, spec, store
from cutter import Cutter
from eventually import eventually
from metrics_page import free_address
from pando_kv import Client
from pando_kv.blocks import are_places
from pandoctl import Pandoctl
from pandod_process import PAGE_TOKENS, Pandod
from protocol_worker import Answer, ProtocolWorker, protocol_worker
from worker_process import WorkerProcess

POOL_PAGES = 96
CAP_PAGES = 8
# A wait in milliseconds that is longer than any test.
LONG = 600_000
KV_EVENTS = f"tcp://{free_address()}"
OPTIONS = {
    "kv_events": KV_EVENTS,
    "pool_pages": POOL_PAGES,
    "low_free_pages": 4,
    "high_free_pages": 8,
    "session_grace": "100ms",
    "quarantine": "1h",
    "check_invariants_every": "1s",
    "verify_pages": 1,
    "learn_reuse": "yes",
    "memory": 4 * MIB,
    "block_extent": MIB,
    "block_write_limit": "1ms",
}
QUOTAS = f"""
quotas:
  - {{class: gold, extra_key: gold, cap_pages: {CAP_PAGES}, max_retention_seconds: 60}}
block_quotas:
  - {{name: all kinds, label: "kind *"}}
"""
GOLD = {"extra_key": "gold"}

PAGES = 4


def tokens(number: int) -> list[int]:
    """Returns a prompt of PAGES pages that no other number has."""
    begin = number * 1000
    return list(range(begin, begin + PAGES * PAGE_TOKENS))


class Traffic:
    """Rounds of all kinds of calls, while one request waits all the time."""

    def __init__(self, address: str, observer: ProtocolWorker) -> None:
        self._address = address
        self._observer = observer
        self._numbers = count(1)

    def round(self) -> None:
        with (
            protocol_worker(self._address) as one,
            protocol_worker(self._address) as other,
        ):
            self._evict(one)
            self._hit(one)
            self._reach_the_cap(one)
            self._wait(one, other)
            self._fail(one)
            self._repeat(one)
            self._operate(other)
            self._overwrite()
            self._use_blocks()
            self._subscribe()
            # The lock of this request ends with its session.
            one.admit(self._new()).get()

    def _new(self) -> list[int]:
        return tokens(next(self._numbers))

    def _evict(self, worker: ProtocolWorker) -> None:
        """Publishes more than the pool can hold, then the first prompts again."""
        worker.cache(self._new(), expected_reuse="EXPECTED_REUSE_ENDED")
        prompts = [self._new() for _ in range(POOL_PAGES // PAGES)]
        for prompt in [*prompts, *prompts[:4]]:
            worker.finish(worker.admit(prompt).get(), prompt)
        # This allocation takes more pages at once than the watermark keeps free.
        room = worker.call("AllocatePages", pages=POOL_PAGES // 2)
        worker.call("FreePages", page_ids=room.page_ids)
        assert worker.call("Evict", pages=1).evicted_pages == 1

    def _hit(self, worker: ProtocolWorker) -> None:
        prompt = self._new()
        worker.cache(prompt)
        # The second insert makes duplicates.
        worker.cache(prompt)
        for asked in (prompt, prompt + self._new()):
            worker.unlock(worker.admit(asked).get())
        worker.call("MatchPrefixes", queries=[{"tokens": prompt}])
        lock = worker.call("Lock", tokens=prompt)
        worker.call("Unlock", lock_ids=[lock.lock_id])

    def _reach_the_cap(self, worker: ProtocolWorker) -> None:
        for _ in range(CAP_PAGES // PAGES + 1):
            worker.cache(self._new(), namespace=GOLD, retain_seconds=60)
        worker.failure("AllocatePages", pages=CAP_PAGES + 1, namespace=GOLD)
        worker.call("Flush", namespace=GOLD)
        prompt = self._new()
        worker.finish(worker.admit(prompt, namespace=GOLD).get(), prompt)
        worker.unlock(worker.admit(prompt, namespace=GOLD).get())

    def _wait(self, owner: ProtocolWorker, other: ProtocolWorker) -> None:
        """Makes a request wait until its time is over, until the prompt is published,
        and until the owner gives up."""
        published, given_up = self._new(), self._new()
        held = owner.admit(published).get()
        late = other.admit(published, pending_wait_ms=1).get()
        other.unlock(late)
        answer = self._start_waiting(other, published)
        owner.finish(held, published)
        other.unlock(answer.get())
        held = owner.admit(given_up).get()
        answer = self._start_waiting(other, given_up)
        owner.unlock(held)
        owner.call("FreePages", page_ids=held.reserved_page_ids)
        other.unlock(answer.get())

    def _start_waiting(self, worker: ProtocolWorker, prompt: list[int]) -> Answer:
        before = self._observer.stats().waiting_matches
        answer = worker.admit(prompt, pending_wait_ms=LONG)
        eventually(lambda: self._observer.stats().waiting_matches == before + 1)
        return answer

    def _fail(self, worker: ProtocolWorker) -> None:
        # The pool has fewer pages.
        worker.failure("AllocatePages", pages=POOL_PAGES)
        # Some of these pages are held.
        worker.failure("AllocatePages", pages=POOL_PAGES - 1)
        worker.failure("Unlock", lock_ids=[12345])

    def _repeat(self, worker: ProtocolWorker) -> None:
        pages = [
            worker.call("AllocatePages", pages=1, request_id=77).page_ids
            for _ in range(2)
        ]
        assert pages[0] == pages[1]

    def _use_blocks(self) -> None:
        """Evicts blocks for each reason, and brings about each end of a reservation."""
        prompt = next(self._numbers)
        with Client(self._address) as client:
            memory = client.attach_memory()
            small, large = client.open_kinds([spec("s", MIB // 8), spec("l", MIB)])
            # The memory has room for 32 of these 48 blocks.
            store(client, memory, 1, small, keys(48, prompt))
            store(client, memory, 1, large, keys(2, prompt))
            client.lookup_blocks([of(small, keys(48, prompt))])
            client.acquire_blocks(2, [of(large, keys(2, prompt))])
            late = [of(small, keys(1, prompt, first=99))]
            client.reserve_blocks(3, late)
            client.lookup_blocks(late)
            eventually(lambda: are_places(client.reserve_blocks(4, late)).all())
            client.publish_blocks(3)
            client.publish_blocks(4)
            client.reserve_blocks(5, [of(large, keys(9, prompt, first=9))])
            client.discard_blocks(5)
            client.reset_kinds([small.number])

    def _operate(self, newest: ProtocolWorker) -> None:
        """Releases the locks of the session that was opened last."""
        newest.call("Lock", tokens=self._new())
        locks = newest.call("ListLocks").locks
        number = max(lock.session_number for lock in locks)
        newest.call("ReleaseLocks", session_number=number)

    def _subscribe(self) -> None:
        """Connects a router that receives all cached blocks, and disconnects it."""
        router = Pandoctl(self._address)("watch", "--kv-events", KV_EVENTS, "-n", 1)
        assert router.code == 0, router.err

    def _overwrite(self) -> None:
        """Writes to a page that is cached, which no worker may do."""
        with Client(self._address) as worker, worker.attach_pool() as pool:
            prompt = self._new()
            pages = worker.allocate_pages(PAGES)
            worker.insert(prompt, pages)
            pool.keys(0)[pages[0]] += 1
            worker.match_prefix(prompt)


@contextlib.contextmanager
def traffic(pandod: Pandod, tcp: str, folder: Path) -> Iterator[Traffic]:
    """Yields the traffic, with four other things beside it.

    They are a lock that is held, a request that waits for the lock's owner, a router
    that listens, and two workers that are cut off and whose pages and blocks stay in
    quarantine.
    """
    prompt = tokens(0)
    cutter = Cutter(folder / "cutter", tcp)
    with (
        protocol_worker(pandod.address) as owner,
        protocol_worker(pandod.address) as waiter,
        WorkerProcess(cutter.address) as lost,
        WorkerProcess(cutter.address, 1, "block_worker.py") as lost_blocks,
        Pandoctl(pandod.address).start("watch", "--kv-events", KV_EVENTS) as router,
    ):
        held = owner.admit(prompt).get()
        waiting = waiter.admit(prompt, pending_wait_ms=LONG)
        lost.do("attach", "lock", "reserve")
        lost_blocks.do("attach", "store", "lock", "reserve")
        cutter.close()
        eventually(lambda: owner.stats().waiting_matches == 1)
        eventually(lambda: owner.stats().pages.quarantined > 0)
        yield Traffic(pandod.address, owner)
        owner.unlock(held)
        eventually(waiting.is_here)
        router.kill()
