"""The benchmarks of the core alone, as rows of the table."""

import re
from pathlib import Path

from rows import Row, json_of

NS_OF = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
# Values of the C++ enum EvictionPolicyKind.
LRU, LFU, SLRU = 0, 1, 6
# The times of a memcmp of 8192 tokens on the machine on which the targets of a match
# were set.
MEMCMP_HOT_US, MEMCMP_COLD_US = 0.4, 1.6


class Runs:
    """The results of one run of core_bench, by the name of a benchmark."""

    def __init__(self, build: Path, which: str = ".") -> None:
        """Runs the benchmarks whose names match the regular expression `which`."""
        report = json_of(
            build / "bin/core_bench",
            "--benchmark_format=json",
            f"--benchmark_filter={which}",
        )
        self._runs = {
            re.sub(r"/iterations:\d+", "", run["name"]): run
            for run in report["benchmarks"]
        }

    def __getitem__(self, name: str) -> dict:
        return self._runs[name]

    def ns(self, name: str) -> float:
        run = self._runs[name]
        return run["cpu_time"] * NS_OF[run["time_unit"]]


def core_rows(build: Path) -> list[Row]:
    runs = Runs(build)
    ns = runs.ns

    def us(name: str) -> float:
        return ns(name) / 1000

    rows = []
    for page in (1, 16):
        for nodes, limit in ((1, 1.0), (16, 2.0), (64, 4.0)):
            name = f"match 8192 tokens, hot, page {page}, {nodes} nodes"
            hot = us(f"BM_MatchHot/{page}/{nodes}")
            floor = us("BM_MemcmpHot")
            rows.append(Row(name, hot, "us", floor, limit, limit / MEMCMP_HOT_US))
        name = f"match 8192 tokens, cold, page {page}, 1 node"
        cold = us(f"BM_MatchCold/{page}/1")
        floor = us("BM_MemcmpCold/0")
        rows.append(Row(name, cold, "us", floor, 2.5, 2.5 / MEMCMP_COLD_US))
        # At page 1 a match also copies the page ids, which have as many bytes as the
        # tokens.
        if page == 1:
            both = us("BM_MemcmpCold/1")
            name = "the same; floor: memcmp and a copy of the page ids"
            rows.append(Row(name, cold, "us", both))
    for name, policy in (("lru", LRU), ("lfu", LFU), ("slru", SLRU)):
        few = us(f"BM_EvictOnePage/{policy}/1000")
        for leaves in (100_000, 1_000_000):
            rows.append(
                Row(
                    f"evict a page, {name}, {leaves:,} leaves; floor: of 1,000",
                    us(f"BM_EvictOnePage/{policy}/{leaves}"),
                    "us",
                    few,
                    ratio_limit=2 if policy == LRU else None,
                )
            )
    rows.append(Row("lock + unlock at depth 5", ns("BM_LockUnlock/5"), "ns", limit=200))
    rows += _block_rows(runs)
    copy = us("BM_CopyOf512Tokens")
    for prefix in (8192, 65_536):
        for name, where in (
            ("Whole", "whole"),
            ("AtLock", "at a lock"),
            ("AtHandle", "at a handle"),
        ):
            rows.append(
                Row(
                    f"insert 512 tokens after {prefix:,}, {where}",
                    us(f"BM_Insert{name}/{prefix}"),
                    "us",
                    copy,
                )
            )
    # The limits include the table of edges, which takes 11 bytes per leaf.
    for page, limit in ((1, 9.0), (16, 5.1)):
        memory = runs[f"BM_IndexMemory/{page}"]
        rows.append(
            Row(
                f"index memory of a token, leaves of 256, page {page}",
                memory["bytes_per_token"],
                "B",
                memory["floor"],
                limit,
            )
        )
    for leaves in (1_000, 10_000, 100_000):
        run = ns(f"BM_CheckInvariants/{leaves}")
        rows.append(
            Row(f"CheckInvariants, of {leaves:,} leaves, each", run / leaves, "ns")
        )
    for name, of in (
        ("Evict", "1,000,000 leaves"),
        ("Flush", "1,000,000 leaves"),
        ("CheckInvariants", "1,000,000 leaves"),
        ("DumpTree", "1,000,000 leaves"),
        ("ListLocks", "65,536 locks"),
        ("ReleaseLocks", "65,536 locks"),
        ("SessionEnd", "65,536 locks at depth 65,536"),
        ("Allocate", "1,000,000 leaves"),
        ("Match", "1,000,000 leaves"),
        ("Free", "1,000,000 pages"),
        ("Insert", "1,000,000 pages"),
        ("FreeQuarantine", "1,000,000 pages"),
        ("ListSessions", "10,000 sessions"),
        ("ListNamespaces", "10,000 namespaces"),
        ("ExplainMatch", "15,000 locks on a path"),
        ("SetEvictionPolicy", "1,000,000 leaves"),
        ("SetReusePolicy", "1,000,000 leaves"),
        ("UnsetReusePolicy", "1,000,000 leaves, 65,536 ghosts"),
    ):
        longest = runs[f"BM_StepsOf{name}"]["longest_ms"]
        rows.append(Row(f"longest step of {name}, {of}", longest, "ms", limit=5))
    longest = runs["BM_TakeEventsAfterStart"]["longest_ms"]
    of = "longest step of telling watchers of 1,000,000 leaves"
    rows.append(Row(of, longest, "ms", limit=5))
    longest = runs["BM_InsertsOfAMillionLeaves"]["longest_ms"]
    rows.append(Row("longest insert of 1,000,000 leaves", longest, "ms", limit=1))
    fit_us = 1000 * runs["BM_StepsOfReuseFit"]["longest_ms"]
    rows.append(Row("longest step of the fit of reuse", fit_us, "us", limit=50))
    for name, histogram in (
        ("under the mutex", "Histogram"),
        ("shared by threads", "SharedHistogram"),
    ):
        value = ns(f"BM_Record<{histogram}<kOperationSeconds>>")
        rows.append(Row(f"a value in a histogram, {name}", value, "ns", limit=50))
    timing = ns("BM_MatchOnePage/1") - ns("BM_MatchOnePage/0")
    rows.append(Row("the time of an operation", timing, "ns", limit=50))
    one, eight = (
        runs[f"BM_Requests/real_time/threads:{threads}"]["items_per_second"]
        for threads in (1, 8)
    )
    rows.append(
        Row(
            "requests/s, 8 threads; floor: 1 thread",
            eight,
            "",
            one,
            ratio_limit=0.8,
            is_minimum=True,
        )
    )
    return rows


def block_rows(build: Path) -> list[Row]:
    return _block_rows(Runs(build, "Block"))


def _block_rows(runs: Runs) -> list[Row]:
    rows = [
        Row("look up a block, hot", runs.ns("BM_LookUpBlocks/1000000"), "ns", limit=60),
        Row("reserve and publish a block", runs.ns("BM_StoreBlocks/1000000"), "ns"),
        Row("the same in a full memory", runs.ns("BM_StoreBlocksInFull/1000000"), "ns"),
        Row(
            "take over 1,000,000 blocks of a pandod that died",
            runs.ns("BM_TakeBlocksOver/1000000") / 1e6,
            "ms",
            limit=600,
        ),
    ]
    for blocks, limit in ((1_000_000, None), (10_000_000, 64)):
        memory = runs[f"BM_BlockMemory/{blocks}"]["bytes_per_block"]
        name = f"index memory of a block with a key of 32 bytes, of {blocks:,}"
        rows.append(Row(name, memory, "B", limit=limit))
    for name, what in (
        ("PublishBlocks", "Publish of 16,384 blocks"),
        ("PublishOverdueBlocks", "the same, all reserved anew meanwhile"),
        ("DiscardBlocks", "Discard of 16,384 blocks"),
    ):
        longest = runs[f"BM_HoldOf{name}"]["longest_ms"]
        rows.append(Row(f"longest hold: {what}", longest, "ms", limit=5))
    return rows
