"""The session of the blocking client: its end, its breaks, and a restarted pandod."""

import gc
import subprocess
import sys
import threading

import pytest
from eventually import eventually
from pando_kv import (
    Client,
    InvalidRequestError,
    SessionLostError,
    UnavailableError,
)
from pandod_process import PAGE_TOKENS

TOKENS = list(range(PAGE_TOKENS))


class Losses:
    """An `on_session_lost` callback that a test can wait for."""

    def __init__(self):
        self.sessions = []
        self._event = threading.Event()

    def __call__(self, session):
        self.sessions.append(session)
        self._event.set()

    def wait(self):
        assert self._event.wait(30)


def _has_no_pages_or_locks(client):
    stats = client.stats()
    return (stats.pages.reserved, stats.pages.quarantined, stats.locks) == (0, 0, 0)


def test_an_absent_server_is_unavailable(tmp_path):
    with pytest.raises(UnavailableError, match=r"within 0\.3 s"):
        Client(f"unix:{tmp_path}/nobody", timeout=0.3)


def test_a_path_is_the_address_of_a_unix_socket(pandod):
    with Client(str(pandod.socket)) as client:
        assert client.stats().sessions == 1


def test_a_refused_session_says_why(pandod):
    with pytest.raises(InvalidRequestError, match="client_name"):
        Client(pandod.address, name="x" * 129)


def test_close_ends_the_session_at_once(pandod, client):
    with Client(pandod.address) as other:
        match = other.match_prefix(TOKENS, lock=True, reserve_tokens=100)
        assert client.stats().sessions == 2
    assert match.lock.held
    eventually(lambda: client.stats().sessions == 1)
    assert _has_no_pages_or_locks(client)
    assert client.stats().counters.sessions_lost == 0


def test_a_dropped_client_ends_its_session(pandod, client):
    other = Client(pandod.address)
    other.allocate_pages(1)
    del other
    gc.collect()
    eventually(lambda: client.stats().sessions == 1)
    assert _has_no_pages_or_locks(client)


def test_the_end_of_the_process_ends_the_session(pandod, client):
    code = "import sys, pando_kv; c = pando_kv.Client(sys.argv[1]); c.allocate_pages(1)"
    subprocess.run([sys.executable, "-c", code, pandod.address], check=True)
    eventually(lambda: client.stats().sessions == 1)
    assert client.stats().counters.sessions_lost == 0
    assert _has_no_pages_or_locks(client)


def test_a_closed_client_refuses_calls(pandod):
    client = Client(pandod.address)
    client.close()
    client.close()
    for call in (client.stats, lambda: client.allocate_pages(1)):
        with pytest.raises(UnavailableError) as caught:
            call()
        assert caught.value.reason == "CLIENT_CLOSED"


def test_a_broken_connection_resumes_the_session_with_its_locks(pandod, cutter):
    losses = Losses()
    with (
        Client(pandod.address) as watcher,
        Client(cutter.address, on_session_lost=losses) as client,
    ):
        session_id = client.session_id
        match = client.match_prefix(TOKENS, lock=True, reserve_tokens=PAGE_TOKENS)

        cutter.cut()

        eventually(lambda: _still_answers(client))
        client.insert(TOKENS, match.reserved_page_ids, lock=match.lock, unlock=True)
        assert (client.session_id, client.generation) == (session_id, 1)
        assert losses.sessions == []
        assert watcher.stats().sessions == 2


def _still_answers(client):
    try:
        return client.match_prefix([]).matched_tokens == 0
    except UnavailableError:
        return False


def test_calls_fail_while_pandod_is_away_and_a_new_one_gets_a_new_session(pandod):
    losses = Losses()
    with Client(pandod.address, on_session_lost=losses) as client:
        epoch = client.epoch
        match = client.match_prefix(TOKENS, lock=True, reserve_tokens=PAGE_TOKENS)

        pandod.kill()
        for _ in range(3):
            with pytest.raises(UnavailableError):
                client.stats()

        pandod.start()
        losses.wait()
        eventually(lambda: client.generation == 2)
        assert client.epoch != epoch
        assert [(s.generation, s.epoch) for s in losses.sessions] == [(1, epoch)]
        for stale in (
            match.lock.release,
            lambda: client.unlock(match.lock),
            lambda: client.insert(TOKENS, match.reserved_page_ids, lock=match.lock),
            lambda: client.insert(
                TOKENS, match.reserved_page_ids, generation=match.generation
            ),
            lambda: client.free_pages(
                match.reserved_page_ids, generation=match.generation
            ),
        ):
            with pytest.raises(SessionLostError):
                stale()
        pages = client.allocate_pages(1)
        client.insert(TOKENS, pages, generation=client.generation)
        assert client.match_prefix(TOKENS).matched_tokens == PAGE_TOKENS
        assert client.check_invariants() == []


def test_a_callback_that_raises_does_not_stop_the_client(pandod):
    def fail(_):
        raise RuntimeError("from the callback")

    with Client(pandod.address, on_session_lost=fail) as client:
        pandod.kill()
        pandod.start()
        eventually(lambda: client.generation == 2)
        client.allocate_pages(1)


def test_a_lock_of_a_lost_session_is_dropped_without_a_warning(pandod, recwarn):
    with Client(pandod.address) as client:
        lock = client.match_prefix([], lock=True).lock
        pandod.kill()
        pandod.start()
        eventually(lambda: client.generation == 2)
        assert lock.held
        del lock
        gc.collect()
    assert not [w for w in recwarn if w.category is ResourceWarning]


def test_a_draining_server_is_announced(pandod):
    with Client(pandod.address) as client:
        assert not client.draining
        pandod.stop()
        eventually(lambda: client.draining)


def test_many_threads_share_a_client(client):
    def work(index):
        tokens = [index] * PAGE_TOKENS
        for _ in range(20):
            match = client.match_prefix(tokens, lock=True, reserve_tokens=PAGE_TOKENS)
            client.insert(
                tokens[match.matched_tokens :],
                match.reserved_page_ids,
                lock=match.lock,
                unlock=True,
            )

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stats = client.stats()
    assert (stats.locks, stats.pages.reserved, stats.pages.evictable) == (0, 0, 8)
