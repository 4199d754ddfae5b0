"""The dashboard that tells whether the pool is large enough, and whether the right
pages leave it."""

import thresholds
from dashboard import Dashboard, Row
from panels import Graph, Heatmap, Panel, Query, Stat
from queries import Queries, ratio
from shares import (
    PRESSURE,
    hit_ratio,
    infinite_hit_ratio,
    refetched_ratio,
    refused_ratio,
    unevictable_ratio,
)


def eviction(q: Queries) -> Dashboard:
    return Dashboard(
        uid="pando-eviction",
        title="Pando / Eviction and capacity",
        description="What leaves the cache, how soon it is missed, who is refused.",
        rows=[
            Row("At a glance", _at_a_glance(q)),
            Row("Capacity", _capacity(q)),
            Row("What is evicted", _evicted(q)),
            Row("Was it missed?", _missed(q)),
            Row("What the policy gains", _gained(q)),
            Row("Reservations", _reservations(q)),
            Row("Quota classes", _classes(q)),
            Row("Tiers", _tiers(q)),
        ],
    )


def _idle(q: Queries, share: float) -> str:
    return q.quantile(share, "pando_eviction_page_idle_seconds", reason=PRESSURE)


def _at_a_glance(q: Queries) -> list[Panel]:
    return [
        Stat(
            "Pool",
            "The size of the pool, on all shards together.",
            "bytes",
            [Query(q.now("pando_pool_capacity_bytes"))],
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
            "Evicted pages a second",
            "Pages that left the cache, whatever made it necessary.",
            "short",
            [Query(q.rate("pando_evicted_pages_total"))],
        ),
        Stat(
            "Unused before eviction",
            "Half of the pages evicted for want of room had not been used for longer "
            "than this. A short time says that the pool is too small.",
            "s",
            [Query(_idle(q, 0.5))],
            level=thresholds.IDLE_BEFORE_EVICTION,
        ),
        Stat(
            "Hits lost to the pool's size",
            "The share of the tokens asked for that had been evicted and had to be "
            "computed again: an estimate.",
            "percentunit",
            [Query(refetched_ratio(q))],
            level=thresholds.HITS_LOST_TO_SIZE,
        ),
        Stat(
            "Share of reservations refused",
            "The share of the reservations that were refused for want of pages.",
            "percentunit",
            [Query(refused_ratio(q))],
            level=thresholds.FAILED_RESERVATIONS,
            most=1,
        ),
    ]


def _capacity(q: Queries) -> list[Panel]:
    return [
        Graph(
            "Pages by state",
            "All pages of the pool: they sum to its capacity.",
            "short",
            [Query(q.now("pando_pool_pages", ["state"]), "{{state}}")],
            width=12,
            stacked=True,
        ),
        Graph(
            "Nodes and namespaces",
            "Nodes of the radix tree, and namespaces in which something is cached or "
            "locked.",
            "short",
            [
                Query(q.now("pando_index_nodes"), "nodes"),
                Query(q.now("pando_namespaces"), "namespaces"),
            ],
            width=12,
        ),
    ]


def _evicted(q: Queries) -> list[Panel]:
    return [
        Graph(
            "Evicted pages by reason",
            "Pages a second: room for a reservation, a call of Evict, the watermark of "
            "free pages, the cap of a class, a flush.",
            "short",
            [Query(q.rate("pando_evicted_pages_total", ["reason"]), "{{reason}}")],
            stacked=True,
        ),
        Graph(
            "Evicted pages by policy",
            "Pages a second, by the policy that chose them.",
            "short",
            [Query(q.rate("pando_evicted_pages_total", ["policy"]), "{{policy}}")],
            stacked=True,
        ),
        Graph(
            "Policy in use",
            "How many servers use each eviction policy.",
            "short",
            [
                Query(
                    q.now("pando_eviction_policy_info", ["policy"]) + " > 0",
                    "{{policy}}",
                )
            ],
            stacked=True,
        ),
        Heatmap(
            "Unused before eviction",
            "How long the pages evicted for want of room had not been used.",
            "s",
            [
                Query(
                    q.buckets("pando_eviction_page_idle_seconds", reason=PRESSURE),
                    "{{le}}",
                )
            ],
            width=12,
        ),
        Graph(
            "Age at eviction",
            "How long the pages evicted for want of room had been cached.",
            "s",
            [
                Query(
                    q.quantile(
                        share, "pando_eviction_page_age_seconds", reason=PRESSURE
                    ),
                    name,
                )
                for share, name in ((0.5, "p50"), (0.9, "p90"))
            ],
            width=12,
        ),
    ]


def _missed(q: Queries) -> list[Panel]:
    return [
        Graph(
            "This pool and one without limit",
            "The hit ratio, and an estimate of what it would be if nothing were ever "
            "evicted, of all namespaces.",
            "percentunit",
            [
                Query(hit_ratio(q.of_all_classes()), "this pool"),
                Query(infinite_hit_ratio(q), "without limit (estimate)"),
            ],
        ),
        Graph(
            "Use and eviction",
            "Half of the pages found again had been used within the first time; half "
            "of those evicted had not been used for the second. Where the second is "
            "not far above the first, the pool is too small.",
            "s",
            [
                Query(
                    q.quantile(0.5, "pando_page_reuse_gap_seconds"), "used again after"
                ),
                Query(_idle(q, 0.5), "evicted after"),
            ],
        ),
        Graph(
            "From eviction to the next use",
            "How soon evicted pages had to be computed again: an estimate.",
            "s",
            [
                Query(q.quantile(share, "pando_evicted_page_refetch_seconds"), name)
                for share, name in ((0.5, "p50"), (0.9, "p90"))
            ],
        ),
    ]


def _gained(q: Queries) -> list[Panel]:
    return [
        Graph(
            "Hit ratio beside LRU's",
            "The hit ratio of all namespaces, and that of an LRU cache of the same "
            "size, without locks and quotas. The latter only where reuse is learnt: "
            "under the policy reuse, and with --learn-reuse.",
            "percentunit",
            [
                Query(hit_ratio(q.of_all_classes()), "cache"),
                Query(
                    ratio(
                        q.rate("pando_reuse_lru_hit_pages_total"),
                        q.rate("pando_reuse_requested_pages_total"),
                    ),
                    "LRU",
                ),
            ],
            width=6,
        ),
        Graph(
            "Gain and debt",
            "Hits above those of LRU, counted up to the size of the pool, and the "
            "pages that LRU would hold and the cache does not. Below 0 LRU would have "
            "found more; where the debt is large beside the gain, reuse does as LRU.",
            "short",
            [
                Query(q.now("pando_reuse_gained_pages"), "gain"),
                Query(q.now("pando_reuse_debt_pages"), "debt"),
            ],
            least=None,
            width=6,
        ),
        Graph(
            "Inserted again after eviction",
            "Pages a second that were evicted too early, of those that are remembered.",
            "short",
            [Query(q.rate("pando_reuse_ghost_hit_pages_total"), "pages")],
            width=6,
        ),
        Graph(
            "Chance of use",
            "The fitted chance that a page is used again within 1,024 requests, by "
            "how often it was used; the highest of all servers.",
            "percentunit",
            [Query(q.most("pando_reuse_chance", ["uses"]), "{{uses}}")],
            most=1,
            width=6,
        ),
    ]


def _reservations(q: Queries) -> list[Panel]:
    return [
        Graph(
            "Reservations by result",
            "Reservations a second: pages were free, had to be evicted first, or were "
            "refused.",
            "reqps",
            [Query(q.rate("pando_alloc_requests_total", ["result"]), "{{result}}")],
            stacked=True,
        ),
        Graph(
            "Refused reservations by reason",
            "exhausted: too few pages are free or evictable; too_large: more than the "
            "pool has; quota: its class is at its cap.",
            "reqps",
            [Query(q.rate("pando_alloc_failures_total", ["reason"]), "{{reason}}")],
        ),
        Graph(
            "Reserved and lost pages",
            "Pages a second that workers got, and those whose worker was lost, "
            "which wait in quarantine.",
            "short",
            [
                Query(q.rate("pando_alloc_pages_total"), "reserved"),
                Query(q.rate("pando_quarantined_pages_total"), "quarantined"),
            ],
        ),
    ]


def _classes(q: Queries) -> list[Panel]:
    by = ["ns_class"]
    return [
        Graph(
            "Cached pages by class",
            "Pages cached in the namespaces of each quota class.",
            "short",
            [Query(q.now("pando_quota_cached_pages", by), "{{ns_class}}")],
            stacked=True,
        ),
        Graph(
            "Reserved pages by class",
            "Pages reserved for the namespaces of each quota class.",
            "short",
            [Query(q.now("pando_quota_reserved_pages", by), "{{ns_class}}")],
            stacked=True,
        ),
        Graph(
            "Refusals at the cap",
            "Reservations and inserts a second refused because their class was at its "
            "cap.",
            "reqps",
            [Query(q.rate("pando_quota_rejections_total", by), "{{ns_class}}")],
        ),
        Graph(
            "Evicted because they had ended",
            "Pages a second that were evicted before all others, because an insert said "
            "that their prefix had ended.",
            "short",
            [Query(q.rate("pando_evicted_ended_pages_total"), "pages")],
        ),
    ]


def _tiers(q: Queries) -> list[Panel]:
    by = ["tier"]
    return [
        Graph(
            "Copies held",
            "Pages of which a tier has a copy, and the room that it has.",
            "short",
            [
                Query(q.now("pando_tier_pages", by), "{{tier}} held"),
                Query(q.now("pando_tier_capacity_pages", by), "{{tier}} room"),
            ],
        ),
        Graph(
            "Bytes stored and loaded",
            "Bytes a second that are copied to a tier (store) and back (load).",
            "Bps",
            [
                Query(
                    q.rate("pando_tier_copied_bytes_total", [*by, "direction"]),
                    "{{tier}} {{direction}}",
                )
            ],
        ),
        Graph(
            "Tokens found by tier",
            "Tokens a second that matches found: loaded where a tier brought them "
            "back and they were found first, else in the pool (device).",
            "short",
            [Query(q.rate("pando_prefix_hit_tokens_total", by), "{{tier}}")],
        ),
        Graph(
            "Not stored, not loaded",
            "Pages a second that a tier dropped, because it was too slow or they were "
            "evicted first; and copies that could not be written or read, or were "
            "damaged (verify).",
            "short",
            [
                Query(q.rate("pando_tier_dropped_pages_total", by), "{{tier}} dropped"),
                Query(
                    q.rate("pando_tier_failures_total", [*by, "step"]),
                    "{{tier}} {{step}}",
                ),
            ],
        ),
        Graph(
            "Shared store refused",
            "1 while pandod leaves the shared store alone because it failed again and "
            "again; it is tried from time to time. Empty without one.",
            "short",
            [Query(q.now("pando_tier_remote_refused", ["direction"]), "{{direction}}")],
        ),
        Graph(
            "Movers at work",
            "1 while a pando-mover copies the pages of a device; at 0 nothing is stored "
            "or loaded on that server. Empty where pandod copies itself.",
            "short",
            [Query(q.now("pando_tier_mover_present", ["device"]), "{{device}}")],
        ),
    ]
