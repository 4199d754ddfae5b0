"""SGLang's allocator over the pages that the session has reserved."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from sglang.srt.mem_cache.allocator import PagedTokenToKVPoolAllocator
from sglang.srt.mem_cache.prefill_budget import PrefillBudget

from pando_kv._wire import Uint32Array

# Pages asked for at once where decoding needs one, at most; and of a small pool one
# in so many.
_STASH_PAGES = 64
_STASH_SHARE = 64

# How often, and how far apart, the last request asks for a page before it is aborted:
# ten seconds. Counted, so that all ranks do alike.
_LAST_ATTEMPTS = 1000
_PAUSE = 0.01


class PandoAllocator(PagedTokenToKVPoolAllocator):  # type: ignore[misc]
    """`free_pages` are pages that the session has reserved and that hold nothing: no
    other worker can take them. Nothing is counted on that is not among them.

    Made by SGLang, which knows no Pando by then; PandoPrefixCache adopts it. Not
    thread-safe: SGLang's scheduler is one thread.
    """

    cache: Any = None
    """The PandoPrefixCache."""
    free_pages: torch.Tensor
    _was_short = False
    """For its last request, when it was asked for pages to decode before."""
    owned = 0
    """Reserved pages of the session: those here, and those of requests that are not
    published."""

    def clear(self) -> None:
        """Gives back what is free. At the start there is nothing."""
        if self.cache is not None:
            self._give_back(len(self.get_all_free_pages()))
        super().clear()
        self.free_pages = self.free_pages[:0]

    @property
    def stash_pages(self) -> int:
        return max(1, min(_STASH_PAGES, int(self.num_pages) // _STASH_SHARE))

    def free_page_count(self) -> int:
        return len(self.free_pages) + int(self.num_staged_pages)

    def spare_pages(self) -> int:
        """Free pages that are not promised to a prompt which was admitted."""
        return self.free_page_count() - int(self.cache.promised_pages())

    def add(self, page_ids: Uint32Array) -> None:
        """Pages that the session has reserved."""
        if not page_ids.size:
            return
        self.owned += page_ids.size
        added = torch.from_numpy(page_ids.astype(np.int64)).to(self.device)
        self.free_pages = torch.cat((self.free_pages, added))

    def secure(self, pages: int) -> bool:
        """Whether so many pages are spare, if need be after asking for more."""
        short = pages - self.spare_pages()
        if short > 0:
            self.add(self.cache.calls.allocate(max(short, self.stash_pages)))
        return self.spare_pages() >= pages

    def trim(self) -> None:
        """Gives back what is spare, but for a stash, when it has become much."""
        spare = self.spare_pages()
        if spare > 2 * self.stash_pages:
            self._give_back(spare - self.stash_pages)

    def take_spare(self) -> Uint32Array:
        """What trim() would give back, for a call that frees it along with others."""
        spare = self.spare_pages()
        if spare <= 2 * self.stash_pages:
            return np.empty(0, np.uint32)
        return self._take(spare - self.stash_pages)

    def _give_back(self, pages: int) -> None:
        if pages > 0:
            self.cache.calls.free(self._take(pages))

    def _take(self, pages: int) -> Uint32Array:
        """Out of the free pages, when nothing writes to them any more: another worker
        may be given them at once, and its device does not wait for ours."""
        self.cache.fence.now().wait()
        self.merge_and_sort_free()
        keep = len(self.free_pages) - pages
        taken, self.free_pages = self.free_pages[keep:], self.free_pages[:keep]
        self.owned -= pages
        page_ids: Uint32Array = taken.cpu().numpy().astype(np.uint32)
        return page_ids

    # What SGLang's scheduler asks.

    def create_prefill_budget(
        self, tree_cache: Any, *, num_mixed_decode_tokens: int = 0
    ) -> PrefillBudget:
        # The queue is looked at anew.
        tree_cache.drop_unused_matches()
        tree_cache.calls.look()
        return PandoPrefillBudget(
            self, tree_cache, num_mixed_decode_tokens=num_mixed_decode_tokens
        )

    def get_extend_allocation_demand(
        self,
        prefix_lens_cpu: torch.Tensor,
        seq_lens_cpu: torch.Tensor,
        *,
        conservative_num_tokens: int,
        shard_size: int,
    ) -> int:
        page = self.page_size
        before = (prefix_lens_cpu + page - 1) // page
        after = (seq_lens_cpu + page - 1) // page
        needed = int((after - before).sum())
        # Reserved with the match; if it was not, this is the last chance to get them.
        short = needed - self.free_page_count()
        if short > 0:
            self.add(self.cache.calls.allocate(short))
        return needed * int(page)

    def evict_to_free_tokens(self, tree_cache: Any, num_tokens: int) -> None:
        """Nothing: get_extend_allocation_demand and check_decode_capacity have seen to
        it, and `num_tokens` overestimates what decoding needs."""

    def check_decode_capacity(
        self,
        *,
        num_tokens: int,
        tree_cache: Any,
        requests: Any = None,
        spec_algorithm: Any = None,
    ) -> bool:
        """The scheduler retracts requests until this is so, and aborts the last one.
        That one waits: other engines give pages back, when this one cannot."""
        self.cache.begin_decode()
        pages = -(-num_tokens // self.page_size)
        if self.secure(pages):
            self._was_short = False
            return True
        is_last = requests is not None and len(requests) == 1
        # The first time SGLang may only wait for requests that end with this step.
        is_asked_again = is_last and self._was_short
        self._was_short = is_last and not is_asked_again
        for _ in range(_LAST_ATTEMPTS if is_asked_again else 0):
            time.sleep(_PAUSE)
            if self.secure(pages):
                return True
        return False


class PandoPrefillBudget(PrefillBudget):  # type: ignore[misc]
    """Admission is reservation: a prompt whose pages are not reserved is not admitted,
    however many pages are free or evictable at the moment. What SGLang counts beyond
    the prompt, tokens to be generated, stays its estimate."""

    def check_prefill(self, **asked: Any) -> tuple[bool, int | None]:
        if self.tree_cache.take_refusal():
            return False, None
        fits, chunk_limit = super().check_prefill(**asked)
        return (
            (fits, chunk_limit) if fits and self.allocator.secure(0) else (False, None)
        )

    def available_chunk_tokens(self, chunk_limit: int) -> int:
        """The pages of the whole prompt were reserved with its first chunk."""
        return chunk_limit
