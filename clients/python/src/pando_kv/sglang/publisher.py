"""When and how what a request has computed is published."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pando_kv._wire import Uint32Array
from pando_kv.sglang.device_fence import Moment
from pando_kv.sglang.held_prefix import HeldPrefix, Publishing

_NO_PAGES = np.empty(0, np.uint32)

# Fewer are not worth a call of their own: they are published with the last.
_FEW_PAGES = 16


@dataclass(frozen=True, eq=False)
class Ended:
    """The last publication of a request."""

    lock_id: int
    publishing: Publishing
    freed: Uint32Array


class Publisher:
    """Owned by PandoPrefixCache, whose calls, fence and allocator it uses.

    A publication is not waited for: pandod works while the engine does. Its answer is
    taken before whatever comes next for the request, that of the last one before the
    next match.
    """

    def __init__(self, cache: Any) -> None:
        self._cache = cache
        self._page_size = int(cache.page_size)
        self._late: list[HeldPrefix] = []  # whose publication waits for the device
        self._ended: list[Ended] = []

    def checkpoint(self, req: Any, up_to: int) -> None:
        held = req.last_node
        if not self._may_publish(held):
            return
        end = whole_pages(up_to, self._page_size)
        if req.finished():
            unwritten = self._cache.fence.unwritten_tokens
            self._publish_last(held, whole_pages(up_to - unwritten, self._page_size))
        elif end >= held.tokens + _FEW_PAGES * self._page_size:
            # SGLang may be a step ahead of the device.
            written = self._cache.fence.now()
            if self._is_past(written):
                self._publish(held, end)
            else:
                if held not in self._late:
                    self._late.append(held)
                held.waiting = (end, written)

    def publish_what_will_run_again(self, req: Any) -> None:
        held = req.last_node
        will_run_again = not req.finished() and req.to_finish is None
        if (
            self._may_publish(held)
            and will_run_again
            and not req.skip_radix_cache_insert
        ):
            self._cache.fence.now().wait()
            req.refresh_fill_ids()
            self._publish_last(held, whole_pages(req.owned_kv_len(), self._page_size))

    def publish_late(self) -> None:
        late, self._late = self._late, []
        for held in late:
            if held.waiting is None:
                continue
            end, written = held.waiting
            if not self._is_past(written):
                self._late.append(held)
                continue
            if self._may_publish(held):
                self._publish(held, end)

    def _may_publish(self, held: HeldPrefix | None) -> bool:
        """KV of other weights than its prefix's is nobody's prefix."""
        if held is None or not held.lock_id:
            return False
        return bool(held.weights == self._cache.weights)

    def _is_past(self, written: Moment) -> bool:
        """As the device of rank 0 says, so that all ranks do alike: the others wait for
        theirs."""
        is_past: bool = self._cache.calls.agree(written.is_past())
        if is_past:
            written.wait()
        return is_past

    def settle(self, held: HeldPrefix) -> None:
        """Takes the answer of a publication that is under way."""
        publishing, held.publishing = held.publishing, None
        if publishing is None:
            return
        done = publishing.answer()
        if done is None:
            self._take_back(held, publishing)
        else:
            own = publishing.page_ids[: done.existing.size]
            held.duplicates.append(own[own != done.existing])

    def _publish(self, held: HeldPrefix, end: int) -> None:
        self.settle(held)
        held.waiting = None
        held.publishing = self._begin(held, end)

    def _publish_last(self, held: HeldPrefix, end: int) -> None:
        """With it the lock goes, and what is free."""
        self.settle(held)
        freed = np.concatenate([*held.duplicates, self._allocator.take_spare()])
        publishing = self._begin(held, max(end, held.tokens), is_last=True, free=freed)
        self._ended.append(Ended(held.lock_id, publishing, freed))
        held.lock_id, held.duplicates = 0, []

    def settle_ended(self) -> None:
        """Takes the answers to last publications."""
        ended, self._ended = self._ended, []
        for each in ended:
            done = each.publishing.answer()
            if done is None:
                self._allocator.add(each.freed)
                self._allocator.add(each.publishing.page_ids)
            if done is None or not done.is_answered:
                self._cache.calls.release([each.lock_id])

    def _begin(
        self,
        held: HeldPrefix,
        end: int,
        *,
        is_last: bool = False,
        free: Uint32Array = _NO_PAGES,
    ) -> Publishing:
        request, begin = held.request, held.tokens
        row = self._cache.req_to_token_pool.req_to_token[request.kv.req_pool_idx]
        slots = row[begin : end : self._page_size].cpu().numpy()
        page_ids = (slots // self._page_size).astype(np.uint32)
        answer = self._cache.calls.publish(
            held.lock_id,
            as_tokens(request.full_untruncated_fill_ids[begin:end]),
            page_ids,
            is_last=is_last,
            priority=request.priority or 0,
            free=free,
        )
        self._move_end(held, end, owned=-page_ids.size)
        return Publishing(begin, page_ids, answer)

    def _take_back(self, held: HeldPrefix, publishing: Publishing) -> None:
        """What was not published is the request's own as before."""
        self._move_end(held, publishing.begin, owned=publishing.page_ids.size)

    def _move_end(self, held: HeldPrefix, end: int, *, owned: int) -> None:
        held.tokens = end
        held.request.kv.cache_protected_len = end
        self._allocator.owned += owned

    @property
    def _allocator(self) -> Any:
        return self._cache.token_to_kv_pool_allocator


def as_tokens(token_ids: Any, count: int | None = None) -> Uint32Array:
    """The first `count` ids as uint32; an array('q') is read in place."""
    return np.asarray(token_ids, np.int64)[:count].astype(np.uint32)


def whole_pages(tokens: int, page_tokens: int) -> int:
    return tokens // page_tokens * page_tokens
