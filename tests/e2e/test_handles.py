"""Prefix handles: a turn of a conversation sends only the new tokens."""

import random

import pytest
from pandod_process import PAGE_TOKENS
from protocol_worker import ProtocolWorker, protocol_worker

PAGES = 8
PROMPT = list(range(PAGES * PAGE_TOKENS))
HALF = len(PROMPT) // 2
GONE = ("NOT_FOUND", "HANDLE_GONE")


def test_what_follows_a_handle_is_matched_as_in_the_whole_prompt(start_pandod):
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    # There are few different pages, so prompts share prefixes and split nodes.
    words = [[n] * PAGE_TOKENS for n in range(3)]

    def some_words() -> list[int]:
        return sum(chance.choices(words, k=chance.randrange(1, 8)), [])

    compared = gone = 0
    with protocol_worker(start_pandod(pool_pages=1024).address) as worker:
        handles = []
        for _ in range(1000):
            prompt = some_words()
            match = worker.call("MatchPrefix", tokens=prompt)
            if match.HasField("handle"):
                handles.append((prompt[: match.matched_tokens], match.handle))
            worker.cache(prompt)
            worker.call("Evict", pages=chance.randrange(6))
            if not handles:
                continue
            prefix, handle = chance.choice(handles)
            rest = some_words()
            if not handle_lives(worker, handle):
                handles.remove((prefix, handle))
                gone += 1
                continue
            whole = worker.call("MatchPrefix", tokens=prefix + rest)
            delta = worker.call("MatchPrefix", tokens=rest, after=handle)
            known_pages = handle.tokens // PAGE_TOKENS
            assert delta.matched_tokens == whole.matched_tokens
            assert delta.page_ids == whole.page_ids[known_pages:]
            assert (
                scores(worker, delta=(rest, handle), whole=prefix + rest)
                == [whole.matched_tokens] * 2
            )
            compared += 1
        assert worker.violations() == []
    assert compared > 100 and gone > 10


def handle_lives(worker: ProtocolWorker, handle) -> bool:
    [score] = worker.call("MatchPrefixes", queries=[{"after": handle}]).scores
    return not score.is_handle_gone


def scores(worker: ProtocolWorker, delta, whole) -> list[int]:
    rest, handle = delta
    queries = [{"tokens": rest, "after": handle}, {"tokens": whole}]
    answer = worker.call("MatchPrefixes", queries=queries)
    return [score.matched_tokens for score in answer.scores]


def test_a_conversation_sends_each_token_once(start_pandod):
    with protocol_worker(start_pandod().address) as worker:
        reserve, handle = 0, None
        for turn in range(3):
            new = PROMPT[turn * PAGE_TOKENS : (turn + 1) * PAGE_TOKENS]
            reserve += PAGE_TOKENS
            match = worker.call(
                "MatchPrefix",
                tokens=new,
                after=handle,
                lock=True,
                reserve_tokens=reserve,
            )
            assert match.matched_tokens == reserve - PAGE_TOKENS
            assert len(match.reserved_page_ids) == 1
            inserted = worker.call(
                "Insert",
                lock_id=match.lock_id,
                lock_action="LOCK_ACTION_UNLOCK",
                prompt_tokens=PAGE_TOKENS,
                page_ids=match.reserved_page_ids,
            )
            handle = inserted.handle
            assert handle.tokens == reserve
        assert worker.cached(PROMPT) == reserve


def test_the_cap_of_a_match_counts_from_the_start_of_the_prompt(start_pandod):
    with protocol_worker(start_pandod().address) as worker:
        worker.cache(PROMPT)
        handle = worker.call("MatchPrefix", tokens=PROMPT[:HALF]).handle
        capped = worker.call(
            "MatchPrefix",
            tokens=PROMPT[HALF:],
            after=handle,
            max_tokens=HALF + PAGE_TOKENS,
        )
        assert capped.matched_tokens == HALF + PAGE_TOKENS
        assert len(capped.page_ids) == 1


def test_an_insert_after_a_handle_needs_neither_lock_nor_prefix(start_pandod):
    with protocol_worker(start_pandod().address) as worker:
        first = worker.cache(PROMPT[:HALF])
        pages = worker.call("AllocatePages", pages=PAGES // 2).page_ids
        second = worker.call(
            "Insert", tokens=PROMPT[HALF:], page_ids=pages, after=first.handle
        )
        assert second.handle.tokens == len(PROMPT)
        assert worker.cached(PROMPT) == len(PROMPT)


def test_a_lock_after_a_handle_protects_the_whole_prefix(start_pandod):
    with protocol_worker(start_pandod().address) as worker:
        worker.cache(PROMPT)
        handle = worker.call("MatchPrefix", tokens=PROMPT[:HALF]).handle
        lock = worker.call("Lock", tokens=PROMPT[HALF:-PAGE_TOKENS], after=handle)
        assert lock.locked_tokens == lock.handle.tokens == len(PROMPT) - PAGE_TOKENS
        worker.call("Evict", pages=PAGES)
        assert worker.cached(PROMPT) == lock.locked_tokens


@pytest.mark.parametrize("method", ["MatchPrefix", "Insert", "Lock"])
def test_the_handle_of_an_evicted_prefix_is_gone(start_pandod, method):
    with protocol_worker(start_pandod().address) as worker:
        end = worker.cache(PROMPT).handle
        front = worker.call("MatchPrefix", tokens=PROMPT[:HALF]).handle
        worker.call("Evict", pages=1)
        assert worker.failure(method, after=end) == GONE
        worker.call(method, after=front)
        worker.call("Flush")
        assert worker.failure(method, after=front) == GONE
        # A prefix that came back has new handles.
        worker.cache(PROMPT)
        assert worker.failure(method, after=end) == GONE


def test_the_handles_of_an_earlier_boot_are_gone(start_pandod):
    pandod = start_pandod()
    with protocol_worker(pandod.address) as worker:
        handle = worker.cache(PROMPT).handle
    pandod.kill()
    pandod.start()
    with protocol_worker(pandod.address) as worker:
        worker.cache(PROMPT)
        for method in ("MatchPrefix", "Insert", "Lock"):
            assert worker.failure(method, after=handle) == GONE
        assert not handle_lives(worker, handle)


def test_a_handle_shows_nothing_to_other_namespaces(start_pandod):
    with protocol_worker(start_pandod().address) as worker:
        handle = worker.cache(PROMPT, namespace={"cache_salt": "secret"}).handle
        for namespace in ({}, {"cache_salt": "other"}, {"extra_key": "secret"}):
            for method in ("MatchPrefix", "Insert", "Lock"):
                fields = {"after": handle, "namespace": namespace}
                assert worker.failure(method, **fields) == GONE
            query = {"after": handle, "namespace": namespace}
            assert (
                worker.call("MatchPrefixes", queries=[query]).scores[0].is_handle_gone
            )


# Scores of a queue.


def test_a_queue_of_prompts_is_scored_in_one_call(start_pandod):
    with protocol_worker(start_pandod().address) as worker:
        gone = worker.cache([7] * PAGE_TOKENS, namespace={"extra_key": "x"}).handle
        worker.call("Evict", pages=1)
        worker.cache(PROMPT)
        queries = [
            {"tokens": PROMPT},
            {"tokens": PROMPT, "max_tokens": len(PROMPT) - 1},
            {"tokens": PROMPT[: 2 * PAGE_TOKENS] + [0] * PAGE_TOKENS},
            {"tokens": PROMPT, "namespace": {"extra_key": "y"}},
            {"tokens": PROMPT, "after": gone, "namespace": {"extra_key": "x"}},
            {},
        ]
        before = worker.stats()
        answer = worker.call("MatchPrefixes", queries=queries)
        assert [score.matched_tokens for score in answer.scores] == [
            len(PROMPT),
            len(PROMPT) - PAGE_TOKENS,
            2 * PAGE_TOKENS,
            0,
            0,
            0,
        ]
        assert [score.is_handle_gone for score in answer.scores] == [
            False,
            False,
            False,
            False,
            True,
            False,
        ]
        assert worker.stats() == before
        assert len(worker.call("MatchPrefixes").scores) == 0


def test_scoring_makes_nothing_recently_used(start_pandod):
    with protocol_worker(start_pandod().address) as worker:
        old, new = [1] * PAGE_TOKENS, [2] * PAGE_TOKENS
        worker.cache(old)
        worker.cache(new)
        worker.call("MatchPrefixes", queries=[{"tokens": old}] * 3)
        worker.call("Evict", pages=1)
        assert (worker.cached(old), worker.cached(new)) == (0, PAGE_TOKENS)


def test_a_queue_says_what_is_being_computed(start_pandod):
    with protocol_worker(start_pandod().address) as worker:
        worker.call("MatchPrefix", tokens=PROMPT, lock=True, reserve_tokens=len(PROMPT))
        queries = [{"tokens": PROMPT}, {"tokens": [9] * PAGE_TOKENS}]
        answer = worker.call("MatchPrefixes", queries=queries)
        assert [score.is_pending for score in answer.scores] == [True, False]


# Pairs of neighbouring tokens.


def test_a_bigram_namespace_has_one_unit_less_than_tokens(start_pandod):
    namespace = {"bigram": True}
    with protocol_worker(start_pandod().address) as worker:
        # n tokens make n - 1 pairs, so the last page is one pair short.
        pages = worker.call("AllocatePages", pages=PAGES - 1).page_ids
        worker.call("Insert", tokens=PROMPT, page_ids=pages, namespace=namespace)
        whole = len(PROMPT) - PAGE_TOKENS
        match = worker.call("MatchPrefix", tokens=PROMPT, namespace=namespace)
        assert match.matched_tokens == whole
        assert list(match.page_ids) == list(pages)
        # The last pair of a page needs the token after the page.
        assert worker.cached(PROMPT[:whole], namespace=namespace) == whole - PAGE_TOKENS
        assert worker.cached(PROMPT) == 0
        # A handle at unit u continues with token u.
        handle = worker.call(
            "MatchPrefix", tokens=PROMPT[: HALF + 1], namespace=namespace
        ).handle
        assert handle.tokens == HALF
        rest = worker.call(
            "MatchPrefix", tokens=PROMPT[HALF:], after=handle, namespace=namespace
        )
        assert rest.matched_tokens == whole
