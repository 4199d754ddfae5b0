"""Cuts of this process's own connections to a Unix socket, as by a broken link."""

import contextlib
import os
import socket


def cut_connections(path: str) -> None:
    for name in os.listdir("/proc/self/fd"):
        # The descriptor may be closed meanwhile, or may not be a socket.
        with (
            contextlib.suppress(OSError),
            socket.socket(fileno=os.dup(int(name))) as connection,
        ):
            if connection.getpeername() == path:
                connection.shutdown(socket.SHUT_RDWR)
