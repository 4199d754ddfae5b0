"""Random programs of engines that share one memory."""

from __future__ import annotations

import random

from engines.vllm.offloading.engine_alone import EngineAlone
from engines.vllm.start import prompt

FAMILIES = 4


def any_prompt(choose: random.Random) -> list[int]:
    """Two of a family begin alike."""
    family = choose.randrange(FAMILIES)
    tokens = prompt(600, seed=family)[: choose.randrange(1, 600)]
    if choose.random() < 0.5:
        tokens += prompt(choose.randrange(1, 200), seed=100 + choose.randrange(3))
    return tokens


def run_program(
    engines: list[EngineAlone], choose: random.Random, name: str, steps: int = 60
) -> None:
    """Each step of each engine checks what it reads; ends when all requests have."""
    live: list[list[str]] = [[] for _ in engines]
    for n in range(steps):
        which = choose.randrange(len(engines))
        engine, names = engines[which], live[which]
        what = choose.choices(
            ["step", "add", "abort", "reset", "forget"], [30, 8, 2, 0.5, 2]
        )[0]
        if what == "add":
            names.append(f"{name}.{n}")
            salt = choose.choice([None, None, "salt"])
            new = choose.randrange(1, 40)
            engine.add(names[-1], any_prompt(choose), new=new, cache_salt=salt)
        elif what == "abort" and names:
            engine.abort(names.pop(choose.randrange(len(names))))
        elif what == "reset":
            engine.reset()
        elif what == "forget":
            engine.forget()
        else:
            engine.step()
    for engine in engines:
        engine.run()
