"""A relay between Unix sockets whose connections can be cut."""

import contextlib
import socket
import threading
from pathlib import Path


class Cutter:
    """Relays connections to `target`; cut() breaks them without a word,
    mute() loses the answers before that, and deafen() the requests."""

    def __init__(self, path: Path, target: Path | str) -> None:
        """The target is a Unix socket, or host:port: there pandod does not see that
        the relay is another process than the worker, to whom it would give no memory.
        """
        self.address = f"unix:{path}"
        self._path = path
        self._target = target
        # Held while a relay begins, so that none carries anything before it is known.
        self._mutex = threading.Lock()
        self._relays: list[_Relay] = []
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def mute(self) -> None:
        """From now on the answers on the present connections are lost."""
        for relay in self._known():
            relay.muted.set()

    def deafen(self) -> None:
        """From now on what is sent on the present connections is lost."""
        for relay in self._known():
            relay.deaf.set()

    def cut(self) -> None:
        with self._mutex:
            relays, self._relays = self._relays, []
        for relay in relays:
            relay.close()

    def close(self) -> None:
        """Cuts, and takes no more connections."""
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
    """One connection: a thread for each direction."""

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
    """Wakes a thread that reads from it, which closing it would not."""
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
