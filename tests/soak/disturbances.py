"""Disturbances of the workers, of pandod and of its store while they work."""

import heapq
import itertools
import os
import signal
import socket
import time
from collections.abc import Callable

import numpy as np
from metrics_page import get
from pando_kv import Client
from redis_server import RedisServer
from soak.fleet import WorkerProcess
from soak.journal import FOREVER, Disturbance, Journal
from soak.system import GRACE_SECONDS, System

POLICIES = ["lru", "lfu", "fifo", "mru", "filo", "priority", "slru", "reuse"]
_MAX_PAUSE_SECONDS = 4 * GRACE_SECONDS
_POLL_SECONDS = 0.05
MAX_JUMP_SECONDS = 86_400.0


class Disturbances:
    """The disturbances of a soak, one at a time; `undo_due` ends those that last."""

    def __init__(
        self, system: System, journal: Journal, random: np.random.Generator
    ) -> None:
        self._system = system
        self._journal = journal
        self._random = random
        # A heap of (time, unique number, action).
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._is_store_down = False
        self._kinds = {
            self.kill: 3,
            self.pause: 4,
            self.cut: 3,
            self.cut_and_stop: 2,
            self.hold_watcher: 3,
            self.visit_rudely: 2,
            self.flush: 1,
            self.evict: 1,
            self.switch_policy: 1,
            self.reload: 1,
            self.release_locks: 1,
            self.look: 2,
            self.hold_pandod: 1,
            self.jump_clock: 2,
            self.hold_store: 2,
            self.kill_store: 2,
        }

    def one(self, may_restart: bool) -> None:
        kinds = self._kinds | ({self.restart_pandod: 4} if may_restart else {})
        weights = np.array(list(kinds.values()), float)
        self._random.choice(list(kinds), p=weights / weights.sum())()

    def undo_due(self) -> None:
        while self._later and self._later[0][0] <= time.monotonic():
            heapq.heappop(self._later)[2]()

    def undo_all(self) -> None:
        while self._later:
            self.undo_due()
            time.sleep(_POLL_SECONDS)

    def kill(self) -> None:
        """Kills any worker, even a paused one, and starts another in its place."""
        running = self._system.fleet.running
        worker = running[self._random.integers(len(running))]
        self._note("kill", worker)
        self._system.fleet.kill(worker)
        self._system.fleet.fill()

    def pause(self) -> None:
        """Stops a worker, often for longer than the grace; no session may be lost."""
        self._interrupt("pause", signal.SIGSTOP, stops=True)

    def cut(self) -> None:
        self._interrupt("cut", signal.SIGUSR1, stops=False)

    def cut_and_stop(self) -> None:
        """Cuts and stops a worker, often for so long that its session is lost.

        When the worker goes on, it still writes to its pages.
        """
        self._interrupt("cut_and_stop", signal.SIGUSR2, stops=True)

    def hold_watcher(self) -> None:
        watcher = self._system.watchers.some(self._random)
        self._note("hold_watcher")
        watcher.stop_reading()
        self._after_a_while(watcher.go_on_reading)

    def visit_rudely(self) -> None:
        """Connects peers that send nonsense, or nothing, and stay for a while."""
        self._note("visit_rudely")
        for path in (self._system.pandod.socket, self._system.pandod.memory_socket):
            peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            peer.connect(str(path))
            if self._random.random() < 0.5:
                peer.sendall(self._random.bytes(self._random.integers(1, 100)))
            self._after_a_while(peer.close)

    def flush(self) -> None:
        self._note("flush")
        with self._operator() as client:
            client.flush()

    def evict(self) -> None:
        self._note("evict")
        with self._operator() as client:
            client.evict(int(self._random.integers(1, 50)))

    def switch_policy(self) -> None:
        self._note("switch_policy")
        with self._operator() as client:
            client.set_eviction_policy(str(self._random.choice(POLICIES)))

    def reload(self) -> None:
        """Makes pandod reload its file, with other live options or with a bad one."""
        self._note("reload")
        low = int(self._random.integers(0, 10))
        policy = self._random.choice([*POLICIES, "no such policy"])
        self._system.configure(
            f"low-free-pages: {low}\nhigh-free-pages: {2 * low}\n"
            f"eviction-policy: {policy}\n"
        )
        os.kill(self._system.pandod.pid, signal.SIGHUP)

    def release_locks(self) -> None:
        """Releases the locks of a worker in the middle of its request."""
        noted = self._note("release_locks", until=FOREVER)
        with self._operator() as client:
            sessions = client.sessions().items
            session = sessions[self._random.integers(len(sessions))]
            client.release_locks(session.session_number)
        noted.end = time.monotonic()

    def look(self) -> None:
        self._note("look")
        with self._operator() as client:
            client.sessions(), client.locks(), client.namespaces()
            client.explain(self._random.integers(0, 2**32, 100, np.uint32))
            client.dump_tree()
        for path in ("/metrics", "/readyz", "/console/"):
            get(self._system.http, path)

    def hold_pandod(self) -> None:
        """Stops pandod itself for a while; no session may be lost."""
        self._note("hold_pandod")
        os.kill(self._system.pandod.pid, signal.SIGSTOP)
        time.sleep(self._random.uniform(0, _MAX_PAUSE_SECONDS / 2))
        os.kill(self._system.pandod.pid, signal.SIGCONT)

    def jump_clock(self) -> None:
        """Moves the wall clock of pandod forwards or backwards by up to a day."""
        self._note("jump_clock")
        jump = self._random.uniform(-MAX_JUMP_SECONDS, MAX_JUMP_SECONDS)
        self._system.clock.set(jump)

    def hold_store(self) -> None:
        """Stops the store while it has unanswered requests."""
        self._take_store_down("hold_store", RedisServer.stall, RedisServer.go_on)

    def kill_store(self) -> None:
        """Kills the store, which comes back empty."""
        self._take_store_down("kill_store", RedisServer.kill, RedisServer.start)

    def _take_store_down(
        self,
        kind: str,
        down: Callable[[RedisServer], None],
        up: Callable[[RedisServer], None],
    ) -> None:
        if self._is_store_down:
            return
        self._note(kind)
        self._is_store_down = True
        down(self._system.store)

        def bring_up() -> None:
            up(self._system.store)
            self._is_store_down = False

        self._after_a_while(bring_up)

    def restart_pandod(self) -> None:
        """Ends pandod by SIGKILL or SIGTERM, and starts one with a new epoch."""
        noted = self._note("restart_pandod", until=FOREVER)
        self._system.watchers.close()
        if self._random.random() < 0.7:
            self._system.pandod.kill()
        else:
            code = self._system.pandod.stop()
            assert code == 0, f"pandod ended with {code} after SIGTERM"
        time.sleep(self._random.uniform(0, 1))
        # pandod would not start with a bad file that `reload` wrote.
        self._system.configure()
        self._system.start_pandod()
        self._system.watchers.open()
        noted.end = time.monotonic()

    def _operator(self) -> Client:
        return Client(self._system.pandod.address, name="operator", timeout=30)

    def _interrupt(self, kind: str, number: signal.Signals, *, stops: bool) -> None:
        awake = [w for w in self._system.fleet.running if w.started and not w.paused]
        if not awake:
            return
        worker = awake[self._random.integers(len(awake))]
        noted = self._note(kind, worker, until=FOREVER if stops else None)
        worker.send(number)
        if stops:
            worker.paused = True
            self._after_a_while(lambda: self._go_on(worker, noted))

    def _go_on(self, worker: WorkerProcess, noted: Disturbance) -> None:
        if worker.process.poll() is None and not worker.is_stopped:
            # The worker handles the signal only between two steps.
            self._after(_POLL_SECONDS, lambda: self._go_on(worker, noted))
            return
        worker.send(signal.SIGCONT)
        worker.paused = False
        noted.end = time.monotonic()

    def _after_a_while(self, what: Callable[[], None]) -> None:
        self._after(self._random.uniform(0, _MAX_PAUSE_SECONDS), what)

    def _after(self, seconds: float, what: Callable[[], None]) -> None:
        when = time.monotonic() + seconds
        heapq.heappush(self._later, (when, next(self._numbers), what))

    def _note(
        self,
        kind: str,
        worker: WorkerProcess | None = None,
        until: float | None = None,
    ) -> Disturbance:
        now = time.monotonic()
        number = worker.number if worker else None
        return self._journal.note(kind, now, until or now, number)
