"""Fetching descriptors of memory: gRPC cannot carry them, a Unix socket can."""

from __future__ import annotations

import io
import os
import socket
import struct

from pando_kv.errors import PandoError, UnavailableError

_HEADER = struct.Struct("<4sIII")  # magic, version, status, descriptors
_SIZE = struct.Struct("<Q")
_TIMEVAL = struct.Struct("@ll")
_MAGIC = b"PNDO"
_VERSION = 1
_OK = 0
_UNKNOWN_TOKEN = 1
_NO_MEMORY = 2
UNANSWERED = "MEMORY_SOCKET"
"""The reason of an UnavailableError: nothing answers there, or a pandod that does not
know the token. So it is when pandod dies."""
# The most descriptors that one SCM_RIGHTS message can carry.
_MAX_DESCRIPTORS = 253


def fetch_memory(path: str, token: bytes, timeout: float) -> list[tuple[int, int]]:
    """Shows the token; returns (descriptor, bytes) of each piece of memory: the shards
    of the pool, or the parts of a lane.

    The descriptors belong to the caller.
    """
    fds: list[int] = []
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            _connect(connection, path, timeout)
            connection.sendall(token)
            sizes = _receive(connection, fds)
        if len(fds) != len(sizes):
            raise _failure(f"sent {len(fds)} descriptors and {len(sizes)} sizes")
    except (ConnectionError, FileNotFoundError) as error:
        close_all(fds)
        raise _no_answer(f"{path}: {error}") from error
    except OSError as error:
        close_all(fds)
        raise _failure(f"{path}: {error}") from error
    except BaseException:
        close_all(fds)
        raise
    return list(zip(fds, sizes, strict=True))


class SessionLink:
    """Holds the memory of another process's session, as one who may write there.

    Made by `Client.link_session`. Its client closes it at the latest.
    """

    def __init__(self, path: str, token: bytes, timeout: float) -> None:
        """Shows the attach token."""
        shards = fetch_memory(path, token, timeout)
        self._files = [io.FileIO(fd, "r") for fd, _ in shards]

    def close(self) -> None:
        """Says that nothing of this process writes there any more."""
        for file in self._files:
            file.close()


def _connect(connection: socket.socket, path: str, timeout: float) -> None:
    """Waits while many others are connecting, which Python's own timeout cannot.

    That makes the socket non-blocking, and then connect fails when the queue of
    the server is full.
    """
    limit = _TIMEVAL.pack(int(timeout), int(timeout % 1 * 1_000_000))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
    connection.connect(path)
    connection.settimeout(timeout)


def _receive(connection: socket.socket, fds: list[int]) -> list[int]:
    """The bytes of each; the descriptors are added to `fds`."""
    header = _receive_exactly(connection, _HEADER.size, fds)
    magic, version, status, count = _HEADER.unpack(header)
    if magic != _MAGIC or version != _VERSION:
        raise _failure(f"speaks {magic!r} version {version}, not version {_VERSION}")
    if status == _UNKNOWN_TOKEN:
        raise _no_answer(
            "does not know the attach token: it was used before, or is too old"
        )
    if status == _NO_MEMORY:
        raise _failure("could not export the memory")
    if status != _OK:
        raise _failure(f"answered with status {status}")
    if count > _MAX_DESCRIPTORS:
        raise _failure(f"announced {count} descriptors; {_MAX_DESCRIPTORS} fit")
    sizes = _receive_exactly(connection, count * _SIZE.size, fds)
    return [size for (size,) in _SIZE.iter_unpack(sizes)]


def _receive_exactly(connection: socket.socket, size: int, fds: list[int]) -> bytes:
    data = b""
    while len(data) < size:
        chunk, new_fds, _, _ = socket.recv_fds(
            connection,
            size - len(data),
            _MAX_DESCRIPTORS - len(fds),
            socket.MSG_CMSG_CLOEXEC,
        )
        fds.extend(new_fds)
        if not chunk:
            raise _no_answer(f"closed the connection after {len(data)} of {size} bytes")
        data += chunk
    return data


def _failure(what: str) -> PandoError:
    return PandoError("MEMORY_SOCKET", f"memory socket {what}")


def _no_answer(what: str) -> UnavailableError:
    return UnavailableError(UNANSWERED, f"memory socket {what}")


def close_all(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)
