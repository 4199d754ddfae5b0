"""What Pando costs and saves two engines of one kind.

usage: run.py sglang|vllm

Two engines that share a pandod, then two with the engine's own prefix caches, on the same
trace: conversations whose turns change engines. A small model with random weights on CPUs:
the times are this machine's, and a step of a real model is longer, so that what is saved
is more and what is spent is less of the whole. The counts are what a real model would have.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from statistics import median

from engines.engine_process import EngineProcess, closing_all
from engines.models import make_model
from engines.sglang.start import prompt
from engines.start import serve, start

CONVERSATIONS = 6
TURNS = 6
SYSTEM_TOKENS = 400
TURN_TOKENS = 60
ANSWER_TOKENS = 20
LONG_PROMPT = 1500
REPEATS = 5


@dataclass
class Measured:
    requests: int = 0
    cached: int = 0
    seconds: float = 0.0
    calls: float = 0.0
    bytes: float = 0.0
    seconds_in_calls: float = 0.0
    seconds_scheduling: float = 0.0
    seconds_caching: float | None = None
    first_tokens: list[float] = field(default_factory=list)
    outputs: list[list[int]] = field(default_factory=list)


def main() -> None:
    (kind,) = sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        model = make_model(folder / "model")
        server = serve(kind, folder)
        try:
            shared = measure(
                [start(kind, name, model, server, folder) for name in "ab"]
            )
        finally:
            server.close()
        own = measure([start(kind, name, model, None, folder) for name in "cd"])
    if shared.outputs != own.outputs:
        sys.exit("the answers with and without Pando differ")
    show(kind, shared, own)


def measure(engines: list[EngineProcess]) -> Measured:
    measured = Measured()
    with closing_all(engines):
        for engine in engines:
            engine.ready()
        for number, engine in enumerate(engines):
            engine.ask(prompts=[prompt(500, seed=9000 + number)], new=4)
        before = [engine.ask(look=True) for engine in engines]
        converse(engines, measured)
        after = [engine.ask(look=True) for engine in engines]
        for was, is_now in zip(before, after, strict=True):
            measured.seconds_scheduling += is_now["scheduling"] - was["scheduling"]
            if "caching" in is_now:
                spent = is_now["caching"] - was["caching"]
                measured.seconds_caching = (measured.seconds_caching or 0.0) + spent
            measured.calls += is_now["wire"]["calls"] - was["wire"]["calls"]
            measured.bytes += is_now["wire"]["bytes"] - was["wire"]["bytes"]
            spent = is_now["wire"]["seconds"] - was["wire"]["seconds"]
            measured.seconds_in_calls += spent
        for repeat in range(REPEATS):
            tokens = prompt(LONG_PROMPT, seed=9100 + repeat)
            engines[0].ask(prompts=[tokens], new=1)
            again = engines[1].ask(prompts=[tokens], new=1)
            measured.first_tokens.append(again["seconds"])
    return measured


def converse(engines: list[EngineProcess], measured: Measured) -> None:
    """Both engines at once, each with half of the conversations; these change sides
    with each turn."""
    system = prompt(SYSTEM_TOKENS, seed=1)
    histories = [system + prompt(TURN_TOKENS, seed=2 + n) for n in range(CONVERSATIONS)]
    begin = time.perf_counter()
    for turn in range(TURNS):
        sides = [range(side, CONVERSATIONS, 2) for side in range(2)]
        for side, numbers in enumerate(sides):
            engine = engines[(side + turn) % 2]
            engine.send(prompts=[histories[n] for n in numbers], new=ANSWER_TOKENS)
        for side, numbers in enumerate(sides):
            answer = engines[(side + turn) % 2].answer()
            measured.cached += sum(answer["cached"])
            measured.requests += len(numbers)
            for n, output in zip(numbers, answer["outputs"], strict=True):
                histories[n] = histories[n] + output
                histories[n] += prompt(TURN_TOKENS, seed=100 * turn + n)
    measured.seconds = time.perf_counter() - begin
    measured.outputs = histories


def show(kind: str, shared: Measured, own: Measured) -> None:
    package = "sglang" if kind == "sglang" else "vllm"
    versions = f"{package} {version(package)}, torch {version('torch')}"
    print(f"{versions}; {shared.requests} requests\n")
    print(f"{'':58}{'Pando':>12}{'own caches':>12}")

    def row(name: str, of: object, form: str = "{:.1f}") -> None:
        values = [form.format(of(measured)) for measured in (shared, own)]
        print(f"{name:58}{values[0]:>12}{values[1]:>12}")

    each = shared.requests
    row("tokens from the cache", lambda m: m.cached, "{:,}")
    row("requests a second, two engines", lambda m: m.requests / m.seconds, "{:.2f}")
    row(
        f"first token of {LONG_PROMPT} tokens that the other computed, ms",
        lambda m: 1e3 * median(m.first_tokens),
    )
    row(
        "the engine's scheduler, ms a request",
        lambda m: 1e3 * m.seconds_scheduling / each,
    )
    if shared.seconds_caching is not None and own.seconds_caching is not None:
        row(
            "of it in the prefix cache: match, insert, evict, ms a request",
            lambda m: 1e3 * m.seconds_caching / each,
            "{:.2f}",
        )
        ratio = shared.seconds_caching / own.seconds_caching
        print(f"{'':58}{ratio:>11.2f} x")
    row(
        "of it in calls to pandod, ms a request",
        lambda m: 1e3 * m.seconds_in_calls / each,
    )
    row("calls to pandod a request", lambda m: m.calls / each)
    row("bytes to and from pandod a request", lambda m: m.bytes / each, "{:,.0f}")


if __name__ == "__main__":
    main()
