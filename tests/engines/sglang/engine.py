"""A program that runs SGLang's real Scheduler, TpModelWorker and ModelRunner.

usage: engine.py '{"model_path": ..., more of ServerArgs}'
With "free_gb": [a, b], SGLang sees a GiB of free memory before it loads the weights,
and b GiB afterwards.

The program reads commands as lines of JSON and answers each with one line:
{"prompts": [[ids]], "new": n, "extra_key": ...}
                            runs the prompts to their end; n may be a list, one number
                            for each prompt
{"start": [[ids]], "new": n}  queues the prompts
{"step": n}                 runs n steps
{"look": true}              returns counts, times and tensor addresses
{"flush": true}             flushes the cache
{"abort": "rid"}            aborts a request
{"output": "rid"}           returns the tokens of a request so far
{"update": "v2"}            does what follows an update of the weights to "v2"
{"update": null}            tries an update that fails
{"device": "is late"}       puts a stand-in for a GPU's queue in place; it does nothing
{"device": "is done"}       lets that stand-in finish its work
{"interrupt": phase, "pid": n, "signal": "SIGSTOP"}
                            sends the signal when the phase begins (phases.py)
"""

from __future__ import annotations

import array
import json
import os
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))
from engines.meters import Stopwatch, WireMeter
from engines.sglang.odd_models import stand_in_for_kernels
from engines.sglang.phases import interrupt

os.environ.setdefault("SGLANG_USE_CPU_ENGINE", "1")
WIRE = WireMeter()

ARGUMENTS = {
    "device": "cpu",
    "dtype": "float32",
    "load_format": "auto",
    "skip_tokenizer_init": True,
    "attention_backend": "torch_native",
    "sampling_backend": "pytorch",
    "grammar_backend": "none",
    "page_size": 16,
    "max_total_tokens": 8176,
    "disable_cuda_graph": True,
    "disable_overlap_schedule": True,
    "random_seed": 1,
    "log_level": "info",
    "chunked_prefill_size": 256,
    "context_length": 4096,
    "max_running_requests": 16,
    "served_model_name": "tiny",
}
MAX_STEPS = 20_000


def main() -> None:
    begin = time.perf_counter()
    arguments = ARGUMENTS | json.loads(sys.argv[1])
    from sglang.srt.plugins import load_plugins

    load_plugins()
    if "free_gb" in arguments:
        pretend_free_memory(*arguments.pop("free_gb"))
    if arguments["load_format"] == "dummy":
        stand_in_for_kernels()
    engine = Engine(arguments)
    engine.say(ready=True, seconds=round(time.perf_counter() - begin, 1))
    for line in sys.stdin:
        engine.obey(json.loads(line))


def pretend_free_memory(before: float, after: float) -> None:
    from sglang.srt.distributed import bootstrap
    from sglang.srt.mem_cache import kv_cache_configurator

    bootstrap.get_available_gpu_memory = lambda *_, **__: before
    kv_cache_configurator.get_available_gpu_memory = lambda *_, **__: after


class Engine:
    def __init__(self, arguments: dict) -> None:
        from sglang.srt.managers.scheduler import (
            Scheduler,
            SpawnRanks,
            publish,
            spawn_world_rank,
        )
        from sglang.srt.server_args import PortArgs, ServerArgs

        server_args = ServerArgs(**arguments)
        if hasattr(server_args, "resolve"):
            server_args.resolve()
        rank = spawn_world_rank(server_args, tp_rank=0, pp_rank=0)
        ranks = SpawnRanks(world_rank=rank, dp_rank=None, gpu_id=0)
        publish(server_args, role="scheduler", ranks=ranks)
        self.scheduler = Scheduler(server_args, PortArgs.init_new(server_args))
        self.cache = self.scheduler.tree_cache
        self.allocator = self.scheduler.token_to_kv_pool_allocator
        self.requests: dict = {}
        self._started = 0
        add = self.scheduler._add_request_to_queue

        def remember(request, *rest, **named):
            self.requests[request.rid] = request
            return add(request, *rest, **named)

        self.scheduler._add_request_to_queue = remember
        self.has_pando = type(self.cache).__name__ == "PandoPrefixCache"
        self._scheduling = Stopwatch(
            self.scheduler, "get_next_batch_to_run", "process_batch_result"
        )

        # Measures the calls to Pando's blocks that the scheduler waits for.
        linker = getattr(getattr(self.cache, "linker", None), "cache_linker", None)
        self._asking = Stopwatch(linker._budget, "ask") if linker else None

        # Measures the scheduler's calls to a prefix cache, and Pando's calls for pages.
        self._caching = Stopwatch(
            self.cache,
            *("match_prefix", "path_device_indices", "checkpoint", "claim_kv_row"),
            *("on_release", "inc_lock_ref", "dec_lock_ref", "evict"),
        )
        if hasattr(self.cache, "calls"):
            self._caching.watch(
                self.cache.calls, "allocate", "free", "release", "score"
            )

    def say(self, **answer) -> None:
        print("@@" + json.dumps(answer), flush=True)

    def obey(self, command: dict) -> None:
        if "prompts" in command:
            begin = time.perf_counter()
            ids = self.start(command["prompts"], command)
            steps, longest, waited = self.run()
            self.say(
                seconds=time.perf_counter() - begin,
                steps=steps,
                longest=longest,
                waited=waited,
                outputs=[list(self.requests[i].output_ids) for i in ids],
                cached=[self.requests[i].cached_tokens for i in ids],
                retractions=[self.requests[i].retraction_count for i in ids],
                aborted=[
                    type(self.requests[i].finished_reason).__name__ == "FINISH_ABORT"
                    for i in ids
                ],
                **self.look(),
            )
        elif "start" in command:
            self.say(ids=self.start(command["start"], command))
        elif "step" in command:
            longest = 0.0
            for _ in range(command["step"]):
                begin = time.perf_counter()
                self.step()
                longest = max(longest, time.perf_counter() - begin)
            self.say(longest=longest, **self.look())
        elif "device" in command:
            late = command["device"] == "is late"
            if late:
                self.cache.fence = self.device = LateDevice()
            self.device.is_late = late
            self.say(late=late)
        elif "flush" in command:
            self.say(flushed=self.scheduler.flush_cache())
        elif "abort" in command:
            from sglang.srt.managers.io_struct import AbortReq

            self.scheduler.abort_request(AbortReq(rid=command["abort"]))
            self.say(**self.look())
        elif "output" in command:
            request = self.requests[command["output"]]
            self.say(
                output=list(request.output_ids),
                cached=request.cached_tokens,
                retractions=request.retraction_count,
            )
        elif "interrupt" in command:
            linker = self.cache.linker.cache_linker
            interrupt(linker, command["interrupt"], command["pid"], command["signal"])
            self.say()
        elif "update" in command:
            self.say(updated=self._update(command["update"]))
        else:
            self.say(**self.look())

    def _update(self, version: str | None) -> bool:
        from sglang.srt.managers.io_struct import UpdateWeightFromDiskReqInput

        updater = self.scheduler.weight_updater
        if version is None:
            asked = UpdateWeightFromDiskReqInput(model_path="/nowhere")
            return bool(updater.update_weights_from_disk(asked).success)
        updater.record_weight_version_after_update(version)
        return True

    def start(self, prompts: list[list[int]], options: dict) -> list[str]:
        from sglang.srt.managers.io_struct import TokenizedGenerateReqInput
        from sglang.srt.sampling.sampling_params import SamplingParams

        ids = []
        for prompt, new in zip(prompts, new_tokens(options, prompts), strict=True):
            self._started += 1
            ids.append(f"r{self._started}")
            sampling = SamplingParams(
                max_new_tokens=new, temperature=0.0, ignore_eos=True
            )
            sampling.normalize(None)
            named = {
                field: options[field]
                for field in ("extra_key", "cache_salt", "priority")
                if field in options
            }
            request = TokenizedGenerateReqInput(
                rid=ids[-1],
                input_text="",
                input_ids=array.array("q", prompt),
                input_embeds=None,
                mm_inputs=None,
                sampling_params=sampling,
                return_logprob=False,
                logprob_start_len=-1,
                top_logprobs_num=0,
                token_ids_logprob=None,
                stream=False,
                token_type_ids=None,
                **named,
            )
            self.scheduler.process_input_requests([request])
        return ids

    def run(self) -> tuple[int, float, float]:
        """Steps until nothing is left to do.

        Returns the number of steps, the seconds of the longest step without its forward
        pass, and the longest time in seconds that a step waited for blocks."""
        longest = waited = 0.0
        for steps in range(1, MAX_STEPS):
            before = self._scheduling.seconds
            asked = self._asking.seconds if self._asking else 0.0
            ran = self.step()
            longest = max(longest, self._scheduling.seconds - before)
            if self._asking:
                waited = max(waited, self._asking.seconds - asked)
            if not ran and not self.scheduler.waiting_queue and not self.running():
                return steps, longest, waited
        raise RuntimeError(f"not done after {MAX_STEPS} steps")

    def running(self) -> int:
        """Returns how many requests decode, including those that wait for a page."""
        return len(self.scheduler.running_batch.reqs)

    def step(self) -> bool:
        """Runs one step, and returns whether the engine computed anything."""
        scheduler = self.scheduler
        plan = scheduler.get_next_batch_to_run(
            running_batch=scheduler.running_batch, last_batch=scheduler.last_batch
        )
        scheduler.running_batch = plan.running_batch
        batch = plan.batch_to_run
        scheduler.cur_batch_for_debug = batch
        if batch:
            scheduler.process_batch_result(batch, scheduler.run_batch(batch))
        else:
            scheduler.on_idle()
        scheduler.last_batch = batch
        scheduler.invariant_checker.self_check_during_busy()
        return bool(batch)

    def look(self) -> dict:
        if self.has_pando:
            # Waits for publications, and gives back the locks of unused matches.
            self.cache.drop_unused_matches()
        pool = self.allocator.get_kvcache()
        return {
            "calls": dict(WIRE.calls),
            "spent": WIRE.totals()
            | {
                "scheduling": self._scheduling.seconds,
                "caching": self._caching.seconds,
            },
            "transport": self._transport(),
            "cache": type(self.cache).__name__,
            "available": int(self.allocator.available_size()),
            "evictable": int(self.cache.evictable_size()),
            "protected": int(self.cache.protected_size()),
            "total": int(self.allocator.size),
            "waiting": len(self.scheduler.waiting_queue),
            "running": self.running(),
            "offloads": self._offloads(),
            "leaks": self.scheduler.invariant_checker.count_memory_leak_warnings,
            "key_addresses": _addresses(pool, "k_buffer"),
            "value_addresses": _addresses(pool, "v_buffer"),
            "pid": os.getpid(),
        }

    def _offloads(self) -> int:
        """Returns the number of nodes that are on their way to the store."""
        linker = getattr(self.cache, "linker", None)
        return len(linker.pending_offloads) if linker else 0

    def _transport(self) -> str:
        if not self.has_pando:
            return ""
        from pando_kv.sglang.attachment import session

        return session().transport


def _addresses(pool, name: str) -> list[int]:
    """Returns the addresses of the pool's tensors `name`; none if it lacks them."""
    return [tensor.data_ptr() for tensor in getattr(pool, name, ())]


def new_tokens(options: dict, prompts: list[list[int]]) -> list[int]:
    new = options.get("new", 8)
    return new if isinstance(new, list) else [new] * len(prompts)


class LateDevice:
    """A stand-in for a GPU's queue. All its work is unfinished while `is_late` is true.

    It is also its own moment: now() returns the object itself."""

    unwritten_tokens = 1

    is_late = True

    def now(self):
        return self

    def is_past(self) -> bool:
        return not self.is_late

    def wait(self) -> None:
        assert not self.is_late


if __name__ == "__main__":
    main()
