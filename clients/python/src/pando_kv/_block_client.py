"""The block calls of the blocking client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pando_kv import _block_calls as calls
from pando_kv._connection import Connection
from pando_kv._session import SessionTracker
from pando_kv._wire import Uint32Array
from pando_kv.blocks import BlockKeys, BlockMemory, Kind, KindSpec
from pando_kv.results import Namespace


class BlockClient:
    """The block calls of `Client`. Any thread may call them."""

    _connection: Connection
    _sessions: SessionTracker

    def attach_memory(self) -> BlockMemory:
        """Maps the block memory into this process.

        Call `open_kinds` or `find_kinds` before this. If the client has got a new
        session in between, no kinds are open in that session, and calls with the old
        kinds fail; then open the kinds and attach the memory again.
        """
        return self._connection.attach(
            lambda: calls.attach_memory(self._sessions),
            lambda grant: calls.map_memory(
                self._sessions, grant, self._connection.timeout
            ),
        )

    def open_kinds(self, specs: Sequence[KindSpec]) -> list[Kind]:
        """Opens these kinds, and creates those that do not exist yet: all of them or
        none. At most 256.

        Raises LayoutMismatchError if a kind with the same namespace and identity exists
        with other sizes. After a session is lost, the new session has to open its kinds
        again.
        """
        return self._connection.send(calls.open_kinds(self._sessions, specs))

    def find_kinds(
        self, names: Sequence[tuple[Namespace | None, bytes]]
    ) -> list[Kind | None]:
        """Opens the kinds with these namespaces and identities, and returns them in
        order, with None for each kind that does not exist yet. At most 256."""
        return self._connection.send(calls.find_kinds(self._sessions, names))

    def reset_kinds(self, numbers: Sequence[int]) -> list[Kind]:
        """Opens a new, empty generation of each kind and returns them in order. If a
        kind already has a newer generation, that generation is opened instead. Other
        sessions keep the old generations."""
        return self._connection.send(calls.reset_kinds(self._sessions, numbers))

    def lookup_blocks(
        self, keys: Sequence[BlockKeys], *, load: bool = False, peek: bool = False
    ) -> Uint32Array:
        """Returns for each key, in order, the place of its block, or one of the
        constants of `pando_kv.blocks` that are not places, such as MISSING. At most
        16,384 keys. The lookup counts as a use and locks nothing.

        With `load`, pandod starts loading the blocks that the shapes of the keys need
        and that a tier holds. Keys of these blocks are PENDING until the load ends; the
        call does not wait. With `peek`, pandod looks only at the block memory, and no
        block counts as used. `load` and `peek` exclude each other.
        """
        return self._connection.send(
            calls.lookup_blocks(self._sessions, keys, load=load, peek=peek)
        )

    def acquire_blocks(
        self,
        lock: int,
        keys: Sequence[BlockKeys],
        *,
        all: bool = False,
        load: bool = False,
    ) -> Uint32Array:
        """Locks the blocks that are ready. `lock` is the caller's name for the lock: a
        number from 1 on that the session has not used before. Returns the same values
        as `lookup_blocks`.

        With `all`, either every key that is looked at is locked, or none is. If the
        call fails, the lock does not exist, or is removed soon. `load` works as in
        `lookup_blocks`; the loaded blocks are not part of this lock, so take another
        lock when they are ready.

        Raises SessionLostError if the client last attached the block memory for an
        earlier session, because places of the new session may lie in other memory.
        """
        return self._connection.send(
            calls.acquire_blocks(self._sessions, lock, keys, all=all, load=load)
        )

    def reserve_blocks(
        self, reservation: int, keys: Sequence[BlockKeys], *, all: bool = False
    ) -> Uint32Array:
        """Reserves a place for each missing key. `reservation` is the caller's name for
        the reservation, chosen like the lock's name in `acquire_blocks`. Returns the
        places that the caller may now write, and READY, PENDING or FULL for the other
        keys.

        With `all`, either every missing key gets a place, or none does. Raises
        SessionLostError in the same case as `acquire_blocks`.
        """
        return self._connection.send(
            calls.reserve_blocks(self._sessions, reservation, keys, all=all)
        )

    def publish_blocks(self, reservation: int, indices: Any = ()) -> None:
        """Publishes completed blocks of a reservation, all in one step. `indices` count
        the keys of the `reserve_blocks` call from 0; empty means all keys. Keys that
        the reservation does not hold, or holds no more, are skipped. While pandod is
        away, the call returns at once and the blocks are published later."""
        self._connection.send(
            calls.publish_blocks(self._sessions, reservation, indices)
        )

    def discard_blocks(self, reservation: int, indices: Any = ()) -> None:
        """Gives reserved places back without publishing them. `indices`, keys that are
        skipped, and calls while pandod is away work as in `publish_blocks`."""
        self._connection.send(
            calls.discard_blocks(self._sessions, reservation, indices)
        )

    def release_blocks(self, locks: Sequence[int]) -> None:
        """Releases locks. Locks that the session does not have, or has no more, are
        skipped. While pandod is away, the call returns at once and the locks are
        released later."""
        self._connection.send(calls.release_blocks(self._sessions, locks))
