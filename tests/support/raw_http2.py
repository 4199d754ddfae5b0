"""A gRPC client that obeys HTTP/2 and no further rule.

The client sends calls whole or in part, and the peer may send the answers' messages
only after read_answers().
"""

import socket
import struct
import threading
from collections import Counter

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _WINDOW_UPDATE = 0, 1, 3, 4, 6, 8
_ACK, _END_STREAM, _END_HEADERS = 1, 1, 4
_INITIAL_WINDOW = 4
_FIRST_WINDOW = 65_535
_FRAME_BYTES = 16_384
_ENOUGH = 1 << 24
# After so many seconds without a window, flow control counts as what stopped a call.
_PATIENCE = 1.0
_CANCEL = 8


class RawHttp2:
    """One connection to a Unix socket, with a thread that reads.

    The peer may send no byte of an answer's message until `read_answers`.
    """

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        self._changed = threading.Condition()
        self._windows: dict[int, int] = {0: _FIRST_WINDOW}
        self._window_of_new = _FIRST_WINDOW
        self._calls = 0
        self.ended = 0
        """The number of calls whose end was received."""
        self.received: Counter[int] = Counter()
        """The received bytes of the answer of each stream."""
        self._socket.sendall(_PREFACE)
        self._send(_SETTINGS, 0, 0, struct.pack(">HI", _INITIAL_WINDOW, 0))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> "RawHttp2":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._reader.join()
        self._socket.close()

    def start(self, method: str, request: bytes, *, is_whole: bool = True) -> int:
        """Begins a call, and sends as much of it as the peer takes.

        A call that is not whole stays without its last byte. Returns how many bytes of
        the call the peer took.
        """
        stream = 2 * self._calls + 1
        self._calls += 1
        self._send(_HEADERS, _END_HEADERS, stream, _headers_of(method))
        message = b"\0" + struct.pack(">I", len(request)) + request
        end = len(message) if is_whole else len(message) - 1
        sent = 0
        while sent < end:
            size = self._take_window(stream, min(_FRAME_BYTES, end - sent))
            if size == 0:
                break
            is_last = sent + size == len(message)
            flags = _END_STREAM if is_last else 0
            self._send(_DATA, flags, stream, message[sent : sent + size])
            sent += size
        return sent

    def cancel_last(self) -> None:
        """Ends the call that was begun last."""
        self._send(_RESET, 0, 2 * self._calls - 1, struct.pack(">I", _CANCEL))

    def read_answers(self) -> None:
        """Lets the peer send the answers of all calls so far."""
        for stream in [0, *range(1, 2 * self._calls, 2)]:
            self._send(_WINDOW_UPDATE, 0, stream, struct.pack(">I", _ENOUGH))

    def await_ended(self, calls: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.ended == calls, 10), self.ended

    def _take_window(self, stream: int, most: int) -> int:
        with self._changed:
            self._windows.setdefault(stream, self._window_of_new)

            def size() -> int:
                return max(0, min(most, self._windows[0], self._windows[stream]))

            self._changed.wait_for(size, _PATIENCE)
            taken = size()
            self._windows[0] -= taken
            self._windows[stream] -= taken
            return taken

    def _send(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        header = struct.pack(">I", len(payload))[1:] + bytes([kind, flags])
        with self._changed:
            self._socket.sendall(header + struct.pack(">I", stream) + payload)

    def _read(self) -> None:
        source = self._socket.makefile("rb")
        while len(header := source.read(9)) == 9:
            payload = source.read(int.from_bytes(header[:3], "big"))
            kind, flags = header[3], header[4]
            self._take(kind, flags, int.from_bytes(header[5:], "big"), payload)

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == _PING and not flags & _ACK:
            self._send(_PING, _ACK, 0, payload)
        elif kind == _SETTINGS and not flags & _ACK:
            self._send(_SETTINGS, _ACK, 0, b"")
        with self._changed:
            if kind == _WINDOW_UPDATE:
                before = self._windows.get(stream, self._window_of_new)
                self._windows[stream] = before + int.from_bytes(payload, "big")
            elif kind == _DATA:
                self.received[stream] += len(payload)
            if kind in (_DATA, _HEADERS) and flags & _END_STREAM:
                self.ended += 1
            self._changed.notify_all()


def _headers_of(method: str) -> bytes:
    headers = {
        ":method": "POST",
        ":scheme": "http",
        ":path": f"/{method}",
        ":authority": "pandod",
        "te": "trailers",
        "content-type": "application/grpc",
    }
    # The headers are HPACK literals without indexing.
    return b"".join(
        b"\0"
        + bytes([len(name)])
        + name.encode()
        + bytes([len(value)])
        + value.encode()
        for name, value in headers.items()
    )
