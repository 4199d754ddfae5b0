"""The copy mode in vLLM's scheduler: what is loaded, saved and published.

vLLM keeps its own KV memory. What Pando has of a prompt is copied into vLLM's blocks
before the request's first step; what a step has computed is copied into pages of Pando
after it, and published once every worker has written its part. Pando's room is never a
condition: what finds none is not saved.

Where copies have a stream of their own, vLLM holds a request back until its load is
over. For saves nothing is held back: a plan names those that read blocks which are
given out anew, and the workers let the step come after them.
"""

from __future__ import annotations

import uuid
from typing import Any

from pando_kv import Client
from pando_kv._room import allocate_what_there_is
from pando_kv._session import Session
from pando_kv._side_calls import SideCalls
from pando_kv.vllm.access import Access
from pando_kv.vllm.copy_plan import Copy, CopyPlan, CopyReport
from pando_kv.vllm.copy_publications import CopyPublications
from pando_kv.vllm.identity import Tokens, can_be_cached, namespace_of
from pando_kv.vllm.tracked_request import Save, Tracked
from pando_kv.vllm.waiting_match import WaitingMatch

_NO_BLOCKS: list[int] = []


class CopyScheduler:
    """Owned by the scheduler's connector; its thread alone calls it."""

    def __init__(
        self, client: Client, block_tokens: int, workers: int, wait: float = 0.0
    ) -> None:
        """`wait` is how many seconds a request may wait for what is not cached, but
        loaded from a tier or computed by another engine."""
        self._access = Access(client)
        self._wait = wait
        self._side_calls = SideCalls()
        self._block_tokens = block_tokens
        self._publications = CopyPublications(self._access, workers)
        self._tracked: dict[str, Tracked] = {}
        self._to_load: list[Tracked] = []  # with the next plan
        self._ending: list[Tracked] = []  # over, but with copies under way
        self._generation = ""  # of the cache, as this engine sees it

    def matched_tokens(self, request: Any, computed: int) -> int | None:
        """Tokens that can be loaded beyond `computed`, None if that is not known yet.
        Asked each step while a request waits; the match, and its lock, are kept."""
        tracked = self._tracked.get(request.request_id)
        if tracked is not None and tracked.is_of_before:
            self.end(request.request_id)
            tracked = None
        if tracked is None or not self._access.is_present(tracked.generation):
            if tracked is not None:
                self._end_wait(tracked)
            tracked = self._match(request)
            if tracked is None:
                return 0
            self._tracked[request.request_id] = tracked
        if self._waits(tracked):
            return None
        tracked.load_from = computed
        return max(0, tracked.matched - computed)

    def will_load(self, request: Any, block_ids: list[int], tokens: int) -> None:
        """`block_ids` are all of the request, so far."""
        tracked = self._tracked.get(request.request_id)
        if tracked is not None and tokens:
            tracked.block_ids, tracked.load_tokens = block_ids, tokens
            self._to_load.append(tracked)

    def plan(self, output: Any) -> CopyPlan:
        self._side_calls.begin_step()
        # Another may be opened meanwhile: what is planned belongs to this one.
        session = self._access.session
        for request_id in output.preempted_req_ids or ():
            tracked = self._tracked.get(request_id)
            # After a reset a request is preempted and begins again in one step.
            if tracked is not None and tracked.is_of_before:
                self.end(request_id)
        scheduled = [
            (new.req_id, list(new.block_ids[0]), new.num_computed_tokens)
            for new in output.scheduled_new_reqs
        ]
        cached = output.scheduled_cached_reqs
        for index, request_id in enumerate(cached.req_ids):
            added = cached.new_block_ids[index]
            blocks = list(added[0]) if added is not None else []
            if request_id not in cached.resumed_req_ids:
                blocks = self._blocks(request_id) + blocks
            scheduled.append((request_id, blocks, cached.num_computed_tokens[index]))
        plan = CopyPlan(overwritten=self._overwritten(output))
        for tracked in self._to_load:
            self._plan_load(tracked, plan, session)
        self._to_load.clear()
        wanted: list[tuple[Tracked, int]] = []
        for request_id, blocks, computed in scheduled:
            tracked = self._tracked.get(request_id)
            if tracked is None:
                continue
            tracked.block_ids = blocks
            known = min(
                computed + output.num_scheduled_tokens[request_id],
                tracked.request.num_tokens,
            )
            wanted.append((tracked, known // self._block_tokens * self._block_tokens))
        if session is not None:
            self._plan_saves(wanted, plan, session)
            plan.epoch, plan.session_id = session.epoch, session.session_id
        return plan

    def take(self, report: CopyReport | None) -> None:
        """What the workers have done; publishes what is complete."""
        everyone = [*self._tracked.values(), *self._ending]
        if report is not None:
            self._publications.take(report, everyone)
        for tracked in everyone:
            self._publications.publish(tracked)
        self._ending = [t for t in self._ending if t.saves or t.loading]
        self._publications.free_given_up()

    @property
    def has_copies_under_way(self) -> bool:
        """Of requests that are over: their end is to be heard of."""
        return bool(self._ending or self._publications.given_up)

    def end(self, request_id: str, block_ids: list[int] = _NO_BLOCKS) -> None:
        """The request is finished, aborted or preempted. Its blocks may be given out
        anew at once, but for those that vLLM still holds back for a load."""
        tracked = self._tracked.pop(request_id, None)
        if tracked is None:
            return
        self._end_wait(tracked)
        tracked.is_over = True
        self._publications.publish(tracked)
        if tracked.saves or tracked.loading:
            self._ending.append(tracked)

    def reset(self) -> None:
        """What is cached is not found any more, by this engine: others share it.
        Requests that wait have found nothing; what runs on publishes nothing more."""
        self._generation = uuid.uuid4().hex
        for request_id, tracked in list(self._tracked.items()):
            tracked.is_closed = True
            if tracked.request.num_computed_tokens == 0:
                self.end(request_id)

    def _match(self, request: Any) -> Tracked | None:
        if not can_be_cached(request):
            return None
        tokens, namespace = Tokens(request), namespace_of(request, self._generation)
        # At least one token must be computed.
        whole = (request.num_tokens - 1) // self._block_tokens * self._block_tokens
        prompt = tokens.upto(whole)
        match = self._access.ask(
            lambda client: client.match_prefix(prompt, namespace=namespace, lock=True)
        )
        if match is None:
            return None
        waiting = None
        # vLLM schedules a request that reads no cache, whatever it is told.
        may_wait = self._wait > 0 and not request.skip_reading_prefix_cache
        if may_wait and match.matched_tokens < whole:
            more = WaitingMatch(self._access.client, prompt, namespace, self._wait)
            waiting = more if more.begin(self._side_calls) else None
        return Tracked(
            request=request,
            preemptions=request.num_preemptions,
            tokens=tokens,
            namespace=namespace,
            generation=match.generation,
            lock=match.lock,
            matched=match.matched_tokens,
            page_ids=match.page_ids,
            saved=match.matched_tokens,
            published=match.matched_tokens,
            waiting=waiting,
        )

    def _waits(self, tracked: Tracked) -> bool:
        """Whether it is to be waited for; what was waited for is taken."""
        if tracked.waiting is None:
            return False
        if tracked.waiting.is_under_way and self._access.is_open:
            return True
        self._end_wait(tracked)
        return False

    def _end_wait(self, tracked: Tracked) -> None:
        """What was found by now is taken if it is more, or given back."""
        waiting, tracked.waiting = tracked.waiting, None
        match = waiting.take() if waiting is not None else None
        if match is None or not self._access.is_present(match.generation):
            return
        lock = match.lock
        if match.generation == tracked.generation and (
            match.matched_tokens > tracked.matched
        ):
            lock, tracked.lock = tracked.lock, match.lock
            tracked.matched, tracked.page_ids = match.matched_tokens, match.page_ids
            tracked.saved = tracked.published = match.matched_tokens
        if lock is not None:
            self._access.ask(lambda client: client.unlock(lock))

    def _blocks(self, request_id: str) -> list[int]:
        tracked = self._tracked.get(request_id)
        return tracked.block_ids if tracked is not None else []

    def _overwritten(self, output: Any) -> set[int]:
        """Saves under way of blocks that the step may write to, as they were given out
        anew. A load into such blocks comes after the saves as it is."""
        given_out: set[int] = set()
        for new in output.scheduled_new_reqs:
            given_out.update(new.block_ids[0])
        for added in output.scheduled_cached_reqs.new_block_ids:
            if added is not None:
                given_out.update(added[0])
        saves = self._publications.given_up
        for tracked in [*self._tracked.values(), *self._ending]:
            saves += tracked.saves
        return {s.number for s in saves if not given_out.isdisjoint(s.block_ids)}

    def _plan_load(
        self, tracked: Tracked, plan: CopyPlan, session: Session | None
    ) -> None:
        first = tracked.load_from // self._block_tokens
        last = first + tracked.load_tokens // self._block_tokens
        tracked.loading_into = tracked.block_ids[first:last]
        tracked.loading = self._publications.next_copy()
        is_lost = session is None or tracked.generation != session.generation
        loads = plan.lost_loads if is_lost else plan.loads
        loads[tracked.loading] = Copy(
            tracked.request.request_id,
            tracked.page_ids[first:last].tolist(),
            tracked.loading_into,
        )

    def _plan_saves(
        self, wanted: list[tuple[Tracked, int]], plan: CopyPlan, session: Session
    ) -> None:
        """For all requests of the step pages are asked for at once."""
        wanted = [
            (tracked, end)
            for tracked, end in wanted
            if end > tracked.saved
            and not tracked.is_closed
            and tracked.generation == session.generation
        ]
        needed = (
            sum(end - tracked.saved for tracked, end in wanted) // self._block_tokens
        )
        if not needed:
            return
        pages = self._access.ask(lambda client: allocate_what_there_is(client, needed))
        if pages is None:
            return
        if self._access.session is not session:
            self._access.ask(lambda client: client.free_pages(pages))
            return
        for tracked, end in wanted:
            first = tracked.saved // self._block_tokens
            count = min(end // self._block_tokens - first, pages.size)
            if not count:
                continue
            taken, pages = pages[:count], pages[count:]
            tracked.saved += count * self._block_tokens
            blocks = tracked.block_ids[first : first + count]
            number = self._publications.next_copy()
            tracked.saves.append(Save(number, tracked.saved, taken, blocks))
            plan.saves[number] = Copy(
                tracked.request.request_id, taken.tolist(), blocks
            )
