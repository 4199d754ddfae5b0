"""The kinds that an engine's scheduler may use, in one session with pandod."""

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
_GROUP_BYTES = 4  # at the end of vLLM's keys


@dataclass(frozen=True)
class KindsInUse:
    generation: int
    """Of the session."""
    epoch: int
    session_id: int
    numbers: dict[int, int]
    """Of each group, by its index."""
    identities: list[bytes]
    """Of these kinds, in the same order."""

    def name(
        self, keys: list[OffloadKey], before: dict[int, bytes] | None = None
    ) -> list[BlockKeys]:
        """The keys as pandod wants them, in the same order: those of a group are
        together."""
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
    """Finds them anew for each session, and after each reset. Owned by the scheduler's
    side; its thread calls it, and another one finds."""

    def __init__(
        self, client: Client, is_changed: threading.Event, config: OffloadingConfig
    ) -> None:
        """Waits for the first ones: the ranks have opened them before."""
        self._client = client
        self._config = config
        # Names kinds of this engine alone, which it uses after a reset: others may have
        # other weights now, and one that begins anew has those of before.
        self._own = ""
        self._resets = self._resets_done = 0
        self._memory: dict[int, BlockMemory] = {}  # by the session's generation
        self._following = Following(client, is_changed, self._find)
        self._following.first(_FIRST_SECONDS)

    @property
    def now(self) -> KindsInUse | None:
        """None while there is no session, or not every rank has mapped its memory."""
        return self._following.now

    def reset(self) -> None:
        """From now on they are empty ones, which this engine shares with no other."""
        self._own = self._own or secrets.token_hex(8)
        self._resets += 1
        self._following.renew()

    def forget_lost_sessions(self) -> None:
        """When nothing that these had locked or reserved is under way."""
        for generation in sorted(self._memory)[:-1]:
            del self._memory[generation]

    def close(self) -> None:
        self._following.close()

    def _find(self, session: Session) -> KindsInUse | None:
        """In the thread that follows the sessions."""
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
            # While this process has it mapped, pandod gives no block away that the
            # session held, though it may lose the session.
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
        """Of each group; none if a rank has not said yet that it is ready."""
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
