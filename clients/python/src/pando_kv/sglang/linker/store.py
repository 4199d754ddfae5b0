"""Pando's memory as this engine has it: attached in the background, however often
pandod goes and comes; asked by calls of which none waits for a pandod that does not
answer."""

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

# SGLang's keys are SHA-256.
KEY_BYTES = 32
# pandod takes so many keys in one call.
MOST_KEYS = 16_384
# Seconds: for the start, and between two attempts in the background.
_TIMEOUT = 5.0
_PAUSE = 0.2


@dataclass(frozen=True)
class Binding:
    """The memory and the kinds of one session. All places are void with another.

    Kept only by what copies, for as long: pandod waits for the mapping to go.
    """

    number: int
    """Tells it from other bindings of this process."""
    memory: BlockMemory
    kinds: Sequence[Kind]
    """As the specs that the store was given."""
    generation: int

    def addresses(self, places: Uint32Array) -> Addresses:
        base = np.uint64(self.memory.bytes.ctypes.data)
        return places.astype(np.uint64) * np.uint64(PLACE_BYTES) + base


class Store:
    """One session with pandod, and a thread that attaches its memory, declares the
    kinds and gives locks back.

    Any thread may ask. A question that has no answer in `patience` seconds ends as one
    that found nothing, and until pandod answers again so do all others, at once. What
    such a question may have locked or reserved, the client gives back.
    """

    def __init__(
        self,
        name: str,
        specs: Sequence[KindSpec],
        patience: float,
        prepare: Callable[[BlockMemory], None],
    ) -> None:
        """Returns when pandod was found, or was not within some seconds. `prepare` gets
        each memory before its first use. Raises ValueError if pandod refuses the
        engine."""
        self._name = name
        self._prepare = prepare
        self._specs = specs
        self._patience = patience
        self._client: Client | None = None
        self._losses = 0  # of sessions
        self._memory: BlockMemory | None = None  # of this session
        self._names = itertools.count(1)
        self._bindings = itertools.count(1)
        self._releases: list[tuple[int, int]] = []  # generation, lock
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
        """Other kinds from now on; nothing is found or stored until pandod knows
        them."""
        with self._mutex:
            self._specs, self.binding = specs, None
        self._work.set()

    def is_current(self, binding: Binding) -> bool:
        return binding is self.binding

    def lookup(self, keys: Sequence[BlockKeys]) -> Uint32Array | None:
        """A place for each key, in order; None: there was no answer. What pandod's tier
        has of them is loaded meanwhile, and found by a later one."""
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
        """Locks all these blocks; returns their places and the names of the locks. None
        if one of them is not there, or there was no answer."""
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
        """Does not wait."""
        with self._mutex:
            self._releases += [(binding.generation, lock) for lock in locks]
        self._work.set()

    def reserve(
        self, binding: Binding, keys: Sequence[BlockKeys]
    ) -> tuple[int, Uint32Array] | None:
        """The name of the reservation, and a place for each key or why there is none.
        At most MOST_KEYS keys."""
        name = next(self._names)
        places = self._ask(Client.reserve_blocks, name, keys)
        if places is None:
            return None
        if not self.is_current(binding):
            self.discard(name)
            return None
        return name, places

    def publish(self, reservation: int) -> bool:
        """Whether pandod has answered."""
        return self._ask(_publish, reservation) is not None

    def discard(self, reservation: int) -> None:
        self._ask(Client.discard_blocks, reservation)

    def close(self) -> None:
        self._closed = True
        self._work.set()
        self._thread.join(_TIMEOUT)
        if self._client is not None:
            self._client.close()

    def _ask(self, call: Callable[..., T], *given: Any, **named: Any) -> T | None:
        """Makes a call of the client. None: pandod has not answered, or would not."""
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
        """The client tells it before it has another session."""
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
            # The client goes on until the session ends, and with it the locks.
            self._complain(error)

    def _complain(self, error: PandoError) -> None:
        """Once for each reason: an engine goes on without its store. The client says
        by itself that pandod is away."""
        if error.reason not in self._complained and not isinstance(error, AwayError):
            self._complained.add(error.reason)
            _log.warning("pandod: %s; the engine goes on without it", error)


def _publish(client: Client, reservation: int) -> bool:
    client.publish_blocks(reservation)
    return True


def portions(
    sizes: Sequence[int], most: int = MOST_KEYS
) -> list[list[tuple[int, int, int]]]:
    """Lists of so many items, cut into calls of at most `most` items: each range is
    the list's position, its first item and its end."""
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
    """The same in calls that pandod takes."""
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
