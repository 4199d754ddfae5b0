"""Callers learn what the tier in host memory holds."""

import json
from typing import Any
from urllib.request import Request, urlopen

import pytest
from eventually import eventually
from host_tiered import PAGE_BYTES, HostTiered
from pando_kv import Load, NotLoaded, Operator, PrefixQuery, Tier
from pandoctl import Pandoctl
from pandod_process import PAGE_TOKENS
from tiered import PAGES, PROMPT


def explained_on_console(tiered: HostTiered) -> dict[str, Any]:
    body = json.dumps({"tokens": PROMPT.tolist()}).encode()
    headers = {"Content-Type": "application/json"}
    url = f"http://{tiered.http}/console/api/explain"
    with urlopen(Request(url, body, headers)) as answer:
        return json.load(answer)


def test_matches_and_scores_say_what_is_in_host_memory(tiered):
    tiered.cache(PROMPT, seed=1)
    tiered.evict(5)
    with tiered.client() as client:
        match = client.match_prefix(PROMPT, load=Load.NO)
        [score] = client.match_prefixes([PrefixQuery(PROMPT)], tell_loadable=True)
        for told in (match, score):
            assert told.loadable_tokens == 5 * PAGE_TOKENS
            assert told.loadable_tier == Tier.HOST
    assert tiered.copied("load") == 0


def test_an_explanation_says_that_it_is_in_host_memory(tiered):
    tiered.store(PROMPT, seed=1)
    with Operator(tiered.pandod.address) as operator:
        why = operator.explain(PROMPT)
        assert (why.loadable_tokens, why.loadable_tier) == (PROMPT.size, Tier.HOST)
        assert why.not_loaded == NotLoaded.NOT_ASKED
    said = Pandoctl(tiered.pandod.address)("explain", *PROMPT).out
    assert f"{PROMPT.size} tokens more in host memory, not loaded: no call" in said
    assert explained_on_console(tiered)["loadable_tier"] == "TIER_HOST"


@pytest.mark.parametrize(("pages", "tier"), [(5, Tier.HOST), (6, Tier.DISK)])
def test_the_slowest_tier_that_is_needed_is_told(start_pandod, tmp_path, pages, tier):
    tiered = HostTiered(start_pandod, tmp_path / "tier", tier_host_bytes=5 * PAGE_BYTES)
    with tiered.client() as client, client.attach_pool():
        client.insert(PROMPT, client.allocate_pages(PAGES))
        eventually(lambda: tiered.held_in("disk") == PAGES)
        eventually(lambda: tiered.held_in("host") == 5)
        tiered.await_idle()
        tiered.evict()
        asked = PROMPT[: pages * PAGE_TOKENS]
        match = client.match_prefix(asked, load=Load.NO)
        assert (match.loadable_tokens, match.loadable_tier) == (asked.size, tier)
