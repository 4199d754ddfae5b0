"""A worker in another pod, whose process pandod cannot see."""

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from blocks import BLOCKS_ONLY, RESERVED, STORED, assert_holds, keys, of, spec
from eventually import eventually
from pando_kv import Client
from pando_kv.blocks import MISSING, PENDING
from pandod_process import Pandod, binary
from worker_process import WorkerProcess

NEVER = "1h"
PROMPT = 1


@pytest.fixture
def pandod_in_a_pod(tmp_path: Path, monkeypatch) -> Iterator[Pandod]:
    """Yields a pandod in a PID namespace of its own, without the workers."""
    script = tmp_path / "pod"
    namespace = "unshare --pid --fork --kill-child --mount-proc"
    program = shlex.quote(str(binary()))
    script.write_text(f'#!/bin/sh\nexec {namespace} {program} "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PANDOD", str(script))
    pandod = Pandod(tmp_path, session_grace=NEVER, quarantine=NEVER, **BLOCKS_ONLY)
    pandod.start()
    yield pandod
    pandod.kill()


def test_blocks_pass_between_pods_and_come_back_when_one_ends(pandod_in_a_pod):
    address = pandod_in_a_pod.address
    with (
        WorkerProcess(address, PROMPT, "block_worker.py") as other,
        Client(address, name="reader") as client,
    ):
        other.do("attach", "store", "lock", "reserve", "write")
        memory = client.attach_memory()
        (kind,) = client.open_kinds([spec()])
        stored = keys(STORED, PROMPT)
        found = client.acquire_blocks(1, [of(kind, stored)], all=True)
        assert_holds(memory, kind, stored, found)
        client.release_blocks([1])
        asked = [of(kind, keys(RESERVED, PROMPT, STORED))]
        assert client.lookup_blocks(asked).tolist() == [PENDING] * RESERVED
        other.kill()
        # The shared memory itself tells pandod that the worker's process is gone.
        eventually(lambda: client.lookup_blocks(asked).tolist() == [MISSING] * RESERVED)
