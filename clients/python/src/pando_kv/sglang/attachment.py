"""This process's session with pandod, and the pool mapped into it."""

from __future__ import annotations

import contextlib
import functools
import os
from dataclasses import dataclass

from pando_kv import Client, KvLayout, MappedPool
from pando_kv._presence import SCHEDULER_PATIENCE
from pando_kv._side_calls import wait_seconds
from pando_kv.sglang import MODEL, TOKEN, WAIT_MS

# For the start; a step waits no longer than SCHEDULER_PATIENCE.
_TIMEOUT = 30.0


@dataclass(frozen=True)
class Attachment:
    client: Client
    pool: MappedPool


@functools.cache
def session() -> Client:
    """The session of this process; opened by the first call."""
    return connect()


def connect() -> Client:
    """A session of the caller's own."""
    return Client(
        name=f"sglang {os.getpid()}",
        timeout=_TIMEOUT,
        away_after=SCHEDULER_PATIENCE,
        token=os.environ.get(TOKEN) or None,
    )


def wait() -> float:
    """How many seconds a request may wait for what a tier loads."""
    value: float | str = os.environ.get(WAIT_MS) or "0"
    with contextlib.suppress(ValueError):
        value = float(value)
    return wait_seconds(WAIT_MS, value)


def attach(layout: KvLayout, served_model: str, digest: str, shard: int) -> Attachment:
    """Maps a shard of the pool. Raises LayoutMismatchError, which names the field,
    where pandod has another layout, another model or another configuration of it."""
    client = session()
    pool = client.attach_pool(
        expected_layout=layout,
        model=os.environ.get(MODEL) or served_model,
        model_digest=digest,
        shards=[shard],
    )
    return Attachment(client, pool)
