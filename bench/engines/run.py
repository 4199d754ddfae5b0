"""Measures the costs and savings of Pando for two engines of one kind.

usage: run.py [--one-in N] sglang|vllm|blocks

Sends the requests of recorded conversations to two engines in turn: first to two
engines that share a pandod, then to two engines with prefix caches of their own. Both
pairs have the same memory for KV in all: Pando's pool is as large as the two engines'
own caches together. With `blocks`, the first pair is two vLLMs over the block memory of
a pandod; the second pair is two vLLMs with vLLM's own CPU offloading, each with half as
much memory.

The model is small, has random weights and runs on CPUs, so the times hold for this
machine only. A step of a real model is longer, so Pando saves more time there, and its
costs are a smaller share of the whole. The counts are those that a real model would
have.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import packages_distributions, version
from pathlib import Path
from statistics import median

import ways
from conversations import Request, read
from engines.engine_process import EngineProcess, closing_all
from engines.models import make_model
from engines.sglang.start import prompt
from table import show

LONG_PROMPT = 1500
REPEATS = 5


@dataclass
class Measured:
    requests: int = 0
    prompt_tokens: int = 0
    cached: int = 0
    seconds: float = 0.0
    spent: dict[str, float] = field(default_factory=dict)
    """The work that both engines report of themselves, summed up by its name."""
    first_tokens: list[float] = field(default_factory=list)
    outputs: list[list[int]] = field(default_factory=list)

    @property
    def first_token(self) -> float:
        return median(self.first_tokens)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("engine", choices=ways.WAYS)
    parser.add_argument(
        "--one-in", type=int, default=20, help="conversations taken; default: 20"
    )
    options = parser.parse_args()
    requests = read(options.one_in)
    measured = {}
    with tempfile.TemporaryDirectory() as scratch:
        model = make_model(Path(scratch, "model"))
        for number, way in enumerate(ways.WAYS[options.engine]):
            folder = Path(scratch, str(number))
            folder.mkdir()
            with way.engines(model, folder) as engines:
                measured[way.name] = measure(engines, requests)
    outputs = [m.outputs for m in measured.values()]
    if any(others != outputs[0] for others in outputs):
        sys.exit("the answers with and without Pando differ")
    # vLLM's package for CPUs has another name than its module.
    package = packages_distributions()[ways.WAYS[options.engine][0].kind][0]
    print(
        f"{package} {version(package)}, torch {version('torch')}: "
        f"{len(requests)} requests, {sum(len(r.prompt) for r in requests):,} tokens\n"
    )
    show(measured)


def measure(engines: Sequence[EngineProcess], requests: Sequence[Request]) -> Measured:
    measured = Measured()
    with closing_all(engines):
        for number, engine in enumerate(engines):
            # The first steps of an engine take longer than the later ones.
            engine.ask(prompts=[prompt(500, seed=9000 + number)], new=4)
        serve(engines, requests, measured)
        for repeat in range(REPEATS):
            tokens = prompt(LONG_PROMPT, seed=9100 + repeat)
            engines[0].ask(prompts=[tokens], new=1)
            again = engines[1].ask(prompts=[tokens], new=1)
            measured.first_tokens.append(again["seconds"])
    return measured


def serve(
    engines: Sequence[EngineProcess], requests: Sequence[Request], measured: Measured
) -> None:
    """Sends each engine its half of the requests at once and adds up what the engines
    report in `measured`."""
    before = [engine.ask(look=True)["spent"] for engine in engines]
    begin = time.perf_counter()
    halves = [requests[side :: len(engines)] for side in range(len(engines))]
    for engine, half in zip(engines, halves, strict=True):
        engine.send(prompts=[r.prompt for r in half], new=[r.new for r in half])
    answers = [engine.answer() for engine in engines]
    measured.seconds = time.perf_counter() - begin
    measured.requests = len(requests)
    measured.prompt_tokens = sum(len(request.prompt) for request in requests)
    for was, answer in zip(before, answers, strict=True):
        measured.cached += sum(answer["cached"])
        measured.outputs += answer["outputs"]
        for name, value in answer["spent"].items():
            spent = value - was[name]
            measured.spent[name] = measured.spent.get(name, 0.0) + spent


if __name__ == "__main__":
    main()
