"""A follower of a real pandod's events that checks each of them."""

import hashlib
import struct
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import grpc
from eventually import eventually
from pando_kv._proto.pando.v1 import events_pb2
from pando_kv._proto.pando.v1.events_pb2 import Event

_WATCH = "/pando.v1.Events/Watch"
# A window as large as one message: a follower that stops reading blocks the server.
_NARROW = [("grpc.http2.lookahead_bytes", 1024), ("grpc.http2.bdp_probe", 0)]


def seed(
    extra_key: str | None = None, cache_salt: str | None = None, bigram: bool = False
) -> bytes:
    """Returns the hash before the first page of a namespace, as in docs/protocol.md."""
    text = b"pando-namespace-v1"
    for value in (extra_key, cache_salt):
        data = (value or "").encode()
        text += struct.pack("<BQ", value is not None, len(data)) + data
    return hashlib.sha256(text + struct.pack("<B", bigram)).digest()


def page_hashes(
    before: bytes, tokens: Iterable[int], page_tokens: int, bigram: bool = False
) -> list[bytes]:
    """Returns the hashes of the whole pages of `tokens`, which follow `before`."""
    units = [struct.pack("<I", token) for token in tokens]
    if bigram:
        units = [a + b for a, b in zip(units, units[1:], strict=False)]
    hashes = []
    for begin in range(0, len(units) - page_tokens + 1, page_tokens):
        page = b"".join(units[begin : begin + page_tokens])
        before = hashlib.sha256(before + page).digest()
        hashes.append(before)
    return hashes


@dataclass
class Follower:
    """A follower that replays events on a thread of its own.

    Any violation of the rules of events ends up in `error`.
    """

    address: str
    cache_salt: str = ""
    """The salt that has_cache_salt stands for in this test."""
    after_sequence: int | None = None
    epoch: int = 0
    narrow: bool = False

    blocks: set[bytes] = field(default_factory=set)
    kinds: list[str] = field(default_factory=list)
    """The kinds of all events, in order."""
    lost: list[tuple[int, int]] = field(default_factory=list)
    removed_for: list[int] = field(default_factory=list)
    sequence: int | None = None
    error: Exception | None = None
    live: bool = False
    """Whether no snapshot is under way."""

    def __enter__(self) -> "Follower":
        self._may_read = threading.Event()
        self._may_read.set()
        options = [("grpc.use_local_subchannel_pool", 1)]
        options += _NARROW if self.narrow else []
        self._channel = grpc.insecure_channel(self.address, options)
        request = events_pb2.WatchRequest(
            after_sequence=self.after_sequence, epoch=self.epoch
        )
        self.sequence = self.after_sequence
        self.live = self.after_sequence is not None
        call = self._channel.unary_stream(
            _WATCH, response_deserializer=events_pb2.WatchResponse.FromString
        )
        self._stream = call(request.SerializeToString())
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._may_read.set()
        self._stream.cancel()
        self._thread.join()
        self._channel.close()

    def stop_reading(self) -> None:
        self._may_read.clear()

    def go_on_reading(self) -> None:
        self._may_read.set()

    def wait_for_blocks(self, count: int) -> set[bytes]:
        """Waits until there are `count` blocks, and returns the blocks."""
        return self._wait(lambda: len(self.blocks) == count)

    def wait_for_block(self, block: bytes) -> set[bytes]:
        """Waits until `block` is one of the blocks, and returns the blocks."""
        return self._wait(lambda: block in self.blocks)

    def _wait(self, holds: Callable[[], bool]) -> set[bytes]:
        """Waits until `holds()` and no snapshot is under way; raises a violation."""
        eventually(lambda: self.error or (self.live and holds()))
        assert self.error is None, self.error
        return set(self.blocks)

    def _run(self) -> None:
        try:
            for response in self._stream:
                self.epoch = response.epoch
                for event in response.events:
                    self._apply(event)
                self._may_read.wait()
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.CANCELLED:
                self.error = error
        # _wait() raises the error in the thread of the test.
        except Exception as error:
            self.error = error

    def _apply(self, event: Event) -> None:
        kind = event.WhichOneof("event")
        if kind == "lost":
            self.lost.append((event.lost.first_sequence, event.lost.last_sequence))
            assert event.lost.last_sequence == event.sequence
            self.live = False
            self.sequence = event.sequence
        if self.live:
            assert event.sequence == self.sequence + 1, "a gap or a duplicate"
            self.sequence = event.sequence
        else:
            assert self.sequence in (None, event.sequence), "not of one moment"
            self.sequence = event.sequence
        match kind:
            case "stored":
                self._store(event.stored)
            case "removed":
                gone = set(event.removed.block_hashes)
                assert gone <= self.blocks, "removed what was not stored"
                self.blocks -= gone
                self.removed_for.append(event.removed.reason)
            case "cleared":
                self.blocks = set()
            case "snapshot_end":
                self.live = True
        self.kinds.append(kind)

    def _store(self, stored: events_pb2.BlocksStored) -> None:
        if stored.parent_block_hash:
            before = stored.parent_block_hash
            assert before in self.blocks, "its parent is not stored"
        else:
            before = seed(
                stored.extra_key if stored.HasField("extra_key") else None,
                self.cache_salt if stored.has_cache_salt else None,
                stored.bigram,
            )
        wanted = page_hashes(before, stored.tokens, stored.page_tokens, stored.bigram)
        assert list(stored.block_hashes) == wanted, "not the hashes of these tokens"
        assert not self.blocks & set(wanted), "stored twice"
        self.blocks |= set(wanted)
