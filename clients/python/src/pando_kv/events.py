"""The events of `watch_events`, which tell what enters and leaves the cache.

A watcher that replays the events in order knows exactly which pages are cached.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pando_kv._proto.pando.v1 import events_pb2
from pando_kv._wire import Uint32Array
from pando_kv.operators import EvictionReason


@dataclass(frozen=True, kw_only=True)
class Event:
    """The base class of all events. `watch_events(after_sequence=event.sequence,
    epoch=event.epoch)` continues after `event`."""

    epoch: int
    """The random id of the run of pandod that numbered the event, as in Stats."""
    sequence: int
    """The number of the event, which counts up by one from 1 on. All events of a
    snapshot have the number of the last event that the snapshot contains."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BlocksStored(Event):
    """Consecutive pages of one prompt that entered the cache.

    A block is the KV of one page.
    """

    block_hashes: list[bytes]
    """The hash of each block, 32 bytes each."""
    parent_block_hash: bytes
    """The hash of the block before the first; empty if these blocks begin a prompt."""
    tokens: Uint32Array
    """The tokens: `page_tokens` for each block, and one more at the end in a bigram
    namespace."""
    page_tokens: int
    extra_key: str | None
    has_cache_salt: bool
    """Whether there is a cache salt. The salt is secret, but part of the hashes."""
    bigram: bool


@dataclass(frozen=True, kw_only=True)
class BlocksRemoved(Event):
    """Blocks that left the cache."""

    block_hashes: list[bytes]
    reason: EvictionReason


@dataclass(frozen=True, kw_only=True)
class AllBlocksCleared(Event):
    """Nothing is cached any more. A snapshot begins with this event, too."""


@dataclass(frozen=True, kw_only=True)
class EventsLost(Event):
    """The watcher missed these events and must forget the cached pages; a snapshot
    follows."""

    first_sequence: int
    last_sequence: int


@dataclass(frozen=True, kw_only=True)
class SnapshotEnd(Event):
    """The snapshot is complete; live events follow."""


def events_of(response: events_pb2.WatchResponse) -> Iterator[Event]:
    """Yields the events of a response, without kinds that this version does not
    know."""
    for message in response.events:
        event = _event(response.epoch, message)
        if event is not None:
            yield event


def _event(epoch: int, message: events_pb2.Event) -> Event | None:
    kind = message.WhichOneof("event")
    at = {"epoch": epoch, "sequence": message.sequence}
    if kind == "stored":
        return _stored(message.stored, at)
    if kind == "removed":
        return BlocksRemoved(
            **at,
            block_hashes=list(message.removed.block_hashes),
            reason=EvictionReason(message.removed.reason),
        )
    if kind == "cleared":
        return AllBlocksCleared(**at)
    if kind == "lost":
        lost = message.lost
        return EventsLost(
            **at,
            first_sequence=lost.first_sequence,
            last_sequence=lost.last_sequence,
        )
    if kind == "snapshot_end":
        return SnapshotEnd(**at)
    return None


def _stored(stored: events_pb2.BlocksStored, at: dict[str, int]) -> BlocksStored:
    return BlocksStored(
        **at,
        block_hashes=list(stored.block_hashes),
        parent_block_hash=stored.parent_block_hash,
        tokens=np.array(stored.tokens, np.uint32),
        page_tokens=stored.page_tokens,
        extra_key=stored.extra_key if stored.HasField("extra_key") else None,
        has_cache_salt=stored.has_cache_salt,
        bigram=stored.bigram,
    )
