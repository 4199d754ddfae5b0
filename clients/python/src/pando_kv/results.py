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
    """An enum of the protocol. A value that only a newer pandod knows becomes 0."""

    @classmethod
    def _missing_(cls, value: object) -> WireEnum:
        return cls(0)


def made(kind: type[T], **fields: Any) -> T:
    """Returns a frozen dataclass made without its __init__, which would call a function
    for each field."""
    result = object.__new__(kind)
    result.__dict__.update(fields)
    return result


@dataclass(frozen=True)
class Namespace:
    """A separate set of prefixes; nothing is shared between namespaces.

    `extra_key` and `cache_salt` may be None, which differs from the empty string. A
    call without a namespace uses the default one, `Namespace()`.
    """

    extra_key: str | None = None
    """A name for whatever else changes the KV, for example a LoRA id."""
    cache_salt: str | None = None
    """A secret that isolates tenants which must not learn of each other's prompts."""
    bigram: bool = False
    """Whether the cache compares pairs of neighbouring tokens (EAGLE): n tokens are n -
    1 units, pages hold units, and the tokens of a prefix are counted in units."""


@dataclass(frozen=True)
class PrefixHandle:
    """The name of a prefix at which a match or an insert ended. A later call may begin
    there (`after`) and send only the tokens after the prefix.

    A handle is plain data: any worker of the same pandod may use it, in the same
    namespace. A handle protects nothing from eviction. When the end of the prefix has
    been evicted, or pandod has ended, calls with the handle send all tokens.
    """

    epoch: int
    node: int
    tokens: int
    """The number of tokens of the prefix, in whole pages."""


@dataclass(frozen=True)
class PageRoom:
    """The numbers of pages of the pool that no session holds."""

    free: int
    evictable: int


class ExpectedReuse(WireEnum):
    """The expected next use of a prefix, a hint for eviction."""

    UNKNOWN = 0
    ENDED = 1
    """The prefix is not used again. Pages that belong to no other prefix are evicted
    first."""
    SOON = 2
    """The prefix is used again within seconds, as after the call of a tool. The prefix
    is retained; without `retain_seconds`, for as long as its quota class allows."""


class Load(WireEnum):
    """The treatment, by a match, of tokens that are no longer cached but are kept in a
    tier. Matches that begin after a handle do not look in tiers."""

    SERVER_POLICY = 0
    """The tokens are loaded for matches that lock and have a `pending_wait`."""
    NO = 1
    """Nothing is loaded; `loadable_tokens` says how much could be."""
    START = 2
    """A load begins, whether this match waits for it or not."""


class Tier(WireEnum):
    """The places outside the pool that keep copies of pages."""

    NONE = 0
    DISK = 1
    HOST = 2
    """The memory of pandod."""
    SHARED = 3
    """A store that many machines share."""


class PendingOutcome(WireEnum):
    """The outcome of a wait for the page after a match, which another call was
    computing."""

    NONE = 0
    """No worker was computing the page."""
    NOT_AWAITED = 1
    """Another call is computing the page; this call did not wait."""
    PUBLISHED = 2
    GIVEN_UP = 3
    """The owner of the page released its lock, freed the page, or published other
    tokens in it."""
    OWNER_LOST = 4
    """The session of the page's owner ended."""
    TIMED_OUT = 5
    """The time of `pending_wait` passed."""
    LOADED = 6
    """The page was loaded from a tier meanwhile."""


@dataclass(frozen=True, eq=False)
class Match(Generic[LockT]):
    """The longest cached prefix, in whole pages.

    The block table of the request is: the first `first_page` pages, which the caller
    knows already, then `page_ids`, then `reserved_page_ids`.
    """

    matched_tokens: int
    """The number of tokens of the prefix, from the start of the prompt."""
    first_page: int
    """The number of pages of the prefix that `after` covers; they did not change. 0
    without a handle, and if the handle was gone."""
    page_ids: Uint32Array
    """The pages of the prefix from `first_page` on, in prompt order."""
    lock: LockT | None
    reserved_page_ids: Uint32Array
    """The pages for the rest of the prompt, now reserved for the session."""
    handle: PrefixHandle | None
    """The end of the match; None if nothing matched."""
    pending: PendingOutcome
    generation: int
    """The number of the session (`client.generation`) in which these page ids are
    valid."""
    loadable_tokens: int = 0
    """The number of tokens after the match that a tier has; 0 if no tier was
    looked at."""
    loadable_tier: Tier = Tier.NONE


@dataclass(frozen=True, eq=False)
class PrefixQuery:
    """One prompt of a waiting queue. The fields are those of `match_prefix`."""

    tokens: Any
    namespace: Namespace | None = None
    max_tokens: int | None = None
    after: PrefixHandle | None = None


@dataclass(frozen=True)
class PrefixScore:
    """The score of one `PrefixQuery`: how much of its prompt is cached."""

    matched_tokens: int
    """The number of tokens of the cached prefix, from the start of the prompt."""
    is_pending: bool
    """Whether another call is computing the page after the match."""
    loadable_tokens: int = 0
    """The number of tokens after the match that a tier has, with `tell_loadable`."""
    loadable_tier: Tier = Tier.NONE


@dataclass(frozen=True, eq=False)
class Insert:
    """The result of an insert."""

    existing_tokens: int
    """The number of tokens of the call that were cached already."""
    canonical_page_ids: Uint32Array
    """The cache's pages for those tokens, from `first_page` on."""
    page_ids: Uint32Array
    """The cache's page for every page of the call, from `first_page` on, to be put in
    the block table: `canonical_page_ids`, followed by the call's own pages."""
    first_page: int
    """The number of pages that `after` covers; 0 without a handle, and if the handle
    was gone."""
    freed_duplicates: int
    handle: PrefixHandle | None
    """The end of the insert; None if that is the start of the prompt."""


@dataclass(frozen=True)
class Flush:
    """The result of a flush."""

    evicted_pages: int
    protected_pages: int
    """The number of locked pages, which stayed in the cache."""


@dataclass(frozen=True)
class PageStates:
    """The number of pages in each state. The numbers sum to `capacity`."""

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
    """The random id of the run of pandod, as in Stats."""
    draining: bool
    """Whether pandod admits nothing new."""
    eviction_policy: str


@dataclass(frozen=True)
class CacheCounters:
    """The counts of calls and pages since pandod started."""

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
    """The pages of one quota class, which is a class of namespaces."""

    name: str
    """The name; empty for the class of all namespaces that no configured class
    names."""
    floor_pages: int
    """The number of pages below which other classes never evict this class's pages."""
    cap_pages: int | None
    """The largest number of pages, including reserved ones; None if there is no cap."""
    reserved_pages: int
    cached_pages: int
    max_retention_seconds: int
    """The longest time, in seconds, for which inserts may retain a prefix."""
    spared_leaves: int
    """The number of times that a retained leaf was due for eviction and was spared."""


@dataclass(frozen=True)
class ReuseStats:
    """The statistics of the reuse of pages, counted in whole pages of prompts."""

    requested_pages: int
    hit_pages: int
    """The number of requested pages that were cached."""
    lru_hit_pages: int
    """The number of requested pages that an LRU cache of the same size, without locks
    and quotas, would have found."""


@dataclass(frozen=True)
class BlockQuota:
    """The memory of the kinds of blocks whose labels match a quota, in bytes."""

    name: str
    floor_bytes: int
    """The size below which kinds of other quotas take no memory from these."""
    cap_bytes: int | None
    """The most that these kinds get; None if there is no cap."""
    used_bytes: int


@dataclass(frozen=True)
class BlockFigures:
    """The figures of the block memory. Hits, misses, published and evicted blocks are
    counted since pandod started."""

    memory_bytes: int
    used_bytes: int
    """The bytes of all extents that kinds have."""
    kinds: int
    locks: int
    reservations: int
    evictable_blocks: int
    protected_blocks: int
    """The number of blocks that are locked."""
    reserved_blocks: int
    """The number of blocks that are being written, or were being written by a session
    that is now lost."""
    quarantined_blocks: int
    """The number of reserved blocks to which a process of a lost session may still
    write."""
    hits: int
    misses: int
    published_blocks: int
    evicted_blocks: int
    recoveries: int
    """The number of times that a pandod took these blocks over from one that was
    killed, crashed or was restarted under a keeper."""
    quotas: list[BlockQuota]
    """The configured quotas. Empty if the caller's credential is limited to
    namespaces."""


@dataclass(frozen=True)
class TierFigures:
    """One tier that keeps copies of pages. Counts begin when pandod starts."""

    tier: Tier
    capacity_pages: int | None
    """The capacity in pages; None, like `held_pages`, for a store that many machines
    share."""
    held_pages: int | None
    page_bytes: int
    stored_pages: int
    loaded_pages: int
    dropped_pages: int
    """The number of pages that were not stored because the tier was too slow."""
    failures: int
    """The number of failed reads and writes, and of damaged pages."""
    refuses_stores: bool
    """Whether nothing is stored in the tier for a while, because stores failed
    repeatedly."""
    refuses_loads: bool


@dataclass(frozen=True)
class MoverFigures:
    """The presence of a `pando-mover` that copies the pages of a device."""

    device: str
    """The device: `host`, or a device of the pool."""
    is_present: bool


@dataclass(frozen=True)
class Stats:
    """The figures of the cache, all of one moment."""

    pages: PageStates
    counters: CacheCounters
    sessions: int
    locks: int
    nodes: int
    namespaces: int
    epoch: int
    """The random id of the run of pandod: each process has another one. It may differ
    from `client.epoch`, which stays when sessions outlive pandod."""
    eviction_policy: str
    waiting_matches: int
    """The number of matches that wait for a page which another call computes."""
    quota_classes: list[QuotaClass]
    """The configured classes, followed by the class of all other namespaces. Empty if
    none is configured, or if the caller's credential is limited to namespaces."""
    version: str
    """The version of pandod."""
    held_pages: int
    """The number of quarantined pages whose memory is known to be held; no time limit
    frees them."""
    reuse: ReuseStats | None
    """The statistics of reuse; None while the learning of reuse is off."""
    blocks: BlockFigures | None
    """The figures of the block memory; None if there is none."""
    tiers: list[TierFigures]
    """The tiers, in the order in which pandod looks at them."""
    movers: list[MoverFigures]
    """The movers; empty if pandod copies pages itself."""
    console_url: str
    """The URL of the console; empty if there is none."""
    page_recoveries: int
    """How often a pandod has taken the cached pages over from an earlier one."""


def from_message(result: type[T], message: Message, **given: Any) -> T:
    """Returns a dataclass with the message's fields of the same names, except the
    fields in `given`.

    An optional field that is not set becomes None.
    """
    for field in fields(result):  # type: ignore[arg-type]
        if field.name in given:
            continue
        described = message.DESCRIPTOR.fields_by_name[field.name]
        is_unset = described.has_presence and not message.HasField(field.name)
        given[field.name] = None if is_unset else getattr(message, field.name)
    return result(**given)
