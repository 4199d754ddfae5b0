"""A relay between a machine and its routers that loses some of the frames.

The relay passes every subscription on, so the machine sees each subscriber. Replays do
not go through the relay.
"""

import random
import threading
from types import TracebackType

import zmq
from metrics_page import free_address

_POLL_MS = 20


class LossyRelay:
    def __init__(self, upstream: str, loss: float, seed: int) -> None:
        self.endpoint = f"tcp://{free_address()}"
        self.dropped = 0
        self.loss = loss
        """The share of frames that are lost. Tests change it while the relay runs."""
        self._loses_next = threading.Event()
        self._upstream = upstream
        self._random = random.Random(seed)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "LossyRelay":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def lose_next(self) -> None:
        """Loses the next frame, whatever `loss` is."""
        self._loses_next.set()

    def _loses(self) -> bool:
        by_chance = self._random.random() < self.loss
        if self._loses_next.is_set():
            self._loses_next.clear()
            return True
        return by_chance

    def _run(self) -> None:
        context = zmq.Context.instance()
        with context.socket(zmq.XSUB) as machine, context.socket(zmq.XPUB) as routers:
            for socket in (machine, routers):
                socket.linger = 0
                socket.sndhwm = socket.rcvhwm = 0
            routers.xpub_verboser = True
            machine.connect(self._upstream)
            routers.bind(self.endpoint)
            poller = zmq.Poller()
            poller.register(machine, zmq.POLLIN)
            poller.register(routers, zmq.POLLIN)
            while not self._stop.is_set():
                ready = dict(poller.poll(_POLL_MS))
                if routers in ready:
                    machine.send(routers.recv())
                if machine in ready:
                    frame = machine.recv_multipart()
                    if self._loses():
                        self.dropped += 1
                    else:
                        routers.send_multipart(frame)
