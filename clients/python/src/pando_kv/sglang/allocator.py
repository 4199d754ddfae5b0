"""SGLang's allocator over the pages that the session has reserved."""

from __future__ import annotations

import time
from dataclasses import dataclass
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

# Seconds for which the last request that decodes waits for a page before it is
# retracted, and between two looks whether there is one.
_LAST_WAIT = 1.0
_PAUSE = 0.01


@dataclass(frozen=True)
class Shortage:
    """There is no page for the last request that decodes."""

    request: Any
    until: float
    """By then it has waited long enough."""


class PandoAllocator(PagedTokenToKVPoolAllocator):  # type: ignore[misc]
    """`free_pages` are pages that the session has reserved and that hold nothing: no
    other worker can take them. Nothing is counted on that is not among them.

    Made by SGLang, which knows no Pando by then; PandoPrefixCache adopts it. Not
    thread-safe: SGLang's scheduler is one thread.
    """

    cache: Any = None
    """The PandoPrefixCache."""
    free_pages: torch.Tensor
    clock = staticmethod(time.monotonic)
    shortage: Shortage | None = None
    """Since it was asked for pages to decode before."""
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
            self.cache.publish_along()
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

    # SGLang's scheduler calls these.

    def create_prefill_budget(
        self, tree_cache: Any, *, num_mixed_decode_tokens: int = 0
    ) -> PrefillBudget:
        # The queue is looked at anew.
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
        # Reserved with the match; if it was not, this is the last chance to get them.
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
        """Nothing: alloc_extend and check_decode_capacity see to it, and `num_tokens`
        overestimates what is needed."""

    def check_decode_capacity(
        self,
        *,
        num_tokens: int,
        tree_cache: Any,
        requests: Any = None,
        spec_algorithm: Any = None,
    ) -> bool:
        """The scheduler retracts requests until this is so."""
        return self._can_decode(num_tokens)

    def waits_to_decode(self, batch: Any) -> bool:
        """Whether this step is to be left out, because the last request waits for a
        page: retracted, it would lose to others what it has computed."""
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
        """Begins now, unless it has begun."""
        if self.shortage is None or self.shortage.request is not request:
            self.shortage = Shortage(request, self.clock() + _LAST_WAIT)
        return self.shortage

    def _lasts(self, shortage: Shortage) -> bool:
        """Whether to wait on, as rank 0 says. While pandod is away, nothing that is
        computed could be published."""
        calls = self.cache.calls
        is_time_left = self.clock() < shortage.until or calls.is_away
        is_wanted = shortage.request.to_finish is None
        return bool(calls.agree(is_time_left and is_wanted))


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
