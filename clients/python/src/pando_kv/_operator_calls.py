"""The calls for operators and watchers."""

from __future__ import annotations

from typing import Any

from pando_kv._call import Call, namespace_message
from pando_kv._methods import plain
from pando_kv._proto.pando.v1 import admin_pb2, events_pb2
from pando_kv._wire import as_uint32, encode
from pando_kv.operators import (
    BlockEviction,
    BlockExplanation,
    BlockFate,
    EvictionReason,
    Explanation,
    KindInfo,
    Listing,
    LockInfo,
    MatchEnd,
    NamespaceInfo,
    NotLoaded,
    QuarantineInfo,
    SessionInfo,
    TreeNode,
)
from pando_kv.results import (
    BlockFigures,
    BlockQuota,
    CacheCounters,
    Flush,
    MoverFigures,
    Namespace,
    PageStates,
    QuotaClass,
    ReuseStats,
    Stats,
    Tier,
    TierFigures,
    from_message,
)

_SERVICE = "/pando.v1.Admin/"

DUMP_TREE = _SERVICE + "DumpTree"
WATCH = "/pando.v1.Events/Watch"


def stats() -> Call[Stats]:
    def parse(data: bytes) -> Stats:
        response = admin_pb2.GetStatsResponse.FromString(data)
        return from_message(
            Stats,
            response,
            pages=from_message(PageStates, response.pages),
            counters=from_message(CacheCounters, response.counters),
            quota_classes=[
                from_message(QuotaClass, each) for each in response.quota_classes
            ],
            reuse=from_message(ReuseStats, response.reuse)
            if response.HasField("reuse")
            else None,
            blocks=_block_figures(response.blocks)
            if response.HasField("blocks")
            else None,
            tiers=[
                from_message(TierFigures, each, tier=Tier(each.tier))
                for each in response.tiers
            ],
            movers=[from_message(MoverFigures, each) for each in response.movers],
        )

    return Call(plain(_SERVICE + "GetStats"), b"", parse)


def _block_figures(message: admin_pb2.BlockFigures) -> BlockFigures:
    quotas = [from_message(BlockQuota, each) for each in message.quotas]
    return from_message(BlockFigures, message, quotas=quotas)


def flush(namespace: Namespace | int | None) -> Call[Flush]:
    request = admin_pb2.FlushRequest()
    if isinstance(namespace, int):
        request.namespace_number = namespace
    elif namespace is not None:
        request.namespace.CopyFrom(namespace_message(namespace))

    def parse(data: bytes) -> Flush:
        return from_message(Flush, admin_pb2.FlushResponse.FromString(data))

    return Call(plain(_SERVICE + "Flush"), request.SerializeToString(), parse)


def set_eviction_policy(policy: str) -> Call[str]:
    request = admin_pb2.SetEvictionPolicyRequest(policy=policy)

    def parse(data: bytes) -> str:
        return str(admin_pb2.SetEvictionPolicyResponse.FromString(data).previous)

    return Call(
        plain(_SERVICE + "SetEvictionPolicy"), request.SerializeToString(), parse
    )


def namespaces(limit: int) -> Call[Listing[NamespaceInfo]]:
    request = admin_pb2.ListNamespacesRequest(limit=limit)

    def parse(data: bytes) -> Listing[NamespaceInfo]:
        response = admin_pb2.ListNamespacesResponse.FromString(data)
        return Listing(
            [from_message(NamespaceInfo, each) for each in response.namespaces],
            response.total,
        )

    return Call(plain(_SERVICE + "ListNamespaces"), request.SerializeToString(), parse)


def sessions(limit: int) -> Call[Listing[SessionInfo]]:
    request = admin_pb2.ListSessionsRequest(limit=limit)

    def parse(data: bytes) -> Listing[SessionInfo]:
        response = admin_pb2.ListSessionsResponse.FromString(data)
        return Listing(
            [from_message(SessionInfo, each) for each in response.sessions],
            response.total,
        )

    return Call(plain(_SERVICE + "ListSessions"), request.SerializeToString(), parse)


def locks(limit: int, session_number: int) -> Call[Listing[LockInfo]]:
    request = admin_pb2.ListLocksRequest(limit=limit, session_number=session_number)

    def parse(data: bytes) -> Listing[LockInfo]:
        response = admin_pb2.ListLocksResponse.FromString(data)
        return Listing(
            [from_message(LockInfo, each) for each in response.locks], response.total
        )

    return Call(plain(_SERVICE + "ListLocks"), request.SerializeToString(), parse)


def release_locks(session_number: int) -> Call[int]:
    request = admin_pb2.ReleaseLocksRequest(session_number=session_number)

    def parse(data: bytes) -> int:
        return int(admin_pb2.ReleaseLocksResponse.FromString(data).released_locks)

    return Call(plain(_SERVICE + "ReleaseLocks"), request.SerializeToString(), parse)


def quarantine(limit: int) -> Call[Listing[QuarantineInfo]]:
    request = admin_pb2.ListQuarantineRequest(limit=limit)

    def parse(data: bytes) -> Listing[QuarantineInfo]:
        response = admin_pb2.ListQuarantineResponse.FromString(data)
        return Listing(
            [
                from_message(QuarantineInfo, each, living_pids=list(each.living_pids))
                for each in response.sessions
            ],
            response.total,
        )

    return Call(plain(_SERVICE + "ListQuarantine"), request.SerializeToString(), parse)


def free_quarantine(session_number: int) -> Call[int]:
    request = admin_pb2.FreeQuarantineRequest(session_number=session_number)

    def parse(data: bytes) -> int:
        return int(admin_pb2.FreeQuarantineResponse.FromString(data).freed_pages)

    return Call(plain(_SERVICE + "FreeQuarantine"), request.SerializeToString(), parse)


def explain(tokens: Any, namespace: Namespace | None) -> Call[Explanation]:
    kind = admin_pb2.ExplainMatchRequest
    request = kind(namespace=namespace_message(namespace))
    lists = {kind.TOKENS_FIELD_NUMBER: as_uint32(tokens, "tokens")}

    def parse(data: bytes) -> Explanation:
        response = admin_pb2.ExplainMatchResponse.FromString(data)
        return from_message(
            Explanation,
            response,
            end=MatchEnd(response.end),
            evicted_for=EvictionReason(response.evicted_for),
            longer_in_namespaces=list(response.longer_in_namespaces),
            locks=[from_message(LockInfo, each) for each in response.locks],
            loadable_tier=Tier(response.loadable_tier),
            not_loaded=NotLoaded(response.not_loaded),
        )

    return Call(plain(_SERVICE + "ExplainMatch"), encode(request, lists), parse)


def kinds(limit: int) -> Call[Listing[KindInfo]]:
    request = admin_pb2.ListKindsRequest(limit=limit)

    def parse(data: bytes) -> Listing[KindInfo]:
        response = admin_pb2.ListKindsResponse.FromString(data)
        return Listing(
            [from_message(KindInfo, each) for each in response.kinds], response.total
        )

    return Call(plain(_SERVICE + "ListKinds"), request.SerializeToString(), parse)


def explain_block(kind_number: int, key: bytes) -> Call[BlockExplanation]:
    request = admin_pb2.ExplainBlockRequest(kind_number=kind_number, key=key)

    def parse(data: bytes) -> BlockExplanation:
        response = admin_pb2.ExplainBlockResponse.FromString(data)
        return from_message(
            BlockExplanation,
            response,
            fate=BlockFate(response.fate),
            evicted_for=BlockEviction(response.evicted_for),
        )

    return Call(plain(_SERVICE + "ExplainBlock"), request.SerializeToString(), parse)


def check_invariants() -> Call[list[str]]:
    def parse(data: bytes) -> list[str]:
        return list(admin_pb2.CheckInvariantsResponse.FromString(data).violations)

    return Call(plain(_SERVICE + "CheckInvariants"), b"", parse)


def drain(exit: bool) -> Call[None]:
    request = admin_pb2.DrainRequest(exit=exit)
    return Call(plain(_SERVICE + "Drain"), request.SerializeToString(), lambda _: None)


def restart() -> Call[None]:
    return Call(plain(_SERVICE + "Restart"), b"", lambda _: None)


def dump_tree_request(limit: int, namespace_number: int) -> bytes:
    request = admin_pb2.DumpTreeRequest(limit=limit, namespace_number=namespace_number)
    return bytes(request.SerializeToString())


def dumped(data: bytes) -> tuple[list[TreeNode], int]:
    """Returns the nodes in one message of a dump, and the number of nodes that its
    limit cut off."""
    response = admin_pb2.DumpTreeResponse.FromString(data)
    return [from_message(TreeNode, each) for each in response.nodes], response.omitted


def watch_request(after_sequence: int | None, epoch: int) -> bytes:
    request = events_pb2.WatchRequest(after_sequence=after_sequence, epoch=epoch)
    return bytes(request.SerializeToString())
