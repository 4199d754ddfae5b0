"""The dashboard that tells whether the cache is worth its memory, and is healthy."""

from dataclasses import replace

import thresholds
from dashboard import Dashboard, Input, Row
from panels import Graph, Panel, Query, Stat, Table
from queries import Queries, ratio
from shares import (
    hit_ratio,
    infinite_hit_ratio,
    open_files_ratio,
    unevictable_ratio,
)

# The tokens that a worker of the engines computes in a second of prefill.
PREFILL_SPEED = Input("prefill_speed", "Prefill tokens/s of a worker", "10000")
HIT_TOKENS = "pando_prefix_hit_tokens_total"
_POOL = ("device", "dtype", "layout", "layers", "heads", "head_size", "model")


def overview(q: Queries) -> Dashboard:
    return Dashboard(
        uid="pando-overview",
        title="Pando / Overview",
        description="What the cache finds, what its pool is used for, who uses it.",
        rows=[
            Row("At a glance", _at_a_glance(q)),
            Row("What is found", _found(q)),
            Row("What the pool is used for", _pool(q)),
            Row("Processes", _processes(q)),
        ],
        inputs=[PREFILL_SPEED],
    )


def _at_a_glance(q: Queries) -> list[Panel]:
    stats = [
        Stat(
            "Hit ratio",
            "The share of the tokens asked for that were cached.",
            "percentunit",
            [Query(hit_ratio(q))],
            most=1,
        ),
        Stat(
            "Hit ratio of an unlimited pool",
            "An estimate of what the hit ratio would be if nothing were ever evicted. "
            "The distance to the hit ratio is what more memory can buy.",
            "percentunit",
            [Query(infinite_hit_ratio(q))],
        ),
        Stat(
            "Pool that cannot be evicted",
            "The share of the pages that are locked, reserved or quarantined: at 100 % "
            "every request that needs a page is refused.",
            "percentunit",
            [Query(unevictable_ratio(q))],
            level=thresholds.UNEVICTABLE_PAGES,
            most=1,
        ),
        Stat(
            "Refused reservations",
            "How often pages were refused in the time that is shown.",
            "short",
            [Query(q.over("$__range").increase("pando_alloc_failures_total"))],
            level=thresholds.REFUSALS,
        ),
        Stat(
            "MatchPrefix p99",
            "99 % of these calls were handled faster; without transport and waits.",
            "s",
            [
                Query(
                    q.quantile(
                        0.99,
                        "grpc_server_handling_seconds",
                        grpc_method="MatchPrefix",
                    )
                )
            ],
            level=thresholds.CALL_P99,
        ),
        Stat(
            "Prefill time saved",
            "Time of workers that what was found saved them in the time that is shown, "
            "at the speed of prefill above: enter that of your model and GPU.",
            "s",
            [Query(_saved(q.over("$__range").increase(HIT_TOKENS)))],
        ),
        Stat(
            "Workers",
            "Sessions that live now: one for each attached worker process.",
            "short",
            [Query(q.now("pando_sessions"))],
        ),
        Stat(
            "Draining",
            "Servers that admit nothing new, because they are being stopped.",
            "short",
            [Query(q.now("pando_draining"))],
            level=thresholds.DRAINING_SERVERS,
        ),
    ]
    return [replace(stat, width=6) for stat in stats]  # fills two lines


def _saved(tokens: str) -> str:
    """Returns a query for the seconds of prefill that so many tokens would take."""
    return f"{tokens} / ${PREFILL_SPEED.name}"


def _found(q: Queries) -> list[Panel]:
    every = q.of_all_classes()
    by = ["ns_class"]
    by_class = ratio(
        q.rate("pando_prefix_hit_tokens_total", by),
        q.rate("pando_prefix_query_tokens_total", by),
    )
    return [
        Graph(
            "Hit ratio by namespace class",
            "The share of the tokens asked for that were cached.",
            "percentunit",
            [Query(by_class, "{{ns_class}}")],
            most=1,
        ),
        Graph(
            "Tokens asked for and found",
            "Tokens a second. What was found need not be computed.",
            "short",
            [
                Query(q.rate("pando_prefix_query_tokens_total"), "asked for"),
                Query(q.rate("pando_prefix_hit_tokens_total"), "found"),
            ],
        ),
        Graph(
            "Requests by outcome",
            "Calls of MatchPrefix a second that found all the pages they could, some, "
            "or none.",
            "reqps",
            [
                Query(
                    q.rate("pando_prefix_match_requests_total", ["result"]),
                    "{{result}}",
                )
            ],
            stacked=True,
        ),
        Graph(
            "This pool and one without limit",
            "The hit ratio, and an estimate of what it would be if nothing were ever "
            "evicted, of all namespaces.",
            "percentunit",
            [
                Query(hit_ratio(every), "this pool"),
                Query(infinite_hit_ratio(q), "without limit (estimate)"),
            ],
        ),
        Graph(
            "Tokens published",
            "Tokens a second of the whole pages offered to Insert: new ones, and those "
            "that another worker had published meanwhile.",
            "short",
            [Query(q.rate("pando_insert_tokens_total", ["result"]), "{{result}}")],
            stacked=True,
        ),
        Graph(
            "Computations saved by waiting",
            "Requests a second that waited for pages another worker computed, and got "
            "them.",
            "reqps",
            [
                Query(
                    q.rate("pando_pending_waits_ended_total", outcome="published"),
                    "saved",
                )
            ],
        ),
    ]


def _pool(q: Queries) -> list[Panel]:
    return [
        Graph(
            "Pool by state",
            "Protected pages are cached and locked, evictable ones cached and not "
            "locked, reserved ones are being written.",
            "bytes",
            [Query(q.now("pando_pool_bytes", ["state"]), "{{state}}")],
            width=12,
            stacked=True,
        ),
        Graph(
            "Evicted pages",
            "Pages a second that left the cache, by what made it necessary.",
            "short",
            [Query(q.rate("pando_evicted_pages_total", ["reason"]), "{{reason}}")],
            width=12,
            stacked=True,
        ),
    ]


def _processes(q: Queries) -> list[Panel]:
    each = q.by_instance()
    return [
        Graph(
            "CPU",
            "CPU seconds a second: 1 is one busy core.",
            "short",
            [Query(each.rate("process_cpu_seconds_total"), "{{instance}}")],
        ),
        Graph(
            "Memory",
            "Resident memory of the process, with what it has touched of a pool in "
            "host memory.",
            "bytes",
            [Query(each.now("process_resident_memory_bytes"), "{{instance}}")],
        ),
        Graph(
            "Open files",
            "The share of the file descriptors that may be open.",
            "percentunit",
            [Query(open_files_ratio(each), "{{instance}}")],
            level=thresholds.OPEN_FILES,
            most=1,
        ),
        Table(
            "What they are",
            "Each server's program and pool.",
            "short",
            [
                Query(each.most("pando_build_info", ["version", "revision"])),
                Query(each.most("pando_pool_info", _POOL)),
                Query(each.now("pando_pool_capacity_bytes"), "Pool", "bytes"),
                Query(each.now("pando_pool_shards"), "Shards"),
                Query(each.now("pando_pool_page_bytes"), "Page", "bytes"),
                Query(each.now("pando_pool_page_tokens"), "Tokens of a page"),
            ],
            labels={
                label: label.capitalize()
                for label in ("instance", "version", "revision", *_POOL)
            },
            height=6,
        ),
    ]
