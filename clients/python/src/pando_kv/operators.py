"""The results of the calls for operators, without tokens and cache salts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from pando_kv.results import Tier, WireEnum

T = TypeVar("T")


class EvictionReason(WireEnum):
    """The reason why pages were evicted."""

    UNSPECIFIED = 0
    ALLOCATION = 1
    """An allocation needed pages."""
    REQUEST = 2
    """Evict was called."""
    WATERMARK = 3
    """pandod keeps some pages free."""
    QUOTA = 4
    """The quota class of the pages had to stay within its cap."""
    FLUSH = 5
    """Flush was called."""


@dataclass(frozen=True)
class Listing(Generic[T]):
    """The first entries of a list, up to the requested limit."""

    items: list[T]
    total: int
    """The number of entries, whether they are listed or not."""


@dataclass(frozen=True)
class NamespaceInfo:
    """One namespace that has something cached or locked."""

    number: int
    """The number that names the namespace while it has contents, until pandod ends."""
    extra_key: str | None
    has_cache_salt: bool
    bigram: bool
    evictable_pages: int
    protected_pages: int
    nodes: int


@dataclass(frozen=True)
class SessionInfo:
    """One open session: a worker's, or one of pandod's own."""

    session_number: int
    """The number of the session, in the order of opening; session ids are secret."""
    client_name: str
    locks: int
    reserved_pages: int
    age_ms: int
    is_connected: bool
    """Whether the connection of the session stands. If not, the session ends soon,
    unless it is resumed."""
    is_attached: bool
    """Whether the session has mapped the pool."""
    locked_blocks: int
    """The number of locks on blocks; a block that is locked twice counts twice."""
    reserved_blocks: int
    is_internal: bool
    """Whether the session belongs to pandod itself, which copies pages to and from
    tiers."""
    steps: int
    """The number of steps that the session's calls have taken. A short call takes one
    or two steps, a large one many."""


@dataclass(frozen=True)
class LockInfo:
    """One held lock."""

    session_number: int
    client_name: str
    locked_tokens: int
    age_ms: int
    namespace_number: int


@dataclass(frozen=True)
class QuarantineInfo:
    """A lost session that has pages in quarantine, because its processes may still
    write to them."""

    session_number: int
    client_name: str
    pages: int
    age_ms: int
    """Milliseconds since the session was lost."""
    is_held: bool
    """Whether a process is known to hold the memory. If so, no time limit frees the
    pages."""
    living_pids: list[int]
    """The processes that attached by themselves and are visible to pandod. A child that
    inherited the memory is not among them."""
    has_unwatched: bool
    """Whether a process that mapped the pool cannot be watched. If so, and the memory
    is not known to be held, the pages are freed after the quarantine time."""
    locked_blocks: int
    reserved_blocks: int


@dataclass(frozen=True)
class KindInfo:
    """One generation of a kind of blocks. Counts begin when the generation is made."""

    kind_number: int
    generation: int
    is_newest: bool
    """Whether this generation is the newest of its kind."""
    label: str
    identity: bytes
    extra_key: str | None
    has_cache_salt: bool
    key_bytes: int
    shards: int
    block_bytes: int
    """The bytes of a block in all shards together."""
    sessions: int
    """The number of sessions that have the kind open."""
    memory_bytes: int
    """The bytes of all extents of the kind together."""
    evictable_blocks: int
    protected_blocks: int
    reserved_blocks: int
    free_blocks: int
    """The number of further blocks for which the kind's extents have room."""
    hits: int
    """The number of looked-up keys that were ready."""
    misses: int
    pending: int
    """The number of looked-up keys whose blocks were being written."""
    published_blocks: int
    evicted_blocks: int
    no_room: int
    """The number of keys for which a reservation found no room."""
    overdue: int
    """The number of blocks that were reserved again because writing them took
    too long."""


class BlockFate(WireEnum):
    """The fate of the block of a key, which says why the block is found or not."""

    UNSPECIFIED = 0
    READY = 1
    PENDING = 2
    """A live session is writing the block."""
    OVERDUE = 3
    """Writing the block takes too long: the block reads as missing, and may be reserved
    again."""
    EVICTED = 4
    """The block is among the last 65,536 evicted blocks."""
    NEVER_STORED = 5
    """The block was never published, or was evicted long ago."""


class BlockEviction(WireEnum):
    """The reason why a block was evicted."""

    UNSPECIFIED = 0
    ROOM = 1
    """Another block of its kind needed room."""
    EXTENT = 2
    """The block's extent went to another kind."""
    KIND_ENDED = 3
    """The block's kind ended."""


@dataclass(frozen=True)
class BlockExplanation:
    """The explanation why the block of a key is found or not."""

    fate: BlockFate
    locks: int
    """The number of locks on the block, with READY."""
    followers: int
    """The number of blocks that come after the block, with READY."""
    age_ms: int
    """Milliseconds since the block was reserved, with PENDING and OVERDUE, or was
    evicted, with EVICTED."""
    evicted_for: BlockEviction
    session_number: int
    """The session that writes the block, with PENDING and OVERDUE; 0 if that session is
    lost."""
    client_name: str
    is_kept: bool
    """Whether the disk tier has the block, even if the block memory has it, too."""


class MatchEnd(WireEnum):
    """The reason why a match ended where it did."""

    UNSPECIFIED = 0
    COMPLETE = 1
    """Every token is cached."""
    PAGE_FLOOR = 2
    """The rest is less than a page."""
    DIVERGED = 3
    """The cache continues with other tokens."""
    EVICTED = 4
    """The next page was cached and then evicted."""
    NEVER_CACHED = 5
    """The next page is unknown: never cached, or evicted long ago."""


class NotLoaded(WireEnum):
    """The reason why tokens that a tier has are not loaded."""

    NONE = 0
    """There are no such tokens, or they are being loaded or computed."""
    NOT_ASKED = 1
    """No match has asked for a load; see `Load`."""
    TOO_FEW = 2
    """There are fewer such tokens than `--tier-min-load-tokens`."""
    NO_ROOM = 3
    """Other loads, or the cached part of the prompt, leave no room for a load."""
    NO_MOVER = 4
    """A `pando-mover` that copies pages of the pool is missing."""


@dataclass(frozen=True)
class Explanation:
    """The explanation why a prompt matches as far as it does, and no further."""

    matched_tokens: int
    end: MatchEnd
    diverged_at: int
    """With DIVERGED, the number of tokens from the start that the cache and the prompt
    have in common. The number exceeds `matched_tokens` if they diverge within a page.
    """
    evicted_for: EvictionReason
    """The reason why the next page was evicted. This and `evicted_ms_ago` are set only
    with EVICTED."""
    evicted_ms_ago: int
    is_pending: bool
    """Whether another call is computing the next page."""
    longer_in_namespaces: list[int]
    """The numbers of namespaces that have more of these tokens cached; at most 16."""
    locks: list[LockInfo]
    """The locks on the matched prefix, at most 100."""
    loadable_tokens: int
    """The number of tokens after the match that a tier has."""
    loadable_tier: Tier
    not_loaded: NotLoaded


@dataclass(frozen=True)
class TreeNode:
    """A node of the tree: a run of pages."""

    node: int
    """The number that names the node in this dump and is the `parent` of its
    children."""
    parent: int
    """The `node` of the parent; 0 if the parent is the root of the namespace."""
    namespace_number: int
    depth: int
    begin_token: int
    """The number of tokens before the node, from the start of the prompt."""
    tokens: int
    pages: int
    locks: int
    """The number of locks on the node and below it."""
    hits: int
    """The number of inserts that contained the node."""
    priority: int
    age_accesses: int
    """The number of accesses to the cache since the last access to the node."""


@dataclass(frozen=True)
class TreeDump:
    """The nodes of the tree, as far as the limit of the dump allows."""

    nodes: list[TreeNode]
    """The nodes, each after its parent."""
    omitted: int
    """The number of nodes that the limit cut off."""
