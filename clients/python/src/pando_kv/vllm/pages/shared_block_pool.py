"""vLLM's block pool, made of the pages that the session has reserved."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from vllm.v1.core.block_pool import BlockPool

from pando_kv._wire import Uint32Array

_NO_PAGES = np.empty(0, np.uint32)


class SharedBlockPool(BlockPool):  # type: ignore[misc]
    """vLLM's block pool in which block b is page b. A block is free if the session has
    reserved its page and no request uses it. Other sessions cannot take such a page,
    and vLLM needs no other guarantee.

    A page is in `_owned` from its reservation until it is published or given back. The
    lock of a request keeps a published page in the cache, no matter which session
    published it; vLLM's reference count of the block is kept, but frees nothing then.

    PageScheduler.bind assigns this class to `__class__` of vLLM's pool, so every object
    that refers to the pool uses it. Not thread-safe: the scheduler's thread alone calls
    it.
    """

    def adopt(
        self,
        allocate: Callable[[int], Uint32Array],
        give_back: Callable[[Uint32Array], None],
        promised: Callable[[], int],
        stash_pages: int,
    ) -> None:
        """Takes the place of __init__. `allocate` reserves up to the given number of
        pages, `give_back` frees reserved pages, and `promised` counts the free pages
        that admitted prompts have yet to take. The pool reserves pages when fewer than
        `stash_pages` free pages are not promised."""
        self._allocate = allocate
        self._give_back = give_back
        self._promised = promised
        self._stash_pages = stash_pages
        self._free: deque[int] = deque()
        self._owned: set[int] = set()
        self._may_ask = True

    def begin_step(self) -> None:
        """Allows one more call for pages, and gives pages back if more than twice the
        stash are spare."""
        self._may_ask = True
        surplus = self.spare_pages() - 2 * self._stash_pages
        if surplus > 0:
            taken = [self._free.pop() for _ in range(surplus + self._stash_pages)]
            self._owned.difference_update(taken)
            self._give_back(np.array(taken, np.uint32))

    def spare_pages(self) -> int:
        """Returns the number of free pages that are not promised to a prompt; negative
        if too few are free."""
        return len(self._free) - self._promised()

    def add(self, page_ids: Uint32Array) -> None:
        """Adds pages that the session has reserved. A page to which vLLM still has a
        reference, from an earlier use, becomes free when vLLM drops the reference."""
        for page in page_ids.tolist():
            self._owned.add(page)
            if self.blocks[page].ref_cnt == 0:
                self._free.append(page)

    def publish(self, page_ids: Iterable[int]) -> None:
        """Notes that the cache now owns these pages; they do not become free here."""
        self._owned.difference_update(page_ids)

    # vLLM's scheduler calls the methods below.

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
        """Does nothing: the connector publishes what the device has written."""

    def get_cached_block(self, *_: Any, **__: Any) -> None:
        """Returns None, because pandod has the prefix cache."""

    def evict_blocks(self, block_ids: set[int]) -> None:
        """Does nothing, because pandod has the prefix cache."""

    def reset_prefix_cache(self) -> bool:
        """Returns True and does nothing. The connector's reset_cache() makes this
        engine find nothing from before; other engines share the cache and keep it."""
        return True
