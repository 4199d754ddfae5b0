"""How long a short call on a lane waits beside each call at its largest legal size, in
a cache of a million nodes and of one path of 16,384: rows of the table."""

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import numpy as np
from google.protobuf.message import Message
from pando_kv import Client, PrefixQuery
from pando_kv._proto.pando.v1 import (
    admin_pb2,
    data_path_pb2,
    pool_pb2,
    prefix_cache_pb2,
    session_pb2,
)
from rows import Row
from started_pandod import SMALLEST_LAYOUT, started_pandod

PROGRAM = Path(__file__).resolve().parent / "python/lane_waits.py"
MOST_TOKENS = 1_048_576
LEAVES = 1_000_000
DEPTH = 16_384
SCORING_LANES = 64
SCORED_PROMPTS, SCORED_TOKENS = 4_096, 240
LIMIT_MS = 5
Figures = dict[str, float]


class Waits:
    """A worker with many pages, and another one whose calls are timed."""

    def __init__(self, address: str, client: Client) -> None:
        self.address = address
        self.client = client
        self._channel = grpc.insecure_channel(
            address,
            [("grpc.max_receive_message_length", -1)],
        )
        self._other = subprocess.Popen(
            [sys.executable, PROGRAM, address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        self._other.stdin.close()
        self._other.wait()
        self._channel.close()

    def call(self, method: str, request: Message, response: type) -> Any:
        """`method` is "PrefixCache/Insert", for example."""
        send = self._channel.unary_unary(
            f"/pando.v1.{method}",
            type(request).SerializeToString,
            response.FromString,
        )
        return send(request, timeout=300)

    def beside(self, deed: Callable[[], object]) -> Figures:
        """The times of the other's calls meanwhile."""
        self._say("begin")
        assert self._other.stdout.readline() == "began\n"
        try:
            deed()
        finally:
            self._say("end")
            figures = json.loads(self._other.stdout.readline())
        return figures

    def row(self, name: str, deed: Callable[[], object]) -> Row:
        return Row(
            f"longest wait beside {name}",
            self.beside(deed)["longest"],
            "ms",
            limit=LIMIT_MS,
        )

    def _say(self, word: str) -> None:
        self._other.stdin.write(word + "\n")
        self._other.stdin.flush()

    # From here on the cache is prepared.

    def allocate(self, pages: int) -> list[int]:
        request = pool_pb2.AllocatePagesRequest(
            session_id=self.client.session_id, pages=pages
        )
        answer = self.call(
            "PagePool/AllocatePages", request, pool_pb2.AllocatePagesResponse
        )
        return list(answer.page_ids)

    def insert(self, tokens: object, pages: object) -> None:
        request = prefix_cache_pb2.InsertRequest(
            session_id=self.client.session_id, tokens=tokens, page_ids=pages
        )
        self.call("PrefixCache/Insert", request, prefix_cache_pb2.InsertResponse)

    def batch(self, requests: list[data_path_pb2.BatchedRequest]) -> list[Any]:
        answers: list[Any] = []
        for i in range(0, len(requests), 256):
            batch = data_path_pb2.BatchRequest(requests=requests[i : i + 256])
            answer = self.call("DataPath/Batch", batch, data_path_pb2.BatchResponse)
            answers += answer.responses
        return answers

    def fill(self) -> None:
        """As many leaves of a page, from nothing."""
        pages = self.allocate(LEAVES)
        self.batch(
            [
                data_path_pb2.BatchedRequest(
                    insert=prefix_cache_pb2.InsertRequest(
                        session_id=self.client.session_id,
                        tokens=[MOST_TOKENS + i],
                        page_ids=[page],
                    )
                )
                for i, page in enumerate(pages)
            ]
        )

    def lock_path(self) -> list[int]:
        """A lock on each node of a path of DEPTH, which it makes."""
        self.insert(range(DEPTH), self.allocate(DEPTH))
        locks = []
        handle = None
        for token in range(DEPTH):
            request = prefix_cache_pb2.LockRequest(
                session_id=self.client.session_id, tokens=[token], after=handle
            )
            answer = self.call(
                "PrefixCache/Lock", request, prefix_cache_pb2.LockResponse
            )
            locks.append(answer.lock_id)
            handle = answer.handle
        return locks


def wait_rows(build: Path) -> list[Row]:
    with waiting(build) as waits:
        return [*at_depth(waits), *at_many_nodes(waits), *beside_scoring(waits)]


@contextlib.contextmanager
def waiting(build: Path) -> Iterator[Waits]:
    options = ("--page-tokens", 1, "--pool-pages", MOST_TOKENS + 2 * DEPTH)
    with (
        started_pandod(build, *options, *SMALLEST_LAYOUT) as (address, _),
        Client(address, name="the one with long calls", timeout=300) as client,
    ):
        waits = Waits(address, client)
        try:
            yield waits
        finally:
            waits.close()


def at_depth(waits: Waits) -> list[Row]:
    session = waits.client.session_id
    locks: list[int] = []
    where = f"at depth {DEPTH:,}"
    match = data_path_pb2.BatchedRequest(
        match_prefix=prefix_cache_pb2.MatchPrefixRequest(tokens=range(4_000))
    )
    unlock = prefix_cache_pb2.UnlockRequest(session_id=session)

    def end_session() -> None:
        with Client(waits.address, name="one that ends", lane=False) as other:
            for _ in range(1_000):
                other.lock(np.arange(DEPTH))
            request = session_pb2.EndSessionRequest(session_id=other.session_id)
            waits.call("Sessions/End", request, session_pb2.EndSessionResponse)

    rows = [
        waits.row(f"{DEPTH:,} locks, {where}", lambda: locks.extend(waits.lock_path())),
        waits.row(
            f"a Batch of 256 matches, {where}", lambda: waits.batch([match] * 256)
        ),
    ]
    unlock.lock_ids.extend(locks)
    return [
        *rows,
        waits.row(
            f"an Unlock of {DEPTH:,}, {where}",
            lambda: waits.call(
                "PrefixCache/Unlock", unlock, prefix_cache_pb2.UnlockResponse
            ),
        ),
        waits.row(f"1,000 locks and the end of their session, {where}", end_session),
    ]


def at_many_nodes(waits: Waits) -> list[Row]:
    session = waits.client.session_id
    where = f"{LEAVES:,} leaves"
    prompt = range(MOST_TOKENS)
    pages: list[int] = []

    def call(name: str, request: Message, response: type) -> Row:
        method = name.split("/")[1]
        return waits.row(
            f"{method}, {where}", lambda: waits.call(name, request, response)
        )

    admin = admin_pb2
    rows = [waits.row(f"inserts from 0 to {where}", waits.fill)]
    rows += [
        call("Admin/GetStats", admin.GetStatsRequest(), admin.GetStatsResponse),
        call(
            "Admin/CheckInvariants",
            admin.CheckInvariantsRequest(),
            admin.CheckInvariantsResponse,
        ),
        call(
            "Admin/ListNamespaces",
            admin.ListNamespacesRequest(),
            admin.ListNamespacesResponse,
        ),
        call(
            "Admin/ListSessions",
            admin.ListSessionsRequest(),
            admin.ListSessionsResponse,
        ),
        call("Admin/ListLocks", admin.ListLocksRequest(), admin.ListLocksResponse),
        call(
            "Admin/ExplainMatch",
            admin.ExplainMatchRequest(tokens=prompt),
            admin.ExplainMatchResponse,
        ),
    ]
    rows += [
        waits.row(
            f"SetEvictionPolicy to {policy}, {where}",
            lambda policy=policy: waits.call(
                "Admin/SetEvictionPolicy",
                admin.SetEvictionPolicyRequest(policy=policy),
                admin.SetEvictionPolicyResponse,
            ),
        )
        for policy in ("lfu", "reuse", "lru")
    ]
    rows += [
        call(
            "PrefixCache/Evict",
            prefix_cache_pb2.EvictRequest(pages=100_000),
            prefix_cache_pb2.EvictResponse,
        ),
        waits.row(
            f"AllocatePages of all pages, {where}",
            lambda: pages.extend(waits.allocate(MOST_TOKENS)),
        ),
        waits.row(
            f"Insert of {MOST_TOKENS:,} tokens", lambda: waits.insert(prompt, pages)
        ),
        waits.row(
            f"MatchPrefix of {MOST_TOKENS:,} tokens",
            lambda: waits.call(
                "PrefixCache/MatchPrefix",
                prefix_cache_pb2.MatchPrefixRequest(tokens=prompt),
                prefix_cache_pb2.MatchPrefixResponse,
            ),
        ),
        call("Admin/Flush", admin.FlushRequest(), admin.FlushResponse),
    ]
    free = pool_pb2.FreePagesRequest(
        session_id=session, page_ids=waits.allocate(MOST_TOKENS)
    )
    return [*rows, call("PagePool/FreePages", free, pool_pb2.FreePagesResponse)]


def beside_scoring(waits: Waits) -> list[Row]:
    """Lanes that score long queues of prompts, one call after the other."""
    prompts = np.arange(SCORED_PROMPTS * SCORED_TOKENS, dtype=np.uint32)
    queue = [PrefixQuery(tokens) for tokens in prompts.reshape(-1, SCORED_TOKENS)]
    rows = [short_call_row("alone", waits.beside(lambda: time.sleep(1)))]
    for lanes in (1, SCORING_LANES):
        figures = waits.beside(lambda count=lanes: score(waits.address, count, queue))
        rows.append(short_call_row(f"beside {lanes} lanes that score", figures))
    return rows


def short_call_row(where: str, figures: Figures) -> Row:
    return Row(
        f"a short call {where}, p99; floor: p50",
        figures["p99"],
        "ms",
        figures["p50"],
        limit=1,
    )


def score(address: str, lanes: int, queue: list[PrefixQuery]) -> None:
    with (
        contextlib.ExitStack() as stack,
        ThreadPoolExecutor(max_workers=lanes) as threads,
    ):
        clients = [
            stack.enter_context(Client(address, name="scores", timeout=300))
            for _ in range(lanes)
        ]
        for _ in range(2 * SCORING_LANES // lanes):
            list(threads.map(lambda client: client.match_prefixes(queue), clients))
