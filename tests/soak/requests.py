"""The requests of one worker in one session, which check every page they read."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from marked_prompts import NAMESPACES, WAYS, MarkedPages, Prompt, make_prompt
from pando_kv import Client, Lock, Match, PrefixHandle, PrefixQuery

MAX_TURNS = 6
KEPT_TURNS = 32
MAX_WAIT_SECONDS = 0.3
MAX_COMPUTE_SECONDS = 0.02
MAX_ALLOCATED_PAGES = 8

Way = tuple[int, ...]


class Violation(Exception):
    """An error: a page had wrong contents while a lock or its owner held it."""


@dataclass(frozen=True)
class Turn:
    """A finished request, with which the next turn of its conversation begins."""

    namespace: int
    way: Way
    handle: PrefixHandle | None
    table: np.ndarray
    """The request's pages, from the start of the prompt."""


@dataclass(frozen=True)
class Admission:
    prompt: Prompt
    lock: Lock
    table: np.ndarray
    """The pages that matched, from the start of the prompt."""
    computed: np.ndarray
    left_over: np.ndarray

    @property
    def matched_tokens(self) -> int:
        return self.lock.locked_tokens


class Requests:
    """The requests of one session of the client, to be dropped with that session."""

    def __init__(self, client: Client, random: np.random.Generator) -> None:
        self.generation = client.generation
        self.holds_something = False
        """Whether a failed request left anything held, until the session's end."""
        self.checked_pages = 0
        self._client = client
        self._random = random
        self._page_tokens = client.pool.layout.page_tokens
        self._pages = MarkedPages(client.attach_pool())
        self._turns: list[Turn] = []
        self._kinds = {
            self._whole: 0.35,
            self._next_turn: 0.25,
            self._chunked: 0.15,
            self._given_up: 0.08,
            self._looked_up: 0.07,
            self._allocated: 0.07,
            self._scored: 0.03,
        }

    def one(self) -> None:
        weights = list(self._kinds.values())
        self._random.choice(list(self._kinds), p=weights)()
        self.holds_something = False

    def _whole(self) -> None:
        """Runs a whole request: admission, computation, publication."""
        namespace, way = self._random_way()
        self._finish(namespace, way, self._admit(self._prompt(namespace, way), None))

    def _next_turn(self) -> None:
        """Sends only the tokens that follow an earlier turn."""
        turns = [turn for turn in self._turns if len(turn.way) < MAX_TURNS]
        if not turns:
            return self._whole()
        before = turns[self._random.integers(len(turns))]
        way = (*before.way, int(self._random.integers(WAYS)))
        prompt = self._prompt(before.namespace, way)
        self._finish(before.namespace, way, self._admit(prompt, before))

    def _chunked(self) -> None:
        """Publishes a prompt in two parts under one lock.

        After the first part the lock covers the cache's pages of that part.
        """
        admitted = self._admit(self._prompt(*self._random_way()), None)
        prompt, computed = admitted.prompt, admitted.computed
        first = computed.size // 2
        begin = admitted.matched_tokens
        middle = begin + first * self._page_tokens
        inserted = self._client.insert(
            prompt.tokens[begin:middle],
            computed[:first],
            lock=admitted.lock,
            relock=True,
        )
        canonical = inserted.canonical_page_ids
        ours = computed[canonical.size : first]
        table = np.concatenate([admitted.table, canonical, ours])
        self._check(prompt, table, admitted.lock)
        self._client.insert(
            prompt.tokens[middle:],
            computed[first:],
            lock=admitted.lock,
            unlock=True,
            free_page_ids=admitted.left_over,
        )

    def _given_up(self) -> None:
        admitted = self._admit(self._prompt(*self._random_way()), None)
        pages = np.concatenate([admitted.computed, admitted.left_over])
        if pages.size:
            self._client.free_pages(pages)
        self._check(admitted.prompt, admitted.table, admitted.lock)
        admitted.lock.release()

    def _looked_up(self) -> None:
        """Checks that a match finds all locked pages."""
        prompt = self._prompt(*self._random_way())
        lock = self._client.lock(prompt.tokens, namespace=prompt.namespace)
        self.holds_something = True
        locked = lock.locked_tokens
        match = self._client.match_prefix(
            prompt.tokens[:locked], namespace=prompt.namespace, touch=False
        )
        if match.matched_tokens != locked:
            lock.release()
            raise Violation(f"{match.matched_tokens} of {locked} locked tokens matched")
        self._check(prompt, match.page_ids, lock)
        lock.release()

    def _allocated(self) -> None:
        """Allocates pages outside any prompt, to which no other worker may write."""
        count = int(self._random.integers(1, MAX_ALLOCATED_PAGES + 1))
        pages = self._client.allocate_pages(count)
        self.holds_something = True
        marks = self._random.integers(0, 2**64, count, np.uint64)
        self._pages.write(pages, marks)
        self._compute()
        wrong = self._pages.wrong(pages, marks)
        self._client.free_pages(pages, generation=self.generation)
        if wrong.size:
            raise Violation(f"reserved pages {wrong} were written by somebody else")
        self.checked_pages += pages.size

    def _scored(self) -> None:
        prompts = [self._prompt(*self._random_way()) for _ in range(4)]
        queries = [PrefixQuery(prompt.tokens, prompt.namespace) for prompt in prompts]
        for prompt, score in zip(
            prompts, self._client.match_prefixes(queries), strict=True
        ):
            if score.matched_tokens > prompt.digests.size * self._page_tokens:
                raise Violation(f"{prompt} scored {score.matched_tokens} tokens")

    def _admit(self, prompt: Prompt, before: Turn | None) -> Admission:
        """Matches, locks and reserves, and writes the pages that did not match."""
        waits = self._random.random() < 0.3
        match = self._client.match_prefix(
            prompt.tokens,
            namespace=prompt.namespace,
            after=before.handle if before else None,
            max_tokens=prompt.tokens.size - 1,
            lock=True,
            reserve_tokens=prompt.tokens.size,
            pending_wait=self._random.uniform(0, MAX_WAIT_SECONDS) if waits else 0,
        )
        self.holds_something = True
        table = self._table(match, before)
        self._check(prompt, table, match.lock)
        whole = prompt.digests.size - table.size
        computed, left_over = np.split(match.reserved_page_ids, [whole])
        # A worker that is stopped here writes when its session may already be lost.
        self._compute()
        self._pages.write(left_over, 0)
        self._pages.write(computed, prompt.digests[table.size :])
        self._check(prompt, np.concatenate([table, computed]), match.lock)
        return Admission(prompt, match.lock, table, computed, left_over)

    def _finish(self, namespace: int, way: Way, admitted: Admission) -> None:
        rest = admitted.prompt.tokens[admitted.matched_tokens :]
        server_has_it = bool(self._random.random() < 0.5)
        inserted = self._client.insert(
            [] if server_has_it else rest,
            admitted.computed,
            prompt_tokens=rest.size if server_has_it else 0,
            lock=admitted.lock,
            unlock=True,
            priority=int(self._random.integers(3)),
            free_page_ids=admitted.left_over,
        )
        canonical = inserted.canonical_page_ids
        ours = admitted.computed[canonical.size :]
        table = np.concatenate([admitted.table, canonical, ours])
        self._turns.append(Turn(namespace, way, inserted.handle, table))
        del self._turns[:-KEPT_TURNS]

    def _table(self, match: Match, before: Turn | None) -> np.ndarray:
        if before is None:
            return match.page_ids
        return np.concatenate([before.table[: match.first_page], match.page_ids])

    def _check(self, prompt: Prompt, pages: np.ndarray, lock: Lock) -> None:
        """Checks that `pages` begin the prompt while the lock is held."""
        wrong = self._pages.wrong(pages, prompt.digests[: pages.size])
        self.checked_pages += pages.size
        if wrong.size:
            # This call proves that the lock was held; otherwise it raises the reason.
            lock.release()
            raise Violation(f"wrong KV in pages {wrong} of {prompt}")

    def _compute(self) -> None:
        time.sleep(self._random.uniform(0, MAX_COMPUTE_SECONDS))

    def _random_way(self) -> tuple[int, Way]:
        turns = self._random.integers(1, MAX_TURNS + 1)
        return (
            int(self._random.integers(len(NAMESPACES))),
            tuple(int(turn) for turn in self._random.integers(WAYS, size=turns)),
        )

    def _prompt(self, namespace: int, way: Way) -> Prompt:
        return make_prompt(NAMESPACES[namespace], way, self._page_tokens)
