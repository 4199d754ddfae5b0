"""How a client reaches pandod."""

from __future__ import annotations

from typing import Any

# Seconds that close() waits for the server to end the session.
CLOSE_TIMEOUT = 2.0

# Seconds before a call whose outcome is unknown is repeated in the background.
SETTLE_PAUSE = 0.5

CHANNEL_OPTIONS: list[tuple[str, Any]] = [
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


def target_of(address: str) -> str:
    """What gRPC calls the address: a path is that of a Unix socket."""
    return f"unix:{address}" if address.startswith("/") else address
