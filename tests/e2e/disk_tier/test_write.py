"""The use of a cached page after which the tier stores it."""

import pytest
from eventually import eventually
from pandod_process import PAGE_TOKENS
from protocol_worker import ProtocolWorker, protocol_worker
from tiered import PAGES, PROMPT, Tiered

OTHER = PROMPT + 1000


def compute(worker: ProtocolWorker, tokens) -> None:
    """Reads the cached part of a prompt and computes the rest, as an engine does."""
    worker.finish(worker.admit(tokens).get(), tokens)


@pytest.mark.parametrize(
    ("tier_write", "requests"), [("at-once", 1), ("first-hit", 2), ("second-hit", 3)]
)
def test_a_page_is_stored_once_enough_requests_have_used_it(
    start_pandod, tmp_path, tier_write, requests
):
    tiered = Tiered(start_pandod, tmp_path / "tier", tier_write=tier_write)
    with protocol_worker(tiered.pandod.address) as worker:
        for _ in range(requests - 1):
            compute(worker, PROMPT)
        # A call that only looks does not count as a hit.
        assert worker.cached(PROMPT) == (PROMPT.size if requests > 1 else 0)
        for _ in range(requests):
            compute(worker, OTHER)
        # A store of OTHER means that the tier has heard of all earlier hits.
        eventually(lambda: tiered.held_pages() == PAGES)
        longer = [*PROMPT, *range(5000, 5000 + PAGE_TOKENS)]
        compute(worker, longer)
        stored = 2 * PAGES + (1 if requests == 1 else 0)
        eventually(lambda: tiered.held_pages() == stored)
    tiered.await_idle()
    tiered.evict(2 * PAGES + 1)
    assert tiered.read(PROMPT)[0] == PROMPT.size
    assert tiered.read(OTHER)[0] == OTHER.size


def test_what_was_loaded_and_hit_is_not_stored_again(start_pandod, tmp_path):
    tiered = Tiered(start_pandod, tmp_path / "tier", tier_write="first-hit")
    with protocol_worker(tiered.pandod.address) as worker:
        for _ in range(2):
            compute(worker, PROMPT)
        eventually(lambda: tiered.held_pages() == PAGES)
        tiered.await_idle()
        tiered.evict()
        assert tiered.read()[0] == PROMPT.size
        for _ in range(3):
            compute(worker, PROMPT)
        for _ in range(2):
            compute(worker, OTHER)
        eventually(lambda: tiered.held_pages() == 2 * PAGES)
    assert tiered.copied("store") == 2 * PAGES
