"""The state that the scheduler keeps for an admitted request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pando_kv import Lock
from pando_kv.vllm.identity import Tokens


@dataclass(eq=False)
class Admitted:
    """One request, from its look-up until its blocks are freed. PageScheduler owns it;
    the scheduler's thread alone uses it."""

    request: Any
    tokens: Tokens
    lock: Lock
    blocks: list[Any]
    """The blocks of the matched prefix. PageScheduler holds a reference to each,
    because vLLM takes a block without references for a free one."""
    published: int
    """The tokens that are matched or published: the length of the locked prefix."""
    preemptions: int
    """How often the request had been preempted when it was looked up."""
    prompt_blocks: int
    """The number of blocks of the prompt. Pages are reserved for those that the match
    does not have."""
    is_closed: bool = False
    """Whether the cache was reset since the look-up. Nothing more of the request is
    published then, because its KV from before and after the reset may differ."""

    @property
    def is_of_before(self) -> bool:
        """Returns whether the request was preempted since its look-up."""
        return bool(self.preemptions != self.request.num_preemptions)
