"""The gRPC channel of a client to pandod: address, credentials and options."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from pando_kv._default_address import default_address
from pando_kv.tls import Tls

# Seconds that close() waits for pandod to end the session.
CLOSE_TIMEOUT = 2.0

# Seconds between two background repetitions of a call whose outcome is unknown.
SETTLE_PAUSE = 0.5

# The timeout of a background repetition, in seconds. pandod recognises a repeated
# request only among its last answers, so a call that may still be answered is not
# repeated, however long pandod stands still.
SETTLE_TIMEOUT = 24 * 3600.0

_OPTIONS: list[tuple[str, Any]] = [
    # pandod limits tokens, not bytes.
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    # pandod runs on the same machine or near it: reconnect soon, and never through a
    # proxy.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.enable_http_proxy", 0),
    # Each client has its own connection, so that one client cannot break another's
    # session.
    ("grpc.use_local_subchannel_pool", 1),
]


@dataclass(frozen=True)
class Access:
    """The address of pandod and the credentials that a client shows. Immutable, so any
    thread may read it."""

    address: str
    """The address; if it is empty, the default address is looked up at construction."""
    tls: Tls | None = None
    token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.address:
            object.__setattr__(self, "address", default_address())

    @property
    def metadata(self) -> tuple[tuple[str, str], ...] | None:
        """The metadata of each call: the bearer token, or None without one."""
        return (("authorization", f"Bearer {self.token}"),) if self.token else None

    def channel(self, grpc_or_aio: Any) -> Any:
        """Returns a new channel made by the module `grpc` or `grpc.aio`. Raises OSError
        if a certificate file cannot be read, ValueError if one is empty."""
        address = self.address
        # An absolute path names a Unix socket.
        target = f"unix:{address}" if address.startswith("/") else address
        if self.tls is None:
            return grpc_or_aio.insecure_channel(target, options=_OPTIONS)
        return grpc_or_aio.secure_channel(target, _credentials(self.tls), _OPTIONS)


def _credentials(tls: Tls) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(
        root_certificates=_read(tls.ca),
        private_key=_read(tls.key),
        certificate_chain=_read(tls.certificate),
    )


def _read(path: str | Path) -> bytes:
    text = Path(path).read_bytes()
    if not text:
        # For an empty file gRPC would trust the system's certificate authorities.
        raise ValueError(f"tls: {path} is empty")
    return text
