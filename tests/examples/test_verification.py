"""The faults that the demo must find and locate."""

from dataclasses import replace

import numpy as np
import pytest
from generation import Answer
from model import Tokens
from pando_kv import CacheCounters, PageStates, Stats
from verification import ExpectedMatches, bit_faults, cache_faults, matching_faults
from workload import Request

PAGE = 16
REQUEST = Request("a question", np.arange(40, dtype=np.uint32), max_new_tokens=4)
NO_PAGES = np.empty(0, dtype=np.uint32)
AT_REST = Stats(
    pages=PageStates(
        free=7,
        reserved=0,
        evictable=4,
        protected=0,
        quarantined=0,
        padding=1,
        capacity=12,
    ),
    counters=CacheCounters(*[0] * 24),
    sessions=3,
    locks=0,
    nodes=1,
    namespaces=1,
    epoch=1,
    eviction_policy="lru",
    waiting_matches=0,
    quota_classes=[],
    version="0.0.0",
    console_url="",
    held_pages=0,
    page_recoveries=0,
    reuse=None,
    blocks=None,
    tiers=[],
    movers=[],
)


def answer(matched: int) -> Answer:
    rows = np.arange(43 * 4, dtype=np.float32).reshape(43, 4)
    return Answer(
        reply=np.array([3, 3, 3, 3], dtype=np.uint32),
        logits=rows[matched:].copy(),
        prefill_rows=40 - matched,
        first_token_seconds=0.1,
        matched_tokens=matched,
        matched_pages=NO_PAGES,
        published_pages=NO_PAGES,
    )


def test_equal_bits_are_no_fault():
    assert bit_faults(REQUEST, answer(matched=32), answer(matched=0)) == []


def test_one_different_bit_is_named_by_request_and_position():
    cached = answer(matched=32)
    cached.logits.view(np.uint32)[5, 2] ^= 1
    assert bit_faults(REQUEST, cached, answer(matched=0)) == [
        "a question: 1 of 11 logit rows differ from the run without a cache, "
        "the first at position 37"
    ]


def test_equal_values_of_different_bits_are_a_fault():
    cached, reference = answer(matched=32), answer(matched=0)
    cached.logits[0, 0], reference.logits[32, 0] = -0.0, 0.0
    assert len(bit_faults(REQUEST, cached, reference)) == 1


def test_a_different_token_is_named_by_its_place_in_the_reply():
    cached = answer(matched=32)
    cached.reply[2] = 9
    assert bit_faults(REQUEST, cached, answer(matched=0)) == [
        "a question: reply token 2 differs from the run without a cache"
    ]


def test_missing_logit_rows_are_a_fault():
    cached = answer(matched=32)
    cached = replace(cached, logits=cached.logits[1:])
    assert bit_faults(REQUEST, cached, answer(matched=0)) == [
        "a question: 10 logit rows, not 11"
    ]


def test_a_match_that_is_not_what_was_published_is_a_fault():
    assert matching_faults(REQUEST, answer(matched=16), expected=32) == [
        "a question: matched 16 tokens, not 32"
    ]


def test_prefill_of_cached_rows_is_a_fault():
    worked_too_much = replace(answer(matched=32), prefill_rows=40)
    assert matching_faults(REQUEST, worked_too_much, expected=32) == [
        "a question: prefill computed 40 rows, not 8"
    ]


@pytest.mark.parametrize(
    ("prompt_tokens", "expected"),
    [(10, 0), (16, 0), (17, 16), (32, 16), (33, 32), (43, 32)],
)
def test_a_match_is_whole_pages_and_leaves_a_token(prompt_tokens, expected):
    matches = ExpectedMatches(PAGE)
    matches.add(REQUEST, answer(matched=0))
    assert matches.expect(_published()[:prompt_tokens]) == expected


def test_a_match_ends_where_the_tokens_differ():
    matches = ExpectedMatches(PAGE)
    matches.add(REQUEST, answer(matched=0))
    prompt = _published()
    prompt[20] ^= 1
    assert matches.expect(prompt) == 16


def test_a_cache_at_rest_has_no_fault():
    assert cache_faults(AT_REST, []) == []


def test_a_leaked_page_a_lock_and_a_violation_are_faults():
    pages = replace(AT_REST.pages, free=5, reserved=1)
    assert cache_faults(replace(AT_REST, pages=pages, locks=2), ["page 3 twice"]) == [
        "invariant violated: page 3 twice",
        "pages by state sum to 11, not to the capacity of 12",
        "2 locks are left",
        "1 pages are left reserved",
    ]


def _published() -> Tokens:
    return np.append(REQUEST.prompt, answer(matched=0).reply[:-1]).astype(np.uint32)
