"""A program that runs mini-SGLang's real LLM, scheduler and engine on a CPU.

usage: engine.py '{"sources": folder, "model_path": ..., "pando": true, ...}'

The program reads commands as lines of JSON and answers each with one line:
{"prompts": [[ids]], "new": n}   runs the prompts to their end
{"start": [[ids]], "new": n}     queues the prompts
{"step": n}                      runs n steps
{"abort": uid}                   aborts a request
{"output": uid}                  returns the tokens of a request so far
{"look": true}                   returns counts of pages, calls and tensor addresses
{"idle": true}                   does what the LLM does when no request is left
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))
from engines.meters import WireMeter
from engines.minisgl.cpu import stand_in_for_the_gpu, stand_in_for_the_kernels

WIRE = WireMeter()

ARGUMENTS = {
    "page_size": 16,
    "num_page_override": 511,
    "max_running_req": 16,
    "max_extend_tokens": 256,
    "attention_backend": "cpu",
    "cuda_graph_bs": [],
    "max_seq_len_override": 4096,
}


def main() -> None:
    given = json.loads(sys.argv[1])
    sys.path.insert(0, given.pop("sources"))
    stand_in_for_the_gpu()
    stand_in_for_the_kernels()
    if given.pop("pando"):
        from pando_kv.minisgl import use_pando

        use_pando()
    engine = Engine(ARGUMENTS | given)
    engine.say(ready=True)
    for line in sys.stdin:
        engine.obey(json.loads(line))


class Engine:
    def __init__(self, arguments: dict[str, Any]) -> None:
        import torch
        from minisgl.engine.config import EngineConfig
        from minisgl.llm import LLM

        # Several engines run on this machine, so each derives a port from its pid.
        port = 20000 + os.getpid() % 20000
        EngineConfig.distributed_addr = property(lambda _: f"tcp://127.0.0.1:{port}")
        self.torch = torch
        self.llm = LLM(dtype=torch.float32, **arguments)
        self.cached: dict[int, int] = {}
        self._data: Any = None
        self._remember_matches()

    def _remember_matches(self) -> None:
        manager = self.llm.cache_manager
        match = manager.match_req

        def remember(req: Any) -> Any:
            result = match(req)
            self.cached[req.uid] = result.cuda_handle.cached_len
            return result

        manager.match_req = remember

    def say(self, **answer: Any) -> None:
        print("@@" + json.dumps(answer), flush=True)

    def obey(self, command: dict[str, Any]) -> None:
        if "prompts" in command:
            self.cached.clear()
            outputs = self.llm.generate(command["prompts"], self._sampling(command))
            self.say(
                outputs=[output["token_ids"] for output in outputs],
                cached=[self.cached[uid] for uid in range(len(outputs))],
            )
        elif "start" in command:
            self.llm.status_map = {}
            self.llm.counter = 0
            sampling = self._sampling(command)
            self.llm.pending_requests = [(p, sampling) for p in command["start"]]
            self.say(started=True)
        elif "step" in command:
            self._step(command["step"])
            self.say(**self.look())
        elif "abort" in command:
            from minisgl.message import AbortBackendMsg

            with self.torch.inference_mode():
                self.llm._process_one_msg(AbortBackendMsg(uid=command["abort"]))
            self.say(**self.look())
        elif "output" in command:
            self.say(output=self.llm.status_map[command["output"]].output_ids)
        elif "idle" in command:
            self.llm.run_when_idle()
            self.say(**self.look())
        else:
            self.say(**self.look())

    def _step(self, steps: int) -> None:
        from minisgl.llm.llm import RequestAllFinished

        with self.torch.inference_mode(), contextlib.suppress(RequestAllFinished):
            for _ in range(steps):
                self._data = self.llm.overlap_loop(self._data)

    def look(self) -> dict[str, Any]:
        manager = self.llm.cache_manager
        cache = self.llm.engine.kv_cache
        layers = range(cache.num_layers)
        return {
            "pid": os.getpid(),
            "pages": manager.num_pages,
            "free": len(manager.free_slots),
            "calls": dict(WIRE.calls),
            "addresses": [
                of(layer).data_ptr()
                for layer in layers
                for of in (cache.k_cache, cache.v_cache)
            ],
        }

    def _sampling(self, command: dict[str, Any]) -> Any:
        from minisgl.core import SamplingParams

        return SamplingParams(max_tokens=command.get("new", 8), ignore_eos=True)


if __name__ == "__main__":
    main()
