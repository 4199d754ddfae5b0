"""A client with `away_after`, and a pandod that is stopped or killed. Once the
client takes pandod for away, `away_after` becomes so long that a call which waits does
not end."""

import pytest
from eventually import eventually
from pando_kv import AwayError, Client, DeadlineError, PandoError, UnavailableError
from pandod_process import PAGE_TOKENS
from prompts import admit_and_publish, prompt
from stopped import stopped

LONG = 1000.0


@pytest.fixture(params=[True, False], ids=["lane", "grpc"])
def worker(request, pandod):
    with Client(
        pandod.address, name="scheduler", lane=request.param, away_after=0.3
    ) as client:
        assert client.transport == ("lane" if request.param else "grpc")
        yield client


def find_away(worker):
    assert not worker.is_away
    with pytest.raises((DeadlineError, UnavailableError)):
        worker.match_prefix(prompt(1))
    assert worker.is_away
    worker._connection.presence.away_after = LONG


def test_while_pandod_is_away_no_call_is_made(pandod, worker, client):
    before = client.stats().counters.matches
    with stopped(pandod):
        find_away(worker)
        for _ in range(1000):
            with pytest.raises(AwayError):
                worker.match_prefix(prompt(1), lock=True, reserve_tokens=PAGE_TOKENS)
            with pytest.raises(AwayError):
                worker.allocate_pages(1)
    eventually(lambda: not worker.is_away)
    # pandod may have carried out the one call that found it away.
    assert client.stats().counters.matches <= before + 1
    admit_and_publish(worker, prompt(1))
    assert client.stats().pages.reserved == 0


def test_what_is_given_back_meanwhile_is_given_back_then(pandod, worker, client):
    lock, pages = worker.lock([]), worker.allocate_pages(3)
    with stopped(pandod):
        find_away(worker)
        worker.unlock(lock)
        worker.free_pages(pages)
        assert not lock.held
    eventually(lambda: client.stats().locks == 0)
    eventually(lambda: client.stats().pages.reserved == 0)


def test_a_lock_that_was_to_go_with_an_insert_is_still_held(pandod, worker, client):
    match = worker.match_prefix(prompt(1), lock=True, reserve_tokens=PAGE_TOKENS)
    with stopped(pandod):
        find_away(worker)
        with pytest.raises(AwayError):
            worker.insert(
                prompt(1), match.reserved_page_ids, lock=match.lock, unlock=True
            )
        assert match.lock.held
    eventually(lambda: not worker.is_away)
    worker.insert(prompt(1), match.reserved_page_ids, lock=match.lock, unlock=True)
    assert client.stats().locks == 0


def test_what_is_under_way_is_not_waited_for_and_settled_then(pandod, client):
    with Client(pandod.address, name="scheduler", away_after=0.3) as worker:
        matches = [
            worker.match_prefix(
                prompt(1, start=100 * i), lock=True, reserve_tokens=PAGE_TOKENS
            )
            for i in range(3)
        ]
        with stopped(pandod):
            batch = worker.batch()
            answers = [
                batch.insert(
                    prompt(1, start=100 * i),
                    match.reserved_page_ids,
                    lock=match.lock,
                    unlock=True,
                )
                for i, match in enumerate(matches)
            ]
            batch.begin()
            find_away(worker)
            for answer in answers:
                with pytest.raises(DeadlineError):
                    answer.result()
        eventually(lambda: client.stats().locks == 0)
        assert client.match_prefix(prompt(1, start=200)).matched_tokens == PAGE_TOKENS


def test_a_batch_is_not_sent_while_pandod_is_away(pandod, worker, client):
    lock = worker.lock([])
    with stopped(pandod):
        find_away(worker)
        with worker.batch() as batch:
            match = batch.match_prefix(prompt(1), lock=True)
            batch.unlock(lock)
        with pytest.raises(AwayError):
            match.result()
    eventually(lambda: client.stats().locks == 0)


def test_a_batch_without_an_answer_finds_pandod_away(pandod, worker):
    with stopped(pandod):
        batch = worker.batch()
        answers = [batch.match_prefix(prompt(1)) for _ in range(3)]
        batch.begin()
        for answer in answers:
            with pytest.raises((DeadlineError, AwayError)):
                answer.result()
        assert worker.is_away


def test_a_pandod_that_is_killed_is_away_until_the_next_one(pandod, worker):
    generation = worker.generation
    pandod.kill()
    find_away(worker)
    with pytest.raises(AwayError):
        worker.match_prefix(prompt(1))
    pandod.start()
    eventually(lambda: not worker.is_away and worker.generation == generation + 1)
    admit_and_publish(worker, prompt(1))


def test_a_refusal_is_an_answer(worker):
    with pytest.raises(PandoError):
        worker.allocate_pages(1_000_000)
    assert not worker.is_away


def test_other_calls_are_made_as_ever(pandod, worker):
    with stopped(pandod):
        find_away(worker)
    # This call is not a request's, so it waits and gets its answer.
    assert worker.stats().sessions >= 1


def test_a_client_that_is_away_can_be_closed(pandod, worker):
    with stopped(pandod):
        find_away(worker)
        worker._connection.presence.away_after = 0.3
        worker.close()


def test_without_the_option_no_pandod_is_away(pandod):
    with Client(pandod.address, timeout=0.3) as plain:
        with stopped(pandod), pytest.raises(DeadlineError):
            plain.match_prefix(prompt(1))
        assert not plain.is_away
        plain.match_prefix(prompt(1))
