"""Pando's block memory as one engine uses it. The constructor attaches the memory; a
thread does so later, if that failed, and again each time that pandod restarts. A call
waits for a short time only, and not at all while pandod is away."""

from __future__ import annotations

import itertools
import logging
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from pando_kv import Client
from pando_kv._wire import Uint32Array
from pando_kv.blocks import (
    PLACE_BYTES,
    BlockKeys,
    BlockMemory,
    Kind,
    KindSpec,
    are_places,
)
from pando_kv.errors import AwayError, PandoError, SessionLostError, UnavailableError
from pando_kv.sglang import TOKEN
from pando_kv.sglang.linker.pages import Addresses

T = TypeVar("T")

_log = logging.getLogger("pando_kv.sglang")

# SGLang's keys are SHA-256 digests.
KEY_BYTES = 32
# The most keys that pandod takes in one call.
MOST_KEYS = 16_384
# Both are seconds: the timeout of calls that attach, and the pause between two attempts
# in the background.
_TIMEOUT = 5.0
_PAUSE = 0.2


@dataclass(frozen=True)
class Binding:
    """The memory and the kinds of one session. A place is valid only with the binding
    it was obtained with. Immutable; any thread may use it.

    Only loads and copies may keep a binding, and only while they run: after a lost
    session, pandod does not reuse its blocks before this mapping is gone.
    """

    number: int
    """The number of the binding, unique in its store."""
    memory: BlockMemory
    kinds: Sequence[Kind]
    """The kinds, in the order of the specs that the store was given."""
    generation: int

    def addresses(self, places: Uint32Array) -> Addresses:
        """Returns the address of each place in this process."""
        base = np.uint64(self.memory.bytes.ctypes.data)
        return places.astype(np.uint64) * np.uint64(PLACE_BYTES) + base


class Store:
    """A session with pandod, and a thread that attaches its memory, declares the kinds
    and gives locks back. Owned by PandoLinker.

    Any thread may ask. A question without an answer in `patience` seconds ends as if it
    had found nothing. Until pandod answers again, all other questions end so at once.
    The client gives back whatever such a question may have locked or reserved.
    """

    def __init__(
        self,
        name: str,
        specs: Sequence[KindSpec],
        patience: float,
        prepare: Callable[[BlockMemory], None],
    ) -> None:
        """Tries to attach to pandod, and returns after some seconds even if pandod is
        not there; the thread then goes on trying. `prepare` is called with each memory
        before its first use. Raises ValueError if pandod refuses the engine."""
        self._name = name
        self._prepare = prepare
        self._specs = specs
        self._patience = patience
        self._client: Client | None = None
        # Counts lost sessions.
        self._losses = 0
        # The memory of the current session.
        self._memory: BlockMemory | None = None
        self._names = itertools.count(1)
        self._bindings = itertools.count(1)
        # The locks to release: the generation of the session, and the lock.
        self._releases: list[tuple[int, int]] = []
        self._mutex = threading.Lock()
        self._work = threading.Event()
        self._closed = False
        self._complained: set[str] = set()
        self.binding: Binding | None = None
        try:
            self._attach()
        except UnavailableError as error:
            self._complain(error)
        except PandoError as error:
            raise ValueError(f"pandod refuses this engine: {error}") from error
        self._thread = threading.Thread(
            target=self._keep, name="pando-linker-keeper", daemon=True
        )
        self._thread.start()

    def declare(self, specs: Sequence[KindSpec]) -> None:
        """Replaces the kinds. Nothing is found or stored until pandod knows the new
        ones."""
        with self._mutex:
            self._specs, self.binding = specs, None
        self._work.set()

    def is_current(self, binding: Binding) -> bool:
        return binding is self.binding

    def lookup(self, keys: Sequence[BlockKeys]) -> Uint32Array | None:
        """Returns a place for each key, in order, or None without an answer. Blocks
        that only a tier has are loaded in the background, and a later lookup finds
        them."""
        answers: list[Uint32Array] = []
        for part in _parts_of(keys):
            answer = self._ask(Client.lookup_blocks, part, load=True)
            if answer is None:
                return None
            answers.append(answer)
        return np.concatenate(answers)

    def acquire(
        self, binding: Binding, keys: Sequence[BlockKeys]
    ) -> tuple[Uint32Array, list[int]] | None:
        """Locks all these blocks. Returns their places and the names of the locks, or
        None, with nothing locked, if a block is missing or there was no answer."""
        places: list[Uint32Array] = []
        locks: list[int] = []
        for part in _parts_of(keys):
            lock = next(self._names)
            answer = self._ask(Client.acquire_blocks, lock, part, all=True)
            if answer is None or not are_places(answer).all():
                self.release(binding, locks)
                return None
            places.append(answer)
            locks.append(lock)
        if not self.is_current(binding):
            self.release(binding, locks)
            return None
        return np.concatenate(places), locks

    def release(self, binding: Binding, locks: Sequence[int]) -> None:
        """Releases the locks in the background."""
        with self._mutex:
            self._releases += [(binding.generation, lock) for lock in locks]
        self._work.set()

    def reserve(
        self, binding: Binding, keys: Sequence[BlockKeys]
    ) -> tuple[int, Uint32Array] | None:
        """Reserves places for blocks, at most MOST_KEYS. Returns the name of the
        reservation, and for each key its place or the reason why it has none. Returns
        None without an answer."""
        name = next(self._names)
        places = self._ask(Client.reserve_blocks, name, keys)
        if places is None:
            return None
        if not self.is_current(binding):
            self.discard(name)
            return None
        return name, places

    def publish(self, reservation: int) -> bool:
        """Publishes the blocks of the reservation, or leaves that to the client while
        pandod is away. Returns False if the call failed."""
        return self._ask(_publish, reservation) is not None

    def discard(self, reservation: int) -> None:
        """Gives back the places of the reservation."""
        self._ask(Client.discard_blocks, reservation)

    def close(self) -> None:
        self._closed = True
        self._work.set()
        self._thread.join(_TIMEOUT)
        if self._client is not None:
            self._client.close()

    def _ask(self, call: Callable[..., T], *given: Any, **named: Any) -> T | None:
        """Makes a call of the client. Returns None if there is no binding, or if pandod
        does not answer or refuses the call."""
        client = self._client
        if client is None or self.binding is None:
            return None
        try:
            return call(client, *given, **named)
        except SessionLostError:
            self._lost()
        except PandoError as error:
            self._complain(error)
            if error.reason == "KIND_UNKNOWN":
                self._lost()
        return None

    def _lost(self, *_: Any) -> None:
        """Forgets the memory and the binding of a lost session. The client also calls
        it, before it opens another session."""
        with self._mutex:
            self._losses += 1
            self.binding = self._memory = None
        self._work.set()

    def _keep(self) -> None:
        while not self._closed:
            waits = self.binding is None and not self._work.is_set()
            self._work.wait(_PAUSE if waits else None)
            self._work.clear()
            self._give_back()
            if self.binding is not None or self._closed:
                continue
            try:
                self._attach()
            except PandoError as error:
                self._complain(error)
        self._give_back()

    def _attach(self) -> None:
        if self._client is None:
            self._client = Client(
                name=self._name,
                timeout=_TIMEOUT,
                away_after=self._patience,
                on_session_lost=self._lost,
                token=os.environ.get(TOKEN) or None,
            )
        client, specs, losses = self._client, self._specs, self._losses
        generation, memory = client.generation, self._memory
        kinds = client.open_kinds(specs)
        if memory is None:
            memory = client.attach_memory()
            self._prepare(memory)
        with self._mutex:
            if losses != self._losses:
                self._work.set()
                return
            self._memory = memory
            if specs is self._specs:
                self.binding = Binding(next(self._bindings), memory, kinds, generation)
            else:
                self._work.set()
        if self._complained:
            self._complained.clear()
            _log.warning("pandod is there again")

    def _give_back(self) -> None:
        with self._mutex:
            releases, self._releases = self._releases, []
        client = self._client
        if client is None:
            return
        now = client.generation
        locks = [lock for generation, lock in releases if generation == now]
        try:
            if locks:
                client.release_blocks(locks)
        except PandoError as error:
            # The client keeps trying until the locks are released or end with the
            # session.
            self._complain(error)

    def _complain(self, error: PandoError) -> None:
        """Logs the error, once for each reason; the engine goes on without its store.
        An AwayError is not logged here, because the client logs it."""
        if error.reason not in self._complained and not isinstance(error, AwayError):
            self._complained.add(error.reason)
            _log.warning("pandod: %s; the engine goes on without it", error)


def _publish(client: Client, reservation: int) -> bool:
    client.publish_blocks(reservation)
    return True


def portions(
    sizes: Sequence[int], most: int = MOST_KEYS
) -> list[list[tuple[int, int, int]]]:
    """Cuts lists with `sizes` items into calls of at most `most` items. Returns the
    ranges of each call: the position of the list, the first item and the end."""
    calls: list[list[tuple[int, int, int]]] = [[]]
    room = most
    for position, size in enumerate(sizes):
        at = 0
        while at < size:
            if room == 0:
                calls.append([])
                room = most
            end = min(size, at + room)
            calls[-1].append((position, at, end))
            room -= end - at
            at = end
    return calls


def _parts_of(keys: Sequence[BlockKeys]) -> list[list[BlockKeys]]:
    """Returns the same keys, cut into calls of at most MOST_KEYS keys."""
    sizes = [len(each.keys) // KEY_BYTES for each in keys]
    return [
        [
            keys[position]._replace(
                keys=keys[position].keys[first * KEY_BYTES : end * KEY_BYTES]
            )
            for position, first, end in call
        ]
        for call in portions(sizes)
    ]
