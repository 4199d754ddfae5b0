"""What the calls take and answer."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

from google.protobuf.message import Message

from pando_kv._wire import Uint32Array

LockT = TypeVar("LockT")
T = TypeVar("T")


@dataclass(frozen=True)
class Namespace:
    """A closed world of prefixes; nothing is shared between namespaces.

    None and the empty string are different values. No namespace at all is the
    default one, in which both are None.
    """

    extra_key: str | None = None
    """For example a LoRA id."""
    cache_salt: str | None = None
    """Isolates tenants that must not learn of each other's prompts."""


@dataclass(frozen=True, eq=False)
class Match(Generic[LockT]):
    """The longest cached prefix, in whole pages."""

    matched_tokens: int
    page_ids: Uint32Array
    """The pages of the prefix, in prompt order."""
    lock: LockT | None
    reserved_page_ids: Uint32Array
    """Pages for the rest of the prompt, now owned by the session."""
    generation: int
    """The session (`client.generation`) in which these page ids are valid."""


@dataclass(frozen=True, eq=False)
class Insert:
    existing_tokens: int
    """Tokens that were cached already."""
    canonical_page_ids: Uint32Array
    """The cache's pages for those tokens: put them into the block table."""
    freed_duplicates: int


@dataclass(frozen=True)
class Flush:
    evicted_pages: int
    protected_pages: int
    """Locked pages, which stayed."""


@dataclass(frozen=True)
class PageStates:
    """Pages by state; together with the padding page they sum to capacity."""

    free: int
    reserved: int
    evictable: int
    protected: int
    quarantined: int
    padding: int
    capacity: int


@dataclass(frozen=True)
class CacheCounters:
    """Counts since pandod started."""

    matches: int
    query_tokens: int
    hit_tokens: int
    inserts: int
    inserted_pages: int
    duplicate_pages: int
    allocated_pages: int
    evicted_pages_for_allocation: int
    evicted_pages_on_request: int
    allocation_failures: int
    locks_taken: int
    locks_released: int
    sessions_opened: int
    sessions_closed: int
    sessions_lost: int
    quarantined_pages: int


@dataclass(frozen=True)
class Stats:
    """One consistent picture of the cache."""

    pages: PageStates
    counters: CacheCounters
    sessions: int
    locks: int
    nodes: int
    namespaces: int
    epoch: int


def from_message(result: type[T], message: Message) -> T:
    """A flat dataclass from the fields of the same names."""
    names = [field.name for field in fields(result)]  # type: ignore[arg-type]
    values: dict[str, Any] = {name: getattr(message, name) for name in names}
    return result(**values)
