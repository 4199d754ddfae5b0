"""The kinds that an engine's scheduler may use, in one session with pandod."""

from __future__ import annotations

from dataclasses import dataclass, replace

from vllm.v1.kv_offload.base import OffloadKey, get_offload_group_idx
from vllm.v1.kv_offload.config import OffloadingConfig

from pando_kv import Client
from pando_kv._session import Session
from pando_kv.blocks import BlockKeys
from pando_kv.vllm.offloading.identity import digest_in, kind_identity, readiness

_GROUP_BYTES = 4  # at the end of vLLM's keys


@dataclass(frozen=True)
class KindsInUse:
    generation: int
    """Of the session."""
    epoch: int
    session_id: int
    numbers: dict[int, int]
    """Of each group, by its index."""

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


def find_kinds(
    client: Client,
    session: Session,
    config: OffloadingConfig,
    own: str = "",
    *,
    reset: bool = False,
) -> KindsInUse | None:
    """None before each rank has mapped the memory. `own` names kinds that this engine
    shares with no other; `reset` empties them."""
    ranks = [
        readiness(config.engine_id, rank).identity
        for rank in range(config.parallel.world_size)
    ]
    ready = client.find_kinds([(None, identity) for identity in ranks])
    digests = {digest_in(kind.spec.label) if kind else "" for kind in ready}
    if len(digests) != 1 or "" in digests:
        return None
    (digest,) = digests
    groups = [group.group_id for group in config.groups]
    found = client.find_kinds([(None, kind_identity(digest, g)) for g in groups])
    kinds = [kind for kind in found if kind is not None]
    if len(kinds) != len(groups):
        return None
    if own:
        kinds = client.open_kinds(
            [
                replace(kind.spec, identity=kind_identity(digest, group, own))
                for kind, group in zip(kinds, groups, strict=True)
            ]
        )
    if reset:
        kinds = client.reset_kinds([kind.number for kind in kinds])
    return KindsInUse(
        session.generation,
        session.epoch,
        session.session_id,
        {g: kind.number for g, kind in zip(groups, kinds, strict=True)},
    )
