"""What vLLM's scheduler knows of an admitted request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pando_kv import Lock
from pando_kv.vllm.identity import Tokens


@dataclass(eq=False)
class Admitted:
    """One request, from its lookup until its blocks are freed."""

    request: Any
    tokens: Tokens
    lock: Lock
    blocks: list[Any]
    """Those that were matched. They are referenced, as a request's are: vLLM takes a
    block without references for a free one."""
    published: int
    """Tokens up to the lock."""
    preemptions: int
    """How often the request had been preempted when this began."""
    prompt_blocks: int
    """Blocks of the prompt; those that the match does not have are reserved."""
    is_closed: bool = False
    """Nothing more is published, because what would come next is not what follows."""

    @property
    def is_of_before(self) -> bool:
        """The request was preempted since."""
        return bool(self.preemptions != self.request.num_preemptions)
