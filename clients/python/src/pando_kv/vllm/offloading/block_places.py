"""Where blocks lie, as the scheduler tells the workers."""

from __future__ import annotations

from collections.abc import Sequence

from vllm.v1.kv_offload.base import BlockIDsLoadStoreSpec

# A place is the number of such a unit in the memory.
PLACE_BYTES = 4096


class BlockPlaces(BlockIDsLoadStoreSpec):  # type: ignore[misc]
    """The places of a job's blocks, in the order of its keys."""

    def __init__(self, places: Sequence[int], epoch: int, session_id: int) -> None:
        """`epoch` says in which memory, `session_id` who holds the locks or the
        reservation."""
        super().__init__(list(places))
        self.epoch = epoch
        self.session_id = session_id
