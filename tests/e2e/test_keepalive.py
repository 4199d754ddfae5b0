"""The detection of lost peers: the kernel does it for TCP, and the end of a Unix socket
shows the loss. pandod never asks the peer's process."""

import contextlib
import socket
import struct

from eventually import eventually
from metrics_page import free_address
from pando_kv import Client

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS, PING = 4, 6
ACK = 1
# A server that sends pings at all does so after some seconds of silence.
ASKED_WITHIN = 12.0
# LOCAL, STATE and TIMER are columns of /proc/net/tcp; the others are their values.
LOCAL, STATE, TIMER = 1, 3, 5
ESTABLISHED, KEEPALIVE_TIMER = "01", "02"


def frame(kind: int, flags: int, payload: bytes) -> bytes:
    head = struct.pack(">I", len(payload))[1:] + bytes([kind, flags])
    return head + bytes(4) + payload


class Http2Peer:
    """A minimal HTTP/2 client that answers no frame."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(30)
        self._socket.connect(path)
        self._socket.sendall(PREFACE + frame(SETTINGS, 0, b""))

    def frame(self) -> tuple[int, int]:
        """Returns the kind and the flags of the next frame."""
        head = self._receive(9)
        self._receive(int.from_bytes(head[:3], "big"))
        return head[3], head[4]

    def frames_until_silent_for(self, seconds: float) -> list[tuple[int, int]]:
        frames = []
        self._socket.settimeout(seconds)
        with contextlib.suppress(TimeoutError):
            while True:
                frames.append(self.frame())
        self._socket.settimeout(30)
        return frames

    def ping(self) -> None:
        self._socket.sendall(frame(PING, 0, b"from me!"))

    def _receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            assert more, "the server ended the connection"
            data += more
        return data

    def close(self) -> None:
        self._socket.close()


def test_a_silent_peer_on_a_unix_socket_is_not_asked_whether_it_is_there(start_pandod):
    pandod = start_pandod()
    with contextlib.closing(Http2Peer(str(pandod.socket))) as peer:
        frames = peer.frames_until_silent_for(ASKED_WITHIN)
        assert (SETTINGS, 0) in frames
        assert PING not in [kind for kind, _ in frames]
        peer.ping()
        while peer.frame() != (PING, ACK):
            pass


def test_the_kernel_asks_the_hosts_of_tcp_peers_whether_they_are_there(start_pandod):
    tcp = free_address()
    start_pandod(tcp=tcp, tcp_insecure="yes")
    with Client(tcp) as client:
        client.stats()
        port = f":{int(tcp.rpartition(':')[2]):04X}"

        def timers() -> set[str]:
            with open("/proc/net/tcp") as table:
                rows = [line.split() for line in table][1:]
            return {
                row[TIMER].split(":")[0]
                for row in rows
                if row[LOCAL].endswith(port) and row[STATE] == ESTABLISHED
            }

        # Another timer runs while some bytes are not acknowledged yet.
        eventually(lambda: timers() == {KEEPALIVE_TIMER})
