"""A worker process that makes random requests and checks every page that it reads.

Each page it writes is filled with a digest of exactly the prefix that ends in it, so
a page that shows anything else was handed to somebody else while it was locked, or
belongs to another prefix. Ends with status 0 and one line of JSON: its own accounts.

usage: load_client.py ADDRESS SEED REQUESTS SECONDS
"""

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from hashlib import blake2b

import numpy as np
from pando_kv import Client, Match, Namespace, PoolExhaustedError

# Prompts are walks down a tree that all clients share: this many ways at each turn.
WAYS = 3
MAX_TURNS = 6
MAX_TURN_TOKENS = 40
NAMESPACES = [None, Namespace(), Namespace(extra_key=""), Namespace(cache_salt="s")]


@dataclass
class Accounts:
    """What pandod must have counted for this client."""

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


@dataclass
class Prompt:
    namespace: Namespace | None
    tokens: np.ndarray
    digests: np.ndarray = field(repr=False)
    """Of each whole page: what its memory must show."""


def make_prompt(random: np.random.Generator, page_tokens: int) -> Prompt:
    namespace = NAMESPACES[random.integers(len(NAMESPACES))]
    way = [int(random.integers(WAYS)) for _ in range(random.integers(1, MAX_TURNS + 1))]
    turns = [
        np.random.default_rng([77, *way[: i + 1]]).integers(
            0, 2**32, 1 + (sum(way[: i + 1]) * 13) % MAX_TURN_TOKENS, np.uint32
        )
        for i in range(len(way))
    ]
    tokens = np.concatenate(turns)
    # Unset is the default namespace, whatever it is called.
    digest = repr(namespace or Namespace()).encode()
    digests = []
    for end in range(page_tokens, tokens.size + 1, page_tokens):
        page = tokens[end - page_tokens : end].tobytes()
        digest = blake2b(digest + page, digest_size=8).digest()
        digests.append(int.from_bytes(digest, "little"))
    return Prompt(namespace, tokens, np.array(digests, np.uint64))


class LoadClient:
    def __init__(self, client: Client, seed: int) -> None:
        self._client = client
        self._random = np.random.default_rng(seed)
        self._page_tokens = client.pool.layout.page_tokens
        pool = client.attach_pool()
        # (page, element) of every layer's keys and values, as 64-bit words.
        self._words = [
            view.reshape(view.shape[0], -1).view(np.uint64)
            for layer in range(client.pool.layout.layers)
            for view in (pool.keys(layer), pool.values(layer))
        ]
        self.accounts = Accounts()

    def run(self, requests: int, seconds: float) -> None:
        kinds = [self.plain, self.chunked, self.given_up, self.looked_up]
        weights = [0.55, 0.25, 0.1, 0.1]
        end = time.monotonic() + seconds
        while requests > 0 or time.monotonic() < end:
            requests -= 1
            prompt = make_prompt(self._random, self._page_tokens)
            with contextlib.suppress(PoolExhaustedError):
                self._random.choice(kinds, p=weights)(prompt)
            if self._random.random() < 0.02:
                pages = int(self._random.integers(1, 10))
                self.accounts.evicted_pages += self._client.evict(pages)

    def plain(self, prompt: Prompt) -> None:
        """Admission, computation, finish."""
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
        """Published in two parts; the lock moves along, on the pages of the cache."""
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
        # What another client published first takes the place of this one's pages.
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
        """A lock of its own, under which a match must find all that is locked."""
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
        """Writes what did not match; the pages that are whole, and the others."""
        self._check(prompt, match.page_ids)
        whole = prompt.digests.size - match.page_ids.size
        computed, left_over = np.split(match.reserved_page_ids, [whole])
        digests = prompt.digests[match.page_ids.size :]
        for words in self._words:
            words[computed] = digests[:, None]
            words[left_over] = 0
        self._check(prompt, np.concatenate([match.page_ids, computed]))
        return computed, left_over

    def _check(self, prompt: Prompt, pages: np.ndarray) -> None:
        """These are the first pages of the prompt, while they cannot be evicted."""
        wanted = prompt.digests[: pages.size, None]
        for words in self._words:
            wrong = np.flatnonzero((words[pages] != wanted).any(axis=1))
            assert not wrong.size, f"{prompt}: wrong KV in pages {pages[wrong]}"
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
