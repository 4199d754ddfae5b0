"""The session of this process with pandod, and the pool that is mapped into it."""

from __future__ import annotations

import contextlib
import functools
import os
from dataclasses import dataclass

from pando_kv import Client, KvLayout, MappedPool
from pando_kv._presence import SCHEDULER_PATIENCE
from pando_kv._side_calls import wait_seconds
from pando_kv.sglang import MODEL, TOKEN, WAIT_MS

# The seconds for which a call at the start waits. A call in a scheduler step waits for
# at most SCHEDULER_PATIENCE.
_TIMEOUT = 30.0


@dataclass(frozen=True)
class Attachment:
    """A session with pandod and the shard of the pool that it has mapped."""

    client: Client
    pool: MappedPool


@functools.cache
def session() -> Client:
    """Returns the session of this process. The first call opens it."""
    return connect()


def connect() -> Client:
    """Opens a session that belongs to the caller."""
    return Client(
        name=f"sglang {os.getpid()}",
        timeout=_TIMEOUT,
        away_after=SCHEDULER_PATIENCE,
        token=os.environ.get(TOKEN) or None,
    )


def wait() -> float:
    """Returns the seconds for which a request may wait while a tier loads its prompt.
    Raises ValueError if PANDO_WAIT_MS is invalid."""
    value: float | str = os.environ.get(WAIT_MS) or "0"
    with contextlib.suppress(ValueError):
        value = float(value)
    return wait_seconds(WAIT_MS, value)


def attach(layout: KvLayout, served_model: str, digest: str, shard: int) -> Attachment:
    """Maps a shard of the pool. Raises LayoutMismatchError, which names the field, if
    pandod has another layout, another model or another configuration of the model."""
    client = session()
    pool = client.attach_pool(
        expected_layout=layout,
        model=os.environ.get(MODEL) or served_model,
        model_digest=digest,
        shards=[shard],
    )
    return Attachment(client, pool)
