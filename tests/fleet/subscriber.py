"""A subscriber to the events of a machine, and the blocks that it knows of."""

import struct
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import msgpack
import zmq

_PATIENCE_MS = 30_000
END_MARK = 2**64 - 1

STORED_FIELDS = (
    "type",
    "block_hashes",
    "parent_block_hash",
    "token_ids",
    "block_size",
    "lora_id",
    "medium",
    "lora_name",
)
MEDIA = ("GPU", "CPU", "STORAGE")
REMOVED_FIELDS = ("type", "block_hashes", "medium")


@dataclass(frozen=True)
class Frame:
    topic: str
    sequence: int
    payload: bytes

    @property
    def events(self) -> list[dict[str, Any]]:
        """Returns the events by the names of their fields, for both forms of events."""
        return [_named(event) for event in msgpack.unpackb(self.payload)[1]]


def _named(event: Any) -> dict[str, Any]:
    if isinstance(event, dict):
        return event
    fields = REMOVED_FIELDS if event[0] == "BlockRemoved" else STORED_FIELDS
    return dict(zip(fields, event, strict=False))


def frame_of(parts: list[bytes]) -> Frame:
    topic, number, payload = parts
    return Frame(topic.decode(), struct.unpack(">Q", number)[0], payload)


@dataclass
class Subscriber:
    """A subscriber that applies the frames from the first announcement on.

    A gap in the frames' numbers is an error, and so is an event that contradicts the
    known blocks.
    """

    endpoint: str
    topic: str = ""
    receive_limit: int = 0
    """ZMQ's limit of waiting frames, or 0 for no limit."""

    frames: list[Frame] = field(default_factory=list)
    """The frames from the first announcement on."""
    kept: dict[str, dict[int, dict[str, Any]]] = field(
        default_factory=lambda: {medium: {} for medium in MEDIA}
    )
    """The event of each known block, by medium and the block's id."""

    @property
    def blocks(self) -> dict[int, dict[str, Any]]:
        """Returns the blocks that are known to be cached in the pool."""
        return self.kept["GPU"]

    def __enter__(self) -> "Subscriber":
        self._socket = zmq.Context.instance().socket(zmq.SUB)
        self._socket.linger = 0
        self._socket.rcvhwm = self.receive_limit
        self._socket.rcvtimeo = _PATIENCE_MS
        self._socket.connect(self.endpoint)
        self._socket.subscribe(self.topic)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()

    def next(self) -> Frame:
        frame = frame_of(self._socket.recv_multipart())
        if self.frames:
            assert frame.sequence == self.frames[-1].sequence + 1, "a hole"
        elif frame.events[0]["type"] != "AllBlocksCleared":
            return self.next()
        self.frames.append(frame)
        for event in frame.events:
            self._apply(event)
        return frame

    def take_waiting(self) -> None:
        """Applies all frames that have arrived."""
        while self._socket.poll(0):
            self.next()

    def wait_for_blocks(self, count: int) -> None:
        """Waits for at least one frame, and until the pool has `count` blocks."""
        while not self.frames or len(self.blocks) != count:
            self.next()

    def _apply(self, event: dict[str, Any]) -> None:
        if event["type"] == "AllBlocksCleared":
            for blocks in self.kept.values():
                blocks.clear()
            return
        blocks = self.kept[event["medium"]]
        if event["type"] == "BlockRemoved":
            for block in event["block_hashes"]:
                del blocks[block]
        else:
            # A tier may have lost the blocks before this one.
            parent = event["parent_block_hash"]
            is_known = parent is None or parent in blocks
            assert is_known or event["medium"] != "GPU", "its parent is unknown"
            ids = event["block_hashes"]
            assert len(event["token_ids"]) == len(ids) * event["block_size"]
            assert blocks.keys().isdisjoint(ids), "told twice"
            blocks |= dict.fromkeys(ids, event)


def replay(endpoint: str, first: int) -> list[Frame]:
    """Requests the frames from `first` on; returns them without the end mark."""
    with zmq.Context.instance().socket(zmq.DEALER) as socket:
        socket.linger = 0
        socket.rcvtimeo = _PATIENCE_MS
        socket.connect(endpoint)
        socket.send_multipart([b"", struct.pack(">Q", first)])
        answer = []
        while True:
            delimiter, *parts = socket.recv_multipart()
            assert delimiter == b""
            frame = frame_of(parts)
            if frame.sequence == END_MARK:
                return answer
            answer.append(frame)
