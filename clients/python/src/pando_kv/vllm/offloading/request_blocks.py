"""The state that the scheduler keeps for one request's blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from vllm.v1.kv_offload.base import OffloadKey, ReqContext, get_offload_group_idx


@dataclass(eq=False)
class RequestBlocks:
    """The answers, locks and reservations of one request. vLLM's context of the request
    holds it until the request's last transfer is reported, which may be after the
    request's end. The scheduler's thread alone uses it."""

    request_id: str
    resets: int = 0
    """How often the engine's cache had been reset when the request began."""
    answers: dict[OffloadKey, int] = field(default_factory=dict)
    """The place of each key that was looked up, or the value of `pando_kv.blocks` that
    says why there is none."""
    pending: list[OffloadKey] = field(default_factory=list)
    """Keys whose blocks another session is writing, or a tier is loading."""
    locks: list[int] = field(default_factory=list)
    """The locks that hold the places in `answers`."""
    generation: int = 0
    """The generation of the session that gave the answers."""
    epoch: int = 0
    session_id: int = 0
    step: int = -1
    """The step in which vLLM last looked this request up."""
    asked_at: float = 0.0
    """The time of the last call to pandod that locked blocks for this request."""
    held_since: float = 0.0
    """The time from which the present answers are kept."""
    pending_since: float = 0.0
    """The time when the request first waited for pending blocks."""
    is_loading: bool = False
    storing: dict[OffloadKey, int] = field(default_factory=dict)
    """The reservation of each key whose block is being written."""
    stores_nothing: bool = False
    """Whether the request stores no more blocks. After one block was not stored, a
    look-up would end there and not find the later blocks."""

    def forget_answers(self) -> list[int]:
        """Drops the answers. Returns their locks, which the caller must release."""
        locks, self.locks = self.locks, []
        self.answers.clear()
        self.pending.clear()
        self.is_loading = False
        return locks

    def forget_stores(self) -> set[int]:
        """Drops the stores. Returns their reservations, for the caller to discard."""
        reservations = set(self.storing.values())
        self.storing.clear()
        return reservations


def blocks_of(context: ReqContext) -> RequestBlocks:
    """Returns the state in vLLM's context of the request, and makes it if need be."""
    blocks: RequestBlocks | None = context.get_state(RequestBlocks)
    if blocks is None:
        blocks = RequestBlocks(context.req_id)
        context.set_state(blocks)
    return blocks


def keys_of(context: ReqContext) -> Iterator[OffloadKey]:
    """Returns all keys of the request that are known so far. The keys of a group are in
    prompt order, except those of the last blocks that are not full."""
    return iter(context._offload_key_positions)


def keys_before(context: ReqContext, keys: Iterable[OffloadKey]) -> dict[int, bytes]:
    """Returns for each group the key that precedes, in prompt order, the group's first
    key in `keys`. A group whose first key begins the prompt has no entry."""
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
