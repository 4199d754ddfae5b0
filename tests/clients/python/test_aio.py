"""The asyncio client against a real pandod."""

import asyncio
import inspect
import random
import time

import pytest
from eventually import eventually
from pando_kv import Client, SessionLostError, UnavailableError, UnknownLockError
from pando_kv.aio import AsyncClient, AsyncLock
from pandod_process import PAGE_TOKENS, serving

TOKENS = list(range(2 * PAGE_TOKENS))


async def _eventually(holds):
    end = time.monotonic() + 30
    while not await holds():
        assert time.monotonic() < end, "it did not happen"


def test_both_clients_have_the_same_calls():
    def calls(kind):
        return {
            name: list(inspect.signature(member).parameters)
            for name, member in inspect.getmembers(kind, inspect.isfunction)
            if not name.startswith("_")
        }

    asynchronous = calls(AsyncClient)
    del asynchronous["connect"]
    synchronous = calls(Client)
    # A task of asyncio replaces `begin_insert`.
    del synchronous["begin_insert"]
    assert asynchronous == synchronous


def test_a_request_from_admission_to_finish(pandod):
    async def run():
        async with AsyncClient(pandod.address, name="aio") as client:
            match = await client.match_prefix(
                TOKENS, lock=True, reserve_tokens=3 * PAGE_TOKENS
            )
            pages = match.reserved_page_ids
            assert pages.size == 3
            with await client.attach_pool() as pool:
                pool.values(0)[pages[0]] = 7
            await client.insert(
                [],
                pages[:2],
                lock=match.lock,
                prompt_tokens=len(TOKENS),
                unlock=True,
                free_page_ids=pages[2:],
            )
            assert not match.lock.held
            again = await client.match_prefix(TOKENS)
            assert again.page_ids.tolist() == pages[:2].tolist()
            assert await client.describe_pool() == client.pool
            assert (await client.stats()).pages.reserved == 0
            assert await client.check_invariants() == []
            assert (await client.flush()).evicted_pages == 2
            assert await client.evict(1) == 0

    asyncio.run(run())


def test_locks_are_released_with_their_block(pandod):
    async def run():
        async with AsyncClient(pandod.address) as client:
            pages = await client.allocate_pages(2)
            await client.insert(TOKENS, pages)
            async with await client.lock(TOKENS) as lock:
                assert isinstance(lock, AsyncLock)
                assert (await client.flush()).protected_pages == 2
            assert not lock.held
            await lock.release()
            await client.unlock(lock)
            with pytest.raises(UnknownLockError):
                await client.insert([], [], lock=lock)
            assert (await client.stats()).locks == 0

    asyncio.run(run())


def test_many_tasks_share_a_client(pandod):
    async def work(client, index):
        tokens = [index] * PAGE_TOKENS
        for _ in range(10):
            match = await client.match_prefix(
                tokens, lock=True, reserve_tokens=PAGE_TOKENS
            )
            await client.insert(
                tokens[match.matched_tokens :],
                match.reserved_page_ids,
                lock=match.lock,
                unlock=True,
            )

    async def run():
        async with AsyncClient(pandod.address) as client:
            await asyncio.gather(*(work(client, i) for i in range(16)))
            stats = await client.stats()
            assert (stats.locks, stats.pages.evictable) == (0, 16)

    asyncio.run(run())


def _admissions(client, index):
    """Yields calls that take a lock, a page or both, each with its clean-up."""
    tokens = [index] * PAGE_TOKENS

    async def give_back(match):
        await client.unlock(match.lock)
        await client.free_pages(match.reserved_page_ids)

    yield client.match_prefix(tokens, lock=True, reserve_tokens=PAGE_TOKENS), give_back
    yield client.lock(tokens), client.unlock
    yield client.allocate_pages(1), client.free_pages


async def _cancelled_at_random(client, random_numbers):
    """Cancels many admissions after 1 to 12 loop turns; each takes about ten."""
    for index in range(200):
        for admission, give_back in _admissions(client, index):
            task = asyncio.create_task(admission)
            for _ in range(random_numbers.randint(1, 12)):
                await asyncio.sleep(0)
            if not task.cancel():
                await give_back(task.result())


def _wait_until_nothing_is_held(server):
    with Client(server.address) as client:

        def nothing_is_held():
            stats = client.stats()
            return (stats.locks, stats.pages.reserved) == (0, 0)

        eventually(nothing_is_held)
        assert client.check_invariants() == []


def test_what_cancelled_admissions_bring_is_given_back(tmp_path):
    async def run(server):
        async with AsyncClient(server.address) as client:
            await _cancelled_at_random(client, random.Random(0))
            await asyncio.to_thread(_wait_until_nothing_is_held, server)

    # The pool has enough pages for all admissions at once.
    with serving(tmp_path, pool_pages=1024) as server:
        asyncio.run(run(server))


def test_a_client_can_be_closed_while_cancelled_admissions_run(tmp_path):
    async def run(server):
        async with AsyncClient(server.address) as client:
            await _cancelled_at_random(client, random.Random(1))

    with serving(tmp_path, pool_pages=1024) as server:
        asyncio.run(run(server))
        _wait_until_nothing_is_held(server)


def test_an_absent_server_is_unavailable(tmp_path):
    async def run():
        with pytest.raises(UnavailableError, match=r"within 0\.3 s: UNAVAILABLE"):
            await AsyncClient(f"unix:{tmp_path}/nobody", timeout=0.3).connect()

    asyncio.run(run())


def test_a_call_before_connect_says_so(pandod):
    async def run():
        client = AsyncClient(str(pandod.socket))
        with pytest.raises(UnavailableError, match=r"not connected: .* connect\(\)"):
            await client.allocate_pages(1)
        await client.connect()
        assert (await client.allocate_pages(1)).size == 1
        await client.close()

    asyncio.run(run())


def test_connecting_twice_keeps_the_session(pandod):
    async def run():
        async with AsyncClient(pandod.address) as client:
            session_id = client.session_id
            await client.connect()
            assert (client.session_id, client.generation) == (session_id, 1)
            assert (await client.stats()).counters.sessions_opened == 1

    asyncio.run(run())


def test_a_closed_client_cannot_be_connected_again(pandod):
    async def run():
        async with AsyncClient(pandod.address) as client:
            pass
        with pytest.raises(UnavailableError, match="the client is closed"):
            await client.connect()

    asyncio.run(run())


def test_a_client_is_made_in_an_event_loop():
    with pytest.raises(RuntimeError, match="no running event loop"):
        AsyncClient("unix:/nowhere")


def test_close_ends_the_session_at_once(pandod, client):
    async def run():
        async with AsyncClient(pandod.address) as other:
            await other.allocate_pages(2)
        with pytest.raises(UnavailableError) as caught:
            await other.stats()
        assert caught.value.reason == "CLIENT_CLOSED"

    async def gone():
        return client.stats().sessions == 1

    asyncio.run(run())
    asyncio.run(_eventually(gone))
    stats = client.stats()
    assert (stats.pages.reserved, stats.pages.quarantined) == (0, 0)
    assert stats.counters.sessions_lost == 0


def test_a_broken_connection_resumes_the_session_with_its_locks(cutter):
    async def run():
        async with AsyncClient(cutter.address) as client:
            session_id = client.session_id
            match = await client.match_prefix([], lock=True)
            cutter.cut()

            async def answers():
                try:
                    return (await client.match_prefix([])).matched_tokens == 0
                except UnavailableError:
                    return False

            await _eventually(answers)
            await match.lock.release()
            assert (client.session_id, client.generation) == (session_id, 1)

    asyncio.run(run())


def test_a_new_pandod_gets_a_new_session_and_refuses_old_handles(pandod):
    async def run():
        lost = asyncio.get_running_loop().create_future()
        async with AsyncClient(
            pandod.address, on_session_lost=lost.set_result
        ) as client:
            epoch = client.epoch
            match = await client.match_prefix([], lock=True, reserve_tokens=1)
            pandod.kill()
            with pytest.raises(UnavailableError):
                await client.stats()
            pandod.start()
            assert (await lost).epoch == epoch

            async def reopened():
                await asyncio.sleep(0)
                return client.generation == 2

            await _eventually(reopened)
            with pytest.raises(SessionLostError):
                await match.lock.release()
            with pytest.raises(SessionLostError):
                await client.free_pages(match.reserved_page_ids, generation=1)
            assert (await client.allocate_pages(1)).size == 1

    asyncio.run(run())
