"""Callers learn what a tier holds, and choose whether pandod loads it."""

import asyncio
import json
from typing import Any
from urllib.request import Request, urlopen

import numpy as np
import pytest
from eventually import eventually
from metrics_page import MetricsPage
from pando_kv import (
    EvictionReason,
    Load,
    MatchEnd,
    NotLoaded,
    Operator,
    PendingOutcome,
    PrefixQuery,
    Tier,
)
from pando_kv._proto.pando.v1 import admin_pb2, types_pb2
from pando_kv.aio import AsyncClient
from pandoctl import Pandoctl
from pandod_process import PAGE_TOKENS, POOL_PAGES
from protocol_worker import protocol_worker
from tiered import PAGES, PROMPT, Tiered, wait_for

OTHER = PROMPT + 1000


def hit_tokens(tiered: Tiered, tier: str) -> int:
    page = MetricsPage(tiered.http)
    return int(page.sum("pando_prefix_hit_tokens_total", tier=tier))


def explained_on_console(tiered: Tiered, tokens: np.ndarray) -> dict[str, Any]:
    body = json.dumps({"tokens": tokens.tolist()}).encode()
    headers = {"Content-Type": "application/json"}
    url = f"http://{tiered.http}/console/api/explain"
    with urlopen(Request(url, body, headers)) as answer:
        return json.load(answer)


def test_a_match_can_ask_what_is_on_disk(tiered):
    tiered.cache(PROMPT, seed=1)
    tiered.evict(5)
    with tiered.client() as client:
        match = client.match_prefix(PROMPT, load=Load.NO)
        assert match.matched_tokens == PROMPT.size - 5 * PAGE_TOKENS
        assert match.loadable_tokens == 5 * PAGE_TOKENS
        assert match.loadable_tier == Tier.DISK
        capped = client.match_prefix(PROMPT, load=Load.NO, max_tokens=PROMPT.size - 1)
        assert capped.loadable_tokens == 4 * PAGE_TOKENS
        nowhere = client.match_prefix(OTHER, load=Load.NO)
        assert (nowhere.loadable_tokens, nowhere.loadable_tier) == (0, Tier.NONE)
        # A caller that does not ask is not told.
        assert client.match_prefix(PROMPT).loadable_tokens == 0
    assert tiered.copied("load") == 0


def test_scores_can_say_what_is_on_disk(tiered):
    tiered.cache(PROMPT, seed=1)
    tiered.evict(5)
    cached = PROMPT.size - 5 * PAGE_TOKENS
    with tiered.client() as client:
        handle = client.match_prefix(PROMPT).handle
        queries = [
            PrefixQuery(PROMPT),
            PrefixQuery(OTHER),
            PrefixQuery(PROMPT[:cached]),
            PrefixQuery(PROMPT, max_tokens=PROMPT.size - 1),
            PrefixQuery(PROMPT, after=handle),
        ]
        scores = client.match_prefixes(queries, tell_loadable=True)
        assert [score.matched_tokens for score in scores] == [cached, 0, *[cached] * 3]
        loadable = [pages * PAGE_TOKENS for pages in (5, 0, 0, 4, 5)]
        assert [score.loadable_tokens for score in scores] == loadable
        tiers = [Tier.DISK if tokens else Tier.NONE for tokens in loadable]
        assert [score.loadable_tier for score in scores] == tiers
        # A caller that does not ask is not told.
        assert {s.loadable_tokens for s in client.match_prefixes(queries)} == {0}
        assert client.match_prefixes([], tell_loadable=True) == []

    async def ask() -> int:
        async with AsyncClient(tiered.pandod.address) as client:
            [score] = await client.match_prefixes(queries[:1], tell_loadable=True)
            return score.loadable_tokens

    assert asyncio.run(ask()) == 5 * PAGE_TOKENS
    assert tiered.copied("load") == 0


def test_scores_are_told_of_as_many_tokens_as_may_be_looked_up(tiered):
    tiered.store(PROMPT, seed=1)
    long = PrefixQuery(np.zeros(262_144, np.uint32))
    prompt = PrefixQuery(PROMPT)
    with tiered.client() as client:
        for queries, loadable in (
            ([prompt, long], [PROMPT.size, 0]),
            ([long, prompt], [0, 0]),
            ([prompt, prompt], [PROMPT.size] * 2),
        ):
            scores = client.match_prefixes(queries, tell_loadable=True)
            assert [score.loadable_tokens for score in scores] == loadable


def test_a_score_from_a_handle_on_is_not_told_what_is_on_disk(tiered):
    tiered.cache(PROMPT, seed=1)
    tiered.evict(5)
    with protocol_worker(tiered.pandod.address) as worker:
        handle = worker.call("MatchPrefix", tokens=PROMPT).handle
        rest = PROMPT[handle.tokens :]
        queries = [{"after": handle, "tokens": rest}, {"tokens": PROMPT}]
        told = worker.call("MatchPrefixes", queries=queries, tell_loadable=True)
        assert [score.loadable_tokens for score in told.scores] == [0, 5 * PAGE_TOKENS]
        assert told.scores[0].matched_tokens == handle.tokens
        handle.epoch ^= 1
        told = worker.call("MatchPrefixes", queries=queries, tell_loadable=True)
        assert [score.is_handle_gone for score in told.scores] == [True, False]
        assert told.scores[1].loadable_tokens == 5 * PAGE_TOKENS
        bad = [{"tokens": PROMPT}] * 4097
        refused = worker.failure("MatchPrefixes", queries=bad, tell_loadable=True)
        assert refused == ("INVALID_ARGUMENT", "INVALID_FIELD")


def test_a_call_that_waits_may_refuse_a_load(tiered):
    tiered.store(PROMPT, seed=1)
    with protocol_worker(tiered.pandod.address) as worker:
        match = wait_for(worker, PROMPT, load="LOAD_NO").get()
        assert (match.matched_tokens, match.loadable_tokens) == (0, PROMPT.size)
        assert match.loadable_tier == types_pb2.TIER_DISK
    assert tiered.copied("load") == 0


def test_a_wait_for_a_load_says_so(stallable):
    tiered, disk = stallable
    tiered.store(PROMPT, seed=1)
    disk.stall()
    with protocol_worker(tiered.pandod.address) as worker:
        waiting = wait_for(worker, PROMPT)
        eventually(lambda: worker.stats().waiting_matches == 1)
        disk.go_on()
        match = waiting.get()
        assert (match.matched_tokens, match.loadable_tokens) == (PROMPT.size, 0)
        assert match.pending == PendingOutcome.LOADED.value


def test_a_load_can_be_started_without_waiting_for_it(tiered):
    tiered.store(PROMPT, seed=1)

    async def ask(load: Load) -> tuple[int, int]:
        async with AsyncClient(tiered.pandod.address) as client:
            match = await client.match_prefix(PROMPT, load=load)
            return match.matched_tokens, match.matched_tokens + match.loadable_tokens

    assert asyncio.run(ask(Load.START))[1] == PROMPT.size
    eventually(lambda: asyncio.run(ask(Load.SERVER_POLICY))[0] == PROMPT.size)
    assert tiered.copied("load") == PAGES
    tiered.await_idle()


def test_what_was_loaded_counts_once_as_hit_on_disk(tiered):
    tiered.store(PROMPT, seed=1)
    before = hit_tokens(tiered, "device")
    tiered.read(PROMPT[: 5 * PAGE_TOKENS])
    assert hit_tokens(tiered, "loaded") == 5 * PAGE_TOKENS
    tiered.read(PROMPT)
    assert hit_tokens(tiered, "loaded") == PROMPT.size
    tiered.read(PROMPT)
    assert hit_tokens(tiered, "loaded") == PROMPT.size
    assert hit_tokens(tiered, "device") - before == PROMPT.size + 5 * PAGE_TOKENS


def test_an_explanation_says_why_what_is_on_disk_is_not_loaded(start_pandod, tmp_path):
    least = 3 * PAGE_TOKENS
    tiered = Tiered(start_pandod, tmp_path / "tier", tier_min_load_tokens=least)
    tiered.store(PROMPT, seed=1)
    with Operator(tiered.pandod.address) as operator:
        why = operator.explain(PROMPT)
        assert (why.end, why.evicted_for) == (MatchEnd.EVICTED, EvictionReason.REQUEST)
        assert (why.loadable_tokens, why.loadable_tier) == (PROMPT.size, Tier.DISK)
        assert why.not_loaded == NotLoaded.NOT_ASKED
        few = operator.explain(PROMPT[: least - PAGE_TOKENS])
        assert few.not_loaded == NotLoaded.TOO_FEW
        nowhere = operator.explain(OTHER)
        assert (nowhere.loadable_tokens, nowhere.not_loaded) == (0, NotLoaded.NONE)
    said = Pandoctl(tiered.pandod.address)("explain", *PROMPT).out
    assert (
        f"{PROMPT.size} tokens more on disk, not loaded: no call has asked for it"
        in said
    )
    shown = explained_on_console(tiered, PROMPT)
    assert shown["loadable_tokens"] == PROMPT.size
    assert shown["not_loaded"] == "NOT_LOADED_NOT_ASKED"
    tiered.read()
    assert explained_on_console(tiered, PROMPT)["loadable_tokens"] == 0


def test_an_explanation_says_that_loads_have_no_room(stallable):
    tiered, disk = stallable
    third = OTHER + 1000
    for seed, prompt in enumerate((PROMPT, OTHER, third)):
        tiered.store(prompt, seed)
    disk.stall()
    room = POOL_PAGES // 4 - PAGES
    with protocol_worker(tiered.pandod.address) as worker:
        waiting = [wait_for(worker, PROMPT)]
        eventually(lambda: worker.stats().pages.reserved == PAGES)
        waiting.append(wait_for(worker, OTHER))
        eventually(lambda: worker.stats().pages.reserved == PAGES + room)
        for tokens in (PROMPT, OTHER):
            loading = worker.call("ExplainMatch", tokens=tokens)
            assert (loading.is_pending, loading.not_loaded) == (True, 0)
            assert loading.loadable_tokens == PROMPT.size
        refused = worker.call("ExplainMatch", tokens=third)
        assert refused.not_loaded == admin_pb2.NOT_LOADED_NO_ROOM
        disk.go_on()
        for call in waiting:
            call.get()


@pytest.mark.parametrize("load", ["LOAD_UNSPECIFIED", "LOAD_START"])
def test_a_load_that_nobody_waits_for_any_more_goes_on_if_it_was_started(
    stallable, load
):
    tiered, disk = stallable
    for seed, prompt in enumerate((PROMPT, OTHER)):
        tiered.store(prompt, seed)
    # The other load, which is under way, leaves room for so few pages.
    few = 4
    disk.stall()
    with protocol_worker(tiered.pandod.address) as worker:
        waiting = wait_for(worker, PROMPT)
        eventually(lambda: worker.stats().pages.reserved == PAGES)
        short = OTHER[: few * PAGE_TOKENS]
        impatient = worker.call(
            "MatchPrefix", tokens=short, lock=True, pending_wait_ms=2000, load=load
        )
        assert (impatient.matched_tokens, impatient.loadable_tokens) == (0, short.size)
        disk.go_on()
        assert waiting.get().matched_tokens == PROMPT.size
        eventually(lambda: worker.stats().pages.reserved == 0)
        expected = few if load == "LOAD_START" else 0
        assert worker.cached(list(short)) == expected * PAGE_TOKENS
    assert tiered.copied("load") == PAGES + expected


def test_only_a_session_may_start_a_load(tiered):
    with protocol_worker(tiered.pandod.address) as worker:
        worker.session_id = 17
        refused = worker.failure("MatchPrefix", tokens=PROMPT, load="LOAD_START")
        assert refused[1] == "SESSION_LOST"


def test_an_unknown_load_is_refused(start_pandod):
    with protocol_worker(start_pandod().address) as worker:
        assert worker.failure("MatchPrefix", load=7) == (
            "INVALID_ARGUMENT",
            "INVALID_FIELD",
        )


def test_without_a_tier_nothing_is_loadable(start_pandod):
    with protocol_worker(start_pandod().address) as worker:
        for load in ("LOAD_NO", "LOAD_START"):
            match = worker.call("MatchPrefix", tokens=PROMPT, load=load)
            assert (match.matched_tokens, match.loadable_tokens) == (0, 0)
        queries = [{"tokens": PROMPT}]
        told = worker.call("MatchPrefixes", queries=queries, tell_loadable=True)
        assert [score.loadable_tokens for score in told.scores] == [0]
