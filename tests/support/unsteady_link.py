"""The way from a browser to pandod, on which some requests are late or lost."""

import contextlib
import re
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator

REQUEST_LINE = re.compile(rb"[A-Z]+ (\S+) HTTP")
_PIECE = 65536


class UnsteadyLink:
    """A relay of the one request of each connection to pandod, as `treat` allows it.

    `treat` gets the path and how often it was requested. It is called after connecting
    to pandod and before the request is sent. A lost request gets an empty answer.
    """

    def __init__(self, http: str, treat: Callable[[str, int], bool]) -> None:
        """Listens; `treat` returns whether the request arrives."""
        host, port = http.split(":")
        self._server = (host, int(port))
        self._treat = treat
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.asked: Counter[str] = Counter()

    def serve(self) -> None:
        # close() was called.
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(
                    target=self._pass_on, args=(connection,), daemon=True
                ).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _pass_on(self, browser: socket.socket) -> None:
        with browser, contextlib.suppress(OSError):
            # A browser sends the head of a request in one piece.
            request = browser.recv(_PIECE)
            if not request:
                return
            path = REQUEST_LINE.match(request)[1].decode()
            self.asked[path] += 1
            with socket.create_connection(self._server) as pandod:
                if not self._treat(path, self.asked[path]):
                    return
                pandod.sendall(request)
                while piece := pandod.recv(_PIECE):
                    browser.sendall(piece)


@contextlib.contextmanager
def unsteady_link(
    http: str, treat: Callable[[str, int], bool]
) -> Iterator[UnsteadyLink]:
    link = UnsteadyLink(http, treat)
    thread = threading.Thread(target=link.serve)
    thread.start()
    try:
        yield link
    finally:
        link.close()
        thread.join()
