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
    """Somebody is known to hold the memory: no time frees the pages meanwhile."""
    living_pids: list[int]
    """Those who attached themselves and that pandod can see; no heirs of theirs."""
    has_unwatched: bool
    """A process that mapped the pool cannot be watched: the quarantine time counts."""


class MatchEnd(WireEnum):
    """Why a match ended where it did."""

    UNSPECIFIED = 0
    COMPLETE = 1
    """Every token is cached."""
    PAGE_FLOOR = 2
    """What is left is less than a page."""
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
