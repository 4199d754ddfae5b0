"""`--verify-pages` finds writes to cached pages."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from eventually import eventually
from metrics_page import MetricsPage, free_address
from pando_kv import Client, MappedPool
from pandod_process import PAGE_TOKENS, Pandod
from protocol_worker import protocol_worker

TOKENS = np.arange(3 * PAGE_TOKENS, dtype=np.uint32)


class Verified:
    """A pandod that verifies all pages, a worker, and the mapped pool."""

    def __init__(self, pandod: Pandod, http: str, client: Client, pool: MappedPool):
        self.pandod, self.http, self.client, self.pool = pandod, http, client, pool

    def cache(self, tokens: np.ndarray = TOKENS, **how: int) -> list[int]:
        """Writes and inserts the pages of a prompt that is not cached."""
        pages = self.client.allocate_pages(tokens.size // PAGE_TOKENS).tolist()
        for page in pages:
            self.write(page, float(page))
        self.client.insert(tokens, pages, **how)
        return pages

    def write(self, page: int, value: float) -> None:
        last = self.client.pool.layout.layers - 1
        self.pool.keys(0)[page] = value
        self.pool.values(last)[page, -1, -1, -1] = value + 0.5

    def counts(self) -> tuple[int, int]:
        """Returns how many pages were compared, and how many had changed."""
        page = MetricsPage(self.http)
        return (
            int(page.sum("pando_verified_pages_total")),
            int(page.sum("pando_page_violations_total")),
        )

    def told(self) -> list[tuple[int, str]]:
        """Returns the pages that the log names, and when they were found."""
        _, violations = self.counts()

        def told() -> list[tuple[int, str]]:
            return [
                (event["page"], event["found_when"])
                for event in self.pandod.events()
                if event["msg"] == "a page was written after it was inserted"
            ]

        # The log has its own thread, so its lines may come later.
        eventually(lambda: len(told()) >= violations)
        return told()


@pytest.fixture(params=["layer_first", "page_first"])
def verified(start_pandod, request) -> Iterator[Verified]:
    with verified_by(
        start_pandod, verify_pages=1, layout_order=request.param
    ) as all_of:
        yield all_of


@contextmanager
def verified_by(start_pandod, **options: object) -> Iterator[Verified]:
    http = free_address()
    pandod = start_pandod(http=http, **options)
    with Client(pandod.address) as client, client.attach_pool() as pool:
        yield Verified(pandod, http, client, pool)


def test_pages_that_nobody_writes_are_verified_at_each_match(verified):
    verified.cache()
    assert verified.counts() == (0, 0)
    verified.client.match_prefix(TOKENS)
    with verified.client.match_prefix(TOKENS[:PAGE_TOKENS], lock=True).lock:
        pass
    assert verified.counts() == (4, 0)


def test_a_write_to_a_cached_page_is_told_once_when_it_is_matched(verified):
    pages = verified.cache()
    verified.write(pages[1], 77.0)
    verified.client.match_prefix(TOKENS)
    assert verified.counts() == (3, 1)
    assert verified.told() == [(pages[1], "handed out")]
    verified.client.match_prefix(TOKENS)
    assert verified.counts() == (6, 1)
    verified.write(pages[1], 78.0)
    verified.client.match_prefix(TOKENS)
    assert verified.counts() == (9, 2)


def test_a_write_to_a_page_is_found_when_another_inserts_the_same_prompt(verified):
    pages = verified.cache()
    verified.write(pages[2], 77.0)
    verified.cache(TOKENS)
    assert verified.told() == [(pages[2], "handed out")]


def test_a_write_is_found_when_the_evicted_page_is_reused(verified):
    pages = verified.cache()
    verified.write(pages[0], 77.0)
    assert verified.client.evict(3) == 3
    # This write comes after the eviction.
    verified.write(pages[1], 78.0)
    verified.client.allocate_pages(3)
    assert sorted(verified.told()) == sorted((page, "reused") for page in pages[:2])
    assert verified.counts() == (3, 2)


def test_a_reused_page_may_be_written(verified):
    first = verified.cache()
    assert verified.client.evict(3) == 3
    match = verified.client.match_prefix(TOKENS, lock=True, reserve_tokens=TOKENS.size)
    assert sorted(match.reserved_page_ids.tolist()) == sorted(first)
    for page in first:
        verified.write(page, 5.0)
    verified.client.insert(
        TOKENS, match.reserved_page_ids, lock=match.lock, unlock=True
    )
    verified.client.match_prefix(TOKENS)
    assert verified.counts() == (6, 0)


def test_duplicates_that_are_kept_may_be_written(verified):
    verified.cache()
    kept = verified.cache(keep_duplicates=True)
    for page in kept:
        verified.write(page, 77.0)
    verified.client.match_prefix(TOKENS)
    verified.client.free_pages(kept)
    verified.client.allocate_pages(3)
    assert verified.counts()[1] == 0


def test_a_repeated_insert_says_nothing_of_pages_that_are_anothers_now(verified):
    with protocol_worker(verified.pandod.address) as worker:
        pages = worker.call("AllocatePages", pages=3).page_ids
        how = {"tokens": TOKENS, "page_ids": pages, "request_id": 7}
        worker.call("Insert", **how)
        assert verified.client.evict(3) == 3
        own = verified.client.allocate_pages(3)
        assert sorted(own) == sorted(pages)
        worker.call("Insert", **how)
        for page in own.tolist():
            verified.write(page, 77.0)
        verified.client.free_pages(own)
        verified.client.allocate_pages(3)
        assert verified.counts() == (3, 0)


ADMISSIONS = {
    "MatchPrefix": (
        {"tokens": TOKENS, "lock": True, "reserve_tokens": TOKENS.size},
        "reserved_page_ids",
    ),
    "AllocatePages": ({"pages": 3}, "page_ids"),
}


@pytest.mark.parametrize("method", ADMISSIONS)
def test_a_write_is_found_although_its_admission_was_repeated(verified, method):
    fields, reserved = ADMISSIONS[method]
    with protocol_worker(verified.pandod.address) as worker:
        admission = worker.call(method, request_id=7, **fields)
        pages = list(getattr(admission, reserved))
        for page in pages:
            verified.write(page, float(page))
        worker.call("Insert", tokens=TOKENS, page_ids=pages)
        repeat = worker.call(method, request_id=7, **fields)
        assert list(getattr(repeat, reserved)) == pages
        verified.write(pages[1], 77.0)
        verified.client.match_prefix(TOKENS)
        assert verified.told() == [(pages[1], "handed out")]


def test_a_share_of_the_pages_is_verified(start_pandod):
    with verified_by(start_pandod, verify_pages=0.5, pool_pages=600) as half:
        tokens = np.arange(500 * PAGE_TOKENS, dtype=np.uint32)
        half.cache(tokens)
        half.client.match_prefix(tokens)
        assert 100 < half.counts()[0] < 400


def test_every_shard_is_verified(start_pandod):
    with verified_by(start_pandod, verify_pages=1, pool_shards=3) as verified:
        pages = verified.cache()
        verified.pool.keys(0, shard=2)[pages[0]] = 9.0
        verified.client.match_prefix(TOKENS)
        assert verified.told() == [(pages[0], "handed out")]


def test_nothing_is_verified_unless_asked_for(start_pandod):
    with verified_by(start_pandod) as unverified:
        unverified.cache()
        unverified.client.match_prefix(TOKENS)
        assert unverified.counts() == (0, 0)
