"""The transfer of memory descriptors over a Unix socket; gRPC cannot carry
descriptors."""

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
"""The reason of an UnavailableError that means: nothing answers at the socket, or the
answering pandod does not know the token. Both happen when pandod dies."""
# The largest number of descriptors that one SCM_RIGHTS message can carry.
_MAX_DESCRIPTORS = 253


def fetch_memory(path: str, token: bytes, timeout: float) -> list[tuple[int, int]]:
    """Shows the token, and returns (descriptor, bytes) of each piece of memory: the
    shards of the pool, the parts of a lane, or the block memory.

    The caller owns the descriptors. Raises UnavailableError with the reason UNANSWERED,
    or PandoError for other failures.
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
    """The open memory descriptors of another process's session, which tell pandod that
    this process may write there. Made by `Client.link_session`; owned by the caller,
    and closed with its client at the latest."""

    def __init__(self, path: str, token: bytes, timeout: float) -> None:
        """Shows the attach token, and keeps the descriptors that it grants."""
        shards = fetch_memory(path, token, timeout)
        self._files = [io.FileIO(fd, "r") for fd, _ in shards]

    def close(self) -> None:
        """Closes the descriptors. Call it when nothing in this process writes to the
        memory any more."""
        for file in self._files:
            file.close()


def _connect(connection: socket.socket, path: str, timeout: float) -> None:
    """Connects, and waits while the queue of the listening socket is full.

    A timeout set by Python makes the socket non-blocking, and a non-blocking connect
    fails when that queue is full.
    """
    limit = _TIMEVAL.pack(int(timeout), int(timeout % 1 * 1_000_000))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
    connection.connect(path)
    connection.settimeout(timeout)


def _receive(connection: socket.socket, fds: list[int]) -> list[int]:
    """Returns the size in bytes of each piece of memory, and appends its descriptor to
    `fds`."""
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
