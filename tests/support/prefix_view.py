"""The cached blocks, as a follower of the events knows them."""

from collections.abc import Iterable

from pando_kv import (
    AllBlocksCleared,
    BlocksRemoved,
    BlocksStored,
    Event,
    EventsLost,
    SnapshotEnd,
)


class PrefixView:
    def __init__(self) -> None:
        # The blocks, each with the tokens of its page.
        self.blocks: dict[bytes, tuple[int, ...]] = {}
        self._parents: dict[bytes, bytes] = {}
        self.last: Event | None = None
        self.snapshots = 0
        self.losses = 0

    def take(self, events: Iterable[Event]) -> None:
        """Replays events, and checks that each fits the blocks that are known."""
        for event in events:
            if isinstance(event, BlocksStored):
                self._store(event)
            elif isinstance(event, BlocksRemoved):
                for block in event.block_hashes:
                    del self.blocks[block], self._parents[block]
                orphans = set(self._parents.values()) - {b"", *self.blocks}
                assert not orphans, "a block left before those that follow it"
            elif isinstance(event, AllBlocksCleared | EventsLost):
                self.blocks.clear()
                self._parents.clear()
                self.losses += isinstance(event, EventsLost)
            elif isinstance(event, SnapshotEnd):
                self.snapshots += 1
            self.last = event

    def _store(self, event: BlocksStored) -> None:
        parent, size = event.parent_block_hash, event.page_tokens
        assert parent == b"" or parent in self.blocks
        tokens = event.tokens.tolist()
        assert len(tokens) == len(event.block_hashes) * size + event.bigram
        for index, block in enumerate(event.block_hashes):
            assert len(block) == 32
            assert block not in self.blocks
            begin = index * size
            self.blocks[block] = tuple(tokens[begin : begin + size + event.bigram])
            self._parents[block] = parent
            parent = block
