"""The sessions of workers outlive a pandod under pando-keeper."""

import asyncio
import gc
import random
import threading
import time

import numpy as np
import pytest
from credentials import ROLES, folder_of_tokens, token_of
from eventually import eventually
from kept_pandod import LAYOUT, KeptPandod, config_of, kept
from pando_kv import Client, MappedPool, Operator, PandoError, SessionLostError
from pando_kv.aio import AsyncClient
from pandoctl import Pandoctl
from pandod_process import OPEN, PAGE_TOKENS, POOL_PAGES
from worker_process import WorkerProcess

KILLS = 20
PAGES = POOL_PAGES - 1
PROMPT_PAGES = 4


def restart(server: KeptPandod) -> None:
    server.kill_server()
    server.wait_serving()


def tokens_of(prompt: int, pages: int = PROMPT_PAGES) -> np.ndarray:
    """Returns the tokens of a prompt; its first page is that of all prompts."""
    tokens = np.full(pages * PAGE_TOKENS, prompt, dtype=np.uint32)
    tokens[:PAGE_TOKENS] = 0
    return tokens


@pytest.mark.parametrize("lane", [False, True])
def test_a_request_goes_on_in_the_same_session_and_epoch(tmp_path, lane):
    with kept(tmp_path) as server, Client(server.address, lane=lane) as client:
        tokens = tokens_of(1)
        before = (client.session_id, client.epoch, client.generation)
        match = client.match_prefix(tokens, lock=True, reserve_tokens=tokens.size)
        restart(server)
        assert client.stats().pages.reserved == PROMPT_PAGES
        client.insert(tokens, match.reserved_page_ids, lock=match.lock, unlock=True)
        assert (client.session_id, client.epoch, client.generation) == before
        pages = client.stats().pages
        assert (pages.reserved, pages.protected) == (0, 0)
        found = client.match_prefix(tokens).page_ids
        assert found.tolist() == match.reserved_page_ids.tolist()


def test_a_request_of_an_asyncio_client_goes_on(tmp_path):
    async def serve(server: KeptPandod) -> None:
        tokens = tokens_of(1)
        async with AsyncClient(server.address) as client:
            before = (client.session_id, client.epoch)
            match = await client.match_prefix(
                tokens, lock=True, reserve_tokens=tokens.size
            )
            await asyncio.to_thread(restart, server)
            await client.insert(
                tokens, match.reserved_page_ids, lock=match.lock, unlock=True
            )
            assert (client.session_id, client.epoch) == before
            assert (await client.match_prefix(tokens)).matched_tokens == tokens.size

    with kept(tmp_path) as server:
        asyncio.run(serve(server))


def test_a_lock_still_holds_the_prompt_of_its_request(tmp_path):
    with kept(tmp_path) as server, Client(server.address) as client:
        tokens = tokens_of(1)
        match = client.match_prefix(tokens, lock=True, reserve_tokens=tokens.size)
        pages = match.reserved_page_ids
        for page in range(PROMPT_PAGES):
            restart(server)
            client.insert(
                [],
                pages[page : page + 1],
                lock=match.lock,
                prompt_tokens=PAGE_TOKENS,
                relock=True,
            )
        match.lock.release()
        assert client.match_prefix(tokens).page_ids.tolist() == pages.tolist()


def test_locked_pages_are_not_evicted_by_the_next_pandod(tmp_path):
    with (
        kept(tmp_path) as server,
        Client(server.address) as worker,
        Client(server.address) as other,
    ):
        tokens = tokens_of(1)
        worker.insert(tokens, worker.allocate_pages(PROMPT_PAGES))
        lock = worker.match_prefix(tokens, lock=True).lock
        restart(server)
        others = other.allocate_pages(PAGES - PROMPT_PAGES)
        with pytest.raises(PandoError, match="POOL_EXHAUSTED"):
            other.allocate_pages(1)
        lock.release()
        assert other.allocate_pages(PROMPT_PAGES).size == PROMPT_PAGES
        assert others.size == PAGES - PROMPT_PAGES


def test_a_handle_of_before_is_gone_and_leads_nowhere_else(tmp_path):
    with kept(tmp_path) as server, Client(server.address) as client:
        tokens = tokens_of(1)
        handle = client.insert(tokens, client.allocate_pages(PROMPT_PAGES)).handle
        restart(server)
        more = np.concatenate([tokens, tokens_of(2, pages=1)])
        match = client.match_prefix(more, after=handle)
        assert match.matched_tokens == tokens.size


def test_a_worker_that_died_meanwhile_leaves_nothing(tmp_path):
    with kept(tmp_path) as server, WorkerProcess(server.address) as worker:
        worker.do("attach", "lock", "reserve", "write")
        worker.pause()
        server.kill_server()
        worker.kill()
        server.wait_serving()
        with Client(server.address) as client:
            eventually(lambda: client.stats().pages.free == PAGES)


def test_a_stopped_worker_keeps_its_pages_until_it_ends(tmp_path):
    with (
        kept(tmp_path, session_grace="1s", quarantine="1s") as server,
        WorkerProcess(server.address) as worker,
    ):
        worker.do("attach", "lock", "reserve")
        held = worker.do("write")["pages"]
        worker.pause()
        restart(server)
        with Client(server.address) as client:
            free = client.stats().pages.free
            others = client.allocate_pages(free)
            assert not {*held} & {*others.tolist()}
            assert client.stats().pages.reserved == free + len(held)
            # Its session ends, but it may still write.
            eventually(lambda: client.stats().pages.quarantined == len(held))
            worker.kill()
            eventually(lambda: client.stats().pages.free == len(held))


def test_a_session_of_a_credential_that_is_gone_is_lost(tmp_path):
    with folder_of_tokens() as folder:
        roles = [
            f"{{name: {role}, role: {role}, token_file: {folder}/{role}.token}}"
            for role in ROLES
        ]
        config_of(tmp_path, credentials=f"[{', '.join(roles)}]")
        with (
            kept(tmp_path, config=tmp_path / "pandod.yaml") as server,
            Client(server.address, token=token_of("worker")) as client,
        ):
            client.allocate_pages(3)
            restart(server)
            assert client.allocate_pages(2).size == 2
            assert client.generation == 1
            others = [role for role in roles if "name: worker" not in role]
            config_of(tmp_path, credentials=f"[{', '.join(others)}]")
            restart(server)
            with pytest.raises(PandoError, match="NO_CREDENTIAL"):
                client.allocate_pages(1)
            with Operator(server.address, token=token_of("admin")) as operator:
                eventually(lambda: operator.stats().pages.free == PAGES)


def test_an_upgrade_loses_no_session(tmp_path):
    with kept(tmp_path) as server, Client(server.address) as client:
        tokens = tokens_of(1)
        match = client.match_prefix(tokens, lock=True, reserve_tokens=tokens.size)
        for _ in range(3):
            assert Pandoctl(server.address)("restart", "--yes").code == 0
        client.insert(tokens, match.reserved_page_ids, lock=match.lock, unlock=True)
        assert client.generation == 1
        assert client.stats().page_recoveries == 3


class Requests(threading.Thread):
    """Makes requests in one session after the other, until it is stopped."""

    def __init__(self, server: KeptPandod, worker: int) -> None:
        super().__init__()
        self._choices = random.Random(worker)
        self._client = Client(server.address, lane=worker % 2 == 0, timeout=20)
        self._pools: list[MappedPool] = []
        # The bytes of the pool as the present session has mapped them.
        self._session_pages: np.ndarray | None = None
        self._stopping = False
        self.served = 0
        self.lost_sessions = 0
        self.wrong: list[str] = []
        self.start()

    def run(self) -> None:
        while not self._stopping:
            try:
                self._serve(self._choices.randrange(1, 12))
                self.served += 1
            except SessionLostError:
                # A call of this session was under way when pandod died.
                self.lost_sessions += self._session_pages is not None
                self._session_pages = None
            except PandoError as error:
                # After a loss, the next session may not be open yet.
                if error.reason not in ("POOL_EXHAUSTED", "NO_SESSION"):
                    self.wrong.append(str(error))
            time.sleep(0.002)

    def _serve(self, prompt: int) -> None:
        if self._session_pages is None:
            self._pools.append(self._client.attach_pool())
            self._session_pages = bytes_of(self._pools[-1])
        pages = self._session_pages
        tokens = tokens_of(prompt)
        match = self._client.match_prefix(tokens, lock=True, reserve_tokens=tokens.size)
        for page, number in enumerate(match.page_ids):
            if not (pages[number] == mark(prompt, page)).all():
                self.wrong.append(f"page {page} of prompt {prompt}")
        cached = match.page_ids.size
        for page, number in enumerate(match.reserved_page_ids, start=cached):
            pages[number] = mark(prompt, page)
        self._client.insert(
            tokens[cached * PAGE_TOKENS :],
            match.reserved_page_ids,
            lock=match.lock,
            unlock=True,
        )

    def stop(self) -> None:
        self._stopping = True
        self.join()
        self._session_pages = None
        gc.collect()  # views that errors still refer to
        for pool in self._pools:
            pool.close()
        self._client.close()


def mark(prompt: int, page: int) -> int:
    """Returns the byte that fills a page of a prompt."""
    return 0 if page == 0 else 1 + (prompt * PROMPT_PAGES + page) % 255


def bytes_of(pool: MappedPool) -> np.ndarray:
    """Returns the bytes of each page: one row a page."""
    memory = pool.memory().view(np.uint8).reshape(-1)
    return memory[: memory.nbytes // POOL_PAGES * POOL_PAGES].reshape(POOL_PAGES, -1)


def test_workers_lose_no_request_through_many_kills(tmp_path):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    pauses = random.Random(seed)
    with kept(tmp_path) as server:
        workers = [Requests(server, worker) for worker in range(4)]
        for _ in range(KILLS):
            before = [worker.served for worker in workers]
            eventually(
                lambda before=before: all(
                    worker.served > served
                    for worker, served in zip(workers, before, strict=True)
                )
            )
            time.sleep(pauses.random() * 0.02)
            restart(server)
        for worker in workers:
            worker.stop()
        lost = sum(worker.lost_sessions for worker in workers)
        print(f"{sum(w.served for w in workers)} requests, {lost} lost sessions")
        assert [worker.wrong for worker in workers] == [[], [], [], []]
        assert lost <= KILLS
        with Operator(server.address) as operator:
            assert operator.check_invariants() == []
            # The workers of lost sessions may have had locks.
            eventually(lambda: operator.stats().pages.protected == 0)
            assert operator.stats().pages.reserved == 0


def test_a_session_in_an_open_pool_goes_on_with_the_layout_of_the_pool(tmp_path):
    tokens = tokens_of(1)
    with kept(tmp_path, **OPEN, pool_bytes="1MiB") as server:
        with Client(server.address) as client:
            pool = client.attach_pool(expected_layout=LAYOUT, model="m")
            for _ in range(3):
                before = (client.session_id, client.epoch)
                match = client.match_prefix(
                    tokens, lock=True, reserve_tokens=tokens.size
                )
                restart(server)
                client.insert(
                    tokens[match.matched_tokens :],
                    match.reserved_page_ids,
                    lock=match.lock,
                    unlock=True,
                )
                assert (client.session_id, client.epoch) == before
            pool.close()
        # No session goes on, so the pool is open again.
        with Operator(server.address) as operator:
            eventually(lambda: operator.stats().sessions == 0)
        restart(server)
        with Client(server.address) as client:
            assert client.pool.is_open


def test_a_kept_layout_gives_way_to_another_model_in_the_configuration(tmp_path):
    config = config_of(tmp_path, model="one")
    with kept(tmp_path, **OPEN | {"config": config, "pool_bytes": "1MiB"}) as server:
        with Client(server.address) as client:
            client.attach_pool(expected_layout=LAYOUT, model="one").close()
            client.allocate_pages(1)
            config_of(tmp_path, model="two")
            restart(server)
            assert "the kept layout of the pool is not used" in server.log()
        with Client(server.address) as client:
            assert client.pool.is_open
            client.attach_pool(expected_layout=LAYOUT, model="two").close()
