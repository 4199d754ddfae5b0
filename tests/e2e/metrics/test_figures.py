"""Figures of /metrics after calls with known effects."""

import contextlib
import re

import pytest
from eventually import eventually
from metrics_page import MetricsPage
from pando_kv import Client, PoolExhaustedError
from pandod_process import PAGE_TOKENS, POOL_PAGES
from protocol_worker import protocol_worker
from raw_calls import RawCalls

TOKENS = list(range(2 * PAGE_TOKENS))
SHOWN_CLASSES = 8
SHOWN_WORKERS = 32


def test_they_show_the_traffic(started):
    pandod, page = started()
    with Client(pandod.address) as client:
        client.insert(TOKENS, client.allocate_pages(2))
        held = client.match_prefix([*TOKENS, *range(900, 916)], lock=True)
        client.insert([*range(500, 516)], client.allocate_pages(1))
        assert client.evict(1) == 1
        client.allocate_pages(4)
        seen = page()
        held.lock.release()
    assert seen.sum("pando_prefix_query_tokens_total") == 3 * PAGE_TOKENS
    assert seen.sum("pando_prefix_hit_tokens_total") == 2 * PAGE_TOKENS
    assert seen.by("result", "pando_prefix_match_requests_total") == {
        "full": 0,
        "partial": 1,
        "miss": 0,
    }
    assert seen.sum("pando_insert_tokens_total", result="new") == 3 * PAGE_TOKENS
    assert seen.sum("pando_evicted_pages_total", reason="request", policy="lru") == 1
    assert seen.sum("pando_eviction_page_age_seconds_count", reason="request") == 1
    assert seen.sum("pando_page_reuse_gap_seconds_count") == 2
    assert seen.sum("pando_locks") == seen.sum("pando_sessions") == 1
    assert seen.by("state", "pando_pool_pages") == {
        "free": POOL_PAGES - 7,
        "reserved": 4,
        "evictable": 0,
        "protected": 2,
        "quarantined": 0,
        "padding": 1,
    }
    assert seen.rpcs("Insert", "OK") == 2
    assert seen.rpcs("AllocatePages", "OK") == 3


def test_they_show_waits(started):
    pandod, page = started()
    with protocol_worker(pandod.address) as owner:
        with protocol_worker(pandod.address) as waiter:
            held = owner.admit(TOKENS).get()
            answer = waiter.admit(TOKENS, pending_wait_ms=600_000)
            eventually(lambda: page().sum("pando_pending_matches") == 1)
            owner.finish(held, TOKENS)
            answer.get()
        seen = page()
    assert seen.sum("pando_pending_waits_total") == 1
    assert seen.sum("pando_pending_waits_ended_total", outcome="published") == 1
    assert seen.sum("pando_pending_wait_seconds_count") == 1
    # The call counts once, and the wait does not count as handling time.
    assert seen.rpcs("MatchPrefix", "OK") == 2
    assert (
        seen.sum("grpc_server_handling_seconds_count", grpc_method="MatchPrefix") == 2
    )


def test_they_show_policy_and_classes(started, tmp_path):
    config = tmp_path / "pando.yaml"
    config.write_text("quotas: [{class: gold, extra_key: gold, cap_pages: 4}]")
    pandod, page = started(config=config, eviction_policy="slru")
    gold = {"extra_key": "gold"}
    with protocol_worker(pandod.address) as worker:
        worker.cache(TOKENS, namespace=gold)
        worker.cached(TOKENS, namespace=gold)
        worker.call("AllocatePages", pages=3)
        assert worker.failure("AllocatePages", pages=5, namespace=gold)
        seen = page()
    assert seen.sum("pando_eviction_policy_info", policy="slru") == 1
    assert seen.sum("pando_eviction_policy_info") == 1
    assert seen.by("ns_class", "pando_quota_cached_pages") == {"gold": 2, "other": 0}
    assert seen.by("ns_class", "pando_quota_reserved_pages") == {"gold": 0, "other": 3}
    assert seen.by("ns_class", "pando_quota_rejections_total") == {
        "gold": 1,
        "other": 0,
    }
    assert seen.sum("pando_prefix_match_requests_total", ns_class="gold") == 1
    assert seen.sum("pando_alloc_failures_total", reason="quota") == 1


def test_they_show_what_is_learnt_of_reuse_while_it_is(started):
    pandod, page = started(learn_reuse="yes", pool_pages=8)
    with protocol_worker(pandod.address) as worker:
        for prompt in [TOKENS, TOKENS, list(range(500, 500 + 7 * PAGE_TOKENS)), TOKENS]:
            worker.finish(worker.admit(prompt).get(), prompt)
        seen = page()
    assert reuse_figures(seen) == {
        "requested_pages_total": 2 + 2 + 7 + 2,
        "lru_hit_pages_total": 2,
        "gained_pages": 0,
        "debt_pages": 0,
        "ghost_hit_pages_total": 2,
    }
    chances = seen.by("uses", "pando_reuse_chance")
    assert {"1", "4-5", "65+"} < chances.keys()
    assert all(0 < chance < 1 for chance in chances.values())


def test_nothing_is_shown_of_reuse_where_it_is_not_learnt(started):
    pandod, page = started()
    with Client(pandod.address) as client:
        assert reuse_figures(page()) == {}
        client.set_eviction_policy("reuse")
        assert len(reuse_figures(page())) == 5
        client.set_eviction_policy("lru")
        assert reuse_figures(page()) == {}


def reuse_figures(seen: MetricsPage) -> dict[str, float]:
    prefix = "pando_reuse_"
    return {
        s.name.removeprefix(prefix): s.value
        for s in seen.series
        if s.name.startswith(prefix) and not s.labels
    }


def test_they_show_what_each_worker_holds_by_its_name(started):
    pandod, page = started()
    with (
        Client(pandod.address, name="rank 0") as one,
        Client(pandod.address, name="rank 0") as other,
        Client(pandod.address, name="") as unnamed,
    ):
        one.insert(TOKENS, one.allocate_pages(2))
        held = [one.match_prefix(TOKENS, lock=True), other.lock(TOKENS)]
        other.allocate_pages(3)
        unnamed.allocate_pages(1)
        seen = page()
        del held
    assert seen.by("worker", "pando_worker_sessions") == {
        "rank 0": 2,
        "unnamed": 1,
        "other": 0,
    }
    assert seen.by("worker", "pando_worker_locks")["rank 0"] == 2
    assert seen.by("worker", "pando_worker_reserved_pages") == {
        "rank 0": 3,
        "unnamed": 1,
        "other": 0,
    }


def test_the_session_in_which_pandod_copies_pages_is_no_worker(started):
    pandod, page = started(tier_host_bytes="64MiB")
    with Client(pandod.address, name="rank 0") as client:
        client.allocate_pages(1)
        sessions = page().by("worker", "pando_worker_sessions")
    assert sessions == {"rank 0": 1, "other": 0}


def test_many_workers_are_shown_as_one(started):
    pandod, page = started()
    with contextlib.ExitStack() as stack:
        for i in range(SHOWN_WORKERS + 3):
            client = stack.enter_context(Client(pandod.address, name=f"worker {i}"))
            client.allocate_pages(1)
        sessions = page().by("worker", "pando_worker_sessions")
        reserved = page().by("worker", "pando_worker_reserved_pages")
    assert len(sessions) == SHOWN_WORKERS + 1
    assert sessions["other"] == reserved["other"] == 3


def test_they_say_that_it_drains(started):
    pandod, page = started(drain_timeout="1h")
    with Client(pandod.address) as client:
        client.allocate_pages(1)
        assert page().sum("pando_draining") == 0
        pandod.terminate()
        eventually(lambda: page().sum("pando_draining") == 1)
        pandod.kill()


@pytest.mark.parametrize(
    ("options", "shape"),
    [
        ({"layers": 3, "heads": 2, "head_size": 8}, ["layer_first", "3", "2", "8"]),
        (
            dict.fromkeys(("heads", "head_size", "dtype"))
            | {"layers": 3, "page_bytes": "48KiB", "layout_order": "page_first"},
            ["page_first", "3", "", ""],
        ),
        (
            dict.fromkeys(("layers", "heads", "head_size", "dtype", "pool_pages"))
            | {"pool_bytes": "8MiB"},
            ["open", "", "", ""],
        ),
        (
            dict.fromkeys(("layers", "heads", "head_size", "dtype", "pool_pages"))
            | {"page_tokens": None, "memory": "16MiB"},
            ["none", "", "", ""],
        ),
    ],
    ids=["heads", "opaque", "open", "none"],
)
def test_they_tell_the_layout_of_the_pool(started, options, shape):
    _, page = started(**options)
    [info] = [s for s in page().series if s.name == "pando_pool_info"]
    labels = ("layout", "layers", "heads", "head_size")
    assert [info.labels.get(label, "") for label in labels] == shape


def test_a_name_cannot_write_to_the_terminal_of_who_reads_them(started):
    model = "red \x1b[31m \u009b \u202e é"
    pandod, page = started(model=model)
    with Client(pandod.address, name="\x1b]0;\u2066"):
        seen = page()
    [info] = [s for s in seen.series if s.name == "pando_pool_info"]
    assert info.labels["model"] == r"red \u001b[31m \u009b \u202e é"
    assert r"\u001b]0;\u2066" in seen.by("worker", "pando_worker_sessions")
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", seen.text)


def test_they_count_failed_calls_by_code(started):
    pandod, page = started()
    with RawCalls(pandod.address) as raw:
        raw.failure("pando.v1.PrefixCache/Unlock", b"")
    assert page().rpcs("Unlock", "InvalidArgument") == 1


def test_they_say_why_allocations_fail(started):
    pandod, page = started()
    with Client(pandod.address) as client:
        client.allocate_pages(POOL_PAGES // 2)
        for pages in (POOL_PAGES - 1, POOL_PAGES):
            with pytest.raises(PoolExhaustedError):
                client.allocate_pages(pages)
        assert page().by("reason", "pando_alloc_failures_total") == {
            "exhausted": 1,
            "too_large": 1,
            "quota": 0,
        }


def test_they_show_the_age_of_the_oldest_lock(started):
    pandod, page = started()
    with protocol_worker(pandod.address) as first:
        held = first.admit(TOKENS).get()
        eventually(lambda: page().sum("pando_oldest_lock_age_seconds") > 0.2)
        first.unlock(held)
        assert page().sum("pando_oldest_lock_age_seconds") == 0
        # pandod counts this time in tenths of a second.
        assert page().sum("pando_lock_hold_seconds_sum") >= 0.2


def test_they_show_what_an_unlimited_pool_would_have_found(started):
    pandod, page = started()
    prompts = [list(range(i, i + 4 * PAGE_TOKENS)) for i in range(0, 9000, 1000)]
    pages = len(prompts) * 4
    with protocol_worker(pandod.address) as worker:
        for prompt in prompts:
            worker.cache(prompt)
        assert worker.call("Evict", pages=pages).evicted_pages == pages
        for prompt in prompts:
            worker.cache(prompt)
        worker.call("Flush")
        # After a flush even an unlimited pool would not have kept the prompts.
        for prompt in prompts:
            worker.cache(prompt)
        refetched = "pando_evicted_page_refetch_seconds_count"
        eventually(lambda: page().sum(refetched) == pages)
        seen = page()
    assert seen.sum("pando_refetched_tokens_total") == pages * PAGE_TOKENS
    assert seen.sum("pando_infinite_cache_hit_tokens_total") == pages * PAGE_TOKENS
