"""One worker computes a page, and the others wait for it."""

import contextlib

import pytest
from eventually import eventually
from pando_kv._proto.pando.v1.prefix_cache_pb2 import (
    PENDING_OUTCOME_GIVEN_UP as GIVEN_UP,
)
from pando_kv._proto.pando.v1.prefix_cache_pb2 import (
    PENDING_OUTCOME_NOT_AWAITED as NOT_AWAITED,
)
from pando_kv._proto.pando.v1.prefix_cache_pb2 import (
    PENDING_OUTCOME_OWNER_LOST as OWNER_LOST,
)
from pando_kv._proto.pando.v1.prefix_cache_pb2 import (
    PENDING_OUTCOME_PUBLISHED as PUBLISHED,
)
from pando_kv._proto.pando.v1.prefix_cache_pb2 import (
    PENDING_OUTCOME_TIMED_OUT as TIMED_OUT,
)
from pando_kv._proto.pando.v1.prefix_cache_pb2 import (
    PENDING_OUTCOME_UNSPECIFIED as NOTHING_PENDING,
)
from pandod_process import PAGE_TOKENS
from protocol_worker import Answer, ProtocolWorker, protocol_worker
from raw_calls import RawCalls
from remote_worker import remote_worker

# A test that sets this time must not have to wait for it.
NEVER = 600_000
SOON = 100

PAGES = 8
PROMPT = list(range(PAGES * PAGE_TOKENS))
OTHER = [7] * len(PROMPT)
DRAINING = ("UNAVAILABLE", "DRAINING")
SESSION_LOST = ("FAILED_PRECONDITION", "SESSION_LOST")


def wait_for_waiters(worker: ProtocolWorker, count: int) -> None:
    eventually(lambda: worker.stats().waiting_matches == count)


def wait_for_one(answers: list[Answer]) -> int:
    """Returns the index of the first answer that is here."""
    eventually(lambda: any(answer.is_here() for answer in answers))
    return [answer.is_here() for answer in answers].index(True)


def start_waiting(
    worker: ProtocolWorker, tokens: list[int], limit: int = NEVER, count: int = 1
) -> Answer:
    """Starts an admission that waits, and returns once `count` admissions wait."""
    answer = worker.admit(tokens, pending_wait_ms=limit)
    wait_for_waiters(worker, count)
    return answer


@contextlib.contextmanager
def workers(address: str, count: int):
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(protocol_worker(address)) for _ in range(count)]


def test_worker_processes_that_want_one_cold_prefix_compute_it_once(start_pandod):
    pandod = start_pandod(pool_pages=1024)
    cold = list(range(512 * PAGE_TOKENS))
    with contextlib.ExitStack() as stack:
        observer = stack.enter_context(protocol_worker(pandod.address))
        group = [stack.enter_context(remote_worker(pandod.address)) for _ in range(4)]
        answers = [worker.admit(cold, pending_wait_ms=NEVER) for worker in group]
        owner = wait_for_one(answers)
        wait_for_waiters(observer, len(group) - 1)
        assert observer.stats().pages.reserved == 512

        admission = answers[owner].get()
        assert (admission.matched_tokens, admission.pending) == (0, NOTHING_PENDING)
        group[owner].finish(admission, cold)

        for index, worker in enumerate(group):
            if index == owner:
                continue
            admission = answers[index].get()
            assert admission.matched_tokens == len(cold)
            assert admission.pending == PUBLISHED
            assert len(admission.reserved_page_ids) == 0
            worker.unlock(admission)
        counters = observer.stats().counters
        assert (counters.inserted_pages, counters.duplicate_pages) == (512, 0)
        assert (counters.pending_waits, counters.pending_waits_published) == (3, 3)
        assert observer.stats().locks == 0
        assert observer.violations() == []


def test_a_worker_that_dies_while_it_computes_is_replaced_by_one_that_waits(
    start_pandod,
):
    # Within the test, only the end of the process can end the wait.
    pandod = start_pandod(session_grace="1h", quarantine="1h")
    with (
        workers(pandod.address, 2) as [first, second],
        remote_worker(pandod.address) as owner,
    ):
        assert owner.admit(PROMPT).get().pending == NOTHING_PENDING
        one = start_waiting(first, PROMPT)
        two = start_waiting(second, PROMPT, count=2)

        owner.kill()

        admission = one.get()
        assert (admission.matched_tokens, admission.pending) == (0, OWNER_LOST)
        assert len(admission.reserved_page_ids) == PAGES
        # The second worker now waits for the first one.
        wait_for_waiters(first, 1)
        assert not two.is_here()
        first.finish(admission, PROMPT)
        admission = two.get()
        assert (admission.matched_tokens, admission.pending) == (
            len(PROMPT),
            PUBLISHED,
        )


def test_a_chunked_prefill_is_awaited_to_its_end(start_pandod):
    with workers(start_pandod().address, 2) as [owner, waiter]:
        held = owner.admit(PROMPT).get()
        answer = start_waiting(waiter, PROMPT)
        for page in held.reserved_page_ids[:-1]:
            owner.call(
                "Insert",
                lock_id=held.lock_id,
                lock_action="LOCK_ACTION_RELOCK",
                prompt_tokens=PAGE_TOKENS,
                page_ids=[page],
            )
            wait_for_waiters(waiter, 1)
            assert not answer.is_here()
        owner.call(
            "Insert",
            lock_id=held.lock_id,
            lock_action="LOCK_ACTION_UNLOCK",
            prompt_tokens=PAGE_TOKENS,
            page_ids=held.reserved_page_ids[-1:],
        )
        assert answer.get().matched_tokens == len(PROMPT)


def give_up_by_unlock(owner: ProtocolWorker, held) -> None:
    owner.unlock(held)


def give_up_by_free(owner: ProtocolWorker, held) -> None:
    owner.call("FreePages", page_ids=held.reserved_page_ids[:1])


@pytest.mark.parametrize("give_up", [give_up_by_unlock, give_up_by_free])
def test_one_that_waits_takes_over_what_its_owner_gives_up(start_pandod, give_up):
    with workers(start_pandod().address, 2) as [owner, waiter]:
        held = owner.admit(PROMPT).get()
        answer = start_waiting(waiter, PROMPT)
        give_up(owner, held)
        admission = answer.get()
        assert (admission.matched_tokens, admission.pending) == (0, GIVEN_UP)
        assert len(admission.reserved_page_ids) == PAGES
        # This worker owns the prompt now.
        assert owner.admit(PROMPT).get().pending == NOT_AWAITED
        assert waiter.stats().counters.pending_waits_given_up == 1


def test_a_session_that_ends_in_order_gives_up_what_it_computed(start_pandod):
    pandod = start_pandod()
    with protocol_worker(pandod.address) as waiter:
        with protocol_worker(pandod.address) as owner:
            owner.admit(PROMPT).get()
            answer = start_waiting(waiter, PROMPT)
        assert answer.get().pending == OWNER_LOST


def test_a_wait_ends_when_its_time_is_up(start_pandod):
    with workers(start_pandod().address, 2) as [owner, waiter]:
        held = owner.admit(PROMPT).get()
        admission = waiter.admit(PROMPT, pending_wait_ms=SOON).get()
        assert (admission.matched_tokens, admission.pending) == (0, TIMED_OUT)
        assert len(admission.reserved_page_ids) == PAGES
        stats = waiter.stats()
        assert stats.waiting_matches == 0
        assert stats.counters.pending_waits_timed_out == 1
        # Both compute the prompt, and the waiter gets the owner's pages.
        owner.finish(held, PROMPT)
        assert waiter.finish(admission, PROMPT).existing_tokens == len(PROMPT)
        assert waiter.violations() == []


def test_nobody_waits_who_does_not_ask_for_it(start_pandod):
    with workers(start_pandod().address, 2) as [owner, other]:
        held = owner.admit(PROMPT).get()
        admission = other.admit(PROMPT).get()
        assert (admission.matched_tokens, admission.pending) == (0, NOT_AWAITED)
        # The other admission owns no pending pages.
        other.unlock(admission)
        assert other.admit(PROMPT).get().pending == NOT_AWAITED
        owner.unlock(held)
        assert other.admit(PROMPT).get().pending == NOTHING_PENDING


def test_a_prompt_that_goes_another_way_does_not_wait(start_pandod):
    with workers(start_pandod().address, 2) as [owner, other]:
        owner.admit(PROMPT).get()
        admission = other.admit(OTHER, pending_wait_ms=NEVER).get()
        assert admission.pending == NOTHING_PENDING


def test_two_that_wait_for_each_other_both_go_on(start_pandod):
    with workers(start_pandod().address, 2) as [first, second]:
        one, two = first.admit(PROMPT).get(), second.admit(OTHER).get()
        crossed = [
            first.admit(OTHER, pending_wait_ms=SOON),
            second.admit(PROMPT, pending_wait_ms=SOON),
        ]
        assert [answer.get().pending for answer in crossed] == [TIMED_OUT] * 2
        # Given enough time, one of them goes on after the other gives up.
        patient = start_waiting(first, OTHER)
        brief = second.admit(PROMPT, pending_wait_ms=SOON).get()
        assert brief.pending == TIMED_OUT
        second.finish(two, OTHER)
        assert patient.get().pending == PUBLISHED
        first.finish(one, PROMPT)
        assert first.violations() == []


def test_many_waits_keep_nobody_from_being_served(start_pandod):
    with workers(start_pandod().address, 2) as [owner, waiter]:
        held = owner.admit(PROMPT).get()
        answers = [
            waiter.admit(PROMPT, reserve_tokens=0, pending_wait_ms=NEVER)
            for _ in range(200)
        ]
        wait_for_waiters(waiter, len(answers))
        assert owner.admit(OTHER).get().pending == NOTHING_PENDING
        owner.finish(held, PROMPT)
        for answer in answers:
            assert answer.get().matched_tokens == len(PROMPT)
        assert waiter.stats().waiting_matches == 0


def test_waits_are_over_in_the_order_of_their_arrival(start_pandod):
    with workers(start_pandod().address, 5) as [owner, *waiters]:
        holder, held = owner, owner.admit(PROMPT).get()
        answers = [
            start_waiting(waiter, PROMPT, count=index + 1)
            for index, waiter in enumerate(waiters)
        ]
        for left, (waiter, answer) in enumerate(zip(waiters, answers, strict=True)):
            holder.unlock(held)
            holder, held = waiter, answer.get()
            assert held.pending == GIVEN_UP
            wait_for_waiters(owner, len(waiters) - left - 1)


# Waiting workers that go away.


def test_one_that_cancels_its_wait_takes_nothing(start_pandod):
    with workers(start_pandod().address, 2) as [owner, waiter]:
        held = owner.admit(PROMPT).get()
        answer = start_waiting(waiter, PROMPT)
        answer.call.cancel()
        wait_for_waiters(owner, 0)
        owner.unlock(held)
        assert owner.stats().locks == 0
        assert owner.admit(PROMPT).get().pending == NOTHING_PENDING


def test_one_that_dies_while_it_waits_takes_nothing(start_pandod):
    pandod = start_pandod(session_grace="1h", quarantine="1h")
    with (
        protocol_worker(pandod.address) as owner,
        remote_worker(pandod.address) as waiter,
    ):
        held = owner.admit(PROMPT).get()
        waiter.admit(PROMPT, pending_wait_ms=NEVER)
        wait_for_waiters(owner, 1)
        waiter.kill()
        wait_for_waiters(owner, 0)
        eventually(lambda: owner.stats().sessions == 1)
        owner.finish(held, PROMPT)
        assert owner.stats().locks == 0


def test_a_wait_ends_with_its_session(start_pandod):
    pandod = start_pandod()
    with protocol_worker(pandod.address) as owner, RawCalls(pandod.address) as raw:
        owner.admit(PROMPT).get()
        with raw.session() as session_id:
            answer = start_waiting(ProtocolWorker(raw, session_id), PROMPT)
        assert answer.failure() == SESSION_LOST
        wait_for_waiters(owner, 0)


def test_a_handle_may_be_gone_when_a_wait_is_over(start_pandod):
    with workers(start_pandod().address, 2) as [owner, waiter]:
        handle = owner.cache(PROMPT).handle
        held = owner.admit(OTHER, after=handle, reserve_tokens=2 * len(PROMPT)).get()
        answer = waiter.admit(
            OTHER,
            after=handle,
            reserve_tokens=2 * len(PROMPT),
            pending_wait_ms=NEVER,
        )
        wait_for_waiters(owner, 1)
        owner.unlock(held)
        admission = answer.get()
        assert admission.pending == GIVEN_UP
        assert admission.matched_tokens == len(PROMPT)


# The end of pandod.


def test_a_drain_ends_all_waits(start_pandod):
    pandod = start_pandod(drain_timeout="1h")
    with workers(pandod.address, 2) as [owner, waiter]:
        held = owner.admit(PROMPT).get()
        answers = [start_waiting(waiter, PROMPT, count=n) for n in range(1, 4)]
        pandod.terminate()
        assert [answer.failure() for answer in answers] == [DRAINING] * 3
        assert pandod.running
        owner.finish(held, PROMPT)
        assert pandod.wait() == 0


def test_waits_do_not_keep_pandod_from_stopping(start_pandod):
    pandod = start_pandod(drain_timeout="0s")
    with protocol_worker(pandod.address) as worker:
        worker.admit(PROMPT).get()
        answer = start_waiting(worker, PROMPT)
        assert pandod.stop() == 0
        assert answer.failure() == DRAINING
