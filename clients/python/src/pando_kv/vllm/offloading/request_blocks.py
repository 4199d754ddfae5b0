"""What the scheduler's side knows of one request's blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from vllm.v1.kv_offload.base import OffloadKey, ReqContext, get_offload_group_idx


@dataclass(eq=False)
class RequestBlocks:
    """Kept with vLLM's context of the request, which outlives its end until its last
    transfer is reported."""

    request_id: str
    resets: int = 0
    """Of the engine's cache, when the request began."""
    answers: dict[OffloadKey, int] = field(default_factory=dict)
    """The place of each key that was asked for, or why there is none."""
    pending: list[OffloadKey] = field(default_factory=list)
    """Keys that others are writing."""
    locks: list[int] = field(default_factory=list)
    """Which hold the places in `answers`."""
    generation: int = 0
    """Of the session that answered."""
    epoch: int = 0
    session_id: int = 0
    step: int = -1
    """In which it was last asked for."""
    asked_at: float = 0.0
    """When pandod was last asked, for anything of it."""
    held_since: float = 0.0
    pending_since: float = 0.0
    """When it first waited for what others are writing."""
    is_loading: bool = False
    storing: dict[OffloadKey, int] = field(default_factory=dict)
    """The reservation of each key that is being written."""
    stores_nothing: bool = False
    """A block that was not stored would be a hole before all that follow it."""

    def forget_answers(self) -> list[int]:
        """The locks, which are to be released."""
        locks, self.locks = self.locks, []
        self.answers.clear()
        self.pending.clear()
        self.is_loading = False
        return locks

    def forget_stores(self) -> set[int]:
        """The reservations of what is being written."""
        reservations = set(self.storing.values())
        self.storing.clear()
        return reservations


def blocks_of(context: ReqContext) -> RequestBlocks:
    blocks: RequestBlocks | None = context.get_state(RequestBlocks)
    if blocks is None:
        blocks = RequestBlocks(context.req_id)
        context.set_state(blocks)
    return blocks


def keys_of(context: ReqContext) -> Iterator[OffloadKey]:
    """All keys of the request that are known so far, those of a group in prompt order
    but for the ends of blocks that are not full."""
    return iter(context._offload_key_positions)


def keys_before(context: ReqContext, keys: Iterable[OffloadKey]) -> dict[int, bytes]:
    """For each group the key before the first one of `keys`, in prompt order."""
    positions = context._offload_key_positions
    first: dict[int, int] = {}
    for key in keys:
        first.setdefault(get_offload_group_idx(key), positions.get(key, 0))
    best: dict[int, tuple[int, bytes]] = {}
    for key, position in positions.items():
        group = get_offload_group_idx(key)
        if position < first.get(group, 0) and position > best.get(group, (0, b""))[0]:
            best[group] = position, key
    return {group: key for group, (_, key) in best.items()}
