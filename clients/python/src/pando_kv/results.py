"""The arguments and results of the calls."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, Generic, TypeVar

from google.protobuf.message import Message

from pando_kv._wire import Uint32Array

LockT = TypeVar("LockT")
T = TypeVar("T")


class WireEnum(Enum):
    """An enum of the protocol. A value that only a newer server knows becomes 0."""

    @classmethod
    def _missing_(cls, value: object) -> WireEnum:
        return cls(0)


def made(kind: type[T], **fields: Any) -> T:
    """A frozen dataclass without its __init__, which sets each field by a call."""
    result = object.__new__(kind)
    result.__dict__.update(fields)
    return result


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
    bigram: bool = False
    """The cache compares pairs of neighbours (EAGLE): n tokens are n - 1 units, pages
    hold units, and the tokens of a prefix are counted in units."""


@dataclass(frozen=True)
class PrefixHandle:
    """Names the prefix that a match or an insert ended at. A later call may begin
    there (`after`) and send only the tokens after it.

    Plain data: any worker of the same pandod may use it, in the same namespace. It
    protects nothing from eviction; once the end of the prefix is evicted, calls with
    the handle send all tokens.
    """

    epoch: int
    node: int
    tokens: int
    """Tokens of the prefix, whole pages."""


@dataclass(frozen=True)
class PageRoom:
    """How many pages of the pool no session holds."""

    free: int
    evictable: int


class ExpectedReuse(WireEnum):
    """The expected next use of a prefix: a hint for eviction."""

    UNKNOWN = 0
    ENDED = 1
    """There is none: what only this prefix leads through is evicted first."""
    SOON = 2
    """Within seconds, as after the call of a tool: it is retained, without
    `retain_seconds` for as long as its quota class may."""


class Load(WireEnum):
    """How a match treats tokens that are not cached any more, but kept in a tier.
    Matches that begin after a handle are not looked up there."""

    SERVER_POLICY = 0
    """They are loaded for matches that lock and have a `pending_wait`."""
    NO = 1
    """Nothing is loaded; `loadable_tokens` says what could be."""
    START = 2
    """A load begins, whether this match waits for it or not."""


class Tier(WireEnum):
    """Where copies of pages are kept outside the pool."""

    NONE = 0
    DISK = 1
    HOST = 2
    """The memory of `pandod`."""
    SHARED = 3
    """A store that many machines share."""


class PendingOutcome(WireEnum):
    """Whether another call was computing the page after a match, and how the wait for
    it ended."""

    NONE = 0
    """No worker was computing it."""
    NOT_AWAITED = 1
    """Another call is computing it; this one did not wait."""
    PUBLISHED = 2
    GIVEN_UP = 3
    """Its owner released its lock, or freed the page."""
    OWNER_LOST = 4
    """The session of its owner ended."""
    TIMED_OUT = 5
    """`pending_wait` passed."""
    LOADED = 6
    """It was loaded from a tier meanwhile."""


@dataclass(frozen=True, eq=False)
class Match(Generic[LockT]):
    """The longest cached prefix, in whole pages.

    The block table of the request is: the first `first_page` pages, which the caller
    knows already, then `page_ids`, then `reserved_page_ids`.
    """

    matched_tokens: int
    """Tokens of the prefix, from the start of the prompt."""
    first_page: int
    """Pages of the prefix that `after` covers: they did not change. 0 without a handle,
    and when the handle was gone."""
    page_ids: Uint32Array
    """The pages of the prefix from `first_page` on, in prompt order."""
    lock: LockT | None
    reserved_page_ids: Uint32Array
    """Pages for the rest of the prompt, now owned by the session."""
    handle: PrefixHandle | None
    """Where the match ended; None when nothing matched."""
    pending: PendingOutcome
    generation: int
    """The session (`client.generation`) in which these page ids are valid."""
    loadable_tokens: int = 0
    """Tokens after the match that a tier has; 0 when it was not looked up there."""
    loadable_tier: Tier = Tier.NONE


@dataclass(frozen=True, eq=False)
class PrefixQuery:
    """One prompt of a waiting queue; the fields are those of `match_prefix`."""

    tokens: Any
    namespace: Namespace | None = None
    max_tokens: int | None = None
    after: PrefixHandle | None = None


@dataclass(frozen=True)
class PrefixScore:
    matched_tokens: int
    """Tokens of the cached prefix, from the start of the prompt."""
    is_pending: bool
    """Another call is computing the page after the match."""
    loadable_tokens: int = 0
    """With `tell_loadable`: tokens after the match that a tier has."""
    loadable_tier: Tier = Tier.NONE


@dataclass(frozen=True, eq=False)
class Insert:
    existing_tokens: int
    """Tokens of the call that were cached already."""
    canonical_page_ids: Uint32Array
    """The cache's pages for those tokens."""
    page_ids: Uint32Array
    """The cache's page for every page of the call, from `first_page` on: what the block
    table should name. `canonical_page_ids`, then the call's own."""
    first_page: int
    """Pages that `after` covers; 0 without a handle, and when the handle was gone."""
    freed_duplicates: int
    handle: PrefixHandle | None
    """Where the insert ended; None when that is the start of the prompt."""


@dataclass(frozen=True)
class Flush:
    evicted_pages: int
    protected_pages: int
    """Locked pages, which stayed."""


@dataclass(frozen=True)
class PageStates:
    """How many pages are in each state; they sum to capacity."""

    free: int
    reserved: int
    evictable: int
    protected: int
    quarantined: int
    padding: int
    capacity: int


@dataclass(frozen=True)
class Gauges:
    """The figures that a scheduler needs all the time, all of one moment."""

    pages: PageStates
    epoch: int
    draining: bool
    """The server admits nothing new."""
    eviction_policy: str


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
    evicted_pages_for_watermark: int
    evicted_pages_for_quota: int
    quota_rejections: int
    pending_waits: int
    pending_waits_published: int
    pending_waits_given_up: int
    pending_waits_timed_out: int
    repeated_requests: int


@dataclass(frozen=True)
class QuotaClass:
    """The pages of one quota class (a class of namespaces)."""

    name: str
    """Empty: the class of all namespaces that no configured class names."""
    floor_pages: int
    """Others never evict its pages below this."""
    cap_pages: int | None
    """At most so many pages, reserved ones included."""
    reserved_pages: int
    cached_pages: int
    max_retention_seconds: int
    """The longest that inserts may retain what they publish."""
    spared_leaves: int
    """How often a retained leaf was spared when its turn to be evicted came."""


@dataclass(frozen=True)
class ReuseStats:
    """Statistics of the reuse of pages, counted in whole pages of prompts."""

    requested_pages: int
    hit_pages: int
    """The requested pages that were cached."""
    lru_hit_pages: int
    """The requested pages that an LRU cache of the same size would have found, without
    locks and quotas."""


@dataclass(frozen=True)
class BlockFigures:
    """The block memory. Hits, misses, published and evicted blocks are counted since
    pandod started."""

    memory_bytes: int
    used_bytes: int
    """All extents that kinds have."""
    kinds: int
    locks: int
    reservations: int
    evictable_blocks: int
    protected_blocks: int
    """Those that are locked."""
    reserved_blocks: int
    """Those that are being written, or were by a session that is lost."""
    quarantined_blocks: int
    """The reserved ones that a process of a lost session may still write to."""
    hits: int
    misses: int
    published_blocks: int
    evicted_blocks: int
    recoveries: int
    """How often a pandod took these blocks over from one that was killed, crashed or
    was restarted under a keeper."""


@dataclass(frozen=True)
class TierFigures:
    """One tier that keeps copies of pages. Counts are since pandod started."""

    tier: Tier
    capacity_pages: int | None
    """None for a store that many machines share, as is `held_pages`."""
    held_pages: int | None
    page_bytes: int
    stored_pages: int
    loaded_pages: int
    dropped_pages: int
    """Pages that were not stored, because the tier was too slow."""
    failures: int
    """Reads and writes that failed, and pages that were damaged."""
    refuses_stores: bool
    """Nothing is stored there for a while, because that failed repeatedly."""
    refuses_loads: bool


@dataclass(frozen=True)
class MoverFigures:
    """Whether a `pando-mover` copies the pages of a device."""

    device: str
    """`host`, or a device of the pool."""
    is_present: bool


@dataclass(frozen=True)
class Stats:
    """Figures of the cache, all of one moment."""

    pages: PageStates
    counters: CacheCounters
    sessions: int
    locks: int
    nodes: int
    namespaces: int
    epoch: int
    eviction_policy: str
    waiting_matches: int
    """Matches that wait for a page that another call computes."""
    quota_classes: list[QuotaClass]
    """Those configured, then the one of all others; empty when none is configured, or
    the caller's credential is limited to namespaces."""
    version: str
    """The version of pandod."""
    held_pages: int
    """Quarantined pages whose memory is known to be held: no time frees them."""
    reuse: ReuseStats | None
    """None while reuse is not learnt."""
    blocks: BlockFigures | None
    """None where there is no block memory."""
    tiers: list[TierFigures]
    """In the order in which they are asked."""
    movers: list[MoverFigures]
    """Empty where pandod copies pages itself."""
    console_url: str
    """Empty where there is none."""


def from_message(result: type[T], message: Message, **given: Any) -> T:
    """A dataclass from the fields of the same names, but for those that are given.

    An optional field that is not set becomes None.
    """
    for field in fields(result):  # type: ignore[arg-type]
        if field.name in given:
            continue
        described = message.DESCRIPTOR.fields_by_name[field.name]
        is_unset = described.has_presence and not message.HasField(field.name)
        given[field.name] = None if is_unset else getattr(message, field.name)
    return result(**given)
