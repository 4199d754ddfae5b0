"""SGLang's real tree for a model with states (Mamba) on Pando, without the model. The
test writes KV and states whose bytes identify all tokens up to their place."""

import hashlib
import os
import random
import sys
import types
import unittest
from array import array

import pytest
import torch
from engines.sglang.linker.conftest import serve_blocks
from engines.sglang.linker.engines import nothing_is_held
from eventually import eventually
from pando_kv import Operator

os.environ.setdefault("SGLANG_USE_CPU_ENGINE", "1")

# SGLang's test kit for its tree imports one class from this module. The module imports
# packages that no engine needs, so a stub replaces it.
_UTILS = "sglang.test.test_utils"
sys.modules.setdefault(
    _UTILS, types.ModuleType(_UTILS)
).CustomTestCase = unittest.TestCase

PROGRAMS = 40
STEPS = 12


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    started = serve_blocks(tmp_path_factory.mktemp("m"), memory="256MiB")
    yield started
    started.close()


class Tree:
    """One engine's tree and pools. The test itself writes their KV and states."""

    def __init__(self, name):
        from pando_kv.sglang.linker import linker as module
        from sglang.srt.mem_cache.unified_cache.component_type import ComponentType
        from sglang.srt.runtime_context import get_server_args
        from sglang.test.kits.unified_radix_cache.config import CacheConfig
        from sglang.test.kits.unified_radix_cache.fixtures import build_fixture

        config = CacheConfig(
            components=(ComponentType.FULL, ComponentType.MAMBA),
            num_layers=4,
            full_attention_layer_ids=(1, 3),
            mamba_cache_size=400,
            kv_size=8192,
        )
        self.name = name
        self.cache, self.slots, self.requests = build_fixture(
            config, tree_core_backend="python"
        )
        self.linker = module.PandoLinker(
            get_server_args(),
            self.cache.cache_init_params,
            components=set(self.cache.components),
            extra_config={"wait_ms": 5000},
        )
        self.cache.init_cache_linker(self.linker)
        pool = self.slots.get_kvcache().full_kv_pool
        self._rows = [*pool.k_buffer, *pool.v_buffer]
        state = self.requests.mamba_pool.mamba_cache
        self._states = [
            each[layer]
            for each in (state.temporal, *state.conv)
            for layer in range(each.shape[0])
        ]
        self.loaded = 0
        self._asked = 0

    def run(self, tokens):
        """Does what a request for `tokens` does: finds its prefix, checks the bytes of
        that prefix, computes the rest, and inserts all."""
        from sglang.srt.managers.schedule_batch import Req
        from sglang.srt.mem_cache.base_prefix_cache import (
            InsertParams,
            MatchPrefixParams,
        )
        from sglang.srt.mem_cache.radix_cache import RadixKey
        from sglang.srt.sampling.sampling_params import SamplingParams

        self._asked += 1
        request = Req(
            rid=f"{self.name}{self._asked}",
            origin_input_text="",
            origin_input_ids=array("q", tokens),
            sampling_params=SamplingParams(temperature=0, max_new_tokens=1),
        )
        key = RadixKey(array("q", tokens))
        found = self.cache.match_prefix(MatchPrefixParams(key=key, req=request))
        path = self.cache.path_device_indices(found.last_device_node)
        at = path[: found.device_prefix_len].tolist()
        if found.host_hit_length:
            request.last_node = found.last_device_node
            loaded, _ = self.cache.linker.load_back(request)
            assert loaded == found.host_hit_length
            at += self.cache.linker.private_load_indices[request.rid].tolist()
            self.cache.ready_to_load_host_cache()
            assert self.cache.linker.finish_loads() == []
            self._look_at_state(int(request.kv.mamba_pool_idx), tokens[: len(at)])
            self.requests.mamba_allocator.free(request.kv.mamba_pool_idx.unsqueeze(0))
            self.loaded += loaded
        self._look_at_rows(at, tokens)
        new = self.slots.alloc(len(tokens) - len(at)).tolist()
        for place, slot in enumerate(new, len(at)):
            for number, rows in enumerate(self._rows):
                rows[slot] = value_of(tokens[: place + 1], number)
        state = self.requests.mamba_allocator.alloc(1)
        for number, states in enumerate(self._states):
            states[int(state[0])] = value_of(tokens, number)
        self.cache.insert(
            InsertParams(key=key, value=torch.tensor(at + new), mamba_value=state)
        )
        eventually(self._has_stored)

    def _has_stored(self):
        self.cache.check_hicache_events()
        return not self.cache.linker.pending_offloads

    def _look_at_rows(self, slots, tokens):
        for place, slot in enumerate(slots):
            for number, rows in enumerate(self._rows):
                expected = value_of(tokens[: place + 1], number)
                assert bool((rows[slot] == expected).all()), (place, number)

    def _look_at_state(self, slot, tokens):
        for number, states in enumerate(self._states):
            assert bool((states[slot] == value_of(tokens, number)).all()), number


def value_of(tokens, number):
    """Returns a value for the tokens up to a place; bfloat16 has it exactly."""
    digest = hashlib.sha256(f"{number} {tokens}".encode()).digest()
    return float(digest[0] % 128)


def test_trees_find_what_others_have_stored(server, monkeypatch):
    from pando_kv.sglang.linker import linker as module

    monkeypatch.setenv("PANDO_ADDRESS", server.address)
    monkeypatch.setattr(module, "model_identity", lambda *_, **__: ["by hand"])
    trees = [Tree("a"), Tree("b")]
    for seed in range(PROGRAMS):
        choose = random.Random(seed)
        prompts = [[seed, *_tokens(choose, 3)]]
        for _ in range(STEPS):
            beginning = choose.choice(prompts)
            cut = choose.randrange(1, len(beginning) + 1)
            prompts.append(beginning[:cut] + _tokens(choose, 12))
            choose.choice(trees).run(prompts[-1])
            if choose.random() < 0.1:
                choose.choice(trees).cache.reset()
    assert all(tree.loaded > 100 for tree in trees)
    with Operator(server.address) as operator:
        eventually(lambda: nothing_is_held(operator))
        assert operator.check_invariants() == []
    for tree in trees:
        tree.linker.close()


def _tokens(choose, most):
    return [choose.randrange(1000) for _ in range(choose.randrange(1, most))]
