"""When and how what a request has computed is published."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from pando_kv._wire import Uint32Array
from pando_kv.sglang.calls import Publication, ToPublish
from pando_kv.sglang.held_prefix import HeldPrefix, Publishing

# Fewer are not worth a call of their own: they go along with another one.
_FEW_PAGES = 16


class Publisher:
    """Owned by PandoPrefixCache, whose calls, fence and allocator it uses.

    A publication is not waited for: pandod works while the engine does. Its answer is
    taken before whatever comes next for the request, that of the last one before the
    next match.
    """

    def __init__(self, cache: Any) -> None:
        self._cache = cache
        self._page_size = int(cache.page_size)
        # Those that wait for the device, or for a call to go along with.
        self._late: list[HeldPrefix] = []
        self._collected: list[Publishing] = []  # to begin
        self._is_collecting = False
        self._ended: list[Publishing] = []  # the last of their requests

    def checkpoint(self, req: Any, up_to: int) -> None:
        held = req.last_node
        if not self._may_publish(held):
            return
        end = whole_pages(up_to, self._page_size)
        if req.finished():
            unwritten = self._cache.fence.unwritten_tokens
            self._publish_last(held, whole_pages(up_to - unwritten, self._page_size))
        elif end > held.tokens:
            # SGLang may be a step ahead of the device.
            held.waiting = (end, self._cache.fence.now())
            if held not in self._late:
                self._late.append(held)
            if self._is_long(held):
                self._publish_written([held])
        self._begin()

    def publish_what_will_run_again(self, req: Any) -> None:
        held = req.last_node
        # SGLang takes one that is retracted for one to abort.
        is_wanted = req.to_finish is None or req in self._cache.retractable
        will_run_again = not req.finished() and is_wanted
        if (
            self._may_publish(held)
            and will_run_again
            and not req.skip_radix_cache_insert
        ):
            self._cache.fence.now().wait()
            req.refresh_fill_ids()
            self._publish_last(held, whole_pages(req.owned_kv_len(), self._page_size))
            self._begin()

    def publish_late(self, *, goes_along: bool = False) -> None:
        """What is written by now: with the next call, or if some of it is worth one."""
        self._late = [held for held in self._late if held.waiting is not None]
        if goes_along or any(self._is_long(held) for held in self._late):
            self._publish_written(self._late)
            self._begin(goes_along=goes_along)

    @contextmanager
    def together(self) -> Iterator[None]:
        self._is_collecting = True
        try:
            yield
        finally:
            self._is_collecting = False
            self._begin()

    def _is_long(self, held: HeldPrefix) -> bool:
        if held.waiting is None:
            return False
        end, _ = held.waiting
        return end >= held.tokens + _FEW_PAGES * self._page_size

    def _publish_written(self, late: Sequence[HeldPrefix]) -> None:
        """As the device of rank 0 says, so that all ranks do alike: the others wait for
        theirs."""
        waiting = [(held, *held.waiting) for held in late if held.waiting is not None]
        if not waiting:
            return
        are_past = self._cache.calls.agree([m.is_past() for _, _, m in waiting])
        for (held, end, written), is_past in zip(waiting, are_past, strict=True):
            if not is_past:
                continue
            written.wait()
            held.waiting = None
            if self._may_publish(held):
                self.settle(held)
                held.publishing = self._collect(held, end)

    def _may_publish(self, held: HeldPrefix | None) -> bool:
        """KV of other weights than its prefix's is not published."""
        if held is None or not held.lock_id:
            return False
        return bool(held.weights == self._cache.weights)

    def settle(self, held: HeldPrefix) -> None:
        """Takes the answer of a publication that is under way."""
        publishing, held.publishing = held.publishing, None
        if publishing is None:
            return
        done = self._answer(publishing)
        if done is None:
            # What was not published is the request's own as before.
            self._move_end(held, publishing.begin, owned=publishing.page_ids.size)
        else:
            own = publishing.page_ids[: done.existing.size]
            held.duplicates.append(own[own != done.existing])

    def _publish_last(self, held: HeldPrefix, end: int) -> None:
        """With it the lock goes, and what is free."""
        self.settle(held)
        held.waiting = None
        freed = np.concatenate([*held.duplicates, self._allocator.take_spare()])
        end = max(end, held.tokens)
        self._ended.append(self._collect(held, end, is_last=True, freed=freed))
        held.lock_id, held.duplicates = 0, []

    def settle_ended(self) -> None:
        """Takes the answers to last publications."""
        ended, self._ended = self._ended, []
        for each in ended:
            done = self._answer(each)
            if done is None:
                self._allocator.add(each.freed)
                self._allocator.add(each.page_ids)
            if done is None or not done.is_answered:
                self._cache.calls.release([each.lock_id])

    def _collect(self, held: HeldPrefix, end: int, **options: Any) -> Publishing:
        request, begin = held.request, held.tokens
        row = self._cache.req_to_token_pool.req_to_token[request.kv.req_pool_idx]
        publishing = Publishing(
            begin=begin,
            slots=row[begin : end : self._page_size],
            tokens=as_tokens(request.full_untruncated_fill_ids[begin:end]),
            lock_id=held.lock_id,
            priority=request.priority or 0,
            **options,
        )
        self._collected.append(publishing)
        self._move_end(held, end, owned=-((end - begin) // self._page_size))
        return publishing

    def _begin(self, *, goes_along: bool = False) -> None:
        """Begins what was collected, but while SGLang gives what there is of a step."""
        if not self._is_collecting:
            self._send(goes_along=goes_along)

    def _send(self, *, goes_along: bool = False) -> None:
        if not self._collected:
            return
        collected, self._collected = self._collected, []
        # The device is waited for once.
        slots = torch.cat([each.slots for each in collected]).cpu().numpy()
        ends = np.cumsum([len(each.slots) for each in collected])
        page_ids = np.split((slots // self._page_size).astype(np.uint32), ends[:-1])
        for each, pages in zip(collected, page_ids, strict=True):
            each.page_ids = pages
        answers = self._cache.calls.publish(
            [
                ToPublish(
                    each.lock_id,
                    each.tokens,
                    each.page_ids,
                    each.is_last,
                    each.priority,
                    each.freed,
                )
                for each in collected
            ],
            goes_along=goes_along,
        )
        for each, answer in zip(collected, answers, strict=True):
            each.answer = answer

    def _answer(self, publishing: Publishing) -> Publication | None:
        if publishing.answer is None:
            self._send()
        assert publishing.answer is not None
        return publishing.answer()

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
