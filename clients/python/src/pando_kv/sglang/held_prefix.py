"""What one request of the engine holds of Pando."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from pando_kv._wire import Uint32Array
from pando_kv.sglang.calls import Publication
from pando_kv.sglang.device_fence import Moment

_NO_PAGES = np.empty(0, np.uint32)


@dataclass(eq=False)
class Publishing:
    """What is published of a request, from its lock on."""

    begin: int
    """The token that it begins at."""
    slots: torch.Tensor
    """The first of each page, where the device has them."""
    tokens: Uint32Array
    lock_id: int
    priority: int
    is_last: bool = False
    freed: Uint32Array = field(default_factory=lambda: _NO_PAGES)
    # Once it has begun:
    page_ids: Uint32Array = field(default_factory=lambda: _NO_PAGES)
    answer: Callable[[], Publication | None] | None = None


@dataclass(eq=False)
class HeldPrefix:
    """SGLang's "node": a request's cached prefix, from its match until its release.

    Owned by PandoPrefixCache. Without a lock, where Pando gave none, the request runs
    as if nothing was cached and publishes nothing.
    """

    weights: str = ""
    """Version of the weights that the prefix was computed with."""
    lock_id: int = 0
    """0: none, or released."""
    is_over: bool = False
    """Nothing is held any more."""
    tokens: int = 0
    """How long the prefix is that the lock protects: whole pages, matched, then
    published."""
    page_ids: Uint32Array = field(default_factory=lambda: _NO_PAGES)
    """The pages that were matched."""
    request: Any = None
    prompt_pages: int = 0
    first_pages: int = 0
    """Pages of the prompt and of the first tokens after it: those that were not matched
    are reserved."""
    references: int = 0
    """Locks that SGLang counts. None: the match was dropped, or is not used yet."""
    duplicates: list[Uint32Array] = field(default_factory=list)
    """Own pages, still read, of what another worker had published first."""
    waiting: tuple[int, Moment] | None = None
    """Publish up to this token, once the device has written it; few pages not before
    there is another call to go along with."""
    publishing: Publishing | None = None
    """Under way, or about to be; `tokens` counts on it."""

    def unallocated_pages(self, page_tokens: int) -> int:
        """Reserved pages that the engine has not taken for the request yet. With the
        prompt it has what it was promised; what follows is for all that decode."""
        if self.is_over:
            return 0
        taken = -(-int(self.request.kv.kv_allocated_len) // page_tokens)
        if taken >= self.prompt_pages:
            return 0
        return max(0, self.first_pages - max(taken, self.page_ids.size))
