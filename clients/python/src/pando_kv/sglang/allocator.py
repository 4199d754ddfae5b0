"""SGLang's allocator, which hands out pages that the session has reserved."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sglang.srt.mem_cache.allocator import PagedTokenToKVPoolAllocator
from sglang.srt.mem_cache.prefill_budget import PrefillBudget

from pando_kv._wire import Uint32Array

# When decoding needs a page, the allocator reserves up to _STASH_PAGES at once, but at
# most the pages of the pool divided by _STASH_SHARE.
_STASH_PAGES = 64
_STASH_SHARE = 64

# Both are seconds. The last request that decodes waits _LAST_WAIT for a page before it
# is retracted, and looks for one every _PAUSE.
_LAST_WAIT = 1.0
_PAUSE = 0.01


@dataclass(frozen=True)
class Shortage:
    """A lack of pages for the last request that decodes."""

    request: Any
    until: float
    """The time, on the allocator's clock, at which the request has waited long
    enough."""


class PandoAllocator(PagedTokenToKVPoolAllocator):  # type: ignore[misc]
    """SGLang's paged allocator over reserved pages.

    `free_pages` are pages that the session has reserved and that hold nothing, so no
    other worker can take them. The allocator counts on no other pages.

    SGLang makes and owns it, before Pando's cache exists; PandoPrefixCache then sets
    `cache`. Not thread-safe: only the scheduler's thread uses it.
    """

    cache: Any = None
    """The PandoPrefixCache, once it exists."""
    free_pages: torch.Tensor
    clock = staticmethod(time.monotonic)
    shortage: Shortage | None = None
    """The current shortage; None since the last time that there were enough pages."""
    owned = 0
    """The number of pages that the session has reserved: the free ones, and those of
    requests that are not published."""

    def clear(self) -> None:
        """Gives the free pages back to pandod. At SGLang's first call there are none,
        and there is no cache."""
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
        """Returns the number of free pages that are not promised to an admitted
        prompt."""
        return self.free_page_count() - int(self.cache.promised_pages())

    def add(self, page_ids: Uint32Array) -> None:
        """Adds pages that the session has reserved to the free ones."""
        if not page_ids.size:
            return
        self.owned += page_ids.size
        added = torch.from_numpy(page_ids.astype(np.int64)).to(self.device)
        self.free_pages = torch.cat((self.free_pages, added))

    def secure(self, pages: int) -> bool:
        """Returns whether at least `pages` pages are spare. Reserves more pages first
        if they are not."""
        short = pages - self.spare_pages()
        if short > 0:
            self.cache.publish_along()
            self.add(self.cache.calls.allocate(max(short, self.stash_pages)))
        return self.spare_pages() >= pages

    def trim(self) -> None:
        """Gives spare pages back, except for one stash, once there are more than two
        stashes."""
        spare = self.spare_pages()
        if spare > 2 * self.stash_pages:
            self._give_back(spare - self.stash_pages)

    def take_spare(self) -> Uint32Array:
        """Takes and returns the pages that trim() would give back. The caller's next
        call frees them."""
        spare = self.spare_pages()
        if spare <= 2 * self.stash_pages:
            return np.empty(0, np.uint32)
        return self._take(spare - self.stash_pages)

    def _give_back(self, pages: int) -> None:
        if pages > 0:
            self.cache.calls.free(self._take(pages))

    def _take(self, pages: int) -> Uint32Array:
        """Removes `pages` pages from the free ones and returns them. Waits until the
        device no longer writes to them, because pandod may give them to another worker
        at once, whose device does not wait for ours."""
        self.cache.fence.now().wait()
        self.merge_and_sort_free()
        keep = len(self.free_pages) - pages
        taken, self.free_pages = self.free_pages[keep:], self.free_pages[:keep]
        self.owned -= pages
        page_ids: Uint32Array = taken.cpu().numpy().astype(np.uint32)
        return page_ids

    # SGLang's scheduler calls the methods below.

    def create_prefill_budget(
        self, tree_cache: Any, *, num_mixed_decode_tokens: int = 0
    ) -> PrefillBudget:
        # A new pass over the queue begins, so matches of the last pass are dropped.
        tree_cache.drop_unused_matches()
        tree_cache.calls.look()
        return PandoPrefillBudget(
            self, tree_cache, num_mixed_decode_tokens=num_mixed_decode_tokens
        )

    def alloc_extend(
        self,
        prefix_lens: torch.Tensor,
        prefix_lens_cpu: torch.Tensor,
        seq_lens: torch.Tensor,
        seq_lens_cpu: torch.Tensor,
        last_loc: torch.Tensor,
        extend_num_tokens: int,
        num_new_pages: int | None = None,
    ) -> Any:
        if num_new_pages is None:
            page = self.page_size
            before = (prefix_lens_cpu + page - 1) // page
            after = (seq_lens_cpu + page - 1) // page
            num_new_pages = int((after - before).sum())
        # The match reserves these pages. If it did not, this is the last chance to
        # reserve them.
        short = num_new_pages - self.free_page_count()
        if short > 0:
            self.add(self.cache.calls.allocate(short))
        return super().alloc_extend(
            prefix_lens,
            prefix_lens_cpu,
            seq_lens,
            seq_lens_cpu,
            last_loc,
            extend_num_tokens,
            num_new_pages,
        )

    def evict_to_free_tokens(self, tree_cache: Any, num_tokens: int) -> None:
        """Does nothing: alloc_extend and check_decode_capacity reserve the pages that
        are needed, and `num_tokens` overestimates them."""

    def check_decode_capacity(
        self,
        *,
        num_tokens: int,
        tree_cache: Any,
        requests: Any = None,
        spec_algorithm: Any = None,
    ) -> bool:
        """Returns whether there are pages for `num_tokens` more tokens. The scheduler
        retracts requests until there are."""
        return self._can_decode(num_tokens)

    def waits_to_decode(self, batch: Any) -> bool:
        """Returns whether this step is to be left out because the last request waits
        for a page. If that request were retracted, others could take the pages that it
        has computed."""
        if batch.batch_size() != 1:
            return False
        if self._can_decode(batch.new_tokens_required_next_decode()):
            return False
        if not self._lasts(self._shortage_of(batch.reqs[0])):
            return False
        time.sleep(_PAUSE)
        return True

    def _can_decode(self, tokens: int) -> bool:
        self.cache.begin_decode()
        if not self.secure(-(-tokens // self.page_size)):
            return False
        self.shortage = None
        return True

    def _shortage_of(self, request: Any) -> Shortage:
        """Returns the shortage of the request, which begins now unless it has begun."""
        if self.shortage is None or self.shortage.request is not request:
            self.shortage = Shortage(request, self.clock() + _LAST_WAIT)
        return self.shortage

    def _lasts(self, shortage: Shortage) -> bool:
        """Returns whether the wait goes on, as rank 0 decides. The wait has no time
        limit while pandod is away, because a retracted request could not publish what
        it has computed."""
        calls = self.cache.calls
        is_time_left = self.clock() < shortage.until or calls.is_away
        is_wanted = shortage.request.to_finish is None
        return bool(calls.agree(is_time_left and is_wanted))


class PandoPrefillBudget(PrefillBudget):  # type: ignore[misc]
    """A prefill budget that admits a prompt only if its pages are reserved, however
    many pages are free or evictable at the moment. SGLang's estimate of the tokens that
    will be generated stays as it is. The allocator makes one for each pass over the
    queue; the scheduler's thread alone uses it."""

    def check_prefill(self, **asked: Any) -> tuple[bool, int | None]:
        if self.tree_cache.take_refusal():
            return False, None
        fits, chunk_limit = super().check_prefill(**asked)
        return (
            (fits, chunk_limit) if fits and self.allocator.secure(0) else (False, None)
        )

    def available_chunk_tokens(self, chunk_limit: int) -> int:
        """Returns `chunk_limit` as it is: the pages of the whole prompt were reserved
        with its first chunk."""
        return chunk_limit
