"""A request in Pando: one call admits it, one publishes its prompt, one finishes it."""

import numpy as np
import pando_kv
from model import Tokens
from paged_kv import PageIds
from workload import CachedPrefix, Request


class Admission:
    """A locked prefix, and reserved pages for the rest of one request.

    `block_table` lists the cache's pages first, then this request's own pages. An own
    page belongs to the cache once it is published, and must not be written again.
    """

    def __init__(
        self, client: pando_kv.Client, request: Request, page_tokens: int
    ) -> None:
        after = request.after or CachedPrefix(None, np.empty(0, np.uint32))
        match = client.match_prefix(
            request.prompt,
            after=after.handle,
            max_tokens=len(request.prompt) - 1,
            lock=True,
            reserve_tokens=len(request.prompt) + request.max_new_tokens,
        )
        self._client = client
        self._lock = match.lock
        self._page_tokens = page_tokens
        self._prompt_tokens = len(request.prompt)
        # A match omits the pages before the handle; the turn before has left their ids.
        self.matched_pages = np.concatenate(
            (after.pages[: match.first_page], match.page_ids)
        )
        self.sent_tokens = len(request.prompt) - match.first_page * page_tokens
        self._sealed = len(self.matched_pages)
        self._published: list[PageIds] = []
        self.matched_tokens = match.matched_tokens
        self.block_table = np.concatenate((self.matched_pages, match.reserved_page_ids))

    def publish(self, computed: Tokens) -> None:
        """Publishes the whole pages of tokens whose KV is written, for other workers to
        match."""
        if len(computed) // self._page_tokens > self._sealed:
            self._insert(computed, relock=True)

    def finish(self, computed: Tokens) -> None:
        """Publishes the remaining whole pages, releases the lock and frees the unused
        pages."""
        leftover = self.block_table[len(computed) // self._page_tokens :]
        self._insert(computed, unlock=True, free_page_ids=leftover)

    @property
    def published_pages(self) -> PageIds:
        return np.concatenate(self._published)

    def _insert(self, computed: Tokens, **lock_action) -> None:
        end = len(computed) // self._page_tokens
        page_ids = self.block_table[self._sealed : end].copy()
        # Pando still has the prompt from the admission, so only the reply is sent.
        prompt_end = min(len(computed), self._prompt_tokens)
        inserted = self._client.insert(
            computed[prompt_end:],
            page_ids,
            lock=self._lock,
            prompt_tokens=prompt_end - self._sealed * self._page_tokens,
            **lock_action,
        )
        # If another worker has cached the tokens meanwhile, the pages of this request
        # were duplicates and have been freed.
        canonical = inserted.canonical_page_ids
        self.block_table[self._sealed : self._sealed + len(canonical)] = canonical
        self._published.append(page_ids[len(canonical) :])
        self._sealed = end
        self.cached = CachedPrefix(inserted.handle, self.block_table[:end].copy())
