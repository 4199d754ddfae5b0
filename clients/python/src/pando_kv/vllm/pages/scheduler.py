"""The part of PandoConnector in vLLM's scheduler: admissions and publications.

The look-up of a request locks the cached prefix and reserves pages for the rest of the
prompt, in one call. Computed pages are published where they lie; the last publication
releases the lock. The index of pandod takes the place of vLLM's prefix cache.
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
# These errors mean that there is no room or that pandod drains. A request that waits
# tries again in the next step.
_NOT_NOW = (PoolExhaustedError, QuotaExceededError, SessionLimitError, DrainingError)
# Fewer pages are not worth a call of their own, and are published with later ones.
_FEW_PAGES = 4


class PageScheduler:
    """The admitted requests of one vLLM scheduler. The scheduler's connector owns it,
    and the scheduler's thread alone calls it."""

    def __init__(
        self, client: Client, block_tokens: int, stash_pages: int, wait: float = 0.0
    ) -> None:
        """Takes the tokens of a block, the number of spare pages to keep, and the
        seconds that a request may wait while a tier loads its prefix."""
        self._client = client
        self._tier_waits = TierWaits(client, wait)
        self._session = OnlySession(client)
        self._refusals = Refusals(client)
        self._block_tokens = block_tokens
        self._stash_pages = stash_pages
        self._admitted: dict[str, Admitted] = {}
        # Those whose prompt blocks are not all allocated.
        self._growing: list[Admitted] = []
        self._generation = ""  # Changes with each reset.
        # Set by bind().
        self._manager: Any
        self._pool: SharedBlockPool

    def bind(self, manager: Any) -> None:
        """Replaces the methods of vLLM's block pool, and the look-up of its KV cache
        manager. Raises ValueError if vLLM's prefix caching is off, or if vLLM has
        another number of blocks than the pool has pages."""
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
        """Returns the blocks of the cached prefix, the number of its tokens, and 0; it
        takes the place of vLLM's look-up. vLLM calls it in each step while the request
        waits, and the first match, its lock and its pages are kept. A request that
        waits for a tier is not matched yet; vLLM calls is_held_back() next."""
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
        """Returns whether the request must stay in vLLM's queue, to wait for a tier."""
        return self._tier_waits.is_held(request.request_id)

    def plan(self, output: Any) -> StepPlan:
        """Ends vLLM's scheduling of a step. Returns the message for the workers. Raises
        RuntimeError if the session is lost."""
        self._session.require()
        for request_id in output.preempted_req_ids or ():
            admitted = self._admitted.get(request_id)
            # After a reset, vLLM may preempt a request and begin it again in one step.
            if admitted is not None and admitted.is_of_before:
                self._release(request_id)
        self._pool.begin_step()
        self._tier_waits.begin_step()
        return StepPlan(self._session.session_id)

    def finish_step(self) -> None:
        """Publishes the pages that a step has completed."""
        for admitted in self._admitted.values():
            request = admitted.request
            whole = self._whole(request.num_computed_tokens, request)
            if whole >= admitted.published + _FEW_PAGES * self._block_tokens:
                (block_ids,) = self._manager.get_block_ids(request.request_id)
                self._publish(admitted, block_ids, whole)

    def end(self, request_id: str, block_ids: list[int]) -> None:
        """Publishes the last pages of a finished or aborted request and releases its
        lock. vLLM frees the request's blocks next."""
        admitted = self._admitted.get(request_id)
        if admitted is not None:
            request = admitted.request
            whole = self._whole(request.num_computed_tokens, request)
            whole = min(whole, len(block_ids) * self._block_tokens)
            if whole > admitted.published:
                self._publish(admitted, block_ids, whole, is_last=True)
        self._release(request_id)

    def reset(self) -> None:
        """Makes this engine find nothing that was cached before; other engines still
        find it. Requests that wait lose their matches, and requests that run publish
        nothing more."""
        self._generation = uuid.uuid4().hex
        self._tier_waits.keep(())
        for request_id, admitted in list(self._admitted.items()):
            admitted.is_closed = True
            if admitted.request.num_computed_tokens == 0:
                self._release(request_id)

    def _holds_back(self, request: Any) -> bool:
        """Returns whether the request must wait while a tier loads its prompt."""

        def prompt() -> Prompt:
            tokens = Tokens(request).upto(self._matchable(request))
            return tokens, namespace_of(request, self._generation)

        # vLLM never keeps a request in its queue that reads no cache.
        return not request.skip_reading_prefix_cache and self._tier_waits.holds(
            request.request_id, prompt
        )

    def _admit(self, request: Any) -> Admitted | None:
        """Locks the cached prefix and reserves pages for the rest of the prompt.
        Returns None if there is no room or no answer."""
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
                # vLLM cannot change the blocks of a running request. Pages whose
                # content another session published first stay reserved by this one.
                keep_duplicates=True,
            )
        except AwayError:
            # The call was not made. If the request still runs when pandod answers
            # again, a later step publishes these pages.
            return
        except (DeadlineError, UnavailableError) as error:
            # pandod may have published the pages or not, so they must not become free.
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
        """Returns how many tokens may be matched. The model must compute at least one
        token of the prompt, so the last one is left out."""
        return self._whole(request.num_tokens - 1, request)

    def _prompt_blocks(self, request: Any) -> int:
        return -(-int(request.num_tokens) // self._block_tokens)

    def _unallocated(self, admitted: Admitted) -> int:
        """Returns the number of pages that are reserved for the prompt and that vLLM
        has not taken yet."""
        request_id = admitted.request.request_id
        if self._admitted.get(request_id) is not admitted:
            return 0
        taken = len(self._manager.get_blocks(request_id).blocks[0])
        return max(0, admitted.prompt_blocks - max(taken, len(admitted.blocks)))

    def _promised(self) -> int:
        """Returns the number of free pages that admitted prompts have yet to take."""
        pages = [self._unallocated(admitted) for admitted in self._growing]
        self._growing = [a for a, n in zip(self._growing, pages, strict=True) if n]
        return sum(pages)

    def _secure(self, pages: int) -> None:
        """Reserves pages until `pages` are spare, if there is room. Too few may be
        spare because running requests have taken pages that were promised."""
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
        """Returns the number of these tokens that are known and fill whole blocks."""
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
