"""mini-SGLang's cache manager, with the index of pandod as its prefix cache.

`match_req` locks the cached prefix of a request, and reserves pages for the rest of the
prompt and for the whole output, in one call. `cache_req` publishes computed pages after
the prompt and at the end, when it also releases the lock. mini-SGLang never preempts a
request, so all its pages are reserved before it is admitted.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from minisgl.kvcache import BaseCacheHandle, MatchResult
from minisgl.scheduler.cache import CacheManager
from minisgl.utils import div_ceil

from pando_kv._wire import Uint32Array
from pando_kv.minisgl.kv_cache import session
from pando_kv.sglang.calls import Calls, ToPublish

# The most spare pages that are kept for later requests.
_STASH_PAGES = 64


@dataclass(eq=False)
class Held:
    """The lock and pages of one request, from its match until its end. The request's
    handle owns it; the scheduler's thread alone uses it.

    If `lock_id` is 0, pandod gave no lock, and the request publishes nothing.
    """

    lock_id: int
    tokens: int
    """The tokens of the prefix that the lock protects. They fill whole pages, which
    were matched or published."""
    page_ids: Uint32Array
    """The pages of the matched prefix."""
    prompt_tokens: int
    promised: int
    """The number of free pages that the request has yet to take."""
    is_over: bool = False
    duplicates: list[torch.Tensor] = field(default_factory=list)
    """First slots of the request's own pages whose content another session had
    published first. The request still reads them, so they become free at its end."""


@dataclass(frozen=True, eq=False)
class PandoHandle(BaseCacheHandle):  # type: ignore[misc]
    """mini-SGLang's reference to the match of one request, which the request owns."""

    held: Held
    page_size: int

    def get_matched_indices(self) -> torch.Tensor:
        """Returns the slots of the match, one for each matched token: int32, on the
        CPU."""
        pages = torch.from_numpy(self.held.page_ids.astype(np.int32))
        slots = pages[:, None] * self.page_size
        slots = slots + torch.arange(self.page_size, dtype=torch.int32)
        return slots.flatten()


class PandoCacheManager(CacheManager):  # type: ignore[misc]
    """The cache manager of one mini-SGLang scheduler, which owns it; the scheduler's
    thread alone calls it.

    `free_slots` has the first slot of each page that the session has reserved and that
    holds nothing. No other session can take these pages.
    """

    def __init__(
        self, num_pages: int, page_size: int, page_table: torch.Tensor, type: str
    ) -> None:
        # super().__init__() is not called: it makes a prefix cache and free pages.
        self.device = page_table.device
        self.num_pages = num_pages
        self.page_size = page_size
        self.page_table = page_table
        self.free_slots = torch.empty(0, dtype=torch.int32, device=self.device)
        self.calls = Calls(session(), lambda answer: answer)
        self._promised = 0
        self._is_admitted = False

    # Admission.

    def match_req(self, req: Any) -> MatchResult:
        """Locks the cached prefix and reserves pages for the rest of the request. If
        there is no room or no answer, the match is empty and `available_size` is 0,
        so mini-SGLang does not admit the request."""
        self._trim()
        # The model must compute at least one token, so the last one is not matched.
        whole = (req.input_len - 1) // self.page_size * self.page_size
        prompt = _tokens(req.input_ids[:whole])
        needed = div_ceil(req.input_len + req.output_len, self.page_size)
        spare = len(self.free_slots) - self._promised
        reserve = max(0, needed - spare) * self.page_size
        admission = self.calls.admit(prompt, None, reserve)
        self._is_admitted = admission is not None
        if admission is None:
            nothing = Held(0, 0, np.empty(0, np.uint32), req.input_len, 0)
            return MatchResult(PandoHandle(0, nothing, self.page_size))
        self._add(admission.reserved)
        held = Held(
            lock_id=admission.lock_id,
            tokens=admission.tokens,
            page_ids=admission.page_ids,
            prompt_tokens=req.input_len,
            promised=needed - admission.page_ids.size,
        )
        self._promised += held.promised
        return MatchResult(PandoHandle(admission.tokens, held, self.page_size))

    @property
    def available_size(self) -> int:
        """Returns a size that mini-SGLang compares with what the last match needs, to
        decide on its admission: unlimited if its pages are reserved, or else 0."""
        return sys.maxsize if self._is_admitted else 0

    def lock(self, handle: PandoHandle) -> None:
        """Does nothing, because the match has locked the prefix."""

    def unlock(self, handle: PandoHandle) -> None:
        """Does nothing, because the end of the request releases the lock."""

    def allocate_paged(self, reqs: list[Any]) -> None:
        for req in reqs:
            before = div_ceil(req.cached_len, self.page_size)
            after = div_ceil(req.device_len, self.page_size)
            held = req.cache_handle.held
            held.promised -= after - before
            self._promised -= after - before
        super().allocate_paged(reqs)

    def _allocate(self, needed_pages: int) -> torch.Tensor:
        assert needed_pages <= len(self.free_slots), (
            "pages are reserved at the admission"
        )
        allocated = self.free_slots[:needed_pages]
        self.free_slots = self.free_slots[needed_pages:]
        return allocated

    # Publication.

    def cache_req(self, req: Any, *, finished: bool) -> None:
        held = req.cache_handle.held
        if held.is_over:
            # The request was aborted during a step, and that step ends only now.
            return
        held.is_over = finished
        row = self.page_table[req.table_idx]
        allocated = div_ceil(req.cached_len, self.page_size) * self.page_size
        end = held.tokens
        if held.lock_id:
            end = max(end, self._written(req) // self.page_size * self.page_size)
            if finished or end > held.tokens:
                end = self._publish(req, held, row, end, is_last=finished)
        if finished:
            self._free(row[end:allocated])
            for slots in held.duplicates:
                self.free_slots = torch.cat((self.free_slots, slots))
            self._promised -= held.promised
            held.promised = 0

    def _written(self, req: Any) -> int:
        """Returns the number of tokens whose KV is complete. mini-SGLang counts the
        step under way as done, so `cached_len` may be too large; the KV of the prompt
        is complete when the first token of the output is known."""
        known = len(req.input_ids)
        if known <= req.cache_handle.held.prompt_tokens:
            return 0
        return min(int(req.cached_len), known - 1)

    def _publish(
        self, req: Any, held: Held, row: torch.Tensor, end: int, *, is_last: bool
    ) -> int:
        """Publishes the pages of tokens from `held.tokens` to `end`. Returns the token
        up to which the pages no longer belong to the request."""
        slots = row[held.tokens : end : self.page_size]
        page_ids = (slots // self.page_size).cpu().numpy().astype(np.uint32)
        tokens = _tokens(req.input_ids[held.tokens : end])
        (answer,) = self.calls.publish(
            [ToPublish(held.lock_id, tokens, page_ids, is_last)]
        )
        done = answer()
        if is_last and (done is None or not done.is_answered):
            self.calls.release([held.lock_id])
        if done is None:
            return held.tokens
        held.tokens = end
        if not is_last:
            own = torch.from_numpy(page_ids[: done.existing.size] != done.existing)
            held.duplicates.append(slots[: done.existing.size][own.to(slots.device)])
        return end

    # Pages.

    def _add(self, page_ids: Uint32Array) -> None:
        """Adds pages that the session has reserved."""
        slots = (
            torch.from_numpy(page_ids.astype(np.int32)).to(self.device) * self.page_size
        )
        self.free_slots = torch.cat((self.free_slots, slots))

    def _trim(self) -> None:
        """Gives spare pages back, except for a stash, if more than twice the stash are
        spare. Waits for the GPU first: a step under way may still write to these pages,
        and the GPU of the next owner does not wait for this one."""
        stash = max(1, min(_STASH_PAGES, self.num_pages // _STASH_PAGES))
        spare = len(self.free_slots) - self._promised
        if spare <= 2 * stash:
            return
        torch.cuda.synchronize(self.device)
        kept = len(self.free_slots) - (spare - stash)
        given, self.free_slots = self.free_slots[kept:], self.free_slots[:kept]
        self.calls.free((given // self.page_size).cpu().numpy().astype(np.uint32))

    def check_integrity(self) -> None:
        """Raises RuntimeError if pages are still promised or a page is free twice. To
        be called when no request is left."""
        self._trim()
        if self._promised != 0:
            raise RuntimeError(f"{self._promised} pages are promised to no request")
        if len(self.free_slots.unique()) != len(self.free_slots):
            raise RuntimeError("a page is free twice")


def _tokens(input_ids: torch.Tensor) -> Uint32Array:
    tokens: Uint32Array = input_ids.numpy().astype(np.uint32)
    return tokens
