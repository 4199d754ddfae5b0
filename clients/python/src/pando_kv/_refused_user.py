"""The reason why the user of this process cannot use a Unix socket of pandod."""

from __future__ import annotations

import os
import socket
import stat

# Seconds within which the first bytes of pandod arrive.
_FIRST_BYTES = 0.1


def why_user_is_refused(address: str) -> str:
    """Returns a sentence, or an empty string if the user is not the cause.

    Connects once, and may take a tenth of a second. Meant for an error that is about to
    be shown to a person.
    """
    path = address.removeprefix("unix:")
    if not path.startswith("/") and path == address:
        return ""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(_FIRST_BYTES)
        try:
            probe.connect(path)
        except PermissionError:
            return _why_denied(path)
        except OSError:
            return ""
        # pandod sends nothing to a user who is not allowed, and closes the connection.
        try:
            is_closed = not probe.recv(1)
        except TimeoutError:
            is_closed = False
        except OSError:
            is_closed = True
    if not is_closed:
        return ""
    return (
        f"pandod closes the connections of user {os.geteuid()} to {path}; "
        "see its --allowed-uids"
    )


def _why_denied(path: str) -> str:
    try:
        file = os.stat(path)
    except OSError:
        return (
            f"user {os.geteuid()} may not look into the folder of {path}; "
            "see --socket and --socket-group of pandod"
        )
    return (
        f"user {os.geteuid()} may not connect to {path}, whose mode is "
        f"{stat.S_IMODE(file.st_mode):04o}, user {file.st_uid} and group "
        f"{file.st_gid}; see --socket-mode and --socket-group of pandod"
    )
