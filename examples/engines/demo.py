"""Runs two engines of one kind over one pandod, and one by itself.

usage: demo.py sglang|vllm

The two engines over pandod answer questions about one long document, in turn. The third
engine, without Pando, answers the second engine's questions, so its own cache holds
only these. The times are those of the first token, for a small model with random
weights on a CPU. A real model would have the same cached tokens, and the engines would
agree on each token.
"""

from __future__ import annotations

import random
import signal
import sys
import tempfile
from pathlib import Path

from engines.models import VOCABULARY, make_model
from kinds import KINDS
from metrics_page import free_address
from servers import Answer, Engine, Servers

DOCUMENT_TOKENS = 1000
QUESTION_TOKENS = 30
ANSWER_TOKENS = 16
QUESTIONS = 8
POOL_BYTES = "32MiB"


def main() -> None:
    (kind,) = sys.argv[1:]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        model = make_model(folder / "model")
        servers = Servers(KINDS[kind], model, folder)
        port = int(free_address(3).rpartition(":")[2])
        with (
            servers.pandod(POOL_BYTES),
            servers.sharing(2, port) as pair,
            servers.alone(port + 2) as alone,
        ):
            show(kind, *pair, alone)


def show(kind: str, first: Engine, second: Engine, alone: Engine) -> None:
    for engine in (first, second, alone):
        engine.wait_until_healthy()
    print(f"\n`pando run` has run:\n{first.first_lines(2)}\n")
    _warm_up(first, second, alone)
    document = _tokens(DOCUMENT_TOKENS, seed=1)
    print(
        f"Two {kind} engines share one cache; a document of {DOCUMENT_TOKENS} tokens.\n"
    )
    print(f"{'':10}{'tokens of the prompt':>32}{'cached':>16}{'first token':>24}")
    print(
        f"{'question':<10}{'engine':>10}{'all':>10}{'cached':>12}{'without Pando':>16}"
        f"{'with':>12}{'without':>12}"
    )
    times = [0.0, 0.0]
    for number in range(QUESTIONS):
        prompt = document + _tokens(QUESTION_TOKENS, seed=100 + number)
        engine = (first, second)[number % 2]
        token = engine.ask(prompt, 1)
        answer = engine.ask(prompt, ANSWER_TOKENS)
        line = f"{number:<10}{'AB'[number % 2]:>10}{len(prompt):>10}{token.cached:>12}"
        if engine is second:
            bare = alone.ask(prompt, 1)
            expected = alone.ask(prompt, ANSWER_TOKENS)
            if answer.tokens != expected.tokens:
                sys.exit(f"question {number}: the answers differ")
            line += f"{bare.cached:>16}{_ms(token):>12}{_ms(bare):>12}"
            if number == 1:
                times = [token.seconds, bare.seconds]
        else:
            line += f"{'':>16}{_ms(token):>12}"
        print(line)
    print(
        f"\nB's answers are those of the engine without Pando, token for token. Its first "
        f"question,\nwhose document A had computed: {times[1] / times[0]:.1f} times as fast."
    )


def _warm_up(*engines: Engine) -> None:
    """Takes the first steps of the engines, which are longer than the later ones."""
    for number, engine in enumerate(engines):
        engine.ask(_tokens(400, seed=1000 + number), 4)


def _ms(answer: Answer) -> str:
    return f"{answer.seconds * 1e3:.0f} ms"


def _tokens(count: int, seed: int) -> list[int]:
    choose = random.Random(seed)
    return [choose.randrange(3, VOCABULARY) for _ in range(count)]


if __name__ == "__main__":
    main()
