"""Fixtures with a pandod that has block memory and no pool. The engines compute in
their own memory."""

import contextlib

import numpy as np
import pytest
from engines.vllm.offloading.engine_alone import EngineAlone
from engines.vllm.offloading.forked_engines import forks_in
from engines.vllm.offloading.patience import be_patient
from eventually import eventually
from pando_kv import BlockKeys, Client
from pando_kv.errors import UnavailableError
from pandod_process import Pandod

NO_POOL = dict.fromkeys(
    ["pool_pages", "page_tokens", "layers", "heads", "head_size", "dtype"]
)


def serve_blocks(folder, memory="64MiB", **options):
    given = NO_POOL | {"block_extent": "1MiB"} | options
    server = Pandod(folder, memory=memory, **given)
    server.start()
    return server


def nothing_is_held(operator):
    try:
        blocks = operator.stats().blocks
    except UnavailableError:
        return False  # the operator has no connection to the restarted pandod yet
    return (
        blocks.locks == 0
        and blocks.reservations == 0
        and blocks.protected_blocks == 0
        and blocks.reserved_blocks == 0
    )


def reserve_all(operator, engine):
    """Reserves the whole memory for other blocks of the engine's first kind. Returns
    the names of the reservations."""
    (kind,) = operator.find_kinds([(None, f"vllm {engine.copies._digest} 0".encode())])
    room = operator.stats().blocks.memory_bytes // kind.shard_stride
    keys = np.arange(room * 8, dtype=np.uint32).tobytes()
    names = range(1, room + 1, 8192)
    for name in names:
        part = keys[(name - 1) * 32 : (name + 8191) * 32]
        operator.reserve_blocks(name, [BlockKeys(kind.number, part)])
    return names


@pytest.fixture
def pandod(tmp_path):
    server = serve_blocks(tmp_path)
    yield server
    server.close()


@pytest.fixture
def operator(pandod):
    """Yields a client of the pandod. At the end, checks its invariants and that nothing
    is held."""
    with Client(pandod.address, name="operator") as client:
        yield client
        eventually(lambda: nothing_is_held(client))
        assert client.check_invariants() == []


@pytest.fixture
def start(model, pandod, operator, monkeypatch):
    """Yields a function that starts engines without a model.

    The engines end before `operator` checks what they leave."""
    be_patient(monkeypatch.setattr)
    with contextlib.ExitStack() as stack:

        def make(kind=EngineAlone, model=model, **arguments):
            alone = kind(model, pandod.address, **arguments)
            stack.callback(alone.close)
            return alone

        yield make


@pytest.fixture(scope="session")
def forks(tmp_path_factory):
    with forks_in(tmp_path_factory.mktemp("forks")) as parent:
        yield parent
