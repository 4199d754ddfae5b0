"""A worker process that makes random requests and checks every page that it reads.

The worker fills each page that it writes with a digest of exactly the prefix that ends
in the page. A page with any other content was given to another worker while it was
locked, or belongs to another prefix. The process ends with status 0 and prints one line
of JSON: its own accounts.

usage: load_client.py ADDRESS SEED REQUESTS SECONDS
"""

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
from marked_prompts import MarkedPages, Prompt, random_prompt
from pando_kv import Client, Match, PoolExhaustedError


@dataclass
class Accounts:
    """The figures that pandod must have counted for this client."""

    matches: int = 0
    query_tokens: int = 0
    hit_tokens: int = 0
    inserts: int = 0
    offered_pages: int = 0
    allocated_pages: int = 0
    allocation_failures: int = 0
    locks_taken: int = 0
    evicted_pages: int = 0
    checked_pages: int = 0


class LoadClient:
    def __init__(self, client: Client, seed: int) -> None:
        self._client = client
        self._random = np.random.default_rng(seed)
        self._page_tokens = client.pool.layout.page_tokens
        self._pages = MarkedPages(client.attach_pool())
        self.accounts = Accounts()

    def run(self, requests: int, seconds: float) -> None:
        kinds = [self.plain, self.chunked, self.given_up, self.looked_up]
        weights = [0.55, 0.25, 0.1, 0.1]
        end = time.monotonic() + seconds
        while requests > 0 or time.monotonic() < end:
            requests -= 1
            prompt = random_prompt(self._random, self._page_tokens)
            with contextlib.suppress(PoolExhaustedError):
                self._random.choice(kinds, p=weights)(prompt)
            if self._random.random() < 0.02:
                pages = int(self._random.integers(1, 10))
                self.accounts.evicted_pages += self._client.evict(pages)

    def plain(self, prompt: Prompt) -> None:
        """Runs a whole request: admission, computation, publication."""
        match = self._admit(prompt)
        computed, left_over = self._compute(prompt, match)
        matched = match.matched_tokens
        keep = bool(self._random.random() < 0.3)
        inserted = self._client.insert(
            prompt.tokens[matched:],
            computed,
            lock=match.lock,
            unlock=True,
            keep_duplicates=keep,
            free_page_ids=left_over,
        )
        self._inserted(computed.size)
        duplicates = inserted.existing_tokens // self._page_tokens
        if keep and duplicates:
            self._client.free_pages(computed[:duplicates])

    def chunked(self, prompt: Prompt) -> None:
        """Publishes a prompt in two parts under one lock.

        After the first part the lock covers the cache's pages of that part.
        """
        match = self._admit(prompt)
        computed, left_over = self._compute(prompt, match)
        first = computed.size // 2
        middle = match.matched_tokens + first * self._page_tokens
        inserted = self._client.insert(
            prompt.tokens[match.matched_tokens : middle],
            computed[:first],
            lock=match.lock,
            relock=True,
        )
        self._inserted(first)
        # If another client published a page first, that page replaces this client's.
        ours = computed[inserted.canonical_page_ids.size : first]
        table = np.concatenate([match.page_ids, inserted.canonical_page_ids, ours])
        self._check(prompt, table)
        self._client.insert(
            prompt.tokens[middle:],
            computed[first:],
            lock=match.lock,
            unlock=True,
            free_page_ids=left_over,
        )
        self._inserted(computed.size - first)

    def given_up(self, prompt: Prompt) -> None:
        match = self._admit(prompt)
        self._compute(prompt, match)
        if match.reserved_page_ids.size:
            self._client.free_pages(match.reserved_page_ids)
        self._check(prompt, match.page_ids)
        match.lock.release()

    def looked_up(self, prompt: Prompt) -> None:
        """Takes a lock, under which a match must find all the locked tokens."""
        with self._client.lock(prompt.tokens, namespace=prompt.namespace) as lock:
            self.accounts.locks_taken += 1
            match = self._client.match_prefix(
                prompt.tokens[: lock.locked_tokens], namespace=prompt.namespace
            )
            self._matched(match, lock.locked_tokens)
            assert match.matched_tokens == lock.locked_tokens
            self._check(prompt, match.page_ids)

    def _admit(self, prompt: Prompt) -> Match:
        try:
            match = self._client.match_prefix(
                prompt.tokens,
                namespace=prompt.namespace,
                max_tokens=prompt.tokens.size - 1,
                lock=True,
                reserve_tokens=prompt.tokens.size,
            )
        except PoolExhaustedError:
            self.accounts.allocation_failures += 1
            raise
        self._matched(match, prompt.tokens.size)
        self.accounts.locks_taken += 1
        self.accounts.allocated_pages += match.reserved_page_ids.size
        return match

    def _matched(self, match: Match, asked: int) -> None:
        self.accounts.matches += 1
        self.accounts.query_tokens += asked - asked % self._page_tokens
        self.accounts.hit_tokens += match.matched_tokens

    def _inserted(self, pages: int) -> None:
        self.accounts.inserts += 1
        self.accounts.offered_pages += pages

    def _compute(self, prompt: Prompt, match: Match) -> tuple[np.ndarray, np.ndarray]:
        """Writes the pages that did not match.

        Returns the reserved pages that the prompt fills, and those that are left over.
        """
        self._check(prompt, match.page_ids)
        whole = prompt.digests.size - match.page_ids.size
        computed, left_over = np.split(match.reserved_page_ids, [whole])
        digests = prompt.digests[match.page_ids.size :]
        self._pages.write(computed, digests)
        self._pages.write(left_over, 0)
        self._check(prompt, np.concatenate([match.page_ids, computed]))
        return computed, left_over

    def _check(self, prompt: Prompt, pages: np.ndarray) -> None:
        """Checks that `pages`, which cannot be evicted meanwhile, begin the prompt."""
        wrong = self._pages.wrong(pages, prompt.digests[: pages.size])
        assert not wrong.size, f"{prompt}: wrong KV in pages {wrong}"
        self.accounts.checked_pages += pages.size


@contextlib.contextmanager
def load_client(address: str, seed: int) -> Iterator[LoadClient]:
    with Client(address, name=f"load {seed}", timeout=60) as client:
        yield LoadClient(client, seed)


def main() -> None:
    address, seed, requests, seconds = sys.argv[1:]
    with load_client(address, int(seed)) as client:
        client.run(int(requests), float(seconds))
    print(json.dumps(asdict(client.accounts)))


if __name__ == "__main__":
    main()
