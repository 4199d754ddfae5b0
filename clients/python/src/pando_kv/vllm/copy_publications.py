"""What becomes of copies under way in the copy mode: what is written is published, what
failed is given up."""

from __future__ import annotations

import functools

import numpy as np

from pando_kv import Client, Insert, Lock
from pando_kv._call import is_unsettled
from pando_kv._wire import Uint32Array
from pando_kv.errors import PandoError
from pando_kv.vllm.access import Access
from pando_kv.vllm.copy_plan import CopyReport
from pando_kv.vllm.tracked_request import GivenUp, Save, Tracked

_NO_PAGES = np.empty(0, np.uint32)


class CopyPublications:
    """Owned by CopyScheduler, whose thread alone calls it. A copy has a number, and is
    done when every worker has said so."""

    def __init__(self, access: Access, workers: int) -> None:
        self._access = access
        self._workers = workers
        self._done: dict[int, int] = {}  # by copy: workers that are done
        self._given_up: list[GivenUp] = []
        self._last_copy = 0

    def next_copy(self) -> int:
        self._last_copy += 1
        return self._last_copy

    @property
    def given_up(self) -> list[Save]:
        """Saves that came to nothing, but may still be under way."""
        return [given_up.save for given_up in self._given_up]

    def take(self, report: CopyReport, everyone: list[Tracked]) -> None:
        """What the workers have done."""
        for number, workers in report.done.items():
            self._done[number] = self._done.get(number, 0) + workers
        if report.failed:
            self._give_up(report.failed, everyone)

    def publish(self, tracked: Tracked) -> None:
        """What is written, in order; with the last of a request that is over its lock
        goes, too."""
        if tracked.loading and self._is_done(tracked.loading):
            del self._done[tracked.loading]
            tracked.loading = 0
        saves, count = tracked.saves, 0
        while count < len(saves) and self._is_done(saves[count].number):
            count += 1
        is_under_way = count < len(saves) or tracked.loading
        is_last = tracked.is_over and not is_under_way
        if not is_last and not self._access.is_open:
            return
        done, tracked.saves = saves[:count], saves[count:]
        for save in done:
            del self._done[save.number]
        lock = tracked.lock
        is_void = not self._access.is_present(tracked.generation)
        if lock is None or is_void or not (done or is_last):
            return
        pages = np.concatenate([_NO_PAGES, *(save.page_ids for save in done)])
        if tracked.is_closed:
            self._access.ask(lambda client: _drop(client, lock, pages, is_last))
        else:
            end = done[-1].end if done else tracked.published
            tokens = tracked.tokens.upto(end)[tracked.published :]
            tracked.published = end
            insert = functools.partial(
                _insert, lock=lock, tokens=tokens, pages=pages, is_last=is_last
            )
            tracked.is_closed = self._access.ask(insert) is None
        if is_last:
            tracked.lock = None

    def free_given_up(self) -> None:
        """Pages that no worker writes to any more."""
        waiting, self._given_up = self._given_up, []
        for each in waiting:
            if self._is_done(each.save.number):
                del self._done[each.save.number]
                self._access.ask(each.free)
            else:
                self._given_up.append(each)

    def _is_done(self, number: int) -> bool:
        return self._done.get(number, 0) >= self._workers

    def _give_up(self, numbers: set[int], everyone: list[Tracked]) -> None:
        """What was not saved, and what comes after it, cannot be published; nor can
        what anybody computed from blocks whose load failed: with its prefix cache vLLM
        gives them to several requests."""
        bad: set[int] = set()
        for tracked in everyone:
            if tracked.loading in numbers:
                bad.update(tracked.loading_into)
                # vLLM may ask again: what has failed once is computed.
                tracked.matched = 0
        for tracked in everyone:
            first = 0
            if bad.isdisjoint(tracked.block_ids):
                saved = [save.number not in numbers for save in tracked.saves]
                first = saved.index(False) if False in saved else len(saved)
            dropped = tracked.saves[first:]
            if not dropped:
                continue
            del tracked.saves[first:]
            self._given_up += (GivenUp(save, tracked.generation) for save in dropped)
            tracked.saved = (
                tracked.saves[-1].end if tracked.saves else tracked.published
            )


def _insert(
    client: Client, lock: Lock, tokens: Uint32Array, pages: Uint32Array, is_last: bool
) -> Insert:
    """What pandod does not publish is freed, and the last lock released all the same.
    Where there is no answer the client goes on asking."""
    try:
        return client.insert(
            tokens, pages, lock=lock, relock=not is_last, unlock=is_last
        )
    except PandoError as error:
        if not is_unsettled(error):
            _drop(client, lock, pages, is_last)
        raise


def _drop(client: Client, lock: Lock, pages: Uint32Array, is_last: bool) -> None:
    """Where the first call has no answer the second is made all the same."""
    try:
        if pages.size:
            client.free_pages(pages)
    finally:
        if is_last:
            client.unlock(lock)
