"""The calls for operators on a real pandod."""

import asyncio

import numpy as np
import pytest
from pando_kv import (
    AllBlocksCleared,
    Client,
    EvictionReason,
    ExpectedReuse,
    InvalidRequestError,
    MatchEnd,
    Namespace,
    Operator,
    QuotaClass,
    ReuseStats,
    UnavailableError,
    UnknownLockError,
)
from pando_kv.aio import AsyncClient, AsyncOperator
from pandod_process import PAGE_TOKENS, serving
from prompts import admit_and_publish, prompt

LORA = Namespace("lora", "a tenant")


@pytest.fixture
def filled(client):
    """Returns a client that cached three pages by default and one in LORA."""
    admit_and_publish(client, prompt(3))
    admit_and_publish(client, prompt(1), namespace=LORA)
    return client


def test_namespaces_are_listed_with_the_largest_first(filled):
    listing = filled.namespaces()
    assert listing.total == 2
    first, second = listing.items
    assert (first.extra_key, first.has_cache_salt, first.evictable_pages) == (
        None,
        False,
        3,
    )
    assert (second.extra_key, second.has_cache_salt, second.bigram) == (
        "lora",
        True,
        False,
    )
    assert (second.nodes, second.protected_pages) == (1, 0)
    cut = filled.namespaces(limit=1)
    assert (cut.items, cut.total) == ([first], 2)


def test_one_namespace_is_flushed_by_itself_or_by_its_number(filled):
    assert filled.flush(LORA).evicted_pages == 1
    admit_and_publish(filled, prompt(2), namespace=LORA)
    (number,) = [n.number for n in filled.namespaces().items if n.extra_key]
    assert filled.flush(number).evicted_pages == 2
    assert filled.match_prefix(prompt(3)).matched_tokens == 3 * PAGE_TOKENS
    assert filled.flush(Namespace()).evicted_pages == 3


def test_the_eviction_policy_is_changed_under_the_cache(filled):
    assert filled.stats().eviction_policy == "lru"
    assert filled.set_eviction_policy("mru") == "lru"
    assert filled.stats().eviction_policy == "mru"
    filled.match_prefix(prompt(3))
    filled.evict(1)
    assert filled.match_prefix(prompt(3), touch=False).page_ids.size == 2
    with pytest.raises(InvalidRequestError, match="lru"):
        filled.set_eviction_policy("best")


def test_stats_tell_what_is_learnt_of_reuse_while_it_is(filled):
    assert filled.stats().reuse is None
    filled.set_eviction_policy("reuse")
    admit_and_publish(filled, prompt(4))
    assert filled.stats().reuse == ReuseStats(
        requested_pages=4, hit_pages=3, lru_hit_pages=3
    )
    filled.set_eviction_policy("lru")
    assert filled.stats().reuse is None


def test_the_priority_of_an_insert_keeps_it_longer(client):
    client.set_eviction_policy("priority")
    for start, priority in ((0, 2), (1000, 1)):
        client.insert(prompt(1, start), client.allocate_pages(1), priority=priority)
    client.evict(1)
    assert client.match_prefix(prompt(1)).matched_tokens == PAGE_TOKENS
    assert client.match_prefix(prompt(1, 1000)).matched_tokens == 0
    (node,) = client.dump_tree().nodes
    assert node.priority == 2


def test_an_ended_prefix_is_evicted_before_older_ones(client):
    for start, expected in (
        (0, ExpectedReuse.UNKNOWN),
        (1000, ExpectedReuse.ENDED),
        (2000, ExpectedReuse.UNKNOWN),
    ):
        client.insert(
            prompt(1, start), client.allocate_pages(1), expected_reuse=expected
        )
    client.evict(1)
    assert client.match_prefix(prompt(1, 1000)).matched_tokens == 0
    assert client.match_prefix(prompt(1)).matched_tokens == PAGE_TOKENS


def test_tasks_tell_that_a_prefix_has_ended(pandod, client):
    async def run():
        async with AsyncClient(pandod.address) as worker:
            for start, expected in (
                (0, ExpectedReuse.UNKNOWN),
                (1000, ExpectedReuse.ENDED),
            ):
                await worker.insert(
                    prompt(1, start),
                    await worker.allocate_pages(1),
                    expected_reuse=expected,
                )

    asyncio.run(run())
    client.evict(1)
    assert client.match_prefix(prompt(1)).matched_tokens == PAGE_TOKENS


def test_what_has_ended_is_not_retained(client):
    with pytest.raises(InvalidRequestError, match="retain_seconds"):
        client.insert([], [], expected_reuse=ExpectedReuse.ENDED, retain_seconds=1)


def test_the_length_of_the_output_tells_reuse_what_comes_back(client):
    """Prompts with short outputs come back once, those with long outputs never."""
    client.set_eviction_policy("reuse")

    def serve(start: int, output_tokens: int) -> None:
        tokens = prompt(1, start)
        match = client.match_prefix(tokens, lock=True, reserve_tokens=len(tokens))
        client.insert(
            tokens[match.matched_tokens :],
            match.reserved_page_ids,
            lock=match.lock,
            unlock=True,
            output_tokens=output_tokens,
        )

    for start in range(0, 300_000, 1000):
        serve(start, output_tokens=10)
        serve(start + 500, output_tokens=1000)
        serve(start, output_tokens=10)
    client.flush()
    serve(1_000_000, output_tokens=10)
    serve(2_000_000, output_tokens=1000)
    client.evict(1)
    assert client.match_prefix(prompt(1, 1_000_000)).matched_tokens == PAGE_TOKENS
    assert client.match_prefix(prompt(1, 2_000_000)).matched_tokens == 0


def test_sessions_are_listed_with_what_they_hold(pandod, filled):
    with Client(pandod.address, name="another") as other:
        other.allocate_pages(2)
        listing = filled.sessions()
        assert listing.total == 2
        first, second = listing.items
        assert (first.client_name, first.reserved_pages) == ("test", 0)
        assert (second.client_name, second.reserved_pages) == ("another", 2)
        assert second.is_connected and not second.is_attached
        cut = filled.sessions(limit=1)
        assert [each.session_number for each in cut.items] == [first.session_number]


def test_a_server_that_drains_admits_nothing_new(client):
    client.drain()
    with pytest.raises(UnavailableError) as refused:
        client.lock(prompt(1))
    assert refused.value.reason == "DRAINING"


def test_while_draining_only_who_runs_something_gets_pages(caller, pandod):
    with Client(pandod.address, name="idle", lane=caller.transport == "lane") as idle:
        lock = caller.lock([])
        caller.drain()
        with pytest.raises(UnavailableError, match="DRAINING"):
            idle.allocate_pages(1)
        pages = caller.allocate_pages(2)
        lock.release()
        more = caller.allocate_pages(1)
        caller.free_pages([*pages, *more])
        with pytest.raises(UnavailableError, match="DRAINING"):
            caller.allocate_pages(1)


def test_locks_are_listed_by_session_and_taken_from_one(pandod, filled):
    with Client(pandod.address, name="hangs") as hanging:
        lock = hanging.lock(prompt(2))
        mine = filled.lock(prompt(3))
        listing = filled.locks()
        assert listing.total == 2
        (info,) = [each for each in listing.items if each.client_name == "hangs"]
        assert info.locked_tokens == 2 * PAGE_TOKENS
        only = filled.locks(session_number=info.session_number)
        assert [each.client_name for each in only.items] == ["hangs"]

        assert filled.release_locks(info.session_number) == 1

        with pytest.raises(UnknownLockError):
            lock.release()
        assert [each.client_name for each in filled.locks().items] == ["test"]
        mine.release()


def test_a_match_is_explained(filled):
    assert filled.explain(prompt(3)).end is MatchEnd.COMPLETE
    assert filled.explain(prompt(4)[:-1]).matched_tokens == 3 * PAGE_TOKENS
    other = prompt(3)
    other[PAGE_TOKENS + 5] += 1
    diverged = filled.explain(other)
    assert (diverged.end, diverged.matched_tokens) == (MatchEnd.DIVERGED, PAGE_TOKENS)
    assert diverged.diverged_at == PAGE_TOKENS + 5
    filled.evict(1)
    evicted = filled.explain(prompt(3))
    assert (evicted.end, evicted.evicted_for) == (
        MatchEnd.EVICTED,
        EvictionReason.REQUEST,
    )
    elsewhere = filled.explain(prompt(2), namespace=LORA)
    assert elsewhere.end is MatchEnd.NEVER_CACHED
    (number,) = [n.number for n in filled.namespaces().items if not n.extra_key]
    assert elsewhere.longer_in_namespaces == [number]
    with filled.lock(prompt(1)):
        (lock,) = filled.explain(prompt(1)).locks
        assert (lock.client_name, lock.locked_tokens) == ("test", PAGE_TOKENS)


def test_the_tree_is_dumped_parents_first(filled):
    fork = np.concatenate([prompt(1), prompt(1, start=7000)])
    admit_and_publish(filled, fork)
    dump = filled.dump_tree()
    assert (len(dump.nodes), dump.omitted) == (4, 0)
    assert sum(node.pages for node in dump.nodes) == 5
    seen = {0}
    for node in dump.nodes:
        assert node.parent in seen
        seen.add(node.node)
        assert node.tokens == node.pages * PAGE_TOKENS
        assert (node.begin_token == 0) == (node.depth == 0)
    (number,) = [n.number for n in filled.namespaces().items if n.extra_key]
    (only,) = filled.dump_tree(namespace_number=number).nodes
    assert only.namespace_number == number
    cut = filled.dump_tree(limit=3)
    assert (len(cut.nodes), cut.omitted) == (3, 1)


def test_stats_show_the_classes_of_a_quota(tmp_path):
    config = tmp_path / "pando.yaml"
    config.write_text(
        "quotas: [{class: lora, extra_key: 'lora*', floor_pages: 2, cap_pages: 8}]"
    )
    with (
        serving(tmp_path, config=config) as server,
        Client(server.address) as client,
    ):
        client.allocate_pages(3, namespace=LORA)
        named, others = client.stats().quota_classes
        assert named == QuotaClass("lora", 2, 8, 3, 0, 0, 0)
        assert (others.name, others.cap_pages) == ("", None)


def test_the_asyncio_client_has_them_too(pandod, filled):
    async def run():
        async with AsyncClient(pandod.address) as client:
            assert await client.namespaces() == filled.namespaces()
            dump = await client.dump_tree()
            assert [node.pages for node in dump.nodes] == [
                node.pages for node in filled.dump_tree().nodes
            ]
            assert (await client.explain(prompt(3))).end is MatchEnd.COMPLETE
            lock = await client.lock(prompt(1))
            (info,) = (await client.locks()).items
            sessions = (await client.sessions()).items
            assert sessions[-1].session_number == info.session_number
            assert await client.release_locks(info.session_number) == 1
            with pytest.raises(UnknownLockError):
                await lock.release()
            assert await client.set_eviction_policy("fifo") == "lru"
            assert (await client.flush(LORA)).evicted_pages == 1
            await client.drain()
            with pytest.raises(UnavailableError):
                await client.lock(prompt(1))

    asyncio.run(run())


def test_an_operator_asks_without_a_session(pandod, filled):
    with Operator(pandod.address) as operator:
        assert operator.namespaces() == filled.namespaces()
        assert operator.dump_tree().nodes == filled.dump_tree().nodes
        (session,) = operator.sessions().items
        assert operator.stats().sessions == 1
        lock = filled.lock(prompt(1))
        assert operator.release_locks(session.session_number) == 1
        with pytest.raises(UnknownLockError):
            lock.release()
        events = operator.watch_events()
    for _ in events:
        # The stream ends when the operator is closed.
        pass


def test_an_operator_of_an_absent_server_is_told_so_by_its_calls(tmp_path):
    with Operator(f"unix:{tmp_path}/nobody") as operator:
        for _ in range(2):
            with pytest.raises(UnavailableError):
                operator.stats()
    with pytest.raises(UnavailableError, match="closed"):
        operator.stats()


def test_an_asyncio_operator_asks_without_a_session(pandod, filled):
    async def run():
        async with AsyncOperator(pandod.address) as operator:
            assert await operator.namespaces() == filled.namespaces()
            assert (await operator.stats()).sessions == 1
            async with operator.watch_events() as events:
                assert type(await anext(events)) is AllBlocksCleared

    asyncio.run(run())
