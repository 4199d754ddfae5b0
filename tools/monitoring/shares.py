"""Shares that several dashboards, rules and alerts show."""

from queries import Queries, ratio

# The states of pages that no eviction can free.
UNEVICTABLE = ("protected", "reserved", "quarantined")
# The reasons for which pages are evicted to make room; the other reasons are calls that
# evict.
PRESSURE = ("allocation", "watermark", "quota")


def hit_ratio(q: Queries) -> str:
    return ratio(
        q.rate("pando_prefix_hit_tokens_total"),
        q.rate("pando_prefix_query_tokens_total"),
    )


def infinite_hit_ratio(q: Queries) -> str:
    """Returns the ratio over all namespaces, because the estimate knows no classes."""
    return _of_all_queries(q, "pando_infinite_cache_hit_tokens_total")


def refetched_ratio(q: Queries) -> str:
    """Returns the difference between infinite_hit_ratio and the hit ratio of all
    namespaces."""
    return _of_all_queries(q, "pando_refetched_tokens_total")


def unevictable_ratio(q: Queries) -> str:
    return ratio(
        q.now("pando_pool_pages", state=UNEVICTABLE),
        q.now("pando_pool_capacity_pages"),
    )


def refused_ratio(q: Queries) -> str:
    """Returns the share of reservations that were refused because pages were lacking,
    not because of a quota."""
    return ratio(
        q.rate("pando_alloc_failures_total", reason="!quota"),
        q.rate("pando_alloc_requests_total"),
    )


def failed_call_ratio(q: Queries) -> str:
    """Returns the share of calls that failed through no fault of the caller."""
    return ratio(
        q.rate(
            "grpc_server_handled_total",
            grpc_code=("Unknown", "Internal", "Unavailable"),
        ),
        q.rate("grpc_server_handled_total"),
    )


def open_files_ratio(q: Queries) -> str:
    return ratio(q.now("process_open_fds"), q.now("process_max_fds"))


def _of_all_queries(q: Queries, counter: str) -> str:
    every = q.of_all_classes()
    return ratio(every.rate(counter), every.rate("pando_prefix_query_tokens_total"))
