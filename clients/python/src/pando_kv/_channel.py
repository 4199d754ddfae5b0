"""How a client reaches pandod."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from pando_kv._default_address import default_address
from pando_kv.tls import Tls

# Seconds that close() waits for the server to end the session.
CLOSE_TIMEOUT = 2.0

# Seconds before a call whose outcome is unknown is repeated in the background, again.
SETTLE_PAUSE = 0.5

# Seconds that it may take there. pandod knows a repeat by its last answers only, so
# nothing is repeated that may still be answered, however long pandod stands still.
SETTLE_TIMEOUT = 24 * 3600.0

_OPTIONS: list[tuple[str, Any]] = [
    # The server limits tokens, not bytes.
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    # pandod is a neighbour: look for it often, never through a proxy.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.enable_http_proxy", 0),
    # One client is one connection, so that one cannot break another's session.
    ("grpc.use_local_subchannel_pool", 1),
]


@dataclass(frozen=True)
class Access:
    """Where pandod is, and what the client shows it."""

    address: str
    """Empty: the default one, which is looked for now."""
    tls: Tls | None = None
    token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.address:
            object.__setattr__(self, "address", default_address())

    @property
    def metadata(self) -> tuple[tuple[str, str], ...] | None:
        """What is sent along with each call: the bearer token, if there is one."""
        return (("authorization", f"Bearer {self.token}"),) if self.token else None

    def channel(self, grpc_or_aio: Any) -> Any:
        """A channel of the module `grpc` or `grpc.aio`."""
        address = self.address
        # A path is that of a Unix socket.
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
        # gRPC would trust the system's authorities in place of an empty file.
        raise ValueError(f"tls: {path} is empty")
    return text
