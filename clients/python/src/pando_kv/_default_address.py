"""The address at which pandod and its clients meet when no address is given.

The address is pando.sock in /run/pando, if this user can write to that folder or create
it; else in $XDG_RUNTIME_DIR/pando (/run/user/UID/pando if the variable is not set);
else in /tmp/pando-UID, which must belong to this user alone. base/default_socket.h has
the same rule.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

ADDRESS = "PANDO_ADDRESS"
_SOCKET = "pando.sock"


def default_address() -> str:
    """Returns the address in PANDO_ADDRESS, or else that of `socket_to_call`."""
    return os.environ.get(ADDRESS) or f"unix:{socket_to_call()}"


def socket_to_serve() -> Path:
    """Returns the path on which a pandod of this user listens."""
    folders = _folders()
    for folder in folders:
        if _may_write_or_make(folder):
            return folder / _SOCKET
    return folders[-1] / _SOCKET


def socket_to_call() -> Path:
    """Returns the socket path for this user's calls: the first candidate to which the
    user may connect, else the first that exists, else `socket_to_serve`."""
    shared, runtime, exposed = _folders()
    folders = [shared, runtime, exposed] if _is_own(exposed) else [shared, runtime]
    sockets = [folder / _SOCKET for folder in folders]
    for path in sockets:
        if _may(path, os.W_OK):
            return path
    for path in sockets:
        if _is_there(path):
            return path
    return socket_to_serve()


def _folders() -> tuple[Path, Path, Path]:
    """Returns the three candidate folders in order. The last one lies in /tmp, where
    other users can create entries too."""
    uid = os.geteuid()
    given = os.environ.get("XDG_RUNTIME_DIR", "")
    runtime = given if given.startswith("/") else f"/run/user/{uid}"
    return Path("/run/pando"), Path(runtime, "pando"), Path(f"/tmp/pando-{uid}")


def _may(path: Path, mode: int) -> bool:
    return os.access(path, mode)


def _may_write_or_make(folder: Path) -> bool:
    if _is_there(folder):
        return _may(folder, os.W_OK | os.X_OK)
    return _may(folder.parent, os.W_OK | os.X_OK)


def _is_there(path: Path) -> bool:
    """Returns whether the path exists. A path in a folder that this user may not enter
    counts as existing."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        pass
    return True


def _is_own(folder: Path) -> bool:
    try:
        file = folder.lstat()
    except OSError:
        return False
    others_write = file.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return (
        stat.S_ISDIR(file.st_mode) and file.st_uid == os.geteuid() and not others_write
    )
