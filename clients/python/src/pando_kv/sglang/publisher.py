"""The publisher, which decides when and how computed pages are published."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from pando_kv._wire import Uint32Array
from pando_kv.sglang.calls import Publication, ToPublish
from pando_kv.sglang.held_prefix import HeldPrefix, Publishing

# Fewer pages are not worth a call of their own, and go along with another call.
_FEW_PAGES = 16


class Publisher:
    """The publications of one PandoPrefixCache, which owns it and whose calls, fence
    and allocator it uses. The scheduler's thread alone uses it.

    The engine goes on while pandod handles a publication. Its answer is taken before
    the next operation on the same request. The answer to a request's last publication
    is taken before the next match.
    """

    def __init__(self, cache: Any) -> None:
        self._cache = cache
        self._page_size = int(cache.page_size)
        # The prefixes whose new pages wait for the device, or for a call to go along
        # with.
        self._late: list[HeldPrefix] = []
        # The publications that are not sent yet.
        self._collected: list[Publishing] = []
        self._is_collecting = False
        # The last publications of requests whose answers were not taken yet.
        self._ended: list[Publishing] = []

    def checkpoint(self, req: Any, up_to: int) -> None:
        held = req.last_node
        if not self._may_publish(held):
            return
        end = whole_pages(up_to, self._page_size)
        if req.finished():
            unwritten = self._cache.fence.unwritten_tokens
            self._publish_last(held, whole_pages(up_to - unwritten, self._page_size))
        elif end > held.tokens:
            # SGLang may be one step ahead of the device.
            held.waiting = (end, self._cache.fence.now())
            if held not in self._late:
                self._late.append(held)
            if self._is_long(held):
                self._publish_written([held])
        self._begin()

    def publish_what_will_run_again(self, req: Any) -> None:
        held = req.last_node
        # SGLang marks a request to be aborted even if the hook will retract it instead.
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
        """Publishes what the device has written by now: with `goes_along` in the next
        call, else only if one request has enough pages for a call of its own."""
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
        """Publishes the pages that the device of rank 0 has written. The other ranks
        wait for their devices, so all ranks publish the same pages."""
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
        """Returns whether the request may publish: it must have a lock, and the weights
        must still be those that its prefix was computed with."""
        if held is None or not held.lock_id:
            return False
        return bool(held.weights == self._cache.weights)

    def settle(self, held: HeldPrefix) -> None:
        """Takes the answer to the publication of a request, if there is one."""
        publishing, held.publishing = held.publishing, None
        if publishing is None:
            return
        done = self._answer(publishing)
        if done is None:
            # Pages that were not published belong to the request, as before.
            self._move_end(held, publishing.begin, owned=publishing.page_ids.size)
        else:
            own = publishing.page_ids[: done.existing.size]
            held.duplicates.append(own[own != done.existing])

    def _publish_last(self, held: HeldPrefix, end: int) -> None:
        """Collects the last publication of a request, whose call also releases the lock
        and frees the duplicates and spare pages."""
        self.settle(held)
        held.waiting = None
        freed = np.concatenate([*held.duplicates, self._allocator.take_spare()])
        end = max(end, held.tokens)
        self._ended.append(self._collect(held, end, is_last=True, freed=freed))
        held.lock_id, held.duplicates = 0, []

    def settle_ended(self) -> None:
        """Takes the answers to the last publications of requests that ended."""
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
        """Sends the collected publications, unless the publications of a step are still
        being collected."""
        if not self._is_collecting:
            self._send(goes_along=goes_along)

    def _send(self, *, goes_along: bool = False) -> None:
        if not self._collected:
            return
        collected, self._collected = self._collected, []
        # One copy from the device for all publications waits for the device only once.
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
    """Returns the first `count` ids as uint32. An array('q') is read without a copy."""
    return np.asarray(token_ids, np.int64)[:count].astype(np.uint32)


def whole_pages(tokens: int, page_tokens: int) -> int:
    return tokens // page_tokens * page_tokens
