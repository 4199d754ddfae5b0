"""Two engines of one kind over one pandod, and one by itself.

usage: demo.py sglang|vllm

Both answer questions about one long document, in turn. The third engine, without Pando,
answers what the second does: its own cache knows only that. Times are those of the first
token, for a small model with random weights on a CPU; what is cached, and each token,
is what a real one would have.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

from engines.engine_process import EngineProcess, closing_all
from engines.models import VOCABULARY, make_model
from engines.start import serve, start

DOCUMENT_TOKENS = 1000
QUESTION_TOKENS = 30
ANSWER_TOKENS = 16
QUESTIONS = 8


def main() -> None:
    (kind,) = sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        model = make_model(folder / "model")
        server = serve(kind, folder)
        try:
            engines = [
                start(kind, "a", model, server, folder),
                start(kind, "b", model, server, folder),
                start(kind, "alone", model, None, folder),
            ]
            with closing_all(engines):
                show(kind, *engines)
                for engine in engines:
                    engine.close()
        finally:
            server.close()


def show(
    kind: str, first: EngineProcess, second: EngineProcess, alone: EngineProcess
) -> None:
    for engine in (first, second, alone):
        engine.ready()
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
        token = engine.ask(prompts=[prompt], new=1)
        answer = engine.ask(prompts=[prompt], new=ANSWER_TOKENS)
        line = f"{number:<10}{'AB'[number % 2]:>10}{len(prompt):>10}{token['cached'][0]:>12}"
        if engine is second:
            bare = alone.ask(prompts=[prompt], new=1)
            expected = alone.ask(prompts=[prompt], new=ANSWER_TOKENS)
            if answer["outputs"] != expected["outputs"]:
                sys.exit(f"question {number}: the answers differ")
            line += f"{bare['cached'][0]:>16}{_ms(token):>12}{_ms(bare):>12}"
            if number == 1:
                times = [token["seconds"], bare["seconds"]]
        else:
            line += f"{'':>16}{_ms(token):>12}"
        print(line)
    print(
        f"\nB's answers are those of the engine without Pando, token for token. Its first "
        f"question,\nwhose document A had computed: {times[1] / times[0]:.1f} times as fast."
    )


def _warm_up(*engines: EngineProcess) -> None:
    """The first steps of an engine take longer than those that follow."""
    for number, engine in enumerate(engines):
        engine.ask(prompts=[_tokens(400, seed=1000 + number)], new=4)


def _ms(answer: dict) -> str:
    return f"{answer['seconds'] * 1e3:.0f} ms"


def _tokens(count: int, seed: int) -> list[int]:
    choose = random.Random(seed)
    return [choose.randrange(3, VOCABULARY) for _ in range(count)]


if __name__ == "__main__":
    main()
