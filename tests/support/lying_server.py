"""A server that understands no request and still answers each of them."""

import contextlib
import socket
import threading
from collections.abc import Iterator


class _Liar:
    def __init__(self, reply: bytes) -> None:
        self._reply = reply
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}"
        self._clients: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._clients.append(client)
                threading.Thread(target=self._answer, args=[client]).start()

    def _answer(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            while client.recv(1 << 20):
                client.sendall(self._reply)

    def close(self) -> None:
        for one in (self._listener, *self._clients):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


@contextlib.contextmanager
def lying_server(reply: bytes) -> Iterator[str]:
    """Yields the address of a server that answers anything with these bytes."""
    liar = _Liar(reply)
    try:
        yield liar.url
    finally:
        liar.close()
