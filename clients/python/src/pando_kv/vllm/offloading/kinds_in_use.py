"""The kinds that an engine's scheduler may use in one session with pandod."""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass, replace

from vllm.v1.kv_offload.base import OffloadKey, get_offload_group_idx
from vllm.v1.kv_offload.config import OffloadingConfig

from pando_kv import Client
from pando_kv._session import Session
from pando_kv.blocks import BlockKeys, BlockMemory, Kind
from pando_kv.vllm.offloading.following import Following
from pando_kv.vllm.offloading.identity import digest_in, kind_identity, readiness

_FIRST_SECONDS = 60.0
_GROUP_BYTES = 4  # vLLM's keys end with the index of their group.


@dataclass(frozen=True)
class KindsInUse:
    """The kinds of an engine's groups, as one session has opened them. Immutable, so
    any thread may use it."""

    generation: int
    """The generation of the session."""
    epoch: int
    session_id: int
    numbers: dict[int, int]
    """The number of each group's kind, by the index of the group."""
    identities: list[bytes]
    """The identities of these kinds, in the order of `numbers`."""

    def name(
        self, keys: list[OffloadKey], before: dict[int, bytes] | None = None
    ) -> list[BlockKeys]:
        """Returns the keys in the form that pandod takes, in the same order. Each run
        of keys of one group becomes one BlockKeys. `before` has for each group the key
        before its first one, if there is one."""
        named, first = [], 0
        while first < len(keys):
            group = get_offload_group_idx(keys[first])
            end = first + 1
            while end < len(keys) and get_offload_group_idx(keys[end]) == group:
                end += 1
            hashes = b"".join([key[:-_GROUP_BYTES] for key in keys[first:end]])
            previous = before.get(group, b"") if before else b""
            named.append(
                BlockKeys(self.numbers[group], hashes, previous[:-_GROUP_BYTES])
            )
            first = end
        return named


class EngineKinds:
    """The present kinds of an engine, which a thread of its own finds again for each
    session and after each reset. SharedBlocks owns it; the scheduler's thread calls it,
    and any thread may read `now`."""

    def __init__(
        self, client: Client, is_changed: threading.Event, config: OffloadingConfig
    ) -> None:
        """Waits until the first kinds are found; the ranks open them before that.
        Raises RuntimeError if there are none within a minute."""
        self._client = client
        self._config = config
        # A suffix of the identities after a reset, so that this engine alone has these
        # kinds. Other engines may have other weights then, and an engine that starts
        # later has the weights from before the reset.
        self._own = ""
        self._resets = self._resets_done = 0
        self._memory: dict[int, BlockMemory] = {}  # By the session's generation.
        self._following = Following(client, is_changed, self._find)
        self._following.first(_FIRST_SECONDS)

    @property
    def now(self) -> KindsInUse | None:
        """Returns the present kinds; None while there is no session, or while some rank
        has not mapped the memory yet."""
        return self._following.now

    def reset(self) -> None:
        """Replaces the kinds by empty ones, which this engine shares with no other.
        Until they are found, `now` is None."""
        self._own = self._own or secrets.token_hex(8)
        self._resets += 1
        self._following.renew()

    def forget_lost_sessions(self) -> None:
        """Unmaps the memory of all sessions but the newest. To be called only when no
        transfer uses blocks that an older session had locked or reserved."""
        for generation in sorted(self._memory)[:-1]:
            del self._memory[generation]

    def close(self) -> None:
        self._following.close()

    def _find(self, session: Session) -> KindsInUse | None:
        """Finds the session's kinds and maps its memory; None if not every rank is
        ready. Following's thread calls it."""
        own, resets = self._own, self._resets
        kinds = self._shared_kinds()
        if kinds and own:
            kinds = self._client.open_kinds(
                [
                    replace(kind.spec, identity=kind.spec.identity + f" {own}".encode())
                    for kind in kinds
                ]
            )
        if kinds and resets != self._resets_done:
            kinds = self._client.reset_kinds([kind.number for kind in kinds])
        if not kinds:
            return None
        self._resets_done = resets
        if session.generation not in self._memory:
            # While this process has the memory mapped, pandod gives no block of this
            # session to others, even after the session is lost.
            self._memory[session.generation] = self._client.attach_memory()
        groups = [group.group_id for group in self._config.groups]
        numbers = [kind.number for kind in kinds]
        return KindsInUse(
            session.generation,
            session.epoch,
            session.session_id,
            dict(zip(groups, numbers, strict=True)),
            [kind.spec.identity for kind in kinds],
        )

    def _shared_kinds(self) -> list[Kind]:
        """Returns the kind of each group that all equal engines share; an empty list if
        a rank has not yet announced that it is ready, or ranks announced different
        digests."""
        config, find = self._config, self._client.find_kinds
        ranks = range(config.parallel.world_size)
        names = [readiness(config.engine_id, rank).identity for rank in ranks]
        said = find([(None, name) for name in names])
        digests = {digest_in(kind.spec.label) if kind else "" for kind in said}
        if len(digests) != 1 or "" in digests:
            return []
        (digest,) = digests
        names = [kind_identity(digest, group.group_id) for group in config.groups]
        found = [kind for kind in find([(None, name) for name in names]) if kind]
        return found if len(found) == len(names) else []
