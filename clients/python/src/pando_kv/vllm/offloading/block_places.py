"""The places of blocks in the block memory, as the scheduler sends them to workers."""

from __future__ import annotations

from collections.abc import Sequence

from vllm.v1.kv_offload.base import BlockIDsLoadStoreSpec

# A block at place p begins at byte p * PLACE_BYTES of the block memory.
PLACE_BYTES = 4096


class BlockPlaces(BlockIDsLoadStoreSpec):  # type: ignore[misc]
    """The places of a job's blocks, in the order of the job's keys."""

    def __init__(self, places: Sequence[int], epoch: int, session_id: int) -> None:
        """Takes the places, the epoch of the memory in which they lie, and the id of
        the session that holds their locks or their reservation."""
        super().__init__(list(places))
        self.epoch = epoch
        self.session_id = session_id
