"""A relay to a socket whose connections can be cut."""

import contextlib
import socket
import threading
from pathlib import Path


class Cutter:
    """A relay that forwards connections to `target`. Any thread may call its methods.

    cut() breaks the connections without notice, mute() drops the answers on them, and
    deafen() drops the requests.
    """

    def __init__(self, path: Path, target: Path | str) -> None:
        """Listens at `path` for connections to `target`, a Unix socket or host:port.

        Over a Unix socket pandod sees that its peer is the relay's process instead of
        the worker's, and gives it no memory. Over TCP it cannot see that.
        """
        self.address = f"unix:{path}"
        self._path = path
        self._target = target
        # Held from accepting a connection until its relay is in the list, so that
        # cut(), mute() and deafen() miss no relay that carries data.
        self._mutex = threading.Lock()
        self._relays: list[_Relay] = []
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def mute(self) -> None:
        """Drops all later answers on the present connections."""
        for relay in self._known():
            relay.muted.set()

    def deafen(self) -> None:
        """Drops all later requests on the present connections."""
        for relay in self._known():
            relay.deaf.set()

    def cut(self) -> None:
        with self._mutex:
            relays, self._relays = self._relays, []
        for relay in relays:
            relay.close()

    def close(self) -> None:
        """Takes no more connections, and cuts the present ones."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        self._path.unlink()
        self.cut()

    def __enter__(self) -> "Cutter":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _known(self) -> "list[_Relay]":
        with self._mutex:
            return list(self._relays)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                with self._mutex:
                    self._relays.append(_Relay(near, _connected(self._target)))


def _connected(target: Path | str) -> socket.socket:
    if isinstance(target, str):
        host, port = target.split(":")
        return socket.create_connection((host, int(port)))
    far = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    far.connect(str(target))
    return far


class _Relay:
    """One connection, with a thread for each direction."""

    def __init__(self, near: socket.socket, far: socket.socket) -> None:
        self._sockets = (near, far)
        self.muted = threading.Event()
        self.deaf = threading.Event()
        self._threads = [
            threading.Thread(target=_pump, args=ends)
            for ends in ((near, far, self.deaf), (far, near, self.muted))
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        for each in self._sockets:
            _shut(each)
        for thread in self._threads:
            thread.join()
        for each in self._sockets:
            each.close()


def _pump(source: socket.socket, sink: socket.socket, lost: threading.Event) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            if not lost.is_set():
                sink.sendall(data)
    _shut(sink)


def _shut(end: socket.socket) -> None:
    """Shuts the socket down, which wakes a reading thread; closing would not."""
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
