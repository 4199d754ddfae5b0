"""A call whose answer was lost can be sent again with its request_id."""

import pytest
from pandod_process import PAGE_TOKENS, POOL_PAGES
from protocol_worker import ProtocolWorker, protocol_worker

PAGES = 4
PROMPT = list(range(PAGES * PAGE_TOKENS))
REUSED = ("INVALID_ARGUMENT", "REQUEST_ID_REUSED")
DRAINING = ("UNAVAILABLE", "DRAINING")
KEPT_ANSWERS = 256


def state(worker: ProtocolWorker):
    """Returns all statistics except the counter of repeats."""
    stats = worker.stats()
    stats.counters.repeated_requests = 0
    return stats


def assert_repeats(worker: ProtocolWorker, method: str, **fields) -> object:
    """Makes a call three times, checks that it acts once, and returns its answer."""
    repeats = worker.stats().counters.repeated_requests
    first = worker.call(method, **fields)
    before = state(worker)
    for _ in range(2):
        assert worker.call(method, **fields) == first
    assert state(worker) == before
    assert worker.stats().counters.repeated_requests == repeats + 2
    return first


def test_each_call_of_a_request_may_be_repeated(start_pandod):
    with protocol_worker(start_pandod().address) as worker:
        fields = {"tokens": PROMPT, "lock": True, "reserve_tokens": len(PROMPT)}
        match = assert_repeats(worker, "MatchPrefix", request_id=1, **fields)
        assert len(match.reserved_page_ids) == PAGES
        assert_repeats(
            worker,
            "Insert",
            request_id=2,
            lock_id=match.lock_id,
            lock_action="LOCK_ACTION_UNLOCK",
            prompt_tokens=len(PROMPT),
            page_ids=match.reserved_page_ids,
        )
        lock = assert_repeats(worker, "Lock", request_id=3, tokens=PROMPT)
        assert_repeats(worker, "Unlock", request_id=4, lock_ids=[lock.lock_id])
        pages = assert_repeats(worker, "AllocatePages", request_id=5, pages=3)
        assert len(pages.page_ids) == 3
        assert_repeats(worker, "FreePages", request_id=6, page_ids=pages.page_ids)
        assert worker.stats().locks == 0
        assert worker.stats().pages.reserved == 0
        assert worker.violations() == []


def test_without_an_id_nothing_is_repeated(start_pandod):
    with protocol_worker(start_pandod().address) as worker:
        one, two = (worker.call("AllocatePages", pages=1) for _ in range(2))
        assert one.page_ids != two.page_ids


def test_an_id_is_good_for_one_kind_of_call(start_pandod):
    with protocol_worker(start_pandod().address) as worker:
        worker.call("AllocatePages", pages=1, request_id=7)
        before = state(worker)
        fields = {"tokens": PROMPT, "lock": True, "request_id": 7}
        assert worker.failure("MatchPrefix", **fields) == REUSED
        assert worker.failure("Lock", tokens=PROMPT, request_id=7) == REUSED
        assert worker.failure("Unlock", lock_ids=[1], request_id=7) == REUSED
        assert worker.failure("FreePages", page_ids=[1], request_id=7) == REUSED
        assert worker.failure("Insert", request_id=7) == REUSED
        assert state(worker) == before


def test_an_id_names_nothing_in_other_sessions(start_pandod):
    address = start_pandod().address
    with protocol_worker(address) as one, protocol_worker(address) as two:
        mine = one.call("AllocatePages", pages=1, request_id=7)
        yours = two.call("AllocatePages", pages=1, request_id=7)
        assert mine.page_ids != yours.page_ids


def test_a_call_that_failed_may_succeed_with_the_same_id(start_pandod):
    with protocol_worker(start_pandod().address) as worker:
        taken = worker.call("AllocatePages", pages=POOL_PAGES - 1)
        again = {"pages": 1, "request_id": 7}
        assert worker.failure("AllocatePages", **again)[1] == "POOL_EXHAUSTED"
        worker.call("FreePages", page_ids=taken.page_ids[:1])
        assert worker.call("AllocatePages", **again).page_ids == taken.page_ids[:1]


def test_the_last_answers_are_kept(start_pandod):
    with protocol_worker(start_pandod().address) as worker:
        locks = [
            worker.call("Lock", request_id=n).lock_id
            for n in range(1, KEPT_ANSWERS + 2)
        ]
        assert worker.call("Lock", request_id=KEPT_ANSWERS + 1).lock_id == locks[-1]
        assert worker.call("Lock", request_id=2).lock_id == locks[1]
        # pandod has forgotten the oldest answer, so its id counts as new.
        assert worker.call("Lock", request_id=1).lock_id not in locks


@pytest.mark.parametrize("wait", [0, 600_000])
def test_a_repeat_does_not_wait_for_what_the_first_call_computes(start_pandod, wait):
    with protocol_worker(start_pandod().address) as worker:
        fields = {"request_id": 1, "pending_wait_ms": wait}
        first = worker.admit(PROMPT, **fields).get()
        assert worker.admit(PROMPT, **fields).get() == first


def but_for_room(answer):
    """Clears the room, which a repeat reports as of its own time."""
    answer.ClearField("free_pages")
    answer.ClearField("evictable_pages")
    return answer


def test_while_draining_a_repeat_gets_its_first_answer(start_pandod):
    with protocol_worker(start_pandod().address) as worker:
        fields = {"tokens": PROMPT, "lock": True, "reserve_tokens": len(PROMPT)}
        match = but_for_room(worker.call("MatchPrefix", request_id=1, **fields))
        pages = worker.call("AllocatePages", request_id=2, pages=3)
        worker.call("Drain")
        assert but_for_room(worker.call("MatchPrefix", request_id=1, **fields)) == match
        assert worker.call("AllocatePages", request_id=2, pages=3) == pages
        for method, new in {
            "MatchPrefix": fields,
            "Lock": {"tokens": PROMPT},
        }.items():
            assert worker.failure(method, request_id=3, **new) == DRAINING
        worker.call(
            "Insert",
            request_id=4,
            lock_id=match.lock_id,
            lock_action="LOCK_ACTION_UNLOCK",
            prompt_tokens=len(PROMPT),
            page_ids=match.reserved_page_ids,
            free_page_ids=pages.page_ids,
        )
        assert worker.stats().pages.reserved == 0
