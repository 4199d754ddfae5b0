"""Pages in vLLM's scheduler: admissions and publications.

The way of a request: its lookup locks the cached prefix and reserves pages for the rest
of the prompt, one call; its computed pages are published in place, the last publication
releases the lock. vLLM's prefix cache is not used, Pando's index takes its place.
"""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np

from pando_kv import Client
from pando_kv._room import Refusals, allocate_what_there_is
from pando_kv._tier_waits import Prompt, TierWaits
from pando_kv._wire import Uint32Array
from pando_kv.errors import (
    AwayError,
    DeadlineError,
    DrainingError,
    PandoError,
    PoolExhaustedError,
    QuotaExceededError,
    SessionLimitError,
    UnavailableError,
)
from pando_kv.vllm.identity import Tokens, can_be_cached, namespace_of
from pando_kv.vllm.pages.admitted_request import Admitted
from pando_kv.vllm.pages.only_session import OnlySession
from pando_kv.vllm.pages.shared_block_pool import SharedBlockPool
from pando_kv.vllm.pages.step_plan import StepPlan

_NO_PAGES = np.empty(0, np.uint32)
# There is no room, or pandod drains: what waits asks again in its next step.
_NOT_NOW = (PoolExhaustedError, QuotaExceededError, SessionLimitError, DrainingError)
# Fewer are not worth a call of their own: they are published with the last.
_FEW_PAGES = 4


class PageScheduler:
    """Owned by the scheduler's connector; its thread alone calls it."""

    def __init__(
        self, client: Client, block_tokens: int, stash_pages: int, wait: float = 0.0
    ) -> None:
        """`wait` is how many seconds a request may wait for what a tier loads."""
        self._client = client
        self._tier_waits = TierWaits(client, wait)
        self._session = OnlySession(client)
        self._refusals = Refusals(client)
        self._block_tokens = block_tokens
        self._stash_pages = stash_pages
        self._admitted: dict[str, Admitted] = {}
        self._growing: list[Admitted] = []  # whose prompts have not all their blocks
        self._generation = ""  # of the cache, as this engine sees it
        # From bind() on.
        self._manager: Any
        self._pool: SharedBlockPool

    def bind(self, manager: Any) -> None:
        """Takes vLLM's block pool and its lookups over."""
        pool = manager.block_pool
        if not manager.enable_caching:
            raise ValueError("PandoConnector needs --enable-prefix-caching")
        if pool.num_gpu_blocks != self._client.pool.capacity_pages:
            raise ValueError(
                f"the engine has {pool.num_gpu_blocks} blocks and the pool of pandod "
                f"{self._client.pool.capacity_pages} pages; start the engine with "
                f"--num-gpu-blocks-override {self._client.pool.capacity_pages}"
            )
        pool.__class__ = SharedBlockPool
        pool.adopt(self._allocate, self._give_back, self._promised, self._stash_pages)
        manager.get_computed_blocks = self.computed_blocks
        self._manager, self._pool = manager, pool

    def computed_blocks(
        self, request: Any, max_cache_hit_length: int | None = None
    ) -> tuple[Any, int, int]:
        """vLLM's lookup: the blocks and the tokens of the cached prefix. Asked each
        step while a request waits; the match, its lock and its pages are kept. One
        that is held back is not matched yet: is_held_back() says so next."""
        admitted = self._admitted.get(request.request_id)
        if admitted is not None and admitted.is_of_before:
            self._release(request.request_id)
            admitted = None
        if admitted is not None:
            self._secure(0)
        elif not can_be_cached(request):
            self._secure(self._prompt_blocks(request))
        elif not self._holds_back(request):
            admitted = self._admit(request)
        found = admitted.blocks if admitted is not None else []
        if max_cache_hit_length is not None:
            found = found[: max_cache_hit_length // self._block_tokens]
        if not found:
            return self._manager.empty_kv_cache_blocks, 0, 0
        blocks = self._manager.create_kv_cache_blocks((list(found),))
        return blocks, len(found) * self._block_tokens, 0

    def is_held_back(self, request: Any) -> bool:
        return self._tier_waits.is_held(request.request_id)

    def plan(self, output: Any) -> StepPlan:
        self._session.require()
        for request_id in output.preempted_req_ids or ():
            admitted = self._admitted.get(request_id)
            # After a reset a request is preempted and begins again in one step.
            if admitted is not None and admitted.is_of_before:
                self._release(request_id)
        self._pool.begin_step()
        self._tier_waits.begin_step()
        return StepPlan(self._session.session_id)

    def finish_step(self) -> None:
        """A step is done: what it has computed is complete."""
        for admitted in self._admitted.values():
            request = admitted.request
            whole = self._whole(request.num_computed_tokens, request)
            if whole >= admitted.published + _FEW_PAGES * self._block_tokens:
                (block_ids,) = self._manager.get_block_ids(request.request_id)
                self._publish(admitted, block_ids, whole)

    def end(self, request_id: str, block_ids: list[int]) -> None:
        """The request is finished or aborted; its blocks are freed next."""
        admitted = self._admitted.get(request_id)
        if admitted is not None:
            request = admitted.request
            whole = self._whole(request.num_computed_tokens, request)
            whole = min(whole, len(block_ids) * self._block_tokens)
            if whole > admitted.published:
                self._publish(admitted, block_ids, whole, is_last=True)
        self._release(request_id)

    def reset(self) -> None:
        """What is cached is not found any more, by this engine: others share it.
        Requests that wait have found nothing; what runs on publishes nothing more."""
        self._generation = uuid.uuid4().hex
        self._tier_waits.keep(())
        for request_id, admitted in list(self._admitted.items()):
            admitted.is_closed = True
            if admitted.request.num_computed_tokens == 0:
                self._release(request_id)

    def _holds_back(self, request: Any) -> bool:
        """Whether a tier loads what it has of the prompt."""

        def prompt() -> Prompt:
            tokens = Tokens(request).upto(self._matchable(request))
            return tokens, namespace_of(request, self._generation)

        # vLLM schedules a request that reads no cache, whatever it is told.
        return not request.skip_reading_prefix_cache and self._tier_waits.holds(
            request.request_id, prompt
        )

    def _admit(self, request: Any) -> Admitted | None:
        self._session.require()
        if self._refusals.is_in_vain(request.request_id):
            return None
        tokens = Tokens(request)
        matchable = self._matchable(request)
        if request.skip_reading_prefix_cache:
            matchable = 0
        prompt_blocks = self._prompt_blocks(request)
        spare = max(0, self._pool.spare_pages())
        reserve = max(0, prompt_blocks - spare) * self._block_tokens
        try:
            match = self._client.match_prefix(
                tokens.upto(matchable),
                namespace=namespace_of(request, self._generation),
                lock=True,
                reserve_tokens=reserve,
            )
        except _NOT_NOW:
            self._refusals.add(request.request_id)
            return None
        except PandoError as error:
            self._session.go_on(error)
            return None
        assert match.lock is not None
        self._tier_waits.admitted(request.request_id)
        self._pool.add(match.reserved_page_ids)
        blocks = [self._pool.blocks[page] for page in match.page_ids.tolist()]
        self._pool.touch(blocks)
        admitted = Admitted(
            request=request,
            tokens=tokens,
            lock=match.lock,
            blocks=blocks,
            published=match.matched_tokens,
            preemptions=request.num_preemptions,
            prompt_blocks=prompt_blocks,
        )
        self._growing.append(admitted)
        self._admitted[request.request_id] = admitted
        return admitted

    def _publish(
        self,
        admitted: Admitted,
        block_ids: list[int],
        end: int,
        *,
        is_last: bool = False,
    ) -> None:
        if admitted.is_closed:
            return
        first = admitted.published // self._block_tokens
        page_ids = block_ids[first : end // self._block_tokens]
        try:
            done = self._client.insert(
                admitted.tokens.upto(end)[admitted.published :],
                np.array(page_ids, np.uint32),
                lock=admitted.lock,
                relock=not is_last,
                unlock=is_last,
                # vLLM does not change the table of a request: duplicates stay its own.
                keep_duplicates=True,
            )
        except AwayError:
            # The call was not made: it is when pandod answers, if the request runs on.
            return
        except (DeadlineError, UnavailableError) as error:
            # It is unknown whose they are: they are used no more.
            self._session.go_on(error)
            self._pool.publish(page_ids)
        except PandoError as error:
            self._session.go_on(error)
            return
        else:
            published = set(done.page_ids.tolist())
            self._pool.publish(page for page in page_ids if page in published)
        admitted.published = end

    def _release(self, request_id: str) -> None:
        self._tier_waits.forget(request_id)
        admitted = self._admitted.pop(request_id, None)
        if admitted is None:
            return
        self._pool.free_blocks(admitted.blocks)
        try:
            self._client.unlock(admitted.lock)
        except PandoError as error:
            self._session.go_on(error)

    def _matchable(self, request: Any) -> int:
        """At least one token must be computed."""
        return self._whole(request.num_tokens - 1, request)

    def _prompt_blocks(self, request: Any) -> int:
        return -(-int(request.num_tokens) // self._block_tokens)

    def _unallocated(self, admitted: Admitted) -> int:
        """Reserved pages that vLLM has not taken for its prompt yet."""
        request_id = admitted.request.request_id
        if self._admitted.get(request_id) is not admitted:
            return 0
        taken = len(self._manager.get_blocks(request_id).blocks[0])
        return max(0, admitted.prompt_blocks - max(taken, len(admitted.blocks)))

    def _promised(self) -> int:
        """Free pages that prompts which were looked up have yet to take."""
        pages = [self._unallocated(admitted) for admitted in self._growing]
        self._growing = [a for a, n in zip(self._growing, pages, strict=True) if n]
        return sum(pages)

    def _secure(self, pages: int) -> None:
        """Makes so many pages spare, if there is room. Pages that were promised may
        have gone to requests that run."""
        short = pages - self._pool.spare_pages()
        if short <= 0 or self._refusals.is_in_vain(short):
            return
        try:
            self._pool.add(self._client.allocate_pages(short))
        except _NOT_NOW:
            self._refusals.add(short)
        except PandoError as error:
            self._session.go_on(error)

    def _whole(self, tokens: int, request: Any) -> int:
        known = min(tokens, int(request.num_tokens))
        return known // self._block_tokens * self._block_tokens

    def _allocate(self, pages: int) -> Uint32Array:
        self._session.require()
        try:
            return allocate_what_there_is(self._client, pages)
        except PandoError as error:
            self._session.go_on(error)
            return _NO_PAGES

    def _give_back(self, page_ids: Uint32Array) -> None:
        try:
            self._client.free_pages(page_ids)
        except PandoError as error:
            self._session.go_on(error)
