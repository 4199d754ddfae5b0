"""/metrics: what it shows, that its accounts add up, that the documentation says so."""

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import raw_calls
from eventually import eventually
from metrics_page import MetricsPage, free_address
from pando_kv import Client, PoolExhaustedError
from pandod_process import PAGE_TOKENS, POOL_PAGES, REPOSITORY, binary
from prometheus_tools import prometheus_tool
from protocol_worker import protocol_worker
from raw_calls import RawCalls
from remote_worker import remote_worker

TOKENS = list(range(2 * PAGE_TOKENS))
MAX_SERIES = 2_400
SHOWN_CLASSES = 8
SHOWN_WORKERS = 32
LOAD_CLIENT = Path(raw_calls.__file__).with_name("load_client.py")
CLIENTS = 4
REQUESTS = 200


@pytest.fixture
def started(start_pandod):
    """Starts a pandod with metrics: it, and a function that reads them."""

    def start(**options: object):
        http = free_address()
        pandod = start_pandod(http=http, **options)
        return pandod, lambda: MetricsPage(http)

    return start


def catalogue() -> list[dict]:
    return json.loads(subprocess.check_output([binary(), "--print-metrics"]))


# The catalogue.


def test_the_documentation_is_what_the_catalogue_says():
    generator = REPOSITORY / "tools" / "metrics_docs.py"
    subprocess.run([sys.executable, generator, "--check", binary()], check=True)


def test_what_is_served_is_what_the_catalogue_says(started, tmp_path):
    # The learner has metrics, and so has a tier.
    tier = {"model": "m", "tier_disk": tmp_path / "tier", "tier_disk_bytes": "1MiB"}
    _, page = started(learn_reuse="yes", **tier)
    seen = page()
    families = {s.name for s in seen.series}
    for metric in catalogue():
        name = metric["name"]
        is_histogram = metric["type"] == "histogram"
        first = f"{name}_bucket" if is_histogram else name
        assert f"# TYPE {name} {metric['type']}\n" in seen.text
        assert f"# HELP {name} {metric['help']}\n" in seen.text
        for label in metric["labels"]:
            values = set(seen.by(label["name"], first))
            assert "any" in label or values == set(label["values"]), name
        if is_histogram:
            bounds = {float(le) for le in seen.by("le", first)}
            assert bounds == {*metric["buckets"], float("inf")}
            families -= {first, f"{name}_sum", f"{name}_count"}
        families -= {name}
    assert not families, "served, but not in the catalogue"


def test_every_series_is_there_from_the_start(started):
    pandod, page = started()
    before = [(s.name, s.labels) for s in page().series]
    with load(pandod.address):
        pass
    assert [(s.name, s.labels) for s in page().series] == before


def test_there_are_not_too_many_series(started, tmp_path):
    classes = [f"{{class: c{i}, extra_key: 'c{i}'}}" for i in range(50)]
    config = tmp_path / "pando.yaml"
    config.write_text(f"quotas: [{', '.join(classes)}]")
    pandod, page = started(config=config)
    with protocol_worker(pandod.address) as worker:
        for i in range(50):
            worker.cached(TOKENS, namespace={"extra_key": f"c{i}"})
        seen = page()
    assert len(seen.series) <= MAX_SERIES
    matches = seen.by("ns_class", "pando_prefix_match_requests_total")
    assert matches == {f"c{i}": 1 for i in range(SHOWN_CLASSES)} | {
        "other": 50 - SHOWN_CLASSES
    }


def test_promtool_finds_nothing_wrong(started):
    promtool = prometheus_tool("promtool")
    _, page = started()
    checked = subprocess.run(
        [promtool, "check", "metrics"],
        input=page().text,
        capture_output=True,
        text=True,
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


# The figures.


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
    assert rpcs(seen, "Insert", "OK") == 2
    assert rpcs(seen, "AllocatePages", "OK") == 3


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
    # The wait is no time in the handler, and one call.
    assert rpcs(seen, "MatchPrefix", "OK") == 2
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
    assert rpcs(page(), "Unlock", "InvalidArgument") == 1


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
        # Counted in tenths of a second.
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
        for prompt in prompts:  # which no pool would have kept
            worker.cache(prompt)
        refetched = "pando_evicted_page_refetch_seconds_count"
        eventually(lambda: page().sum(refetched) == pages)
        seen = page()
    assert seen.sum("pando_refetched_tokens_total") == pages * PAGE_TOKENS
    assert seen.sum("pando_infinite_cache_hit_tokens_total") == pages * PAGE_TOKENS


# Accounts that add up, at any time and at the end.


@contextlib.contextmanager
def load(address: str) -> Iterator[list[subprocess.Popen]]:
    """Client processes that hit, miss, evict, publish twice and are refused."""
    clients = [
        subprocess.Popen(
            [sys.executable, LOAD_CLIENT, address, str(seed), str(REQUESTS), "0"],
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
        )
        for seed in range(CLIENTS)
    ]
    try:
        yield clients
        assert [client.wait() for client in clients] == [0] * CLIENTS
    finally:
        for client in clients:
            client.kill()
            client.wait()


def check_accounts(seen: MetricsPage) -> None:
    """Checks what holds in every picture of the cache."""
    capacity = seen.sum("pando_pool_capacity_pages")
    page_bytes = seen.sum("pando_pool_page_bytes")
    assert seen.sum("pando_pool_pages") == capacity
    assert seen.sum("pando_pool_bytes") == capacity * page_bytes
    assert seen.sum("pando_pool_capacity_bytes") == capacity * page_bytes
    cached = seen.by("state", "pando_pool_pages")
    assert seen.sum("pando_quota_reserved_pages") == cached["reserved"]
    assert (
        seen.sum("pando_quota_cached_pages")
        == cached["evictable"] + cached["protected"]
    )
    # Hits.
    hits = seen.sum("pando_prefix_hit_tokens_total")
    assert hits <= seen.sum("pando_prefix_query_tokens_total")
    assert hits + seen.sum("pando_refetched_tokens_total") == seen.sum(
        "pando_infinite_cache_hit_tokens_total"
    )
    # Granted less ended is what lives.
    for things, granted in (
        ("locks", "taken"),
        ("sessions", "opened"),
    ):
        live = seen.sum(f"pando_{things}_{granted}_total") - seen.sum(
            f"pando_{things}_ended_total"
        )
        assert live == seen.sum(f"pando_{things}")
    assert seen.sum("pando_lock_hold_seconds_count") == seen.sum(
        "pando_locks_ended_total"
    )
    waits = seen.sum("pando_pending_waits_total")
    ended = seen.sum("pando_pending_waits_ended_total")
    assert waits - ended == seen.sum("pando_pending_matches")
    # Failures by reason, evictions by reason.
    failed = seen.sum("pando_alloc_requests_total", result="failed")
    assert seen.sum("pando_alloc_failures_total") == failed
    evicted = seen.by("reason", "pando_evicted_pages_total")
    for histogram in ("age", "idle"):
        name = f"pando_eviction_page_{histogram}_seconds_count"
        assert seen.by("reason", name) == evicted
    inserted = seen.sum("pando_insert_tokens_total", result="new")
    pages = cached["evictable"] + cached["protected"]
    assert inserted / PAGE_TOKENS - sum(evicted.values()) == pages
    # Every operation that is timed has waited, or not, for the lock.
    assert seen.sum("pando_core_op_duration_seconds_count") == seen.sum(
        "pando_core_lock_wait_seconds_count"
    )


def test_accounts_add_up_under_load_and_agree_with_the_calls(started):
    pandod, page = started(pool_pages=48)
    check_accounts(page())
    with load(pandod.address) as clients:
        while any(client.poll() is None for client in clients):
            check_accounts(page())
    with protocol_worker(pandod.address) as owner:
        with protocol_worker(pandod.address) as waiter:
            held = owner.admit(TOKENS).get()
            answers = [
                waiter.admit(TOKENS, pending_wait_ms=600_000),
                waiter.admit(TOKENS, pending_wait_ms=1),
            ]
            check_accounts(page())
            all_pages = list(range(9000, 9000 + 47 * PAGE_TOKENS))
            assert owner.admit(all_pages).failure()[1] == "POOL_EXHAUSTED"
            answers[1].get()
            owner.finish(held, TOKENS)
            answers[0].get()
    with remote_worker(pandod.address) as lost:
        lost.admit(TOKENS).get()
        lost.kill()
    eventually(lambda: page().sum("pando_sessions") == 0)

    seen = page()
    check_accounts(seen)
    assert seen.sum("pando_locks") == 0
    assert seen.sum("pando_alloc_failures_total", reason="exhausted") > 0
    assert seen.sum("pando_alloc_requests_total", result="ok_after_evict") > 0
    for reason in ("unlocked", "session_closed", "session_lost"):
        assert seen.sum("pando_locks_ended_total", reason=reason) > 0
    for result in ("full", "partial", "miss"):
        assert seen.sum("pando_prefix_match_requests_total", result=result) > 0
    # The calls that were answered are the operations that the cache counted.
    assert rpcs(seen, "MatchPrefix", "OK") == seen.sum(
        "pando_prefix_match_requests_total"
    )
    assert rpcs(seen, "Insert", "OK") == seen.sum("pando_insert_requests_total")
    refused = rpcs(seen, "MatchPrefix", "ResourceExhausted")
    assert refused == seen.sum("pando_alloc_failures_total")
    for method in ("MatchPrefix", "Insert", "Lock", "Unlock", "Evict", "Open"):
        started_calls = seen.sum("grpc_server_started_total", grpc_method=method)
        assert seen.sum("grpc_server_handled_total", grpc_method=method) == (
            started_calls
        )


def rpcs(seen: MetricsPage, method: str, code: str) -> float:
    return seen.sum("grpc_server_handled_total", grpc_method=method, grpc_code=code)
