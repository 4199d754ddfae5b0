"""Times the same trace in SGLang's own cache, in this process. Each request matches,
locks, evicts what exceeds the pool, inserts, and unlocks. Needs SGLang 0.5.23.

usage: python sglang_trace.py rust|python TRACE PAGE_TOKENS POOL_TOKENS REQUESTS
"""

import sys
import time
from array import array
from pathlib import Path

import torch
import traces
from sglang.srt.mem_cache.base_prefix_cache import (
    EvictParams,
    InsertParams,
    MatchPrefixParams,
)
from sglang.srt.mem_cache.cache_init_params import CacheInitParams
from sglang.srt.mem_cache.radix_cache import RadixKey
from sglang.srt.mem_cache.unified_cache.component_type import ComponentType
from sglang.srt.mem_cache.unified_radix_cache import UnifiedRadixCache
from sglang.srt.server_args import ServerArgs, set_global_server_args_for_scheduler
from summary import print_result


class Slots:
    """A stand-in for an engine's allocator, which takes slots back and does nothing
    else, because only the cache is measured."""

    device = torch.device("cpu")

    def __init__(self, page_size: int) -> None:
        self.page_size = page_size

    def free(self, slots: torch.Tensor) -> None: ...

    def free_segment(self, slots: torch.Tensor, start_pos: int = 0) -> None: ...

    def free_group_begin(self) -> None: ...

    def free_group_end(self) -> None: ...

    def get_kvcache(self) -> None: ...

    def available_size(self) -> int:
        return 0


def make_cache(core: str, page_tokens: int) -> UnifiedRadixCache:
    set_global_server_args_for_scheduler(
        ServerArgs(
            model_path="none",
            device="cpu",
            load_format="dummy",
            skip_tokenizer_init=True,
        )
    )
    return UnifiedRadixCache(
        CacheInitParams(
            disable=False,
            req_to_token_pool=None,
            token_to_kv_pool_allocator=Slots(page_tokens),
            page_size=page_tokens,
            tree_components=(ComponentType.FULL,),
            tree_core_backend=core,
        )
    )


def main(core: str, path: str, page: str, pool: str, limit: str) -> None:
    torch.set_num_threads(1)
    page_tokens, pool_tokens = int(page), int(pool)
    cache = make_cache(core, page_tokens)
    now = time.perf_counter_ns
    spent, hit, asked, slots = [], 0, 0, 0
    for request in traces.read(Path(path), page_tokens, int(limit)):
        prompt = array("q", request.prompt().tolist())
        begin = now()
        match = cache.match_prefix(MatchPrefixParams(key=RadixKey(prompt)))
        node, matched = match.last_device_node, match.device_prefix_len
        cached = cache.path_device_indices(node) if matched else None
        lock = cache.lock(node)
        matched_at = now()

        new = len(prompt) - matched
        too_many = cache.evictable_size() + cache.protected_size() + new - pool_tokens

        evicting_at = now()
        if too_many > 0:
            cache.evict(EvictParams(num_tokens=too_many))
        evicted_at = now()

        own = torch.arange(slots, slots + new, dtype=torch.int64)
        table = own if cached is None else torch.cat([cached[:matched], own])
        slots += new

        inserting_at = now()
        cache.insert(InsertParams(key=RadixKey(prompt), value=table))
        cache.unlock(lock)
        end = now()
        spent.append(matched_at - begin + evicted_at - evicting_at + end - inserting_at)
        hit += matched
        asked += len(prompt)
    print_result(f"SGLang, {core} core", spent, hit / max(asked, 1))


if __name__ == "__main__":
    main(*sys.argv[1:])
