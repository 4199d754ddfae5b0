"""Peers that speak ZMTP by hand and try to make the event ports take endless memory."""

import contextlib
import select
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from eventually import eventually
from fleet.subscriber import Subscriber
from metrics_page import MetricsPage
from pandod_process import PAGE_TOKENS
from process_memory import MEBIBYTE, memory_of

GREETING = b"\xff" + 8 * b"\0" + b"\x7f\x03\0" + b"NULL".ljust(20, b"\0") + 32 * b"\0"
MORE, LAST, COMMAND = b"\x01", b"\x00", b"\x04"
MAX_CONNECTIONS = 256
MAX_SUBSCRIPTIONS = 64


def frame(kind: bytes, content: bytes) -> bytes:
    return kind + bytes([len(content)]) + content


def connect(endpoint: str) -> socket.socket:
    address = urlsplit(endpoint)
    return socket.create_connection((address.hostname, address.port), 30)


@contextlib.contextmanager
def peer(endpoint: str, socket_type: bytes) -> Iterator[socket.socket]:
    """Yields a connection after its handshake."""
    length = len(socket_type).to_bytes(4, "big")
    ready = b"\x05READY" + b"\x0bSocket-Type" + length + socket_type
    with connect(endpoint) as connection:
        connection.sendall(GREETING)
        # ZMQ may close a connection that sends more before ZMQ has sent its greeting.
        receive(connection, len(GREETING))
        connection.sendall(frame(COMMAND, ready))
        receive(connection, receive(connection, 2)[1])
        yield connection


def receive(connection: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        part = connection.recv(size - len(received))
        assert part, "the connection was closed"
        received += part
    return received


def is_cut_off(connection: socket.socket, content: bytes, most: int) -> bool:
    """Returns whether the connection is closed before `most` bytes are sent."""
    many = content * (65536 // len(content))
    sent = 0
    try:
        while sent < most:
            # The peer may have closed while sent bytes still wait in the socket.
            said, has_room, _ = select.select([connection], [connection], [], 30)
            if said and not connection.recv(4096):
                return True
            if has_room:
                sent += connection.send(many[sent % len(many) :])
            elif not said:
                return False
    except (ConnectionResetError, BrokenPipeError):
        return True
    return False


@pytest.mark.parametrize("part", [b"", 64 * b"x"], ids=["empty", "64 bytes"])
@pytest.mark.parametrize("port", ["events", "replay"])
def test_a_message_that_never_ends_is_cut_off(start_machine, port, part):
    machine = start_machine()
    before = memory_of(machine.pandod.pid, "VmRSS")
    socket_type = {"events": b"SUB", "replay": b"DEALER"}[port]
    with peer(getattr(machine, port), socket_type) as endless:
        assert is_cut_off(endless, frame(MORE, part), 256 * MEBIBYTE)
    with Subscriber(machine.events) as subscriber:
        subscriber.wait_for_blocks(0)
        machine.put([*range(PAGE_TOKENS), 1])
        subscriber.wait_for_blocks(1)
    assert memory_of(machine.pandod.pid, "VmHWM") - before < 64 * MEBIBYTE


def test_a_connection_with_too_many_subscriptions_is_cut_off(start_machine):
    machine = start_machine()
    with Subscriber(machine.events) as subscriber:
        subscriber.wait_for_blocks(0)
        with peer(machine.events, b"SUB") as greedy:
            for i in range(MAX_SUBSCRIPTIONS):
                greedy.sendall(frame(LAST, b"\x01" + b"%d" % i))
            subscriptions = lambda: MetricsPage(machine.http).sum(  # noqa: E731
                "pando_kv_event_subscribers"
            )
            eventually(lambda: subscriptions() == 1 + MAX_SUBSCRIPTIONS)
            greedy.sendall(frame(LAST, b"\x01one too many"))
            eventually(lambda: subscriptions() == 1)
        machine.put([*range(PAGE_TOKENS), 1])
        subscriber.wait_for_blocks(1)


def test_connections_beyond_the_limit_are_closed(start_machine):
    machine = start_machine()
    with contextlib.ExitStack() as stack:
        peers = [
            stack.enter_context(connect(machine.events))
            for _ in range(MAX_CONNECTIONS + 8)
        ]

        def is_closed(connection: socket.socket) -> bool:
            connection.setblocking(False)
            try:
                while connection.recv(4096):
                    continue
            except BlockingIOError:
                return False
            except ConnectionResetError:
                return True
            return True

        eventually(lambda: sum(map(is_closed, peers)) == 8)
    with Subscriber(machine.events) as subscriber:
        subscriber.wait_for_blocks(0)
