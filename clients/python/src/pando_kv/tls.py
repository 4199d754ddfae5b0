"""The certificates of a client that connects over TCP."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Tls:
    """The paths of a client's PEM files, read when the client is made. Both ends have
    certificates: pandod's must be signed by `ca` and name the host of the address.
    Making a client raises OSError if a file cannot be read, ValueError if it is empty.
    """

    ca: str | Path
    certificate: str | Path
    """The client's own certificate, with its chain."""
    key: str | Path
