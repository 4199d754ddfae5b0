"""The dashboard that tells whether the block memory is large enough, and whether
engines find the blocks that they need."""

from dashboard import Dashboard, Row
from panels import Graph, Panel, Query, Stat
from queries import Queries, ratio


def blocks(q: Queries) -> Dashboard:
    return Dashboard(
        uid="pando-blocks",
        title="Pando / Blocks",
        description="The memory that engines on all GPUs of a machine share.",
        rows=[
            Row("At a glance", _at_a_glance(q)),
            Row("Memory", _memory(q)),
            Row("By kind", _by_kind(q)),
            Row("Stored and evicted", _stored(q)),
            Row("Disk tier", _disk_tier(q)),
        ],
    )


def _hit_ratio(q: Queries) -> str:
    hits = q.rate("pando_block_keys_total", result="hit")
    return ratio(hits, q.rate("pando_block_keys_total"))


def _at_a_glance(q: Queries) -> list[Panel]:
    return [
        Stat(
            "Block memory",
            "The size of the block memory.",
            "bytes",
            [Query(q.now("pando_block_memory_bytes"))],
        ),
        Stat(
            "Memory that kinds have",
            "The share of the extents that some kind of blocks has.",
            "percentunit",
            [
                Query(
                    ratio(
                        q.now("pando_block_extents", state="used"),
                        q.now("pando_block_extents"),
                    )
                )
            ],
            most=1,
        ),
        Stat(
            "Keys found",
            "The share of the keys that engines looked up or locked and found ready.",
            "percentunit",
            [Query(_hit_ratio(q))],
            most=1,
        ),
        Stat(
            "Keys without room",
            "Keys a second that could not be stored: all blocks were locked, or being "
            "written.",
            "short",
            [Query(q.rate("pando_blocks_no_room_total"))],
        ),
        Stat(
            "Blocks in quarantine",
            "Reserved blocks of lost sessions that a living process may still write.",
            "short",
            [Query(q.now("pando_block_quarantined"))],
        ),
        Stat(
            "Index",
            "Memory of pandod that the records and indexes of blocks take.",
            "bytes",
            [Query(q.now("pando_block_index_bytes"))],
        ),
    ]


def _memory(q: Queries) -> list[Panel]:
    return [
        Graph(
            "Bytes of blocks by state",
            "Evictable, locked (protected) and being written (reserved).",
            "bytes",
            [Query(q.now("pando_block_bytes", ["state"]), "{{state}}")],
            stacked=True,
        ),
        Graph(
            "Extents",
            "Pieces of the memory that a kind has, and free ones.",
            "short",
            [Query(q.now("pando_block_extents", ["state"]), "{{state}}")],
            stacked=True,
        ),
        Graph(
            "Locks and reservations",
            "Calls whose blocks sessions hold to read or to write them.",
            "short",
            [
                Query(q.now("pando_block_locks"), "locks"),
                Query(q.now("pando_block_reservations"), "reservations"),
            ],
        ),
    ]


def _by_kind(q: Queries) -> list[Panel]:
    by = ["kind"]
    hits = q.rate("pando_block_kind_hits_total", by)
    misses = q.rate("pando_block_kind_misses_total", by)
    return [
        Graph(
            "Memory of kinds",
            "Bytes of the extents that each kind has.",
            "bytes",
            [Query(q.now("pando_block_kind_bytes", by), "{{kind}}")],
            stacked=True,
        ),
        Graph(
            "Memory of quotas",
            "Bytes of the extents that the kinds of each block quota have.",
            "bytes",
            [Query(q.now("pando_block_quota_bytes", ["quota"]), "{{quota}}")],
        ),
        Graph(
            "Keys found by kind",
            "The share of each kind's keys that were ready, of those that were ready "
            "or missing.",
            "percentunit",
            [Query(ratio(hits, f"({hits} + {misses})"), "{{kind}}")],
            most=1,
        ),
        Graph(
            "Evicted blocks by kind",
            "Blocks a second.",
            "short",
            [Query(q.rate("pando_block_kind_evictions_total", by), "{{kind}}")],
        ),
    ]


def _stored(q: Queries) -> list[Panel]:
    return [
        Graph(
            "Blocks written",
            "Blocks a second: published, given back without being written, published "
            "although another had stored the key, and reserved anew because they took "
            "longer than --block-write-limit.",
            "short",
            [
                Query(q.rate(f"pando_blocks_{what}_total"), what)
                for what in ("published", "discarded", "duplicate", "overdue")
            ],
        ),
        Graph(
            "Evicted blocks by reason",
            "Blocks a second: for another block of their kind (room), for another kind "
            "that got their extent (extent), because their kind ended (kind_ended).",
            "short",
            [Query(q.rate("pando_block_evictions_total", ["reason"]), "{{reason}}")],
            stacked=True,
        ),
        Graph(
            "Keys by result",
            "Keys a second that engines looked up or locked: found (hit), missing "
            "(miss), being written by another engine (pending).",
            "short",
            [Query(q.rate("pando_block_keys_total", ["result"]), "{{result}}")],
            stacked=True,
        ),
    ]


def _disk_tier(q: Queries) -> list[Panel]:
    return [
        Graph(
            "Room on disk",
            "Bytes that the tier takes, and the most that it may take.",
            "bytes",
            [
                Query(q.now("pando_block_tier_bytes"), "taken"),
                Query(q.now("pando_block_tier_capacity_bytes"), "limit"),
            ],
        ),
        Graph(
            "Copied",
            "Bytes a second to a tier (store), and back into the memory (load).",
            "Bps",
            [
                Query(
                    q.rate(
                        "pando_block_tier_copied_bytes_total", ["tier", "direction"]
                    ),
                    "{{tier}}: {{direction}}",
                )
            ],
        ),
        Graph(
            "Not stored, not loaded",
            "Blocks a second: the tier was too slow for them (dropped), or they could "
            "not be written or read, or were damaged (verify).",
            "short",
            [
                Query(
                    q.rate("pando_block_tier_dropped_blocks_total", ["tier"]),
                    "{{tier}}: dropped",
                ),
                Query(
                    q.rate("pando_block_tier_failures_total", ["tier", "step"]),
                    "{{tier}}: {{step}}",
                ),
            ],
        ),
        Graph(
            "Shared store refused",
            "1 while the shared store of blocks is left alone, because it failed again "
            "and again. Only with such a store.",
            "short",
            [
                Query(
                    q.now("pando_block_tier_remote_refused", ["direction"]),
                    "{{direction}}",
                )
            ],
        ),
    ]
