"""Sums of /metrics that add up at any time, and after all callers have ended."""

from eventually import eventually
from metrics_load import load
from metrics_page import MetricsPage
from pandod_process import PAGE_TOKENS
from protocol_worker import protocol_worker
from remote_worker import remote_worker

TOKENS = list(range(2 * PAGE_TOKENS))


def check_accounts(seen: MetricsPage) -> None:
    """Checks the equations that hold in every reading of the metrics."""
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
    # Hits and refetched tokens add up to the hits of an infinite cache.
    hits = seen.sum("pando_prefix_hit_tokens_total")
    assert hits <= seen.sum("pando_prefix_query_tokens_total")
    assert hits + seen.sum("pando_refetched_tokens_total") == seen.sum(
        "pando_infinite_cache_hit_tokens_total"
    )
    # Locks or sessions that were granted and have not ended are alive.
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
    # Failures and evictions add up over their reasons.
    failed = seen.sum("pando_alloc_requests_total", result="failed")
    assert seen.sum("pando_alloc_failures_total") == failed
    evicted = seen.by("reason", "pando_evicted_pages_total")
    for histogram in ("age", "idle"):
        name = f"pando_eviction_page_{histogram}_seconds_count"
        assert seen.by("reason", name) == evicted
    inserted = seen.sum("pando_insert_tokens_total", result="new")
    pages = cached["evictable"] + cached["protected"]
    assert inserted / PAGE_TOKENS - sum(evicted.values()) == pages
    # Each timed operation has one entry for its lock wait, which may be zero.
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
    # The cache counted one operation for each call that was answered.
    assert seen.rpcs("MatchPrefix", "OK") == seen.sum(
        "pando_prefix_match_requests_total"
    )
    assert seen.rpcs("Insert", "OK") == seen.sum("pando_insert_requests_total")
    refused = seen.rpcs("MatchPrefix", "ResourceExhausted")
    assert refused == seen.sum("pando_alloc_failures_total")
    for method in ("MatchPrefix", "Insert", "Lock", "Unlock", "Evict", "Open"):
        started_calls = seen.sum("grpc_server_started_total", grpc_method=method)
        assert seen.sum("grpc_server_handled_total", grpc_method=method) == (
            started_calls
        )
