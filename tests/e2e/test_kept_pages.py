"""The cached pages of a pandod under pando-keeper outlive the pandod."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from blocks import spec
from eventually import eventually
from kept_pandod import LAYOUT, KeptPandod, config_of, kept
from pando_kv import Client, MappedPool, Operator, PandoError
from pandod_process import OPEN, PAGE_TOKENS, POOL_PAGES
from worker_process import WorkerProcess

KILLS = 25
PAGES = POOL_PAGES - 1
PROMPT_PAGES = 4


def tokens_of(prompt: int) -> np.ndarray:
    """Returns the tokens of a prompt; its first page is that of all prompts."""
    tokens = np.full(PROMPT_PAGES * PAGE_TOKENS, prompt, dtype=np.uint32)
    tokens[:PAGE_TOKENS] = 0
    return tokens


def mark(prompt: int, page: int) -> int:
    """Returns the byte that fills a page of a prompt."""
    return 0 if page == 0 else 1 + (prompt * PROMPT_PAGES + page) % 255


@contextmanager
def attached(server: KeptPandod) -> Iterator[tuple[Client, MappedPool]]:
    with Client(server.address) as client, client.attach_pool() as pool:
        yield client, pool


def restart(server: KeptPandod) -> None:
    server.kill_server()
    server.wait_serving()


def bytes_of(pool: MappedPool) -> np.ndarray:
    """Returns the bytes of each page: one row a page."""
    memory = pool.memory().view(np.uint8).reshape(-1)
    return memory[: memory.nbytes // POOL_PAGES * POOL_PAGES].reshape(POOL_PAGES, -1)


def store(client: Client, pool: MappedPool, prompt: int) -> None:
    tokens = tokens_of(prompt)
    match = client.match_prefix(tokens, lock=True, reserve_tokens=tokens.size)
    cached = match.page_ids.size
    own = match.reserved_page_ids[: PROMPT_PAGES - cached]
    for page, number in enumerate(own, start=cached):
        bytes_of(pool)[number] = mark(prompt, page)
    client.insert(
        tokens[cached * PAGE_TOKENS :],
        own,
        lock=match.lock,
        unlock=True,
        free_page_ids=match.reserved_page_ids[own.size :],
    )


def assert_holds(client: Client, pool: MappedPool, prompt: int) -> int:
    """Checks the bytes of the cached pages of a prompt; returns their number."""
    pages = client.match_prefix(tokens_of(prompt)).page_ids
    for page, number in enumerate(pages):
        assert (bytes_of(pool)[number] == mark(prompt, page)).all()
    return pages.size


def test_the_next_pandod_has_the_pages_with_their_bytes(tmp_path):
    with kept(tmp_path) as server:
        with attached(server) as (client, pool):
            for prompt in (1, 2, 3):
                store(client, pool, prompt)
        for deaths in (1, 2, 3):
            restart(server)
            with attached(server) as (client, pool):
                stats = client.stats()
                assert stats.page_recoveries == deaths
                assert stats.pages.evictable == 3 * (PROMPT_PAGES - 1) + 1
                assert stats.pages.free == PAGES - stats.pages.evictable
                for prompt in (1, 2, 3):
                    assert assert_holds(client, pool, prompt) == PROMPT_PAGES


def test_pages_have_the_bytes_of_their_prompts_through_many_kills(tmp_path):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    choices = random.Random(seed)
    with kept(tmp_path) as server:
        for _ in range(KILLS):
            with attached(server) as (client, pool):
                kill_after = choices.randrange(40)
                for step in range(60):
                    if step == kill_after:
                        server.kill_server()
                    try:
                        store(client, pool, choices.randrange(1, 40))
                    except PandoError:
                        break  # its session is lost
            server.wait_serving()
            with attached(server) as (client, pool):
                for prompt in range(1, 40):
                    assert_holds(client, pool, prompt)
            with Operator(server.address) as operator:
                assert operator.check_invariants() == []


def test_the_page_that_was_used_least_recently_still_goes_first(tmp_path):
    with kept(tmp_path) as server:
        with attached(server) as (client, pool):
            for prompt in (1, 2, 3):
                store(client, pool, prompt)
            client.match_prefix(tokens_of(1))
        restart(server)
        with attached(server) as (client, pool):
            client.allocate_pages(PAGES - 2 * (PROMPT_PAGES - 1) - 1)
            cached = [assert_holds(client, pool, prompt) for prompt in (1, 2, 3)]
            assert cached == [PROMPT_PAGES, 1, PROMPT_PAGES]


def test_what_lost_sessions_use_is_theirs_until_they_let_go(tmp_path):
    # A session that uses blocks is lost with its pandod.
    with (
        kept(tmp_path, quarantine="1h", memory="16MiB") as server,
        Client(server.address) as worker,
    ):
        mapped = worker.attach_pool()
        store(worker, mapped, 1)
        worker.open_kinds([spec()])
        worker.match_prefix(tokens_of(1), lock=True)
        held = worker.allocate_pages(6)
        restart(server)
        with attached(server) as (client, pool):
            pages = client.stats().pages
            assert pages.quarantined == held.size
            assert pages.protected == PROMPT_PAGES
            # The rest can be evicted and handed out.
            others = client.allocate_pages(pages.free + pages.evictable)
            assert not {*others.tolist()} & {*held.tolist()}
            with pytest.raises(PandoError):
                client.allocate_pages(1)
            mapped.close()
            eventually(lambda: client.stats().pages.quarantined == 0)
            eventually(lambda: client.stats().pages.protected == 0)
            assert client.allocate_pages(PAGES - others.size).size


def test_without_a_usable_ledger_all_pages_are_withheld_until_workers_let_go(tmp_path):
    with (
        kept(tmp_path, config=config_of(tmp_path, model="one")) as server,
        WorkerProcess(server.address) as worker,
    ):
        worker.do("attach", "lock", "reserve")
        config_of(tmp_path, model="two")
        restart(server)
        with Client(server.address) as client:
            assert client.stats().pages.quarantined == PAGES
            with pytest.raises(PandoError):
                client.allocate_pages(1)
            worker.kill()
            eventually(lambda: client.stats().pages.free == PAGES)
            assert client.allocate_pages(PAGES).size == PAGES


def test_another_model_does_not_get_the_pages(tmp_path):
    with kept(tmp_path, config=config_of(tmp_path, model="one")) as server:
        with attached(server) as (client, pool):
            store(client, pool, 1)
        config_of(tmp_path, model="two")
        restart(server)
        assert "the kept pages are not used" in server.log()
        with attached(server) as (client, pool):
            assert assert_holds(client, pool, 1) == 0


def test_a_worker_with_another_configuration_is_still_refused(tmp_path):
    with kept(tmp_path) as server:
        with Client(server.address) as client:
            with client.attach_pool(model_digest="one") as pool:
                store(client, pool, 1)
        restart(server)
        with Client(server.address) as client:
            with pytest.raises(PandoError, match="'one'"):
                client.attach_pool(model_digest="two")
            client.attach_pool(model_digest="one").close()


def test_the_pages_of_an_open_pool_come_back_with_its_layout(tmp_path):
    tokens = np.arange(2 * PAGE_TOKENS, dtype=np.uint32)
    with kept(tmp_path, **OPEN, pool_bytes="1MiB") as server:
        with Client(server.address) as client:
            client.attach_pool(expected_layout=LAYOUT, model="m").close()
            pages = client.allocate_pages(2)
            client.insert(tokens, pages)
        restart(server)
        with Client(server.address) as client:
            client.attach_pool(expected_layout=LAYOUT, model="m").close()
            assert client.match_prefix(tokens).page_ids.tolist() == pages.tolist()


def test_without_keep_nothing_is_cached_after_a_death(tmp_path):
    with kept(tmp_path, keep="no") as server:
        with attached(server) as (client, pool):
            store(client, pool, 1)
        restart(server)
        with attached(server) as (client, pool):
            assert assert_holds(client, pool, 1) == 0
            assert client.stats().page_recoveries == 0
