"""Random programs of requests to engines that share one memory."""

from __future__ import annotations

import random

from engines.vllm.offloading.engine_alone import EngineAlone
from engines.vllm.offloading.stopped_server import StoppableServer
from engines.vllm.start import prompt
from eventually import eventually

FAMILIES = 4


def any_prompt(choose: random.Random) -> list[int]:
    """Returns a random prompt. Prompts of one family share their beginning."""
    family = choose.randrange(FAMILIES)
    tokens = prompt(600, seed=family)[: choose.randrange(1, 600)]
    if choose.random() < 0.5:
        tokens += prompt(choose.randrange(1, 200), seed=100 + choose.randrange(3))
    return tokens


def run_program(
    engines: list[EngineAlone],
    choose: random.Random,
    name: str,
    server: StoppableServer | None = None,
    steps: int = 60,
) -> int:
    """Runs a random program until all its requests end, and returns how many tokens
    were found.

    Each step of each engine checks what it reads. If `server` is given, the program
    stops or restarts it now and then."""
    live: list[list[str]] = [[] for _ in engines]
    faults = ["stand still", "restart", "go on"] if server is not None else []
    for n in range(steps):
        which = choose.randrange(len(engines))
        engine, names = engines[which], live[which]
        what = choose.choices(
            ["step", "add", "abort", "reset", "forget", *faults],
            [30, 8, 2, 0.5, 2, 1, 0.5, 3][: 5 + len(faults)],
        )[0]
        if what == "add":
            names.append(f"{name}.{n}")
            salt = choose.choice([None, None, "salt"])
            new = choose.randrange(1, 40)
            engine.add(names[-1], any_prompt(choose), new=new, cache_salt=salt)
        elif what == "abort" and names:
            engine.abort(names.pop(choose.randrange(len(names))))
        elif what == "reset":
            # vLLM asserts before a reset that a step has sent what an earlier abort or
            # reset left over.
            engine.step()
            engine.reset()
        elif what == "forget":
            engine.forget()
        elif what == "stand still" and not server.is_stopped:
            server.stop()
        elif what == "restart":
            server.restart()
        elif what == "go on":
            server.go_on()
        else:
            engine.step()
    if server is not None:
        server.go_on()
        for client in (client for engine in engines for client in engine.clients):
            eventually(lambda client=client: not client.is_away)
    for engine in engines:
        engine.run()
        engine.forget()
    found = sum(sum(engine.found.values()) for engine in engines)
    for engine in engines:
        engine.found.clear()
    return found
