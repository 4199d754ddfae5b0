"""The lock and the pages that one request of the engine holds in Pando."""

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
    """One publication of a request: the pages that follow its locked prefix. Owned by
    Publisher; the scheduler's thread alone uses it."""

    begin: int
    """The position of its first token in the request."""
    slots: torch.Tensor
    """The first slot of each page, as a tensor on the device."""
    tokens: Uint32Array
    lock_id: int
    priority: int
    is_last: bool = False
    freed: Uint32Array = field(default_factory=lambda: _NO_PAGES)
    # The publisher sets both once the publication has been sent.
    page_ids: Uint32Array = field(default_factory=lambda: _NO_PAGES)
    answer: Callable[[], Publication | None] | None = None


@dataclass(eq=False)
class HeldPrefix:
    """The cached prefix of one request, from its match until its release: SGLang calls
    such an object a "node".

    Owned by PandoPrefixCache; the scheduler's thread alone uses it. If Pando gave no
    lock, the request runs as if nothing were cached, and publishes nothing.
    """

    weights: str = ""
    """The version of the weights that computed the prefix."""
    lock_id: int = 0
    """The lock of the prefix; 0 if there is none, or if it is released."""
    is_over: bool = False
    """Whether everything that the request held was given back."""
    tokens: int = 0
    """The length of the prefix that the lock protects: whole pages that were matched,
    and after them pages that were published."""
    page_ids: Uint32Array = field(default_factory=lambda: _NO_PAGES)
    """The matched pages."""
    request: Any = None
    prompt_pages: int = 0
    """The number of pages that the prompt fills."""
    first_pages: int = 0
    """The number of pages that the prompt and the first tokens after it fill. Those
    that were not matched are reserved at the match."""
    references: int = 0
    """The references that SGLang counts. At 0 the match was dropped, or SGLang has not
    used it yet."""
    duplicates: list[Uint32Array] = field(default_factory=list)
    """Pages of this request whose tokens another worker had published first. The
    request still reads them."""
    waiting: tuple[int, Moment] | None = None
    """The end of the tokens that are to be published, and the moment at which the
    device has written them. A few pages wait longer, for another call to go along
    with."""
    publishing: Publishing | None = None
    """The publication that was collected or sent and whose answer was not taken yet.
    `tokens` already includes it."""

    def unallocated_pages(self, page_tokens: int) -> int:
        """Returns the number of reserved pages that the engine has not taken for the
        request yet. The promise ends when the prompt has its pages: later pages are
        shared by all requests that decode."""
        if self.is_over:
            return 0
        taken = -(-int(self.request.kv.kv_allocated_len) // page_tokens)
        if taken >= self.prompt_pages:
            return 0
        return max(0, self.first_pages - max(taken, self.page_ids.size))
