"""Inserts that a caller begins, and whose answers the caller reads later."""

import os
import signal

import numpy as np
import pytest
from eventually import eventually
from lanes import needs_lane
from pando_kv import Client, InvalidRequestError, PandoError
from pandod_process import PAGE_TOKENS
from prompts import admit_and_publish, prompt
from stopped import is_stopped

pytestmark = needs_lane


def admitted(client, which, pages=2):
    tokens = pages * PAGE_TOKENS
    return client.match_prefix(prompt(pages, which), lock=True, reserve_tokens=tokens)


def begun(client, which, match, **options):
    return client.begin_insert(
        prompt(2, which), match.reserved_page_ids, lock=match.lock, **options
    )


def test_its_answer_is_that_of_an_insert(caller):
    first, second = admitted(caller, 1), admitted(caller, 2)
    answer = begun(caller, 1, first, unlock=True)
    told = caller.insert(
        prompt(2, 2), second.reserved_page_ids, lock=second.lock, unlock=True
    )
    result = answer.result()
    assert answer.result() is result
    assert not first.lock.held
    assert (result.existing_tokens, told.existing_tokens) == (0, 0)
    assert result.page_ids.tolist() == first.reserved_page_ids.tolist()
    assert result.handle.tokens == told.handle.tokens == 2 * PAGE_TOKENS
    pages = caller.gauges().pages
    assert (pages.reserved, pages.protected) == (0, 0)


def test_a_later_call_finds_what_an_insert_that_was_begun_publishes(caller):
    match = admitted(caller, 1)
    answer = begun(caller, 1, match, unlock=True)
    assert caller.match_prefix(prompt(2, 1)).matched_tokens == 2 * PAGE_TOKENS
    assert answer.result().existing_tokens == 0


def test_a_lock_that_would_move_is_refused(caller):
    """The next insert may begin only at a lock that the first one leaves alone."""
    match = admitted(caller, 1)
    with pytest.raises(ValueError, match="relock is set"):
        begun(caller, 1, match, relock=True)
    assert match.lock.held
    match.lock.release()


def test_an_error_is_raised_where_the_answer_is_asked_for(caller):
    answer = caller.begin_insert(prompt(1, 1), [0])
    for _ in range(2):
        with pytest.raises(InvalidRequestError):
            answer.result()
    with pytest.raises(TypeError):
        caller.begin_insert(prompt(1, 1), [0], no_such_option=1)


def test_more_are_under_way_than_a_lane_has_slots(caller):
    admit_and_publish(caller, prompt(1))
    locks = [caller.lock(prompt(1)) for _ in range(200)]
    answers = [caller.begin_insert((), (), lock=lock, unlock=True) for lock in locks]
    assert [answer.result().existing_tokens for answer in answers] == [0] * 200
    assert not any(lock.held for lock in locks)


def test_answers_that_are_not_asked_for_leave_nothing_held(caller):
    for which in range(300):
        match = admitted(caller, which % 7, 1)
        options = {"lock": match.lock, "unlock": True}
        tokens = PAGE_TOKENS - match.matched_tokens
        caller.begin_insert(
            prompt(1, which % 7)[:tokens], match.reserved_page_ids, **options
        )
    # The stats come over gRPC, so they may overtake the last insert on the lane.
    eventually(lambda: caller.stats().locks == 0)


def test_an_insert_that_was_under_way_when_pandod_died_ends_with_an_error(pandod):
    with Client(pandod.address, timeout=5.0) as client:
        match = admitted(client, 1)
        os.kill(pandod.pid, signal.SIGSTOP)
        eventually(lambda: is_stopped(pandod))
        answer = begun(client, 1, match, unlock=True)
        pandod.kill()
        pandod.start()
        with pytest.raises(PandoError):
            answer.result()


def test_the_tokens_may_be_a_list_or_an_array(caller):
    for which, make in enumerate((list, np.asarray, lambda p: np.asarray(p, np.int64))):
        match = admitted(caller, which, 1)
        answer = caller.begin_insert(
            make(prompt(1, which)),
            match.reserved_page_ids,
            lock=match.lock,
            unlock=True,
        )
        assert answer.result().existing_tokens == 0
