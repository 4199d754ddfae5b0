"""What a client over TCP shows, and whom it trusts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Tls:
    """Files in PEM, read when a client is made. Both ends show certificates: the
    server's must be signed by `ca` and name the host of the address. Making a client
    raises OSError if one cannot be read, ValueError if it is empty."""

    ca: str | Path
    certificate: str | Path
    """The client's own, with its chain."""
    key: str | Path
