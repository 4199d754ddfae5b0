"""What the scheduler of the copy mode knows of a request."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pando_kv import Client, Lock, Namespace
from pando_kv._wire import Uint32Array
from pando_kv.vllm.identity import Tokens
from pando_kv.vllm.waiting_match import WaitingMatch


@dataclass(frozen=True)
class Save:
    number: int
    end: int
    """Tokens of the request up to which it goes; it begins where the last one ends."""
    page_ids: Uint32Array
    block_ids: list[int]


@dataclass(frozen=True)
class GivenUp:
    """A save that came to nothing: a part of it may be under way."""

    save: Save
    generation: int
    """The session of its pages."""

    def free(self, client: Client) -> None:
        client.free_pages(self.save.page_ids, generation=self.generation)


@dataclass(eq=False)
class Tracked:
    """One request, from its match until all it has computed is published.

    After a preemption the same request is another Tracked.
    """

    request: Any
    preemptions: int
    """How often the request had been preempted when this began."""
    tokens: Tokens
    namespace: Namespace | None
    generation: int
    """The session of `lock` and all page ids."""
    lock: Lock | None
    matched: int
    page_ids: Uint32Array
    """The pages that were matched."""
    saved: int
    """Tokens that are cached, or that a save is under way for."""
    published: int
    waiting: WaitingMatch | None = None
    """It may find more than this match did."""
    load_from: int = 0
    load_tokens: int = 0
    loading: int = 0
    """The number of the load that is under way."""
    loading_into: list[int] = field(default_factory=list)
    """Its blocks."""
    block_ids: list[int] = field(default_factory=list)
    saves: list[Save] = field(default_factory=list)
    """Under way, in order."""
    is_over: bool = False
    is_closed: bool = False
    """Nothing more is published, because what would come next is not what follows."""

    @property
    def is_of_before(self) -> bool:
        """The request was preempted since."""
        return bool(self.preemptions != self.request.num_preemptions)
