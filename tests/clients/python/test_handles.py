"""Calls that begin at a handle give the same answers as calls with the whole prompt."""

import dataclasses
import pickle
import random

import numpy as np
import pytest
from pando_kv import (
    Client,
    InvalidRequestError,
    Namespace,
    PageNotOwnedError,
    PrefixQuery,
    PrefixScore,
)
from pandod_process import PAGE_TOKENS, serving
from prompts import admit_and_publish, prompt


def test_a_match_after_a_handle_names_only_the_pages_after_it(client):
    tokens = prompt(5)
    handle = admit_and_publish(client, tokens[: 3 * PAGE_TOKENS]).handle
    assert handle.tokens == 3 * PAGE_TOKENS
    admit_and_publish(client, tokens)
    whole = client.match_prefix(tokens)

    match = client.match_prefix(tokens, after=handle)

    assert (match.matched_tokens, match.first_page) == (5 * PAGE_TOKENS, 3)
    assert match.page_ids.tolist() == whole.page_ids[3:].tolist()
    assert match.handle == whole.handle


def test_only_the_tokens_after_a_handle_are_sent(tmp_path):
    with (
        serving(tmp_path, max_tokens_per_request=3 * PAGE_TOKENS) as server,
        Client(server.address) as client,
    ):
        handle = None
        for pages in (2, 4, 6, 8):
            handle = admit_and_publish(client, prompt(pages), after=handle).handle
        assert handle.tokens == 8 * PAGE_TOKENS
        with pytest.raises(InvalidRequestError, match="the limit is 48"):
            client.match_prefix(prompt(8))


def test_a_turn_costs_an_admission_and_a_finish_and_no_whole_prompt(client):
    first = client.match_prefix(prompt(2), lock=True, reserve_tokens=2 * PAGE_TOKENS)
    done = client.insert(
        [],
        first.reserved_page_ids,
        lock=first.lock,
        prompt_tokens=2 * PAGE_TOKENS,
        unlock=True,
    )
    block_table = first.reserved_page_ids

    second = client.match_prefix(
        prompt(4), after=done.handle, lock=True, reserve_tokens=4 * PAGE_TOKENS
    )

    assert (second.matched_tokens, second.first_page) == (2 * PAGE_TOKENS, 2)
    assert second.page_ids.size == 0
    assert second.reserved_page_ids.size == 2
    assert second.lock.locked_tokens == 2 * PAGE_TOKENS
    block_table = np.concatenate(
        [
            block_table[: second.first_page],
            second.page_ids,
            second.reserved_page_ids,
        ]
    )
    client.insert(
        [],
        second.reserved_page_ids,
        lock=second.lock,
        prompt_tokens=2 * PAGE_TOKENS,
        unlock=True,
    )
    assert client.match_prefix(prompt(4)).page_ids.tolist() == block_table.tolist()


def test_a_handle_that_is_gone_gives_the_match_of_the_whole_prompt(client):
    handle = admit_and_publish(client, prompt(3)).handle
    client.evict(2)
    match = client.match_prefix(
        prompt(4), after=handle, lock=True, reserve_tokens=4 * PAGE_TOKENS
    )
    assert (match.matched_tokens, match.first_page) == (PAGE_TOKENS, 0)
    assert (match.page_ids.size, match.reserved_page_ids.size) == (1, 3)
    match.lock.release()


def test_a_handle_of_another_boot_gives_the_match_of_the_whole_prompt(client):
    handle = admit_and_publish(client, prompt(2)).handle
    other = dataclasses.replace(handle, epoch=handle.epoch ^ 1)
    match = client.match_prefix(prompt(2), after=other)
    assert (match.matched_tokens, match.first_page) == (2 * PAGE_TOKENS, 0)
    assert match.page_ids.size == 2


def test_a_cap_before_the_handle_ends_the_match_there(client):
    handle = admit_and_publish(client, prompt(3)).handle
    match = client.match_prefix(prompt(3), after=handle, max_tokens=2 * PAGE_TOKENS)
    assert (match.matched_tokens, match.first_page) == (2 * PAGE_TOKENS, 2)
    assert match.page_ids.size == 0


def test_fewer_tokens_than_the_handle_has_are_refused(client):
    handle = admit_and_publish(client, prompt(2)).handle
    short = prompt(1)
    for use in (
        lambda: client.match_prefix(short, after=handle),
        lambda: client.lock(short, after=handle),
        lambda: client.insert(short, [1], after=handle),
        lambda: client.match_prefixes([PrefixQuery(short, after=handle)]),
    ):
        with pytest.raises(ValueError, match="a prefix of 32 tokens; there are 16"):
            use()


def test_a_handle_serves_only_in_its_namespace(client):
    handle = admit_and_publish(client, prompt(1)).handle
    assert client.match_prefix(prompt(2), after=handle).matched_tokens > 0
    elsewhere = client.match_prefix(
        prompt(2), after=handle, namespace=Namespace("lora")
    )
    assert elsewhere.matched_tokens == 0


def test_a_match_of_nothing_has_no_handle(client):
    assert client.match_prefix(prompt(1)).handle is None


def test_a_handle_is_plain_data_that_another_worker_can_use(pandod, client):
    handle = admit_and_publish(client, prompt(2)).handle
    sent = pickle.loads(pickle.dumps(handle))
    assert sent == handle
    with Client(pandod.address) as other:
        assert other.match_prefix(prompt(3), after=sent).first_page == 2


def test_a_lock_after_a_handle_protects_the_whole_prefix(client):
    handle = admit_and_publish(client, prompt(2)).handle
    admit_and_publish(client, prompt(3))
    with client.lock(prompt(3), after=handle) as lock:
        assert lock.locked_tokens == 3 * PAGE_TOKENS
        assert client.stats().pages.protected == 3
        assert client.match_prefix(prompt(3), after=lock.handle).first_page == 3
    client.flush()
    with client.lock(prompt(3), after=handle) as lock:
        assert (lock.locked_tokens, lock.handle) == (0, None)


def test_a_relocked_lock_has_the_handle_of_its_new_end(client):
    match = client.match_prefix(prompt(2), lock=True, reserve_tokens=2 * PAGE_TOKENS)
    assert match.lock.handle is None
    done = client.insert(
        [],
        match.reserved_page_ids[:1],
        lock=match.lock,
        prompt_tokens=PAGE_TOKENS,
        relock=True,
    )
    assert match.lock.handle == done.handle
    assert done.handle.tokens == PAGE_TOKENS
    match.lock.release()


def test_an_insert_after_a_handle_takes_the_whole_block_table(client):
    handle = admit_and_publish(client, prompt(2)).handle
    pages = np.concatenate(
        [client.match_prefix(prompt(2)).page_ids, client.allocate_pages(2)]
    )

    done = client.insert(prompt(4), pages, after=handle)

    assert (done.existing_tokens, done.first_page) == (2 * PAGE_TOKENS, 2)
    assert client.match_prefix(prompt(4)).page_ids.tolist() == pages.tolist()
    own = client.allocate_pages(2)
    again = client.insert(
        prompt(4), np.concatenate([pages[:2], own]), after=handle, priority=1
    )
    assert again.existing_tokens == 4 * PAGE_TOKENS
    assert again.canonical_page_ids.tolist() == pages[2:].tolist()
    assert (again.first_page, again.freed_duplicates) == (2, 2)


def test_an_insert_whose_handle_is_gone_needs_all_of_its_pages(client):
    handle = admit_and_publish(client, prompt(1)).handle
    old = client.match_prefix(prompt(1)).page_ids
    client.flush()
    pages = client.allocate_pages(2)
    done = client.insert(prompt(2), pages, after=handle)
    assert (done.existing_tokens, done.first_page) == (0, 0)
    client.flush()
    pages = client.allocate_pages(2)
    lost = old if old[0] not in pages else [set(range(1, 9)).difference(pages).pop()]
    with pytest.raises(PageNotOwnedError):
        client.insert(prompt(2), [lost[0], pages[0]], after=handle)
    client.free_pages(pages)


def test_an_insert_has_one_anchor(client):
    handle = admit_and_publish(client, prompt(1)).handle
    with (
        client.lock(prompt(1)) as lock,
        pytest.raises(ValueError, match="after and lock are both set"),
    ):
        client.insert([], [], lock=lock, after=handle)


def test_a_queue_is_scored_in_one_call_and_nothing_is_touched(client):
    handle = admit_and_publish(client, prompt(2)).handle
    other = Namespace("lora", bigram=True)
    admit_and_publish(
        client, np.arange(PAGE_TOKENS + 1, dtype=np.uint32), namespace=other
    )
    admit_and_publish(client, prompt(1, start=5000))
    before = client.stats().counters

    scores = client.match_prefixes(
        [
            PrefixQuery(prompt(3)),
            PrefixQuery(prompt(3).tolist(), after=handle),
            PrefixQuery(prompt(2), max_tokens=2 * PAGE_TOKENS - 1),
            PrefixQuery(prompt(2), namespace=other),
            PrefixQuery([]),
        ]
    )

    pages = [2, 2, 1, 1, 0]
    assert scores == [PrefixScore(each * PAGE_TOKENS, False) for each in pages]
    assert client.stats().counters == before
    client.evict(1)
    assert client.match_prefix(prompt(2), touch=False).matched_tokens == PAGE_TOKENS


def test_an_empty_queue_has_no_scores(client):
    assert client.match_prefixes([]) == []


def test_queries_whose_handle_is_gone_are_scored_whole(client):
    gone = admit_and_publish(client, prompt(2)).handle
    client.flush()
    admit_and_publish(client, prompt(1))
    there = admit_and_publish(client, prompt(1, start=5000)).handle
    scores = client.match_prefixes(
        [
            PrefixQuery(prompt(3), after=gone),
            PrefixQuery(prompt(1, start=5000), after=there),
            PrefixQuery(prompt(2), after=gone, max_tokens=0),
        ]
    )
    assert [score.matched_tokens for score in scores] == [PAGE_TOKENS, PAGE_TOKENS, 0]


def test_a_page_that_another_request_computes_is_pending_in_its_score(client):
    match = client.match_prefix(prompt(2), lock=True, reserve_tokens=2 * PAGE_TOKENS)
    (score,) = client.match_prefixes([PrefixQuery(prompt(1))])
    assert score.is_pending
    client.free_pages(match.reserved_page_ids)
    match.lock.release()
    (score,) = client.match_prefixes([PrefixQuery(prompt(1))])
    assert not score.is_pending


def _random_prompt(rng: random.Random) -> np.ndarray:
    """Returns a prompt of few token values, so prompts share prefixes of any length."""
    tokens = np.zeros(rng.randint(0, 8 * PAGE_TOKENS), np.uint32)
    for _ in range(rng.randint(0, 2)):
        if tokens.size:
            tokens[rng.randrange(tokens.size) :] += rng.randint(1, 2)
    return tokens


def _compare(client: Client, tokens, namespace, handle, max_tokens) -> None:
    """Checks a match, score and lock at a handle against those of the prompt."""
    whole = client.match_prefix(
        tokens, namespace=namespace, max_tokens=max_tokens, touch=False
    )
    match = client.match_prefix(
        tokens, namespace=namespace, after=handle, max_tokens=max_tokens, touch=False
    )
    assert match.matched_tokens == whole.matched_tokens
    assert match.page_ids.tolist() == whole.page_ids[match.first_page :].tolist()
    assert match.handle == whole.handle
    (score,) = client.match_prefixes(
        [PrefixQuery(tokens, namespace, max_tokens, handle)]
    )
    assert score.matched_tokens == whole.matched_tokens
    if max_tokens is None:
        with client.lock(tokens, namespace=namespace, after=handle) as lock:
            assert lock.locked_tokens == whole.matched_tokens


@pytest.mark.parametrize("bigram", [False, True], ids=["tokens", "bigram"])
def test_a_handled_match_always_equals_the_match_of_the_whole_prompt(client, bigram):
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    namespace = Namespace(bigram=bigram)
    # The list pairs each handle with its prompt; many handles will be gone later.
    handles = []
    fallbacks = 0
    for _ in range(400):
        tokens = _random_prompt(rng)
        action = rng.random()
        if action < 0.35:
            whole = max(0, len(tokens) - bigram) // PAGE_TOKENS * PAGE_TOKENS
            done = admit_and_publish(
                client, tokens[: whole + bigram], namespace=namespace
            )
            if done.handle:
                handles.append((done.handle, tokens))
        elif action < 0.5:
            client.evict(rng.randint(1, 6))
        elif handles:
            handle, known = rng.choice(handles)
            end = handle.tokens + bigram
            prompt_after = np.concatenate([known[:end], tokens[end:]])
            cap = rng.choice([None, rng.randint(0, 9 * PAGE_TOKENS)])
            _compare(client, prompt_after, namespace, handle, cap)
            match = client.match_prefix(
                prompt_after, namespace=namespace, after=handle, touch=False
            )
            fallbacks += match.first_page == 0
            if match.handle:
                handles.append((match.handle, prompt_after))
        handles = handles[-20:]
    assert fallbacks > 0
