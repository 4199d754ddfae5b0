"""The results of the calls for operators, without tokens or cache salts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from pando_kv.results import Tier, WireEnum

T = TypeVar("T")


class EvictionReason(WireEnum):
    """Why pages were evicted."""

    UNSPECIFIED = 0
    ALLOCATION = 1
    """An allocation needed pages."""
    REQUEST = 2
    """Evict was called."""
    WATERMARK = 3
    """Some pages are kept free."""
    QUOTA = 4
    """Their class of namespaces had to stay within its cap."""
    FLUSH = 5
    """Flush was called."""


@dataclass(frozen=True)
class Listing(Generic[T]):
    """The first entries of a list, up to the limit that was asked for."""

    items: list[T]
    total: int
    """How many there are, whether they are listed or not."""


@dataclass(frozen=True)
class NamespaceInfo:
    """One namespace with something cached or locked."""

    number: int
    """Names the namespace as long as something is in it, until pandod ends."""
    extra_key: str | None
    has_cache_salt: bool
    bigram: bool
    evictable_pages: int
    protected_pages: int
    nodes: int


@dataclass(frozen=True)
class SessionInfo:
    """One session that is open: an attached worker."""

    session_number: int
    """Sessions are numbered as they are opened; their ids are secret."""
    client_name: str
    locks: int
    reserved_pages: int
    age_ms: int
    is_connected: bool
    """Its connection stands; otherwise it ends soon, unless it is resumed."""
    is_attached: bool
    """It has mapped the pool."""
    locked_blocks: int
    """Each as often as it is locked."""
    reserved_blocks: int
    is_internal: bool
    """It is pandod's own, which copies pages to and from tiers."""
    steps: int
    """How many its calls have taken: a short call is one or two, a large one many."""


@dataclass(frozen=True)
class LockInfo:
    """One lock that is held."""

    session_number: int
    client_name: str
    locked_tokens: int
    age_ms: int
    namespace_number: int


@dataclass(frozen=True)
class QuarantineInfo:
    """A lost session with pages in quarantine, because its processes may still write
    to them."""

    session_number: int
    client_name: str
    pages: int
    age_ms: int
    """Since the session was lost."""
    is_held: bool
    """A process is known to hold the memory: no time frees the pages meanwhile."""
    living_pids: list[int]
    """Those who attached themselves and that pandod can see; no heirs of theirs."""
    has_unwatched: bool
    """A process that mapped the pool cannot be watched: the quarantine time counts."""
    locked_blocks: int
    reserved_blocks: int


@dataclass(frozen=True)
class KindInfo:
    """One generation of a kind of blocks. Counts are since it was made."""

    kind_number: int
    generation: int
    is_newest: bool
    """No later generation has taken its place."""
    label: str
    identity: bytes
    extra_key: str | None
    has_cache_salt: bool
    key_bytes: int
    shards: int
    block_bytes: int
    """All shards of a block together."""
    sessions: int
    """Sessions that have it open."""
    memory_bytes: int
    """All of its extents together."""
    evictable_blocks: int
    protected_blocks: int
    reserved_blocks: int
    free_blocks: int
    """Room for more blocks in its extents."""
    hits: int
    """Keys of look-ups that were ready."""
    misses: int
    pending: int
    """Keys of look-ups that were being written."""
    published_blocks: int
    evicted_blocks: int
    no_room: int
    """Keys that a reservation had no room for."""
    overdue: int
    """Blocks that were reserved anew, because they took too long to be written."""


class BlockFate(WireEnum):
    """Why the block of a key is found or not."""

    UNSPECIFIED = 0
    READY = 1
    PENDING = 2
    """A live session writes it."""
    OVERDUE = 3
    """It takes too long to be written, reads as missing and may be reserved anew."""
    EVICTED = 4
    """It is among the last 65,536 blocks that were evicted."""
    NEVER_STORED = 5
    """It was never published, or was evicted long ago."""


class BlockEviction(WireEnum):
    """Why a block was evicted."""

    UNSPECIFIED = 0
    ROOM = 1
    """Another block of its kind needed room."""
    EXTENT = 2
    """Its extent went to another kind."""
    KIND_ENDED = 3
    """Its kind ended."""


@dataclass(frozen=True)
class BlockExplanation:
    """Why the block of a key is found or not."""

    fate: BlockFate
    locks: int
    """With READY: how often it is locked."""
    followers: int
    """With READY: the blocks that come after it."""
    age_ms: int
    """Since it was reserved, with PENDING and OVERDUE, or evicted."""
    evicted_for: BlockEviction
    session_number: int
    """The writer, with PENDING and OVERDUE; 0 if it is lost."""
    client_name: str
    is_kept: bool
    """The disk tier has it; also when it is in the memory."""


class MatchEnd(WireEnum):
    """Why a match ended where it did."""

    UNSPECIFIED = 0
    COMPLETE = 1
    """Every token is cached."""
    PAGE_FLOOR = 2
    """The rest is less than a page."""
    DIVERGED = 3
    """The cache continues with other tokens."""
    EVICTED = 4
    """The next page was cached, and was evicted."""
    NEVER_CACHED = 5
    """The next page is not known: never cached, or evicted long ago."""


class NotLoaded(WireEnum):
    """Why what a tier has is not loaded."""

    NONE = 0
    """There is nothing to load, or it is being loaded."""
    NOT_ASKED = 1
    """No match has asked for it: see `Load`."""
    TOO_FEW = 2
    """It is less than `--tier-min-load-tokens`."""
    NO_ROOM = 3
    """Other loads, or what is cached of the prompt, leave no room for it."""
    NO_MOVER = 4
    """A `pando-mover` that copies pages of the pool is missing."""


@dataclass(frozen=True)
class Explanation:
    """Why a prompt matches as far as it does, and no further."""

    matched_tokens: int
    end: MatchEnd
    diverged_at: int
    """With DIVERGED: tokens from the start that the cache has in common with the
    prompt, more than `matched_tokens` when it diverges within a page."""
    evicted_for: EvictionReason
    """With EVICTED, like `evicted_ms_ago`."""
    evicted_ms_ago: int
    is_pending: bool
    """Another call is computing the next page."""
    longer_in_namespaces: list[int]
    """Numbers of namespaces that have more of these tokens; at most 16."""
    locks: list[LockInfo]
    """Locks on what matched, at most 100."""
    loadable_tokens: int
    """Tokens after the match that a tier has."""
    loadable_tier: Tier
    not_loaded: NotLoaded


@dataclass(frozen=True)
class TreeNode:
    """A run of pages in the tree."""

    node: int
    """Names the node in this dump, and its children's `parent`."""
    parent: int
    """0: the root of the namespace."""
    namespace_number: int
    depth: int
    begin_token: int
    """Tokens before the node, from the start of the prompt."""
    tokens: int
    pages: int
    locks: int
    """On it and below it."""
    hits: int
    """Inserts that contained it."""
    priority: int
    age_accesses: int
    """Accesses to the cache since its last one."""


@dataclass(frozen=True)
class TreeDump:
    nodes: list[TreeNode]
    """Each after its parent."""
    omitted: int
    """Nodes that the limit cut off."""
