"""The synchronous client against a real pandod."""

import gc

import numpy as np
import pytest
from pando_kv import (
    Client,
    InvalidRequestError,
    Lock,
    Namespace,
    PageNotOwnedError,
    PageRoom,
    PoolExhaustedError,
    PrefixQuery,
    UnknownLockError,
)
from pandod_process import PAGE_TOKENS, POOL_PAGES


def prompt(pages, start=0):
    return np.arange(start, start + pages * PAGE_TOKENS, dtype=np.uint32)


def publish(client, tokens, **options):
    """Caches the tokens and returns their pages."""
    pages = client.allocate_pages(tokens.size // PAGE_TOKENS)
    client.insert(tokens, pages, **options)
    return pages


def test_an_admission_and_a_finish_are_one_call_each(client):
    tokens = prompt(3)
    match = client.match_prefix(tokens, lock=True, reserve_tokens=5 * PAGE_TOKENS)
    assert match.matched_tokens == 0
    assert match.page_ids.size == 0
    assert match.reserved_page_ids.size == 5
    assert 0 not in match.reserved_page_ids

    done = client.insert(
        tokens,
        match.reserved_page_ids[:3],
        lock=match.lock,
        unlock=True,
        free_page_ids=match.reserved_page_ids[3:],
    )

    assert (done.existing_tokens, done.freed_duplicates) == (0, 0)
    stats = client.stats()
    assert stats.locks == 0
    assert (stats.pages.reserved, stats.pages.evictable) == (0, 3)
    again = client.match_prefix(tokens)
    assert again.matched_tokens == tokens.size
    assert again.page_ids.tolist() == match.reserved_page_ids[:3].tolist()
    assert again.lock is None


def test_a_prefix_of_one_client_is_read_by_another_in_place(pandod, client):
    with Client(pandod.address) as other:
        tokens = prompt(1)
        pages = client.allocate_pages(1)
        mine, theirs = client.attach_pool(), other.attach_pool()
        mine.keys(1)[pages[0]] = 4.25
        client.insert(tokens, pages)

        found = other.match_prefix(tokens, lock=True)
        with found.lock:
            assert (theirs.keys(1)[found.page_ids] == 4.25).all()
        mine.close()
        theirs.close()


def test_a_match_is_capped_and_floored_to_pages(client):
    publish(client, prompt(4))
    match = client.match_prefix(prompt(4), max_tokens=4 * PAGE_TOKENS - 1)
    assert match.matched_tokens == 3 * PAGE_TOKENS
    assert match.page_ids.size == 3


def test_a_cap_of_zero_matches_nothing(client):
    publish(client, prompt(1))
    assert client.match_prefix(prompt(1), max_tokens=0).matched_tokens == 0
    assert client.match_prefix(prompt(1), max_tokens=None).matched_tokens > 0


def test_reserving_without_a_lock_is_refused(client):
    with pytest.raises(InvalidRequestError, match="reserve_tokens"):
        client.match_prefix(prompt(1), reserve_tokens=PAGE_TOKENS)


def test_tokens_may_be_lists_and_prompts_may_be_empty(client):
    publish(client, prompt(1))
    assert client.match_prefix(prompt(1).tolist()).matched_tokens == PAGE_TOKENS
    assert client.match_prefix([]).matched_tokens == 0


def test_a_long_prompt_fits_in_a_call(client):
    assert client.match_prefix(np.zeros(100_000, np.uint32)).matched_tokens == 0


def test_a_duplicate_insert_names_the_canonical_pages(client):
    first = publish(client, prompt(2))
    own = client.allocate_pages(3)

    result = client.insert(prompt(3), own)

    assert result.existing_tokens == 2 * PAGE_TOKENS
    assert result.canonical_page_ids.tolist() == first.tolist()
    assert result.freed_duplicates == 2


def test_an_insert_answers_with_the_whole_block_table(client):
    first = publish(client, prompt(2))
    own = client.allocate_pages(4)

    result = client.insert(prompt(4), own)

    assert result.page_ids.tolist() == [*first, *own[2:]]
    assert client.match_prefix(prompt(4)).page_ids.tolist() == [*first, *own[2:]]


def test_the_block_table_of_an_insert_after_a_handle_begins_there(client):
    head = client.insert(prompt(2), client.allocate_pages(2))
    own = client.allocate_pages(1)

    result = client.insert(prompt(3), [*head.page_ids, *own], after=head.handle)

    assert result.first_page == 2
    assert result.page_ids.tolist() == own.tolist()


def test_answers_tell_how_many_pages_are_free_and_evictable(client):
    assert client.room is None
    pages = client.allocate_pages(3)
    usable = POOL_PAGES - 1
    assert client.room == PageRoom(free=usable - 3, evictable=0)
    client.insert(prompt(2), pages[:2])
    assert client.room == PageRoom(free=usable - 3, evictable=2)
    client.match_prefix(prompt(1), lock=True, reserve_tokens=2 * PAGE_TOKENS)
    assert client.room == PageRoom(free=usable - 4, evictable=1)


def test_an_allocation_with_a_minimum_gives_what_there_is(client):
    publish(client, prompt(2))
    usable = POOL_PAGES - 1
    client.lock(prompt(1))
    assert client.allocate_pages(usable, at_least=3).size == usable - 1
    assert client.allocate_pages(1, at_least=0).size == 0
    with pytest.raises(PoolExhaustedError):
        client.allocate_pages(2, at_least=1)


def test_a_minimum_over_the_number_itself_is_refused(client):
    with pytest.raises(InvalidRequestError, match="min_pages is 3"):
        client.allocate_pages(2, at_least=3)


def test_duplicates_can_be_kept(client):
    publish(client, prompt(1))
    own = client.allocate_pages(1)
    assert client.insert(prompt(1), own, keep_duplicates=True).freed_duplicates == 0
    client.free_pages(own)


def test_a_lock_protects_until_its_block_ends(client):
    publish(client, prompt(2))
    with client.lock(prompt(2)) as lock:
        assert lock.locked_tokens == 2 * PAGE_TOKENS
        flushed = client.flush()
        assert (flushed.evicted_pages, flushed.protected_pages) == (0, 2)
    assert not lock.held
    assert client.flush().evicted_pages == 2


def test_a_lock_is_released_once(client):
    publish(client, prompt(1))
    lock = client.lock(prompt(1))
    lock.release()
    lock.release()
    client.unlock(lock, lock)
    assert client.stats().counters.locks_released == 1


def test_several_locks_are_released_in_one_call(client):
    publish(client, prompt(1))
    locks = [client.lock(prompt(1)) for _ in range(3)]
    locks[1].release()
    client.unlock(*locks)
    assert client.stats().locks == 0


def test_the_error_of_a_block_is_not_masked_by_its_release(pandod):
    client = Client(pandod.address)
    match = client.match_prefix([], lock=True)
    with pytest.raises(KeyError), match.lock:
        client.close()
        raise KeyError


def test_relock_moves_the_lock_and_chains_chunks(client):
    match = client.match_prefix([], lock=True, reserve_tokens=4 * PAGE_TOKENS)
    pages, lock = match.reserved_page_ids, match.lock
    client.insert(prompt(1), pages[:1], lock=lock, relock=True)
    assert lock.locked_tokens == PAGE_TOKENS
    client.insert(prompt(3, start=PAGE_TOKENS), pages[1:], lock=lock, relock=True)
    assert lock.locked_tokens == 4 * PAGE_TOKENS
    assert client.stats().pages.protected == 4
    assert client.match_prefix(prompt(4)).page_ids.tolist() == pages.tolist()
    lock.release()


def test_a_prompt_travels_once_and_only_generated_tokens_follow(client):
    publish(client, prompt(1))
    match = client.match_prefix(
        prompt(3)[:-2], lock=True, reserve_tokens=3 * PAGE_TOKENS
    )
    rest = 2 * PAGE_TOKENS - 2

    client.insert(
        prompt(3)[-2:],
        match.reserved_page_ids,
        lock=match.lock,
        prompt_tokens=rest,
        unlock=True,
    )

    pages = np.concatenate((match.page_ids, match.reserved_page_ids))
    assert client.match_prefix(prompt(3)).page_ids.tolist() == pages.tolist()


def test_a_prompt_is_published_in_chunks_without_sending_it_again(client):
    match = client.match_prefix(prompt(3), lock=True, reserve_tokens=3 * PAGE_TOKENS)
    pages, lock = match.reserved_page_ids, match.lock
    client.insert([], pages[:1], lock=lock, prompt_tokens=PAGE_TOKENS, relock=True)
    assert lock.locked_tokens == PAGE_TOKENS
    client.insert([], pages[1:], lock=lock, prompt_tokens=2 * PAGE_TOKENS, unlock=True)
    assert client.match_prefix(prompt(3)).page_ids.tolist() == pages.tolist()


def test_more_of_a_prompt_than_the_server_has_is_refused(client):
    match = client.match_prefix(prompt(1), lock=True, reserve_tokens=PAGE_TOKENS)
    for tokens, lock in ((PAGE_TOKENS + 1, match.lock), (PAGE_TOKENS, None)):
        with pytest.raises(InvalidRequestError, match="prompt_tokens") as caught:
            client.insert([], match.reserved_page_ids, lock=lock, prompt_tokens=tokens)
        assert caught.value.reason == "INVALID_FIELD"
    match.lock.release()


def test_a_consumed_lock_is_no_anchor(client):
    match = client.match_prefix([], lock=True, reserve_tokens=PAGE_TOKENS)
    client.insert(prompt(1), match.reserved_page_ids, lock=match.lock, unlock=True)
    assert not match.lock.held
    with pytest.raises(UnknownLockError):
        client.insert(prompt(1), [1], lock=match.lock)


def test_a_failed_insert_leaves_its_lock_held(client):
    match = client.match_prefix([], lock=True)
    with pytest.raises(PageNotOwnedError):
        client.insert(prompt(1), [POOL_PAGES - 1], lock=match.lock, unlock=True)
    assert match.lock.held
    match.lock.release()
    assert client.stats().locks == 0


def test_a_lock_dropped_while_held_warns(client):
    publish(client, prompt(1))
    lock = client.lock(prompt(1))
    with pytest.warns(ResourceWarning, match="never released"):
        del lock
        gc.collect()


def test_a_lock_of_another_client_is_refused(pandod, client):
    with Client(pandod.address) as other:
        lock = other.match_prefix([], lock=True).lock
        for use in (
            lambda: client.insert([], [], lock=lock),
            lambda: client.unlock(lock),
        ):
            with pytest.raises(UnknownLockError, match="another client"):
                use()
        lock.release()
        assert client.stats().locks == 0


def test_an_unknown_lock_is_an_error(client):
    session = client._sessions.current()
    lock = Lock(client._connection, session, 12345, tokens=0, handle=None)
    with pytest.raises(UnknownLockError) as caught:
        lock.release()
    assert caught.value.reason == "LOCK_UNKNOWN"


def test_an_exhausted_pool_refuses_whole_and_takes_nothing(client):
    with pytest.raises(PoolExhaustedError) as caught:
        client.match_prefix([], lock=True, reserve_tokens=POOL_PAGES * PAGE_TOKENS)
    assert caught.value.reason == "POOL_EXHAUSTED"
    stats = client.stats()
    assert (stats.pages.reserved, stats.locks) == (0, 0)


def test_pages_are_allocated_and_freed(client):
    pages = client.allocate_pages(3)
    assert len(set(pages.tolist())) == 3
    assert client.stats().pages.reserved == 3
    client.free_pages(pages)
    assert client.stats().pages.reserved == 0


@pytest.mark.parametrize(
    ("pages", "kind", "reason"),
    [
        ([], InvalidRequestError, "EMPTY_REQUEST"),
        ([0], InvalidRequestError, "PAGE_OUT_OF_RANGE"),
        ([POOL_PAGES], InvalidRequestError, "PAGE_OUT_OF_RANGE"),
        ([POOL_PAGES - 1], PageNotOwnedError, "PAGE_NOT_OWNED"),
    ],
)
def test_bad_pages_are_refused_with_their_reason(client, pages, kind, reason):
    with pytest.raises(kind) as caught:
        client.free_pages(pages)
    assert caught.value.reason == reason


def test_a_page_named_twice_is_refused(client):
    (page,) = client.allocate_pages(1)
    with pytest.raises(InvalidRequestError) as caught:
        client.free_pages([page, page])
    assert caught.value.reason == "DUPLICATE_PAGE"
    client.free_pages([page])


def test_too_few_pages_for_the_tokens_are_refused(client):
    pages = client.allocate_pages(1)
    with pytest.raises(InvalidRequestError) as caught:
        client.insert(prompt(2), pages)
    assert caught.value.reason == "INVALID_ALIGNMENT"
    client.free_pages(pages)


def test_relock_and_unlock_exclude_each_other(client):
    with pytest.raises(ValueError, match="choose one"):
        client.insert([], [], relock=True, unlock=True)


def test_unset_and_empty_namespace_fields_differ(client):
    spaces = [
        None,
        Namespace(extra_key=""),
        Namespace(cache_salt=""),
        Namespace("lora-1"),
        Namespace("lora-1", "tenant"),
    ]
    for space in spaces:
        assert client.match_prefix(prompt(1), namespace=space).matched_tokens == 0
        publish(client, prompt(1), namespace=space)
    assert client.match_prefix(prompt(1), namespace=Namespace()).matched_tokens > 0
    for space in spaces:
        client.lock(prompt(1), namespace=space).release()


def test_evict_frees_what_was_asked_and_no_more(client):
    publish(client, prompt(4))
    assert client.evict(3) == 3
    assert client.evict(100) == 1
    assert client.evict(1) == 0


def test_an_untouched_match_does_not_refresh(client):
    old, new = prompt(1), prompt(1, start=10_000)
    publish(client, old)
    publish(client, new)
    client.match_prefix(old, touch=False)
    client.evict(1)
    assert client.match_prefix(old).matched_tokens == 0
    assert client.match_prefix(new).matched_tokens == PAGE_TOKENS


def test_stats_add_up(client):
    publish(client, prompt(2))
    client.match_prefix(prompt(3))
    stats = client.stats()
    pages = stats.pages
    states = (pages.free, pages.reserved, pages.evictable, pages.protected)
    assert sum(states) + pages.quarantined + pages.padding == pages.capacity
    assert pages.capacity == POOL_PAGES
    assert stats.counters.hit_tokens == 2 * PAGE_TOKENS
    assert stats.counters.query_tokens == 3 * PAGE_TOKENS
    assert (stats.sessions, stats.epoch) == (1, client.epoch)


def test_a_namespace_that_is_none_is_an_error_that_does_not_show_it(client):
    for call in (
        lambda ns: client.match_prefix([1], namespace=ns),
        lambda ns: client.match_prefixes([PrefixQuery([1], ns)]),
        lambda ns: client.insert([], [], namespace=ns),
        lambda ns: client.lock([1], namespace=ns),
        lambda ns: client.allocate_pages(1, namespace=ns),
        lambda ns: client.flush(ns),
        lambda ns: client.explain([1], namespace=ns),
    ):
        with pytest.raises(
            TypeError, match="^namespace is a str; must be a pando_kv.N"
        ):
            call("a salt")
