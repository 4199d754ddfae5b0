"""The calls about blocks.

A client chooses the names of its locks and reservations, so each call is safe to
repeat. If a call fails, its lock or reservation does not exist, or is removed soon; its
name must not be used again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pando_kv._call import Call, namespace_message
from pando_kv._methods import (
    ACQUIRE_BLOCKS,
    DISCARD_BLOCKS,
    LOOKUP_BLOCKS,
    PAGE_BYTES,
    PUBLISH_BLOCKS,
    RELEASE_BLOCKS,
    RESERVE_BLOCKS,
    RESET_KINDS,
    SMALL_ANSWER,
    AcquireBlocksRequest,
    DiscardBlocksRequest,
    LookupBlocksRequest,
    Method,
    PublishBlocksRequest,
    ReleaseBlocksRequest,
    ReserveBlocksRequest,
    ResetKindsRequest,
    plain,
)
from pando_kv._proto.pando.v1 import blocks_pb2
from pando_kv._session import Session, SessionTracker
from pando_kv._wire import Uint32Array, as_uint32
from pando_kv.blocks import BlockKeys, BlockMemory, Kind, KindSpec, key_bytes_of
from pando_kv.results import Namespace

_SERVICE = "/pando.v1.Blocks/"
_LEAST_KEY_BYTES = 16
# The bytes that one kind takes in an answer, if namespace, identity and label have
# their maximum lengths.
_KIND_BYTES = 1024


@dataclass(frozen=True)
class MemoryGrant:
    """The right to map the block memory once. The token is shown at the memory
    socket."""

    epoch: int
    memory_bytes: int
    memory_socket: str
    token: bytes
    session: Session | None
    """The client's own session for which the grant was made; None for a grant for the
    session of another process."""


def attach_memory(
    sessions: SessionTracker, session_id: int | None = None
) -> Call[MemoryGrant]:
    """Returns the call that asks for a memory grant. `session_id` is the session of
    another process of the engine, for which this process writes; None means the
    client's own session."""
    own = sessions.current() if session_id is None else None
    if own is not None:
        session_id = own.session_id
    request = blocks_pb2.AttachMemoryRequest(session_id=session_id)

    def parse(data: bytes) -> MemoryGrant:
        response = blocks_pb2.AttachMemoryResponse.FromString(data)
        return MemoryGrant(
            response.epoch,
            response.memory_bytes,
            response.memory_socket,
            response.token,
            own,
        )

    return Call(plain(_SERVICE + "AttachMemory"), request.SerializeToString(), parse)


def map_memory(
    sessions: SessionTracker, grant: MemoryGrant, timeout: float
) -> BlockMemory:
    memory = BlockMemory.attach(
        grant.epoch, grant.memory_bytes, grant.memory_socket, grant.token, timeout
    )
    if grant.session is not None:
        sessions.memory_attached(grant.session)
    return memory


def open_kinds(sessions: SessionTracker, specs: Sequence[KindSpec]) -> Call[list[Kind]]:
    request = blocks_pb2.OpenKindsRequest(session_id=sessions.current().session_id)
    for spec in specs:
        request.kinds.append(_spec_message(spec))

    def parse(data: bytes) -> list[Kind]:
        response = blocks_pb2.OpenKindsResponse.FromString(data)
        return [_kind(kind) for kind in response.kinds]

    return Call(plain(_SERVICE + "OpenKinds"), request.SerializeToString(), parse)


def find_kinds(
    sessions: SessionTracker, names: Sequence[tuple[Namespace | None, bytes]]
) -> Call[list[Kind | None]]:
    request = blocks_pb2.FindKindsRequest(session_id=sessions.current().session_id)
    for namespace, identity in names:
        request.kinds.add(namespace=namespace_message(namespace), identity=identity)

    def parse(data: bytes) -> list[Kind | None]:
        response = blocks_pb2.FindKindsResponse.FromString(data)
        return [_kind(kind) if kind.number else None for kind in response.kinds]

    return Call(plain(_SERVICE + "FindKinds"), request.SerializeToString(), parse)


def reset_kinds(sessions: SessionTracker, numbers: Any) -> Call[list[Kind]]:
    session = sessions.current()
    kinds = as_uint32(numbers, "kinds")
    return Call(
        RESET_KINDS,
        ResetKindsRequest(session_id=session.session_id, kinds=kinds),
        lambda answer: [_kind_of_values(*each) for each in answer[0]],
        answer_bytes=SMALL_ANSWER + _KIND_BYTES * kinds.size,
        repeats_in=session,
    )


def lookup_blocks(
    sessions: SessionTracker, keys: Sequence[BlockKeys], *, load: bool, peek: bool
) -> Call[Uint32Array]:
    request = LookupBlocksRequest(
        session_id=sessions.current().session_id, keys=keys, load=load, peek=peek
    )
    return Call(LOOKUP_BLOCKS, request, _places, answer_bytes=_places_bytes(keys))


def acquire_blocks(
    sessions: SessionTracker,
    lock: int,
    keys: Sequence[BlockKeys],
    *,
    all: bool,
    load: bool,
) -> Call[Uint32Array]:
    session = sessions.require_memory()
    request = AcquireBlocksRequest(
        session_id=session.session_id, lock=lock, keys=keys, all=all, load=load
    )
    undo = partial(_release, session, [lock])
    return Call(
        ACQUIRE_BLOCKS,
        request,
        _places,
        answer_bytes=_places_bytes(keys),
        repeats_in=session,
        give_back=_whatever_came(undo),
        undo=undo,
    )


def reserve_blocks(
    sessions: SessionTracker, reservation: int, keys: Sequence[BlockKeys], *, all: bool
) -> Call[Uint32Array]:
    session = sessions.require_memory()
    request = ReserveBlocksRequest(
        session_id=session.session_id, reservation=reservation, keys=keys, all=all
    )
    undo = partial(
        _end_reservation,
        DISCARD_BLOCKS,
        DiscardBlocksRequest,
        session,
        reservation,
        (),
    )
    return Call(
        RESERVE_BLOCKS,
        request,
        _places,
        answer_bytes=_places_bytes(keys),
        repeats_in=session,
        give_back=_whatever_came(undo),
        undo=undo,
    )


def publish_blocks(
    sessions: SessionTracker, reservation: int, indices: Any = ()
) -> Call[None]:
    return _end_reservation(
        PUBLISH_BLOCKS, PublishBlocksRequest, sessions.current(), reservation, indices
    )


def discard_blocks(
    sessions: SessionTracker, reservation: int, indices: Any = ()
) -> Call[None]:
    return _end_reservation(
        DISCARD_BLOCKS, DiscardBlocksRequest, sessions.current(), reservation, indices
    )


def release_blocks(sessions: SessionTracker, locks: Sequence[int]) -> Call[None]:
    return _release(sessions.current(), locks)


def _release(session: Session, locks: Sequence[int]) -> Call[None]:
    return Call(
        RELEASE_BLOCKS,
        ReleaseBlocksRequest(session_id=session.session_id, locks=list(locks)),
        lambda _: None,
        repeats_in=session,
        only_gives_back=True,
    )


def _end_reservation(
    method: Method,
    make_request: Callable[..., Any],
    session: Session,
    reservation: int,
    indices: Any,
) -> Call[None]:
    return Call(
        method,
        make_request(
            session_id=session.session_id,
            reservation=reservation,
            indices=as_uint32(indices, "indices"),
        ),
        lambda _: None,
        repeats_in=session,
        only_gives_back=True,
    )


def _whatever_came(undo: Callable[[], Call[Any]]) -> Callable[[Any], Call[Any]]:
    return lambda _: undo()


def _places(answer: tuple[Any, ...]) -> Uint32Array:
    places: Uint32Array = answer[0]
    return places


def _places_bytes(keys: Sequence[BlockKeys]) -> int:
    return SMALL_ANSWER + PAGE_BYTES * (key_bytes_of(keys) // _LEAST_KEY_BYTES)


def _spec_message(spec: KindSpec) -> blocks_pb2.KindSpec:
    return blocks_pb2.KindSpec(
        namespace=namespace_message(spec.namespace),
        identity=spec.identity,
        label=spec.label,
        key_bytes=spec.key_bytes,
        shard_bytes=spec.shard_bytes,
        shards=spec.shards,
    )


def _kind(message: blocks_pb2.Kind) -> Kind:
    spec = message.spec
    namespace = None
    if spec.HasField("namespace"):
        namespace = Namespace(
            spec.namespace.extra_key if spec.namespace.HasField("extra_key") else None,
            spec.namespace.cache_salt
            if spec.namespace.HasField("cache_salt")
            else None,
            spec.namespace.bigram,
        )
    return Kind(
        message.number,
        message.generation,
        message.shard_stride,
        KindSpec(
            spec.identity,
            spec.label,
            spec.key_bytes,
            spec.shard_bytes,
            spec.shards,
            namespace,
        ),
    )


def _kind_of_values(
    number: int, generation: int, shard_stride: int, spec: tuple[Any, ...], *_: Any
) -> Kind:
    # A newer pandod may send fields after these six.
    namespace, identity, label, key_bytes, shard_bytes, shards = spec[:6]
    return Kind(
        number,
        generation,
        shard_stride,
        KindSpec(
            identity,
            label,
            key_bytes,
            shard_bytes,
            shards,
            Namespace(*namespace[:3]) if namespace else None,
        ),
    )
