"""mini-SGLang's cache manager, whose prefix cache is Pando's index.

The way of a request: `match_req` locks its prefix and reserves pages for all the rest
of its prompt and of its output, one call; `cache_req` publishes what is computed, after
the prompt and at the end, when it also releases the lock. mini-SGLang never takes a
request back, so all pages are reserved before it is admitted.
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

# Pages that are kept for the requests to come, at most.
_STASH_PAGES = 64


@dataclass(eq=False)
class Held:
    """What a request holds of Pando, from its match until its end.

    Without a lock, where Pando gave none, it publishes nothing.
    """

    lock_id: int
    tokens: int
    """How long the prefix is that the lock protects: whole pages, matched, then
    published."""
    page_ids: Uint32Array
    """The pages that were matched."""
    prompt_tokens: int
    promised: int
    """Free pages that it has yet to take."""
    is_over: bool = False
    duplicates: list[torch.Tensor] = field(default_factory=list)
    """Slots of own pages, still read, of what another worker had published first."""


@dataclass(frozen=True, eq=False)
class PandoHandle(BaseCacheHandle):  # type: ignore[misc]
    held: Held
    page_size: int

    def get_matched_indices(self) -> torch.Tensor:
        """The slots of the match."""
        pages = torch.from_numpy(self.held.page_ids.astype(np.int32))
        slots = pages[:, None] * self.page_size
        slots = slots + torch.arange(self.page_size, dtype=torch.int32)
        return slots.flatten()


class PandoCacheManager(CacheManager):  # type: ignore[misc]
    """`free_slots` are pages that the session has reserved and that hold nothing, by
    their first slot: no other worker can take them.

    Made by mini-SGLang's scheduler, whose thread alone calls it.
    """

    def __init__(
        self, num_pages: int, page_size: int, page_table: torch.Tensor, type: str
    ) -> None:
        # Not super().__init__(), which makes a prefix cache and free pages of its own.
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
        self._trim()
        # At least one token must be computed.
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
        """Asked only whether the last match may be admitted: if it has its pages."""
        return sys.maxsize if self._is_admitted else 0

    def lock(self, handle: PandoHandle) -> None:
        """Nothing: the match has locked."""

    def unlock(self, handle: PandoHandle) -> None:
        """Nothing: the end of the request unlocks."""

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
            # Aborted; the step that was under way ends only now.
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
        """Tokens whose KV is complete. mini-SGLang counts the step that is under way as
        done; the prompt is written when its first token has come of it."""
        known = len(req.input_ids)
        if known <= req.cache_handle.held.prompt_tokens:
            return 0
        return min(int(req.cached_len), known - 1)

    def _publish(
        self, req: Any, held: Held, row: torch.Tensor, end: int, *, is_last: bool
    ) -> int:
        """Returns up to which token pages are the request's no more."""
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
        """Pages that the session has reserved."""
        slots = (
            torch.from_numpy(page_ids.astype(np.int32)).to(self.device) * self.page_size
        )
        self.free_slots = torch.cat((self.free_slots, slots))

    def _trim(self) -> None:
        """Gives back what is spare, but for a stash, when it has become much. A step
        that is under way may still write there, and the next owner's device does not
        wait for this one."""
        stash = max(1, min(_STASH_PAGES, self.num_pages // _STASH_PAGES))
        spare = len(self.free_slots) - self._promised
        if spare <= 2 * stash:
            return
        torch.cuda.synchronize(self.device)
        kept = len(self.free_slots) - (spare - stash)
        given, self.free_slots = self.free_slots[kept:], self.free_slots[:kept]
        self.calls.free((given // self.page_size).cpu().numpy().astype(np.uint32))

    def check_integrity(self) -> None:
        """Called when no request is left."""
        self._trim()
        if self._promised != 0:
            raise RuntimeError(f"{self._promised} pages are promised to no request")
        if len(self.free_slots.unique()) != len(self.free_slots):
            raise RuntimeError("a page is free twice")


def _tokens(input_ids: torch.Tensor) -> Uint32Array:
    tokens: Uint32Array = input_ids.numpy().astype(np.uint32)
    return tokens
