"""What was evicted comes back from disk, bit by bit, or it is a miss."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from eventually import eventually
from metrics_page import MetricsPage, free_address
from pando_kv import Client
from pandod_process import PAGE_TOKENS, POOL_PAGES, Pandod, refused_start
from protocol_worker import protocol_worker
from stalled_disk import StalledDisk

PAGES = 12
PROMPT = np.arange(PAGES * PAGE_TOKENS, dtype=np.uint32)
WAIT = 60.0  # seconds, which no test needs
WAIT_MS = 60_000


class Tiered:
    """A pandod with a disk tier, and what a worker does with it."""

    def __init__(self, start, folder: Path, **options: object) -> None:
        self.folder = folder
        self.http = free_address()
        self.pandod: Pandod = start(
            **{
                "http": self.http,
                "model": "a-model",
                "tier_disk": folder,
                "tier_disk_bytes": "4MiB",
                "tier_min_load_tokens": PAGE_TOKENS,
                "verify_pages": 1,
            }
            | options
        )

    def client(self) -> Client:
        return Client(self.pandod.address)

    def figure(self, name: str, **labels: str) -> int:
        return int(MetricsPage(self.http).sum(f"pando_tier_{name}", **labels))

    def copied(self, direction: str) -> int:
        return self.figure("copied_pages_total", direction=direction)

    def failures(self, step: str) -> int:
        return self.figure("failures_total", step=step)

    def cache(self, tokens: np.ndarray, seed: int) -> np.ndarray:
        """Computes a prompt, and returns once it is on disk."""
        with self.client() as client, client.attach_pool() as pool:
            before = self.figure("pages")
            match = client.match_prefix(tokens, lock=True, reserve_tokens=tokens.size)
            pages = match.reserved_page_ids
            fill(pool, client, pages, seed)
            client.insert(tokens, pages, lock=match.lock, unlock=True)
            eventually(lambda: self.figure("pages") == before + pages.size)
            self.await_idle()
            return contents(pool, client, pages)

    def await_idle(self) -> None:
        """The tier holds no lock, so that all can be evicted."""
        with protocol_worker(self.pandod.address) as observer:
            eventually(lambda: observer.stats().locks == 0)

    def evict(self, pages: int = PAGES) -> None:
        with self.client() as client:
            assert client.evict(pages) == pages

    def read(self, tokens: np.ndarray = PROMPT) -> tuple[int, np.ndarray]:
        """The matched tokens, and the bytes of their pages."""
        with self.client() as client, client.attach_pool() as pool:
            match = client.match_prefix(tokens, lock=True, pending_wait=WAIT)
            with match.lock:
                return match.matched_tokens, contents(pool, client, match.page_ids)


def fill(pool, client: Client, pages: np.ndarray, seed: int) -> None:
    random = np.random.default_rng(seed)
    for layer in range(client.pool.layout.layers):
        for plane in (pool.keys(layer), pool.values(layer)):
            plane[pages] = random.random(plane[pages].shape, dtype=np.float32)


def contents(pool, client: Client, pages: np.ndarray) -> np.ndarray:
    return np.stack(
        [
            plane[pages]
            for layer in range(client.pool.layout.layers)
            for plane in (pool.keys(layer), pool.values(layer))
        ]
    )


@pytest.fixture(params=["layer_first", "page_first"])
def tiered(start_pandod, tmp_path, request) -> Iterator[Tiered]:
    tiered = Tiered(start_pandod, tmp_path / "tier", layout_order=request.param)
    yield tiered
    with protocol_worker(tiered.pandod.address) as observer:
        assert observer.violations() == []
    page = MetricsPage(tiered.http)
    assert page.sum("pando_page_violations_total") == 0


def test_an_evicted_prefix_is_loaded_bit_by_bit(tiered):
    computed = tiered.cache(PROMPT, seed=1)
    tiered.evict()
    matched, loaded = tiered.read()
    assert matched == PROMPT.size
    np.testing.assert_array_equal(loaded, computed)
    assert tiered.copied("load") == PAGES


def test_only_what_is_missing_is_loaded(tiered):
    computed = tiered.cache(PROMPT, seed=1)
    tiered.evict(5)
    matched, loaded = tiered.read()
    assert matched == PROMPT.size
    np.testing.assert_array_equal(loaded, computed)
    assert tiered.copied("load") == 5


def test_a_prompt_that_nobody_computed_is_a_miss_at_once(tiered):
    tiered.cache(PROMPT, seed=1)
    other = PROMPT + 1
    assert tiered.read(other)[0] == 0
    assert tiered.copied("load") == 0


def test_a_call_that_does_not_wait_loads_nothing(tiered):
    tiered.cache(PROMPT, seed=1)
    tiered.evict()
    with tiered.client() as client:
        assert client.match_prefix(PROMPT, lock=True).matched_tokens == 0
        assert client.match_prefix(PROMPT).matched_tokens == 0
    assert tiered.copied("load") == 0


def test_a_cap_of_the_match_is_one_of_the_load(tiered):
    tiered.cache(PROMPT, seed=1)
    tiered.evict()
    with tiered.client() as client:
        most = 3 * PAGE_TOKENS + 1
        match = client.match_prefix(
            PROMPT, lock=True, max_tokens=most, pending_wait=WAIT
        )
        with match.lock:
            assert match.matched_tokens == 3 * PAGE_TOKENS
    assert tiered.copied("load") == 3


def test_namespaces_are_closed_worlds_on_disk_too(tiered):
    tiered.cache(PROMPT, seed=1)
    with protocol_worker(tiered.pandod.address) as worker:
        for namespace in ({"extra_key": "lora"}, {"cache_salt": "x"}, {"bigram": True}):
            match = worker.call(
                "MatchPrefix",
                namespace=namespace,
                tokens=PROMPT,
                lock=True,
                pending_wait_ms=WAIT_MS,
            )
            assert match.matched_tokens == 0
    assert tiered.copied("load") == 0


def test_bigram_prefixes_are_loaded(tiered):
    tokens = np.append(PROMPT, 7).astype(np.uint32)
    with protocol_worker(tiered.pandod.address) as worker:
        how = {"namespace": {"bigram": True}, "tokens": tokens, "lock": True}
        first = worker.call("MatchPrefix", reserve_tokens=PROMPT.size, **how)
        worker.call(
            "Insert",
            lock_id=first.lock_id,
            lock_action="LOCK_ACTION_UNLOCK",
            prompt_tokens=tokens.size,
            page_ids=first.reserved_page_ids,
        )
        eventually(lambda: tiered.figure("pages") == PAGES)
        tiered.await_idle()
        tiered.evict()
        match = worker.call("MatchPrefix", pending_wait_ms=WAIT_MS, **how)
        assert match.matched_tokens == PROMPT.size


def test_many_who_want_one_prefix_load_it_once(tiered):
    tiered.cache(PROMPT, seed=1)
    tiered.evict()
    with (
        protocol_worker(tiered.pandod.address) as one,
        protocol_worker(tiered.pandod.address) as other,
    ):
        how = {"tokens": PROMPT, "lock": True, "pending_wait_ms": WAIT_MS}
        answers = [
            worker.start("MatchPrefix", **how) for worker in (one, other, one, other)
        ]
        assert [a.get().matched_tokens for a in answers] == [PROMPT.size] * 4
    assert tiered.copied("load") == PAGES


def test_what_was_loaded_is_not_stored_again(tiered):
    tiered.cache(PROMPT, seed=1)
    for _ in range(3):
        tiered.evict()
        assert tiered.read()[0] == PROMPT.size
    assert tiered.copied("store") == PAGES


@pytest.mark.parametrize(
    "how", [{}, {"namespace": {}}, {"namespace_number": 1}], ids=str
)
def test_what_is_flushed_is_forgotten_for_good(tiered, how):
    other = {"extra_key": "lora"}
    tiered.cache(PROMPT, seed=1)
    with protocol_worker(tiered.pandod.address) as worker:
        worker.cache(list(PROMPT), namespace=other)
        eventually(lambda: tiered.figure("pages") == 2 * PAGES)
        tiered.await_idle()
        worker.call("Flush", **how)
    left = PAGES if how else 0
    eventually(lambda: tiered.figure("pages") == left)
    assert tiered.read()[0] == 0
    tiered.pandod.stop()
    tiered.pandod.start()
    assert tiered.figure("pages") == left
    assert tiered.read()[0] == 0


def test_a_flush_ends_loads(stallable):
    tiered, disk = stallable
    tiered.cache(PROMPT, seed=1)
    tiered.evict()
    disk.stall()
    with protocol_worker(tiered.pandod.address) as worker:
        how = {"tokens": PROMPT, "lock": True, "pending_wait_ms": WAIT_MS}
        waiting = worker.start("MatchPrefix", **how)
        eventually(lambda: worker.stats().waiting_matches == 1)
        worker.call("Flush")
        disk.go_on()
        assert waiting.get().matched_tokens == 0


def test_a_flush_takes_what_is_being_stored(stallable):
    tiered, disk = stallable
    disk.stall()
    with protocol_worker(tiered.pandod.address) as worker:
        worker.cache(list(PROMPT))
        eventually(lambda: worker.stats().locks == 1)  # the mover's
        assert worker.call("Flush").evicted_pages == PAGES
        assert worker.stats().locks == 0
        disk.go_on()
    # Prompts are stored in turn, so that the first one is done with.
    tiered.cache(PROMPT + 1000, seed=2)
    assert tiered.figure("pages") == PAGES
    assert tiered.read()[0] == 0


def test_a_flush_takes_what_was_published_of_a_load(start_pandod, tmp_path):
    pages = 70
    chunk = 32
    prompt = np.arange(pages * PAGE_TOKENS, dtype=np.uint32)
    with stalled_tier(start_pandod, tmp_path, pool_pages=1024) as (tiered, disk):
        tiered.cache(prompt, seed=1)
        tiered.evict(pages)
        disk.stall(after=chunk + 5)
        with protocol_worker(tiered.pandod.address) as worker:
            how = {"tokens": prompt, "lock": True, "pending_wait_ms": WAIT_MS}
            waiting = worker.start("MatchPrefix", **how)
            eventually(lambda: worker.stats().pages.reserved == pages - chunk)
            assert worker.call("Flush").evicted_pages == chunk
            assert waiting.get().matched_tokens == 0
            disk.go_on()
            eventually(lambda: worker.stats().pages.reserved == 0)
        assert tiered.read(prompt)[0] == 0


def release_locks_of_the_tier(worker) -> int:
    [session] = [
        session.session_number
        for session in worker.call("ListSessions").sessions
        if session.client_name == "pandod-tiers"
    ]
    return worker.call("ReleaseLocks", session_number=session).released_locks


def test_a_store_whose_lock_an_operator_released_is_thrown_away(stallable):
    tiered, disk = stallable
    disk.stall()
    with protocol_worker(tiered.pandod.address) as worker:
        worker.cache(list(PROMPT))
        eventually(lambda: worker.stats().locks == 1)
        assert release_locks_of_the_tier(worker) == 1
        disk.go_on()
    tiered.cache(PROMPT + 1000, seed=2)  # stored after it
    assert tiered.figure("pages") == PAGES


def test_a_load_whose_lock_an_operator_released_is_given_back(stallable):
    tiered, disk = stallable
    tiered.cache(PROMPT, seed=1)
    tiered.evict()
    disk.stall()
    with protocol_worker(tiered.pandod.address) as worker:
        how = {"tokens": PROMPT, "lock": True, "pending_wait_ms": WAIT_MS}
        waiting = worker.start("MatchPrefix", **how)
        eventually(lambda: worker.stats().pages.reserved == PAGES)
        assert release_locks_of_the_tier(worker) == 1
        assert waiting.get().matched_tokens == 0
        disk.go_on()
        eventually(lambda: worker.stats().pages.reserved == 0)
        assert worker.stats().locks == 1  # of the answer


def test_after_a_flush_a_disk_that_does_not_answer_blocks_no_call(stallable):
    tiered, disk = stallable
    tiered.cache(PROMPT, seed=1)
    tiered.evict()
    disk.stall()
    with protocol_worker(tiered.pandod.address) as worker:
        worker.call("Flush")
    assert tiered.read()[0] == 0
    assert tiered.figure("pages") == 0


def test_a_drain_does_not_wait_for_the_disk(start_pandod, tmp_path):
    with stalled_tier(start_pandod, tmp_path, drain_timeout="1h") as (tiered, disk):
        tiered.cache(PROMPT, seed=1)
        tiered.evict()
        disk.stall()
        with protocol_worker(tiered.pandod.address) as worker:
            how = {"tokens": PROMPT, "lock": True, "pending_wait_ms": WAIT_MS}
            waiting = worker.start("MatchPrefix", **how)
            eventually(lambda: worker.stats().pages.reserved == PAGES)
            assert not waiting.is_here()
            tiered.pandod.terminate()
            eventually(lambda: not listens(tiered.http))
    assert tiered.pandod.wait() == 0


def listens(address: str) -> bool:
    host, port = address.rsplit(":", 1)
    with socket.socket() as client:
        return client.connect_ex((host, int(port))) == 0


def test_a_prompt_of_many_chunks_comes_back_bit_by_bit(start_pandod, tmp_path):
    pages = 70
    prompt = np.arange(pages * PAGE_TOKENS, dtype=np.uint32)
    tiered = Tiered(start_pandod, tmp_path / "tier", pool_pages=1024)
    computed = tiered.cache(prompt, seed=1)
    # Something of it is cached, so that chunks follow a match.
    tiered.evict(pages - 5)
    matched, loaded = tiered.read(prompt)
    assert matched == prompt.size
    np.testing.assert_array_equal(loaded, computed)
    assert tiered.copied("load") == pages - 5


def test_a_full_tier_makes_room_and_keeps_the_beginnings(start_pandod, tmp_path):
    # A page takes 4 KiB, and its record 64 bytes.
    room = 20
    tiered = Tiered(
        start_pandod, tmp_path / "tier", tier_disk_bytes=4096 + room * (4096 + 64)
    )
    assert tiered.figure("capacity_pages") == room
    first = tiered.cache(PROMPT, seed=1)
    with tiered.client() as client, client.attach_pool() as pool:
        second = PROMPT + 1000
        pages = client.allocate_pages(PAGES)
        fill(pool, client, pages, 2)
        client.insert(second, pages)
        eventually(lambda: tiered.copied("store") == 2 * PAGES)
    tiered.await_idle()
    tiered.evict(2 * PAGES)
    assert tiered.read(second)[0] == second.size
    left = room - PAGES
    matched, loaded = tiered.read()
    assert matched == left * PAGE_TOKENS
    np.testing.assert_array_equal(loaded, first[:, :left])


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_new_process_finds_what_is_on_disk(start_pandod, tmp_path, end):
    tiered = Tiered(start_pandod, tmp_path / "tier")
    computed = tiered.cache(PROMPT, seed=1)
    getattr(tiered.pandod, end)()
    tiered.pandod.start()
    assert tiered.figure("pages") == PAGES
    matched, loaded = tiered.read()
    assert matched == PROMPT.size
    np.testing.assert_array_equal(loaded, computed)


def test_a_kill_in_the_middle_of_stores_leaves_only_right_pages(start_pandod, tmp_path):
    tiered = Tiered(start_pandod, tmp_path / "tier")
    prompts = [PROMPT + 1000 * i for i in range(4)]
    computed = []
    with tiered.client() as client, client.attach_pool() as pool:
        for seed, prompt in enumerate(prompts):
            pages = client.allocate_pages(PAGES)
            fill(pool, client, pages, seed)
            computed.append(contents(pool, client, pages))
            client.insert(prompt, pages)
        eventually(lambda: tiered.copied("store") > 0)
        tiered.pandod.kill()
    tiered.pandod.start()
    for prompt, expected in zip(prompts, computed, strict=True):
        matched, loaded = tiered.read(prompt)
        pages = matched // PAGE_TOKENS
        np.testing.assert_array_equal(loaded, expected[:, :pages])
    assert tiered.failures("verify") == 0


def test_flipped_bits_on_disk_are_a_miss(start_pandod, tmp_path):
    tiered = Tiered(start_pandod, tmp_path / "tier")
    computed = tiered.cache(PROMPT, seed=1)
    [segment] = tiered.folder.glob("segment-*")
    stored = np.memmap(segment, dtype=np.uint8, mode="r+")
    stored[4 * 4096 + 77] ^= 1  # pages lie one after the other
    stored.flush()
    tiered.evict()
    matched, loaded = tiered.read()
    assert matched == 4 * PAGE_TOKENS
    np.testing.assert_array_equal(loaded, computed[:, :4])
    assert tiered.failures("verify") == 1
    with protocol_worker(tiered.pandod.address) as observer:
        stats = observer.stats()
        assert (stats.pages.reserved, stats.locks) == (0, 0)


@pytest.fixture
def stallable(start_pandod, tmp_path) -> Iterator[tuple[Tiered, StalledDisk]]:
    """A disk tier, and how to stall its disk."""
    with stalled_tier(start_pandod, tmp_path) as made:
        yield made


@contextmanager
def stalled_tier(start_pandod, tmp_path, **options):
    disk = StalledDisk(tmp_path)
    tiered = Tiered(start_pandod, tmp_path / "tier", **options)
    tiered.pandod.stop()
    tiered.pandod.start(**disk.environment)
    try:
        yield tiered, disk
    finally:
        disk.go_on()


def test_a_disk_that_does_not_answer_blocks_no_call(stallable):
    tiered, disk = stallable
    tiered.cache(PROMPT, seed=1)
    tiered.evict()
    disk.stall()
    with protocol_worker(tiered.pandod.address) as worker:
        how = {"tokens": PROMPT, "lock": True}
        waiting = worker.start("MatchPrefix", pending_wait_ms=WAIT_MS, **how)
        eventually(lambda: worker.stats().waiting_matches == 1)
        # Others neither wait nor find it.
        assert worker.call("MatchPrefix", **how).matched_tokens == 0
        impatient = worker.call("MatchPrefix", pending_wait_ms=1, **how)
        assert impatient.matched_tokens == 0
        # Another prompt is looked up, computed, and waits to be stored.
        other = list(range(1000, 1000 + PAGE_TOKENS))
        admission = worker.admit(other, pending_wait_ms=WAIT_MS).get()
        assert admission.matched_tokens == 0
        worker.finish(admission, other)
        assert not waiting.is_here()
        disk.go_on()
        assert waiting.get().matched_tokens == PROMPT.size
    eventually(lambda: tiered.figure("pages") == PAGES + 1)


def test_what_is_evicted_before_a_slow_disk_has_it_is_dropped(stallable):
    tiered, disk = stallable
    disk.stall()
    with protocol_worker(tiered.pandod.address) as worker:
        # The first is being written; the second has no lock yet.
        for begin in (0, 1000):
            prompt = list(range(begin, begin + PAGES * PAGE_TOKENS))
            worker.finish(worker.admit(prompt).get(), prompt)
            eventually(lambda: worker.stats().locks == 1)
        assert worker.stats().pages.protected == PAGES
        tiered.evict()
        disk.go_on()
    eventually(lambda: tiered.figure("dropped_pages_total") == PAGES)
    eventually(lambda: tiered.figure("pages") == PAGES)


def test_a_slow_disk_leaves_most_of_the_pool_to_the_workers(stallable):
    tiered, disk = stallable
    prompts = [PROMPT, PROMPT + 1000]
    for seed, prompt in enumerate(prompts):
        tiered.cache(prompt, seed)
    tiered.evict(2 * PAGES)
    disk.stall()
    quarter = POOL_PAGES // 4
    with protocol_worker(tiered.pandod.address) as worker:
        how = {"lock": True, "pending_wait_ms": WAIT_MS}
        waiting = [worker.start("MatchPrefix", tokens=p, **how) for p in prompts]
        eventually(lambda: worker.stats().pages.reserved == quarter)
        rest = worker.stats().pages.free
        worker.call("AllocatePages", pages=rest)
        disk.go_on()
        matched = sorted(call.get().matched_tokens for call in waiting)
        assert matched == [(quarter - PAGES) * PAGE_TOKENS, PROMPT.size]


def test_what_is_cached_of_a_prompt_counts_as_room_of_its_load(stallable):
    tiered, disk = stallable
    other = PROMPT + 1000
    tiered.cache(other, seed=2)
    tiered.evict()
    tiered.cache(PROMPT, seed=1)
    missing = 6
    tiered.evict(missing)
    disk.stall()
    with protocol_worker(tiered.pandod.address) as worker:
        how = {"lock": True, "pending_wait_ms": WAIT_MS}
        first = worker.start("MatchPrefix", tokens=PROMPT, **how)
        eventually(lambda: worker.stats().pages.reserved == missing)
        second = worker.start("MatchPrefix", tokens=other, **how)
        left = POOL_PAGES // 4 - PAGES
        eventually(lambda: worker.stats().pages.reserved == missing + left)
        disk.go_on()
        assert first.get().matched_tokens == PROMPT.size
        assert second.get().matched_tokens == left * PAGE_TOKENS


def test_pages_of_another_model_are_not_found(start_pandod, tmp_path):
    tiered = Tiered(start_pandod, tmp_path / "tier", model="one")
    tiered.cache(PROMPT, seed=1)
    tiered.pandod.stop()
    other = Tiered(start_pandod, tmp_path / "tier", model="two")
    assert other.figure("pages") == 0
    assert other.read()[0] == 0


def test_a_folder_serves_one_pandod(start_pandod, tmp_path):
    tiered = Tiered(start_pandod, tmp_path / "tier")
    second = tmp_path / "second"
    second.mkdir()
    said = refused_start(
        second,
        f"--tier-disk={tiered.folder}",
        "--tier-disk-bytes=1GiB",
        "--model=m",
        "--pool-pages=8",
    )
    assert "which another pandod uses" in said


def test_nobody_else_may_read_the_files(tiered):
    for path in tiered.folder.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
    assert tiered.folder.stat().st_mode & 0o777 == 0o700


def test_options_that_need_others_are_refused(tmp_path):
    assert "tier-disk is given, which needs tier-disk-bytes" in refused_start(
        tmp_path, f"--tier-disk={tmp_path}/tier"
    )
    assert "tier-disk-bytes is given, which needs tier-disk" in refused_start(
        tmp_path, "--tier-disk-bytes=1GiB"
    )
    assert "which needs model" in refused_start(
        tmp_path, f"--tier-disk={tmp_path}/tier", "--tier-disk-bytes=1GiB"
    )


def test_a_disk_without_room_is_told_at_the_start(tmp_path):
    said = refused_start(
        tmp_path,
        f"--tier-disk={tmp_path}/tier",
        "--tier-disk-bytes=4096TiB",
        "--model=m",
        "--pool-pages=8",
    )
    assert "tier-disk-bytes is 4503599627370496; the file system of" in said
    assert list((tmp_path / "tier").glob("segment-*")) == []
