"""Times calls of the Python client with 500 keys, on a lane and over gRPC."""

import hashlib
import itertools
from collections.abc import Callable
from functools import partial

from in_turns import p50s_in_turns
from pando_kv import BlockKeys, Client, KindSpec
from rows import Row

KEYS = 500
KEY_BYTES = 32
BLOCK_BYTES = 16 << 10
CALLS = 15  # calls of a round

_names = itertools.count(1)


def block_call_rows(address: str) -> list[Row]:
    with Client(address) as lane, Client(address, lane=False) as grpc:
        assert lane.transport == "lane", lane.why_no_lane
        calls = [("lane", _Calls(lane, "lane")), ("grpc", _Calls(grpc, "grpc"))]
        locked = p50s_in_turns({name: each.acquire for name, each in calls}, CALLS)
        stored = p50s_in_turns({name: each.store for name, each in calls}, CALLS)
    return [
        Row(
            f"Python: {what}, {KEYS} keys, p50; floor: over gRPC",
            1e6 * seconds["lane"],
            "us",
            1e6 * seconds["grpc"],
            limit=limit,
        )
        for what, seconds, limit in (
            ("acquire_blocks", locked, 50),
            ("reserve_blocks + publish_blocks", stored, 100),
        )
    ]


class _Calls:
    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name
        spec = KindSpec(b"bench", "bench", KEY_BYTES, BLOCK_BYTES)
        (kind,) = client.open_kinds([spec])
        self._kind = kind.number
        self._locks: list[int] = []
        self.store(-1)()

    def acquire(self, _number: int) -> Callable[[], object]:
        self._client.release_blocks(self._locks)
        self._locks = [next(_names)]
        return partial(self._client.acquire_blocks, *self._locks, self._keys(-1))

    def store(self, number: int) -> Callable[[], object]:
        """Returns a function that reserves and publishes blocks of new keys."""
        reservation, keys = next(_names), self._keys(number)

        def store() -> None:
            self._client.reserve_blocks(reservation, keys)
            self._client.publish_blocks(reservation)

        return store

    def _keys(self, prompt: int) -> list[BlockKeys]:
        texts = (f"{self._name} {prompt} {n}" for n in range(KEYS))
        keys = b"".join(hashlib.sha256(text.encode()).digest() for text in texts)
        return [BlockKeys(self._kind, keys)]
