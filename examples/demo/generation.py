"""Generates tokens greedily for one request, over the pages of its sequence."""

from dataclasses import dataclass

import numpy as np
from model import Tokens, Transformer
from paged_kv import Floats, PagedKv, PageIds
from workload import END, CachedPrefix, Request


@dataclass(frozen=True)
class Answer:
    """The report of a process on one request."""

    reply: Tokens
    # A row of logits for each computed position, from `matched_tokens` on.
    logits: Floats
    # The rows of the prompt that the model computed.
    prefill_rows: int
    first_token_seconds: float
    matched_tokens: int
    matched_pages: PageIds
    # The pages that this request gave to the cache.
    published_pages: PageIds
    # The tokens of the prompt that went to Pando, and the prefix that the request left
    # in the cache.
    sent_tokens: int = 0
    cached: CachedPrefix | None = None


class Generation:
    """The tokens of one request; KV is written for the first `_computed` tokens."""

    def __init__(
        self, model: Transformer, kv: PagedKv, request: Request, matched_tokens: int
    ) -> None:
        self._model = model
        self._kv = kv
        self._prompt_tokens = len(request.prompt)
        self._end = len(request.prompt) + request.max_new_tokens
        self._tokens = request.prompt
        self._logits: list[Floats] = []
        self._computed = matched_tokens

    def prefill(self) -> int:
        """Computes the rest of the prompt and picks a token; returns the number of rows
        computed."""
        before = self._model.rows_computed
        page_tokens = self._model.config.page_tokens
        while self._computed < self._prompt_tokens:
            page_end = (self._computed // page_tokens + 1) * page_tokens
            self._compute(min(page_end, self._prompt_tokens))
        self._pick_token()
        return self._model.rows_computed - before

    def decode(self) -> None:
        while len(self._tokens) < self._end and self._tokens[-1] != END:
            self._compute(len(self._tokens))
            self._pick_token()

    @property
    def computed_tokens(self) -> Tokens:
        """The tokens whose KV is written: all but the last token of the reply."""
        return self._tokens[: self._computed]

    @property
    def reply(self) -> Tokens:
        return self._tokens[self._prompt_tokens :]

    @property
    def logits(self) -> Floats:
        return np.concatenate(self._logits)

    def _compute(self, end: int) -> None:
        rows = self._tokens[self._computed : end]
        self._logits.append(self._model.step(rows, self._computed, self._kv))
        self._computed = end

    def _pick_token(self) -> None:
        token = np.uint32(self._logits[-1][-1].argmax())
        self._tokens = np.append(self._tokens, token)
