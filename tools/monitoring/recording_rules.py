"""The series that are computed ahead, for alerts and for dashboards of many servers."""

from catalogue import Catalogue
from queries import Queries, ratio
from shares import (
    PRESSURE,
    failed_call_ratio,
    hit_ratio,
    infinite_hit_ratio,
    refetched_ratio,
    refused_ratio,
    unevictable_ratio,
)

HIT_RATIO = "job_instance:pando_prefix_hit:ratio_rate5m"
CLASS_HIT_RATIO = "job_instance_ns_class:pando_prefix_hit:ratio_rate5m"
INFINITE_HIT_RATIO = "job_instance:pando_infinite_cache_hit:ratio_rate1h"
REFETCHED_RATIO = "job_instance:pando_refetched:ratio_rate1h"
QUERY_RATE = "job_instance:pando_prefix_query_tokens:rate5m"
UNEVICTABLE_RATIO = "job_instance:pando_pool_unevictable:ratio"
EVICTION_RATE = "job_instance:pando_evicted_pages:rate5m"
EVICTION_IDLE = "job_instance:pando_eviction_page_idle_seconds:p50_rate10m"
REFUSED_RATIO = "job_instance:pando_alloc_failures:ratio_rate5m"
TIMED_OUT_RATIO = "job_instance:pando_pending_waits_timed_out:ratio_rate10m"
FAILED_CALL_RATIO = "job_instance:grpc_server_failed:ratio_rate5m"
CALL_P99 = "job_instance_grpc_method:grpc_server_handling_seconds:p99_rate5m"
LOCK_WAIT_P99 = "job_instance:pando_core_lock_wait_seconds:p99_rate5m"


def rule_queries(catalogue: Catalogue) -> Queries:
    """Returns a writer of queries about each server, over five minutes."""
    return Queries(catalogue, matchers={}, window="5m").by_instance()


def recording_rules(catalogue: Catalogue) -> dict[str, str]:
    """Returns the expression of each recorded series."""
    q = rule_queries(catalogue)
    by_class = ["ns_class"]
    return {
        HIT_RATIO: hit_ratio(q),
        CLASS_HIT_RATIO: ratio(
            q.rate("pando_prefix_hit_tokens_total", by_class),
            q.rate("pando_prefix_query_tokens_total", by_class),
        ),
        INFINITE_HIT_RATIO: infinite_hit_ratio(q.over("1h")),
        REFETCHED_RATIO: refetched_ratio(q.over("1h")),
        QUERY_RATE: q.rate("pando_prefix_query_tokens_total"),
        UNEVICTABLE_RATIO: unevictable_ratio(q),
        EVICTION_RATE: q.rate("pando_evicted_pages_total"),
        EVICTION_IDLE: q.over("10m").quantile(
            0.5, "pando_eviction_page_idle_seconds", reason=PRESSURE
        ),
        REFUSED_RATIO: refused_ratio(q),
        TIMED_OUT_RATIO: ratio(
            q.over("10m").rate("pando_pending_waits_ended_total", outcome="timed_out"),
            q.over("10m").rate("pando_pending_waits_ended_total"),
        ),
        FAILED_CALL_RATIO: failed_call_ratio(q),
        CALL_P99: q.quantile(
            0.99, "grpc_server_handling_seconds", ["grpc_method"], grpc_type="unary"
        ),
        LOCK_WAIT_P99: q.quantile(0.99, "pando_core_lock_wait_seconds"),
    }
