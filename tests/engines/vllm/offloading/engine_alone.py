"""vLLM's own Scheduler and OffloadingConnector over Pando's blocks, with a stand-in for
the model. The stand-in writes KV that identifies a token and all tokens before it.

It has groups of layers with windows beside one group that sees all tokens. Each step
reads the KV that attention would read, and fails if that KV does not belong to the
tokens of the request.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from engines.vllm.pool import BLOCK_BYTES, BLOCK_TOKENS, MODEL
from vllm import SamplingParams
from vllm.config import KVTransferConfig, set_current_vllm_config
from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorRole
from vllm.distributed.kv_transfer.kv_connector.v1.offloading_connector import (
    OffloadingConnector,
)
from vllm.engine.arg_utils import EngineArgs
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.kv_cache_interface import (
    FullAttentionSpec,
    KVCacheConfig,
    KVCacheGroupSpec,
    SlidingWindowSpec,
)
from vllm.v1.outputs import KVConnectorOutput, ModelRunnerOutput
from vllm.v1.request import Request, RequestStatus
from vllm.v1.structured_output import StructuredOutputManager

TOKEN = 7
MOST_STEPS = 4000
LAYERS = 2  # in each group
WORDS = BLOCK_BYTES // BLOCK_TOKENS // 8  # for a token in a layer
SHAPE = {"block_size": BLOCK_TOKENS, "num_kv_heads": 2, "head_size": 32}
# The number of tokens that each group sees, or None for all.
WINDOWS = (None, 40, 100)
CONNECTOR = {
    "spec_name": "PandoOffloadingSpec",
    "spec_module_path": "pando_kv.vllm.offloading",
}


class EngineAlone:
    """An engine with its scheduler, worker and stand-in model. It belongs to one test
    and is used from one thread.

    `blocks` is the number of vLLM's blocks, `windows` has the window of each group in
    tokens, and `options` are options of Pando."""

    def __init__(
        self,
        model: Path,
        address: str,
        *,
        blocks: int = 64,
        windows: Sequence[int | None] = WINDOWS,
        options: dict[str, Any] | None = None,
        **arguments: Any,
    ) -> None:
        torch.set_num_threads(1)
        extra = CONNECTOR | {"pando_address": address} | (options or {})
        config = EngineArgs(
            model=str(model),
            served_model_name=MODEL,
            skip_tokenizer_init=True,
            enforce_eager=True,
            dtype="float32",
            max_model_len=(blocks - 1) * BLOCK_TOKENS,
            block_size=BLOCK_TOKENS,
            enable_prefix_caching=True,
            kv_transfer_config=KVTransferConfig(
                kv_connector="OffloadingConnector",
                kv_role="kv_both",
                kv_connector_extra_config=extra,
            ),
            **({"max_num_batched_tokens": 64, "max_num_seqs": 4} | arguments),
        ).create_engine_config()
        config.cache_config.num_gpu_blocks = blocks
        self.windows = windows
        groups = [
            KVCacheGroupSpec(
                [f"group.{group}.layer.{n}" for n in range(LAYERS)], _spec(window)
            )
            for group, window in enumerate(windows)
        ]
        cache = KVCacheConfig(
            num_blocks=blocks, kv_cache_tensors=[], kv_cache_groups=groups
        )
        self.memory = torch.zeros(
            LAYERS, blocks, BLOCK_TOKENS, WORDS, dtype=torch.int64
        )
        with set_current_vllm_config(config):
            self.worker = OffloadingConnector(config, KVConnectorRole.WORKER, cache)
            self.worker.register_kv_caches(
                {
                    name: self.memory[n]
                    for group in groups
                    for n, name in enumerate(group.layer_names)
                }
            )
        self.scheduler = Scheduler(
            vllm_config=config,
            kv_cache_config=cache,
            structured_output_manager=StructuredOutputManager(config),
            block_size=BLOCK_TOKENS,
            hash_block_size=BLOCK_TOKENS,
        )
        init_none_hash(sha256)
        self._hash_blocks = get_request_block_hasher(BLOCK_TOKENS, sha256)
        self._blocks: dict[str, list[list[int]]] = {}
        self.found: dict[str, int] = {}
        """The tokens of each request that were loaded or in vLLM's own cache."""

    @property
    def manager(self) -> Any:
        return self.scheduler.connector.connector_scheduler.manager

    @property
    def copies(self) -> Any:
        return self.worker.connector_worker.worker

    @property
    def clients(self) -> list[Any]:
        return [self.manager._access.client, self.copies._client]

    def add(self, name: str, prompt: list[int], new: int = 1, **fields: Any) -> Request:
        sampling = SamplingParams(max_tokens=new, temperature=0, ignore_eos=True)
        request = Request(
            name, prompt, sampling, None, block_hasher=self._hash_blocks, **fields
        )
        self.scheduler.add_request(request)
        return request

    def step(self) -> dict[str, int]:
        """Runs one step, and returns how many tokens of each request it computed."""
        output = self.scheduler.schedule()
        names = list(output.num_scheduled_tokens)
        done = self.work(output)
        self.scheduler.update_from_output(
            output,
            ModelRunnerOutput(
                req_ids=names,
                req_id_to_index={name: n for n, name in enumerate(names)},
                sampled_token_ids=[self._sampled(name) for name in names],
                kv_connector_output=done,
            ),
        )
        return dict(output.num_scheduled_tokens)

    def work(self, output: Any) -> KVConnectorOutput:
        plan, worker = output.kv_connector_metadata, self.worker
        worker.handle_preemptions(plan)
        worker.bind_connector_metadata(plan)
        worker.start_load_kv(None)
        self._compute(output)
        worker.wait_for_save()
        _, received = worker.get_finished(output.finished_req_ids)
        return KVConnectorOutput(
            finished_recving=received or None,
            kv_connector_worker_meta=worker.build_connector_worker_meta(),
        )

    def _compute(self, output: Any) -> None:
        """Writes all KV of the step, and then reads and checks it, as attention does.

        A request may find what another one computes in the same step."""
        placed = [
            (name, computed, computed + output.num_scheduled_tokens[name])
            for name, computed in self._place(output)
        ]
        words = {
            name: words_of(self.scheduler.requests[name].all_token_ids[:end])
            for name, _, end in placed
        }
        for name, computed, end in placed:
            for group in range(len(self.windows)):
                self._kv(name, group, computed, end, words[name][computed:, None])
        for name, computed, _ in placed:
            for group, window in enumerate(self.windows):
                first = 0 if window is None else max(0, computed - window + 1)
                read = self._kv(name, group, first, computed)
                wanted = words[name][first:computed, None].expand(LAYERS, -1, WORDS)
                assert torch.equal(read, wanted), (
                    f"{name} reads in group {group}, from token {first} to {computed}, "
                    "what is not its own"
                )

    def _kv(
        self, name: str, group: int, first: int, end: int, put: Any = None
    ) -> torch.Tensor:
        places = torch.arange(first, end)
        table = torch.tensor(self._blocks[name][group])
        at = table[places // BLOCK_TOKENS], places % BLOCK_TOKENS
        if put is not None:
            self.memory[:, at[0], at[1]] = put
        return self.memory[:, at[0], at[1]]

    def _place(self, output: Any) -> list[tuple[str, int]]:
        """Notes the blocks of the requests in the step. Returns the name of each
        request, and how many of its tokens were computed before."""
        found = []
        for new in output.scheduled_new_reqs:
            self._blocks[new.req_id] = [list(ids) for ids in new.block_ids]
            self.found[new.req_id] = new.num_computed_tokens
            found.append((new.req_id, new.num_computed_tokens))
        cached = output.scheduled_cached_reqs
        for name, added, computed in zip(
            cached.req_ids,
            cached.new_block_ids,
            cached.num_computed_tokens,
            strict=True,
        ):
            if name in cached.resumed_req_ids:
                self._blocks[name] = [[] for _ in self.windows]
            for group, ids in enumerate(added or ()):
                self._blocks[name][group] += ids
            found.append((name, computed))
        return found

    def _sampled(self, name: str) -> list[int]:
        """Returns the sampled token, or none while the prompt is not computed."""
        request = self.scheduler.requests[name]
        return [TOKEN] if request.num_computed_tokens >= request.num_tokens else []

    @property
    def is_busy(self) -> bool:
        connector = self.scheduler.connector
        return self.scheduler.has_requests() or connector.has_pending_push_work()

    def run(self) -> None:
        """Steps until all requests and transfers are done."""
        for _ in range(MOST_STEPS):
            if not self.is_busy:
                return
            self.step()
        raise AssertionError(f"not done after {MOST_STEPS} steps")

    def ask(self, name: str, prompt: list[int], new: int = 1, **fields: Any) -> int:
        """Runs the request to its end; returns how many of its tokens were found."""
        self.add(name, prompt, new, **fields)
        self.run()
        return self.found[name]

    def abort(self, *names: str) -> None:
        self.scheduler.finish_requests(names, RequestStatus.FINISHED_ABORTED)

    def reset(self) -> None:
        self.scheduler.reset_prefix_cache(reset_connector=True)

    def forget(self) -> None:
        """Empties vLLM's own cache."""
        self.scheduler.reset_prefix_cache()

    def close(self) -> None:
        self.scheduler.connector.shutdown()
        self.worker.shutdown()


def _spec(window: int | None) -> Any:
    if window is None:
        return FullAttentionSpec(**SHAPE, dtype=torch.float32)
    return SlidingWindowSpec(**SHAPE, dtype=torch.float32, sliding_window=window)


def words_of(tokens: Sequence[int]) -> torch.Tensor:
    """Returns a word for each token, which identifies it and all tokens before it."""
    words, word = np.empty(len(tokens), np.int64), 1
    for place, token in enumerate(tokens):
        word = (word * 1_000_003 + token + 1) % (1 << 61)
        words[place] = word
    return torch.from_numpy(words)
