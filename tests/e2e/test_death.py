"""Workers and pandod die, stop or are cut off, and other workers never notice."""

import contextlib
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from cutter import Cutter
from eventually import eventually
from metrics_page import MetricsPage, free_address
from pando_kv import (
    Client,
    Match,
    PoolExhaustedError,
    SessionLostError,
    UnavailableError,
)
from pando_kv._proto.pando.v1 import pool_pb2, prefix_cache_pb2
from pandoctl import Pandoctl
from pandod_process import PAGE_TOKENS, POOL_PAGES
from raw_calls import RawCalls
from worker_process import (
    CHUNK_PAGES,
    PROMPT_PAGES,
    SHARED_PAGES,
    STEPS,
    WorkerProcess,
    prompt,
)

# A test that sets this time must not have to wait for it.
NEVER = "1h"
SOON = "200ms"

SHARED_TOKENS = SHARED_PAGES * PAGE_TOKENS
OWN_PAGES = 3
# Pages that a worker has published after each step, and those it still reserves then.
PUBLISHED = {"insert": CHUNK_PAGES, "finish": PROMPT_PAGES - SHARED_PAGES - 1}
RESERVED = {
    "reserve": PROMPT_PAGES - SHARED_PAGES,
    "write": PROMPT_PAGES - SHARED_PAGES,
    "insert": PROMPT_PAGES - SHARED_PAGES - CHUNK_PAGES,
}
LOCKED = ["lock", "reserve", "write", "insert"]


@dataclass
class Bystander:
    """A worker in the middle of a request that must not notice anything.

    The worker has published and locked the shared pages, and has pages of its own.
    """

    client: Client
    match: Match

    def __post_init__(self) -> None:
        self.pool = self.client.attach_pool()
        self._pages = np.concatenate(
            [self.match.page_ids, self.match.reserved_page_ids]
        )
        for layer in range(self.client.pool.layout.layers):
            for view in (self.pool.keys(layer), self.pool.values(layer)):
                view[self._pages] = self._content()

    def _content(self) -> np.ndarray:
        return self._pages[:, None, None, None] + np.float32(0.5)

    def assert_undisturbed(self) -> None:
        client = self.client
        assert client.generation == 1
        for layer in range(client.pool.layout.layers):
            for view in (self.pool.keys(layer), self.pool.values(layer)):
                assert (view[self._pages] == self._content()).all()
        again = client.match_prefix(prompt(PAGE_TOKENS, 0)[:SHARED_TOKENS])
        assert again.page_ids.tolist() == self.match.page_ids.tolist()
        assert client.check_invariants() == []

    def finish(self) -> None:
        """Publishes the pages it reserved, which pandod must not have taken away."""
        tokens = np.full(OWN_PAGES * PAGE_TOKENS, 7, np.uint32)
        pages = self.match.reserved_page_ids
        self.client.insert(tokens, pages, lock=self.match.lock, unlock=True)
        assert self.client.stats().locks == 0


@contextlib.contextmanager
def bystander(address: str) -> Iterator[Bystander]:
    with Client(address, name="bystander") as client:
        shared = prompt(PAGE_TOKENS, 0)[:SHARED_TOKENS]
        client.insert(shared, client.allocate_pages(SHARED_PAGES))
        reserve = SHARED_TOKENS + OWN_PAGES * PAGE_TOKENS
        match = client.match_prefix(shared, lock=True, reserve_tokens=reserve)
        assert match.matched_tokens == SHARED_TOKENS
        other = Bystander(client, match)
        yield other
        other.assert_undisturbed()
        other.finish()


def wait_until_only(other: Bystander) -> None:
    """Waits until only the bystander's session, lock and reserved pages are left."""

    def holds() -> bool:
        stats = other.client.stats()
        pages = stats.pages
        held = (stats.sessions, stats.locks, pages.reserved, pages.quarantined)
        return held == (1, 1, OWN_PAGES, 0)

    eventually(holds)


# Within the test, only the end of the process can release anything.
@pytest.mark.parametrize("step", STEPS)
def test_a_killed_worker_loses_everything_when_its_process_ends(start_pandod, step):
    pandod = start_pandod(session_grace=NEVER, quarantine=NEVER)
    with bystander(pandod.address) as other, WorkerProcess(pandod.address) as worker:
        worker.do(*STEPS[: STEPS.index(step) + 1])
        stats = other.client.stats()
        assert stats.pages.reserved == OWN_PAGES + RESERVED.get(step, 0)
        assert stats.locks == 1 + (step in LOCKED)

        worker.kill()

        wait_until_only(other)
        stats = other.client.stats()
        published = SHARED_PAGES + PUBLISHED.get(step, 0)
        assert stats.counters.sessions_lost == 1
        assert stats.pages.evictable + stats.pages.protected == published
        assert stats.pages.free == POOL_PAGES - 1 - published - OWN_PAGES


@pytest.mark.parametrize("step", ["insert", "finish"])
def test_what_a_killed_worker_had_published_stays_and_is_whole(start_pandod, step):
    pandod = start_pandod(session_grace=NEVER, quarantine=NEVER)
    with bystander(pandod.address) as other, WorkerProcess(pandod.address) as worker:
        worker.do(*STEPS[: STEPS.index(step) + 1])
        worker.kill()
        wait_until_only(other)

        match = other.client.match_prefix(prompt(PAGE_TOKENS, 1_000_000))
        published = PUBLISHED[step]
        assert match.matched_tokens == (SHARED_PAGES + published) * PAGE_TOKENS
        pages = match.page_ids[SHARED_PAGES:]
        for layer in range(other.client.pool.layout.layers):
            for view in (other.pool.keys(layer), other.pool.values(layer)):
                assert (view[pages] == pages[:, None, None, None]).all()


def test_workers_that_die_together_leave_nothing_behind(start_pandod):
    pandod = start_pandod(session_grace=NEVER, quarantine=NEVER)
    with bystander(pandod.address) as other, contextlib.ExitStack() as stack:
        workers = [
            stack.enter_context(WorkerProcess(pandod.address, 1000 * i))
            for i in range(1, len(STEPS) + 1)
        ]
        for i, worker in enumerate(workers):
            worker.do(*STEPS[: i + 1])
        for worker in workers:
            worker.kill()
        wait_until_only(other)
        assert other.client.stats().counters.sessions_lost == len(workers)


def test_a_killed_worker_that_never_attached_is_lost_after_the_grace(start_pandod):
    pandod = start_pandod(session_grace=SOON, quarantine=NEVER)
    with bystander(pandod.address) as other, WorkerProcess(pandod.address) as worker:
        worker.do("lock", "reserve")
        worker.kill()
        wait_until_only(other)
        counters = other.client.stats().counters
        # The worker had mapped no memory, so its pages need no quarantine.
        assert (counters.sessions_lost, counters.quarantined_pages) == (1, 0)


def test_a_killed_worker_that_never_attached_keeps_everything_in_the_grace(
    start_pandod,
):
    pandod = start_pandod(session_grace=NEVER, quarantine=NEVER)
    with (
        bystander(pandod.address) as other,
        WorkerProcess(pandod.address) as worker,
        RawCalls(pandod.address) as raw,
    ):
        held = worker.do("lock", "reserve")
        worker.kill()

        session = held["session_id"]
        unlock = prefix_cache_pb2.UnlockRequest(
            session_id=session, lock_ids=[held["lock_id"]]
        )
        with raw.session(resume=session) as resumed:
            assert resumed == session
            raw.unary("pando.v1.PrefixCache/Unlock", unlock)
        wait_until_only(other)
        assert other.client.stats().counters.sessions_lost == 0


@pytest.mark.parametrize("first", ["attach", "status"])
def test_a_stopped_worker_keeps_everything_however_long_it_is_silent(
    start_pandod, first
):
    pandod = start_pandod(session_grace=SOON, quarantine=SOON)
    with (
        bystander(pandod.address) as other,
        WorkerProcess(pandod.address) as worker,
        WorkerProcess(pandod.address, 2_000_000) as clock,
    ):
        worker.do(first, "lock", "reserve")
        before = other.client.stats()
        clock.do("lock")

        # The clock dies later, so its lost session shows that the grace is over.
        worker.pause()
        clock.kill()
        eventually(lambda: other.client.stats().counters.sessions_lost == 1)

        after = other.client.stats()
        assert (after.sessions, after.locks) == (2, before.locks)
        assert after.pages == before.pages
        worker.resume()
        assert worker.do("insert", "finish")["generation"] == 1


def test_a_worker_that_is_cut_off_loses_locks_and_its_pages_wait(
    start_pandod, tmp_path
):
    tcp = free_address()
    pandod = start_pandod(
        session_grace=SOON, quarantine=NEVER, tcp=tcp, tcp_insecure="yes"
    )
    cutter = Cutter(tmp_path / "cutter", tcp)
    with bystander(pandod.address) as other, WorkerProcess(cutter.address) as worker:
        held = worker.do("attach", "lock", "reserve", "write")

        cutter.close()

        waiting = len(held["pages"])
        eventually(lambda: other.client.stats().pages.quarantined == waiting)
        stats = other.client.stats()
        assert (stats.sessions, stats.locks) == (1, 1)
        # The cut-off worker may still write to its pages, so no other worker gets them.
        client = other.client
        rest = client.allocate_pages(stats.pages.free)
        assert not set(rest.tolist()) & set(held["pages"])
        with pytest.raises(PoolExhaustedError):
            client.allocate_pages(1)
        client.free_pages(rest)
        # The pages wait until the process of the worker ends.
        worker.kill()
        wait_until_only(other)


def test_pages_that_a_living_process_writes_to_are_given_to_nobody_by_time(
    start_pandod, tmp_path
):
    tcp, http = free_address(), free_address()
    pandod = start_pandod(
        session_grace=SOON, quarantine="0s", tcp=tcp, tcp_insecure="yes", http=http
    )
    cutter = Cutter(tmp_path / "cutter", tcp)
    with (
        bystander(pandod.address) as other,
        WorkerProcess(cutter.address) as worker,
        WorkerProcess(pandod.address, 2_000_000) as clock,
    ):
        held = worker.do("attach", "lock", "reserve", "write")["pages"]
        clock.do("reserve")
        cutter.close()
        eventually(lambda: other.client.stats().held_pages == len(held))
        # The clock is lost later; it had mapped no pages, so its pages are free.
        clock.kill()
        eventually(lambda: other.client.stats().counters.sessions_lost == 2)

        client, pool = other.client, other.pool
        free = client.stats().pages.free
        pages = client.allocate_pages(free)
        assert not set(pages.tolist()) & set(held)
        tokens = np.full(free * PAGE_TOKENS, 9, np.uint32)
        pool.keys(0)[pages] = 7
        client.insert(tokens, pages)
        assert client.stats().held_pages == len(held)
        assert (pool.keys(0)[pages] == 7).all()

        (lost,) = client.quarantine().items
        assert (lost.client_name, lost.pages) == ("worker", len(held))
        assert lost.living_pids == [worker.pid]
        assert not lost.has_unwatched
        assert MetricsPage(http).sum("pando_quarantine_held_pages") == len(held)
        worker.kill()
        wait_until_only(other)
        assert client.quarantine().items == []


def test_pages_that_a_forked_child_writes_to_are_given_to_nobody(start_pandod):
    pandod = start_pandod(session_grace=SOON, quarantine="0s")
    with bystander(pandod.address) as other, WorkerProcess(pandod.address) as worker:
        held = worker.do("attach", "lock", "reserve", "fork")
        client, pool = other.client, other.pool
        try:
            worker.kill()
            eventually(lambda: client.stats().held_pages == len(held["pages"]))
            (lost,) = client.quarantine().items
            assert (lost.is_held, lost.living_pids) == (True, [])
            free = client.stats().pages.free
            pages = client.allocate_pages(free)
            pool.keys(0)[pages] = 7
            client.insert(np.full(free * PAGE_TOKENS, 9, np.uint32), pages)
            assert (pool.keys(0)[pages] == 7).all()
        finally:
            os.kill(held["child"], signal.SIGKILL)
        wait_until_only(other)


def test_pages_in_quarantine_are_given_up_by_the_name_of_their_session(
    start_pandod, tmp_path
):
    tcp = free_address()
    pandod = start_pandod(
        session_grace=SOON, quarantine="0s", tcp=tcp, tcp_insecure="yes"
    )
    cutter = Cutter(tmp_path / "cutter", tcp)
    with bystander(pandod.address) as other, WorkerProcess(cutter.address) as worker:
        held = worker.do("attach", "lock", "reserve")["pages"]
        cutter.close()
        eventually(lambda: other.client.stats().held_pages == len(held))
        (lost,) = other.client.quarantine().items
        ctl = Pandoctl(pandod.address)
        (listed,) = ctl("quarantine", "-o", "json").json()["sessions"]
        assert listed["session_number"] == lost.session_number
        assert (listed["pages"], listed["is_held"]) == (len(held), True)
        assert listed["living_pids"] == [worker.pid]
        header, row = ctl("quarantine").out.splitlines()
        assert header.split()[:3] == ["SESSION", "CLIENT", "PAGES"]
        assert f" {worker.pid} " in row
        with pytest.raises(SessionLostError, match="with pages in quarantine"):
            other.client.free_quarantine(lost.session_number + 1)
        given_up = ctl("quarantine", "--free", lost.session_number, "--yes")
        assert given_up.out == f"freed {len(held)} pages\n"
        wait_until_only(other)
        assert worker.running


def test_a_worker_that_is_back_gives_up_the_pages_of_its_lost_session(
    start_pandod, tmp_path
):
    tcp = free_address()
    pandod = start_pandod(
        session_grace=SOON, quarantine="0s", tcp=tcp, tcp_insecure="yes"
    )
    cutter = Cutter(tmp_path / "cutter", tcp)
    with bystander(pandod.address) as other, WorkerProcess(cutter.address) as worker:
        held = worker.do("attach", "lock", "reserve")
        cutter.close()
        pages = len(held["pages"])
        eventually(lambda: other.client.stats().held_pages == pages)
        assert other.client.stats().counters.quarantined_pages == pages

        # The worker has a new session, and pandod refuses what its old session held.
        with (
            Cutter(tmp_path / "cutter", tcp),
            RawCalls(pandod.address) as raw,
        ):
            eventually(lambda: worker.do("status").get("generation") == 2)
            assert worker.do("insert") == {"error": "SESSION_LOST"}
            stale = pool_pb2.FreePagesRequest(
                session_id=held["session_id"], page_ids=held["pages"]
            )
            refused = raw.failure("pando.v1.PagePool/FreePages", stale)
            assert refused == ("FAILED_PRECONDITION", "SESSION_LOST")
            assert other.client.stats().held_pages == pages
            worker.do("end_lost_session")
            assert other.client.stats().pages.quarantined == 0
            assert worker.running


def test_workers_survive_the_death_of_pandod_under_load(start_pandod):
    pandod = start_pandod()
    with contextlib.ExitStack() as stack:
        workers = [
            stack.enter_context(WorkerProcess(pandod.address, 1000 * i))
            for i in range(1, 5)
        ]
        held = [worker.do("lock", "reserve", "churn_on") for worker in workers]
        for worker in workers:
            eventually(lambda w=worker: finished(w, generation=1) > 0)

        pandod.kill()
        for worker in workers:
            eventually(lambda w=worker: bool(w.do("status")["churn"]["errors"]))
        pandod.start()

        raw = stack.enter_context(RawCalls(pandod.address))
        for worker, before in zip(workers, held, strict=True):
            eventually(lambda w=worker: finished(w, generation=2) > 0)
            errors = worker.do("status")["churn"]["errors"]
            # The calls failed at once, without running into their deadline.
            kinds = {kind for kind, _ in errors}
            assert kinds <= {"UnavailableError", "SessionLostError"}, errors
            assert "UnavailableError" in kinds
            assert worker.do("insert") == {"error": "SESSION_LOST"}
            unlock = prefix_cache_pb2.UnlockRequest(
                session_id=before["session_id"], lock_ids=[before["lock_id"]]
            )
            refused = raw.failure("pando.v1.PrefixCache/Unlock", unlock)
            assert refused == ("FAILED_PRECONDITION", "SESSION_LOST")
        with Client(pandod.address) as client:
            assert client.check_invariants() == []
            for worker in workers:
                worker.kill()
            eventually(lambda: client.stats().sessions == 1)
            assert client.stats().locks == 0


def finished(worker: WorkerProcess, generation: int) -> int:
    answer = worker.do("status")
    return answer.get("churn", {}).get("finished", {}).get(str(generation), 0)


def test_the_memory_of_a_dead_pandod_stays_valid_for_those_who_map_it(start_pandod):
    pandod = start_pandod()
    with Client(pandod.address) as client:
        old = client.attach_pool()
        page = client.allocate_pages(1)[0]
        keys = old.keys(1)
        keys[page] = 3

        pandod.kill()
        with pytest.raises(UnavailableError):
            client.stats()
        assert (keys[page] == 3).all()
        keys[page] = 4

        pandod.start()
        eventually(lambda: client.generation == 2)
        assert old.epoch != client.epoch
        with client.attach_pool() as new:
            assert new.epoch == client.epoch
            assert (new.keys(1)[page] == 0).all()
        assert (keys[page] == 4).all()
        del keys
        old.close()
