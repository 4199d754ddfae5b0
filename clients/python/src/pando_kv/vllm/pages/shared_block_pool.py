"""vLLM's block pool over the pages that the session has reserved."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from vllm.v1.core.block_pool import BlockPool

from pando_kv._wire import Uint32Array

_NO_PAGES = np.empty(0, np.uint32)


class SharedBlockPool(BlockPool):  # type: ignore[misc]
    """Block b is page b. Free are the pages that the session has reserved and no
    request has: no other worker can take them, and vLLM counts on nothing else.

    A page is `owned` from when it is reserved until it is published or given back. What
    is published, by whomever, is kept by its request's lock and counted by vLLM's
    references, no more.

    Put in the place of the class of vLLM's pool, so that each holder of a reference to
    the pool has this. Not thread-safe: vLLM's scheduler is one thread.
    """

    def adopt(
        self,
        allocate: Callable[[int], Uint32Array],
        give_back: Callable[[Uint32Array], None],
        promised: Callable[[], int],
        stash_pages: int,
    ) -> None:
        self._allocate = allocate
        self._give_back = give_back
        self._promised = promised
        self._stash_pages = stash_pages
        self._free: deque[int] = deque()
        self._owned: set[int] = set()
        self._may_ask = True

    def begin_step(self) -> None:
        """Pando may be asked for pages once more; too many go back to it."""
        self._may_ask = True
        surplus = self.spare_pages() - 2 * self._stash_pages
        if surplus > 0:
            taken = [self._free.pop() for _ in range(surplus + self._stash_pages)]
            self._owned.difference_update(taken)
            self._give_back(np.array(taken, np.uint32))

    def spare_pages(self) -> int:
        """Free pages that are not promised to a prompt."""
        return len(self._free) - self._promised()

    def add(self, page_ids: Uint32Array) -> None:
        """Pages that the session has reserved. One that vLLM still has a reference to,
        for a request that is over, is free when that goes."""
        for page in page_ids.tolist():
            self._owned.add(page)
            if self.blocks[page].ref_cnt == 0:
                self._free.append(page)

    def publish(self, page_ids: Iterable[int]) -> None:
        """They are the cache's now."""
        self._owned.difference_update(page_ids)

    # vLLM's scheduler calls these.

    def get_num_free_blocks(self) -> int:
        short = self._stash_pages - self.spare_pages()
        if short > 0 and self._may_ask:
            self._may_ask = False
            self.add(self._allocate(short))
        return len(self._free)

    def get_usage(self) -> float:
        usable = self.num_gpu_blocks - 1
        return 1.0 - len(self._free) / usable if usable else 0.0

    def get_new_blocks(self, num_blocks: int) -> list[Any]:
        if num_blocks > len(self._free):
            raise ValueError(f"Cannot get {num_blocks} free blocks from the pool")
        blocks = [self.blocks[self._free.popleft()] for _ in range(num_blocks)]
        for block in blocks:
            assert block.ref_cnt == 0
            block.ref_cnt = 1
        return blocks

    def touch(self, blocks: Sequence[Any]) -> None:
        for block in blocks:
            block.ref_cnt += 1

    def free_blocks(self, ordered_blocks: Iterable[Any]) -> None:
        for block in ordered_blocks:
            if block.is_null:
                continue
            block.ref_cnt -= 1
            if block.ref_cnt == 0 and block.block_id in self._owned:
                self._free.append(block.block_id)

    def cache_full_blocks(self, *_: Any, **__: Any) -> None:
        """Nothing: the connector publishes what the device has written."""

    def get_cached_block(self, *_: Any, **__: Any) -> None:
        """Nothing is cached here."""

    def evict_blocks(self, block_ids: set[int]) -> None:
        """Nothing is cached here."""

    def reset_prefix_cache(self) -> bool:
        """Others share the cache; the connector's reset_cache() is what counts."""
        return True
