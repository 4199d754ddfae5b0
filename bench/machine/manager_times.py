"""Times a request of 500 blocks in Pando's manager and in vLLM's own, in turns."""

from collections.abc import Callable
from functools import partial
from typing import Any

from engines.vllm.offloading.manager_alone import (
    context_of,
    manager_alone,
    prompt_keys,
)
from engines.vllm.offloading.patience import be_patient
from in_turns import p50s_in_turns
from rows import Row
from vllm.v1.kv_offload.base import LookupResult, ReqContext, ScheduleEndContext
from vllm.v1.kv_offload.cpu.manager import CPUOffloadingManager

BLOCKS = 500
BLOCK_BYTES = 16 << 10
REQUESTS = 5  # requests of a round
# A capacity that exceeds the blocks of all rounds.
CHUNKS = 100_000


def manager_rows(address: str) -> list[Row]:
    be_patient()
    alone = manager_alone(address, "bench", [BLOCK_BYTES], away_after=1.0)
    managers = {"Pando": alone.manager, "vLLM": CPUOffloadingManager(CHUNKS)}

    def ways(do: Callable[..., None]) -> dict[str, Callable[[int], Callable]]:
        return {name: partial(_request, do, each) for name, each in managers.items()}

    stored = p50s_in_turns(ways(_store), REQUESTS)
    loaded = p50s_in_turns(ways(_load), REQUESTS)
    alone.close()
    return [
        Row(
            f"vLLM's scheduler: a request of {BLOCKS} blocks that {what}, p50; "
            "floor: its own manager",
            1e3 * seconds["Pando"],
            "ms",
            1e3 * seconds["vLLM"],
            ratio_limit=1.0,
        )
        for what, seconds in (("are loaded", loaded), ("are stored", stored))
    ]


def _request(do: Callable[..., None], manager: Any, number: int) -> Callable[[], None]:
    keys = prompt_keys(f"{number}", BLOCKS)
    context = context_of(f"{do.__name__} {number}", [keys])
    return partial(do, manager, context, keys)


def _load(manager: Any, context: ReqContext, keys: list) -> None:
    manager.on_new_request(context)
    for key in keys:
        assert manager.lookup(key, context) is LookupResult.HIT
    manager.prepare_load(keys, context)
    manager.on_schedule_end(ScheduleEndContext([context.req_id], []))
    manager.complete_load(keys, context)
    manager.on_request_finished(context)


def _store(manager: Any, context: ReqContext, keys: list) -> None:
    manager.on_new_request(context)
    stored = manager.prepare_store(keys, context)
    assert stored.keys_to_store == keys
    manager.on_schedule_end(ScheduleEndContext([context.req_id], []))
    manager.complete_store(keys, context)
    manager.on_request_finished(context)
