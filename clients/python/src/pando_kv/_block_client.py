"""The calls of blocks, of the synchronous client."""

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
    """The part of `Client` for blocks. Any thread may call it."""

    _connection: Connection
    _sessions: SessionTracker

    def attach_memory(self) -> BlockMemory:
        """Maps the block memory. To be called after `open_kinds` or `find_kinds`: a
        session that has begun anew meanwhile has no kind open, so that calls with its
        kinds fail. Then call both again.
        """
        return self._connection.attach(
            lambda: calls.attach_memory(self._sessions),
            lambda grant: calls.map_memory(
                self._sessions, grant, self._connection.timeout
            ),
        )

    def open_kinds(self, specs: Sequence[KindSpec]) -> list[Kind]:
        """Finds kinds, or makes those that are new: all or none. At most 256.

        Raises LayoutMismatchError if a kind of this namespace and identity has other
        sizes. A new session opens its kinds anew.
        """
        return self._connection.send(calls.open_kinds(self._sessions, specs))

    def find_kinds(
        self, names: Sequence[tuple[Namespace | None, bytes]]
    ) -> list[Kind | None]:
        """The kinds of these namespaces and identities, in order, open from now on;
        None for one that was not opened yet. At most 256."""
        return self._connection.send(calls.find_kinds(self._sessions, names))

    def reset_kinds(self, numbers: Sequence[int]) -> list[Kind]:
        """Replaces kinds by new, empty generations, or by newer ones that there are
        already; open from now on. Other sessions keep the old ones."""
        return self._connection.send(calls.reset_kinds(self._sessions, numbers))

    def lookup_blocks(
        self, keys: Sequence[BlockKeys], *, load: bool = False, peek: bool = False
    ) -> Uint32Array:
        """The place of each key, in order, or one of the values of `pando_kv.blocks`
        that are no places. Counts as a use, and locks nothing. At most 16,384 keys.

        With `load`, what the shapes of the keys need, and a tier has, is loaded:
        it is PENDING until then, and nothing waits for it. With `peek` the memory
        alone is looked at, and nothing counts as used; not both.
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
        """Locks the blocks that are ready, under a name of the caller's: a number from
        1 that the session has not used before. Answers as `lookup_blocks`.

        With `all`, every key that is looked at is locked, or none. When the call fails,
        nothing of the lock is left, or soon nothing will be. `load` is as for
        `lookup_blocks`: what was loaded, another lock finds.

        Raises SessionLostError while the block memory that the client attached last is
        that of an earlier session: its places may lie in other memory.
        """
        return self._connection.send(
            calls.acquire_blocks(self._sessions, lock, keys, all=all, load=load)
        )

    def reserve_blocks(
        self, reservation: int, keys: Sequence[BlockKeys], *, all: bool = False
    ) -> Uint32Array:
        """Reserves a place for each key that is missing, under a name of the caller's,
        as for `acquire_blocks`. Answers the places that the caller may now write, and
        READY, PENDING or FULL for the other keys.

        With `all`, every missing key gets a place, or none does. Raises
        SessionLostError as `acquire_blocks` does.
        """
        return self._connection.send(
            calls.reserve_blocks(self._sessions, reservation, keys, all=all)
        )

    def publish_blocks(self, reservation: int, indices: Any = ()) -> None:
        """Publishes what is complete of a reservation, all at once: these keys of it,
        counted from 0 in the order of its call, or all. Does nothing for what it does
        not have (any more). While pandod is away, it is published later."""
        self._connection.send(
            calls.publish_blocks(self._sessions, reservation, indices)
        )

    def discard_blocks(self, reservation: int, indices: Any = ()) -> None:
        """Gives reserved places back; as `publish_blocks`."""
        self._connection.send(
            calls.discard_blocks(self._sessions, reservation, indices)
        )

    def release_blocks(self, locks: Sequence[int]) -> None:
        """Releases locks; those that the session does not have (any more) are skipped.
        While pandod is away, they are released later."""
        self._connection.send(calls.release_blocks(self._sessions, locks))
