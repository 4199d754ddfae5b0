"""Cutting this process's own connections to a Unix socket, as a broken link would."""

import contextlib
import os
import socket


def cut_connections(path: str) -> None:
    for name in os.listdir("/proc/self/fd"):
        # A descriptor may be closed meanwhile, or be no socket.
        with (
            contextlib.suppress(OSError),
            socket.socket(fileno=os.dup(int(name))) as connection,
        ):
            if connection.getpeername() == path:
                connection.shutdown(socket.SHUT_RDWR)
