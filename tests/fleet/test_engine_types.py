"""Payloads decoded with the types with which vLLM and SGLang write theirs.

The tests need the Python packages of an engine. They come from the environments in
which `make test-engines` runs the engines, if these exist.
"""

import json
import subprocess
from pathlib import Path

import pytest
from fleet.subscriber import Subscriber
from pando_kv import Namespace
from pandod_process import PAGE_TOKENS
from pinned_environment import cache_folder, site_packages

SCRIPT = Path(__file__).parent / "decode_with_engine.py"
FILES = {
    "vllm": "vllm/distributed/kv_events.py",
    "sglang": "sglang/srt/disaggregation/kv_events.py",
}


def engine_environment(engine: str) -> Path:
    # The folder's name ends with a digest. Other releases' folders have no interpreter.
    complete = cache_folder().glob(f"engines/{engine}-{16 * '[0-9a-f]'}/.complete")
    newest = max(complete, key=lambda file: file.stat().st_mtime, default=None)
    if newest is None:
        pytest.skip(f"there is no environment with {engine} in {cache_folder()}")
    return newest.parent


def understood(engine: str, payloads: list[bytes]) -> list:
    environment = engine_environment(engine)
    file = site_packages(environment) / FILES[engine]
    done = subprocess.run(
        [environment / "bin/python", SCRIPT, file, engine],
        input="".join(f"{payload.hex()}\n" for payload in payloads),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("engine", FILES)
def test_an_engine_understands_the_map_form(start_machine, engine):
    engine_environment(engine)
    machine = start_machine(kv_events_include="salted")
    tokens = list(range(2 * PAGE_TOKENS))
    with Subscriber(machine.events) as subscriber:
        subscriber.wait_for_blocks(0)
        machine.put([*tokens, 1], Namespace("adapter", "salt"))
        subscriber.wait_for_blocks(2)
        machine.client.flush()
        subscriber.wait_for_blocks(0)
    batches = understood(engine, [frame.payload for frame in subscriber.frames])
    assert [batch[2] for batch in batches] == [0] * len(batches)
    events = [event for batch in batches for event in batch[1]]
    assert events[0]["type"] == "AllBlocksCleared"
    (stored,) = (event for event in events if event["type"] == "BlockStored")
    assert stored["token_ids"] == tokens
    assert stored["block_size"] == PAGE_TOKENS
    assert stored["lora_name"] == "adapter"
    gone = [e["block_hashes"] for e in events if e["type"] == "BlockRemoved"]
    assert sorted(sum(gone, [])) == sorted(stored["block_hashes"])
