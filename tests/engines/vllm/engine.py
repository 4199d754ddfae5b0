"""A program that runs vLLM's LLM, with its engine core in the same process.

usage: engine.py '{"model": ..., "pando": address or null, "connector": {...}, ...}'
With "patient": true, an engine over blocks waits longer for calls, which a busy machine
makes slow. With "free_bytes": n, vLLM sees n bytes of free memory. With
"multiprocessing": true, the engine core runs in a separate process.

The program reads commands as lines of JSON and answers each with one line:
{"prompts": [[ids]], "new": n, "salt": ...}
                                runs the prompts to their end; n may be a list, one
                                number for each prompt
{"start": [[ids]], "new": n}    queues the prompts
{"step": n}                     runs n steps
{"look": true}                  returns counts and times
{"abort": [ids]}                aborts requests
{"output": id}                  returns the tokens of a request so far
{"reset": true}                 resets vLLM's prefix cache and the connector
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))
from engines.meters import Stopwatch, WireMeter
from engines.vllm.offloading.patience import be_patient

ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "INFO",
}
for name, value in ENVIRONMENT.items():
    os.environ.setdefault(name, value)

WIRE = WireMeter()

ARGUMENTS = {
    "skip_tokenizer_init": True,
    "enforce_eager": True,
    "dtype": "float32",
    "max_model_len": 4096,
    "max_num_seqs": 4,
    "max_num_batched_tokens": 256,
    "enable_prefix_caching": False,
    "block_size": 32,
    "kv_cache_memory_bytes": 64 << 20,
    "disable_log_stats": True,
}


def main() -> None:
    run(json.loads(sys.argv[1]))


def run(given: dict) -> None:
    begin = time.perf_counter()
    if given.pop("multiprocessing", False):
        os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "1"
    if given.pop("patient", False):
        be_patient()
    if "free_bytes" in given:
        pretend_free_memory(given.pop("free_bytes"))
    pando = given.pop("pando", None)
    extra = given.pop("connector", {})
    arguments = ARGUMENTS | given
    if pando:
        arguments["kv_transfer_config"] = transfer_config(pando, extra)
    engine = Engine(arguments)
    engine.say(ready=True, seconds=round(time.perf_counter() - begin, 1))
    for line in sys.stdin:
        engine.obey(json.loads(line))
    engine.close()


def transfer_config(address: str, extra: dict):
    """Returns a configuration over blocks if `extra` names a spec, else over pages."""
    from vllm.config import KVTransferConfig

    is_blocks = "spec_name" in extra
    return KVTransferConfig(
        kv_connector="OffloadingConnector" if is_blocks else "PandoConnector",
        kv_role="kv_both",
        kv_connector_extra_config={"pando_address": address} | extra,
    )


def pretend_free_memory(free: int) -> None:
    from vllm.v1.worker import cpu_worker

    info = replace(cpu_worker.get_memory_node_info(), available_memory=free)
    cpu_worker.get_memory_node_info = lambda _: info


class Engine:
    def __init__(self, arguments: dict) -> None:
        from vllm import LLM

        self.llm = LLM(**arguments)
        self.core = getattr(self.llm.llm_engine.engine_core, "engine_core", None)
        self.scheduler = self.core.scheduler if self.core else None
        self._started = 0
        self._done: dict = {}
        self._said: dict = {}
        self._preempted = 0
        if self.scheduler is not None:
            self._count_preemptions()
            self._scheduling = Stopwatch(
                self.scheduler, "schedule", "update_from_output"
            )

    def _count_preemptions(self) -> None:
        preempt = self.scheduler._preempt_request

        def count(*given, **named):
            self._preempted += 1
            return preempt(*given, **named)

        self.scheduler._preempt_request = count

    def say(self, **answer) -> None:
        print("@@" + json.dumps(answer), flush=True)

    def obey(self, command: dict) -> None:
        if "prompts" in command:
            begin = time.perf_counter()
            prompts = self._prompts(command["prompts"], command)
            outputs = self.llm.generate(
                prompts,
                self._sampling(command, prompts),
                use_tqdm=False,
            )
            self._finish_transfers()
            self.say(
                seconds=time.perf_counter() - begin,
                outputs=[list(output.outputs[0].token_ids) for output in outputs],
                cached=[output.num_cached_tokens for output in outputs],
                **self.look(),
            )
        elif "start" in command:
            ids = []
            prompts = self._prompts(command["start"], command)
            sampling = self._sampling(command, prompts)
            for prompt, how in zip(prompts, sampling, strict=True):
                self._started += 1
                ids.append(f"s{self._started}")
                self.llm.llm_engine.add_request(ids[-1], prompt, how)
            self.say(ids=ids)
        elif "step" in command:
            for _ in range(command["step"]):
                for output in self.llm.llm_engine.step():
                    said = list(output.outputs[0].token_ids)
                    self._said[output.request_id] = said
                    if output.finished:
                        self._done[output.request_id] = [
                            said,
                            output.num_cached_tokens,
                        ]
            self.say(done=self._done, **self.look())
        elif "abort" in command:
            self.llm.llm_engine.abort_request(command["abort"])
            self.say(**self.look())
        elif "output" in command:
            self.say(output=self._said.get(command["output"], []))
        elif "reset" in command:
            self.say(
                reset=self.scheduler.reset_prefix_cache(reset_connector=True),
                **self.look(),
            )
        else:
            self.say(**self.look())

    def _finish_transfers(self) -> None:
        """Steps until all transfers are done, as an engine that serves does.

        LLM itself stops as soon as all outputs are there."""
        connector = self.scheduler.connector if self.scheduler is not None else None
        while connector is not None and connector.has_pending_push_work():
            self.llm.llm_engine.step()

    def _prompts(self, prompts: list[list[int]], command: dict) -> list[dict]:
        salt = {"cache_salt": command["salt"]} if "salt" in command else {}
        return [{"prompt_token_ids": prompt} | salt for prompt in prompts]

    def _sampling(self, command: dict, prompts: list) -> list:
        from vllm import SamplingParams

        new = command.get("new", 8)
        return [
            SamplingParams(
                temperature=0, max_tokens=count, ignore_eos=True, detokenize=False
            )
            for count in (new if isinstance(new, list) else [new] * len(prompts))
        ]

    def look(self) -> dict:
        seen = {"pid": os.getpid()}
        if self.scheduler is None:
            return seen
        return seen | {
            "running": len(self.scheduler.running),
            "waiting": len(self.scheduler.waiting),
            "preempted": self._preempted,
            "blocks": self.scheduler.kv_cache_manager.block_pool.num_gpu_blocks,
            "spent": WIRE.totals() | {"scheduling": self._scheduling.seconds},
        }

    def close(self) -> None:
        del self.llm


if __name__ == "__main__":
    main()
