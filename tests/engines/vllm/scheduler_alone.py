"""vLLM's own Scheduler with Pando's connector, without a model. Each step is done as
soon as it is scheduled, and every sampled token is the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from engines.models import LAYERS
from engines.vllm.pool import BLOCK_TOKENS, MODEL, PAGE_FORMAT
from pando_kv.vllm.pages.step_plan import StepDone
from vllm import SamplingParams
from vllm.config import KVTransferConfig
from vllm.engine.arg_utils import EngineArgs
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.kv_cache_interface import (
    FullAttentionSpec,
    KVCacheConfig,
    KVCacheGroupSpec,
)
from vllm.v1.outputs import KVConnectorOutput, ModelRunnerOutput
from vllm.v1.request import Request, RequestStatus
from vllm.v1.structured_output import StructuredOutputManager

TOKEN = 7
MOST_STEPS = 2000


class SchedulerAlone:
    """A scheduler over a pandod. It belongs to one test and is used from one thread.

    `blocks` is the number of blocks in the pool; `options` are options of Pando."""

    def __init__(
        self,
        model: Path,
        address: str,
        *,
        blocks: int,
        options: dict[str, Any] | None = None,
        **arguments: Any,
    ) -> None:
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
                kv_connector="PandoConnector",
                kv_role="kv_both",
                kv_connector_extra_config={
                    "pando_address": address,
                    "pando_page_format": PAGE_FORMAT,
                }
                | (options or {}),
            ),
            **({"max_num_batched_tokens": 64, "max_num_seqs": 4} | arguments),
        ).create_engine_config()
        config.cache_config.num_gpu_blocks = blocks
        layers = [f"layer.{n}" for n in range(LAYERS)]
        spec = FullAttentionSpec(
            block_size=BLOCK_TOKENS, num_kv_heads=2, head_size=32, dtype=torch.float32
        )
        self.scheduler = Scheduler(
            vllm_config=config,
            kv_cache_config=KVCacheConfig(
                num_blocks=blocks,
                kv_cache_tensors=[],
                kv_cache_groups=[KVCacheGroupSpec(layers, spec)],
            ),
            structured_output_manager=StructuredOutputManager(config),
            block_size=BLOCK_TOKENS,
        )
        init_none_hash(sha256)
        self._hash_blocks = get_request_block_hasher(BLOCK_TOKENS, sha256)
        self.preempted: list[str] = []

    @property
    def client(self) -> Any:
        return self.scheduler.connector._client

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
        self.preempted += output.preempted_req_ids or ()
        names = list(output.num_scheduled_tokens)
        self.scheduler.update_from_output(
            output,
            ModelRunnerOutput(
                req_ids=names,
                req_id_to_index={name: n for n, name in enumerate(names)},
                sampled_token_ids=[self._sampled(name) for name in names],
                kv_connector_output=KVConnectorOutput(
                    kv_connector_worker_meta=StepDone()
                ),
            ),
        )
        return output.num_scheduled_tokens

    def _sampled(self, name: str) -> list[int]:
        """Returns the sampled token, or none while the prompt is not computed."""
        request = self.scheduler.requests[name]
        return [TOKEN] if request.num_computed_tokens >= request.num_tokens else []

    def run(self) -> None:
        for _ in range(MOST_STEPS):
            if not self.scheduler.has_requests():
                return
            self.step()
        raise AssertionError(f"not done after {MOST_STEPS} steps")

    def abort(self, *names: str) -> None:
        self.scheduler.finish_requests(names, RequestStatus.FINISHED_ABORTED)

    def close(self) -> None:
        self.scheduler.connector.shutdown()
