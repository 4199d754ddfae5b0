"""Measures two vLLMs over the blocks of one pandod: how soon the second engine has the
first token of a prompt that the first engine computed, whether their tokens are equal,
and how much slower the second engine decodes while blocks are copied."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from engines.engine_process import EngineProcess, closing_all
from engines.models import make_model
from engines.vllm import engine as engine_program
from engines.vllm.start import prompt
from rows import Row

REPEATS = 5
TOKENS = 2000  # tokens of a prompt
ANSWER = 32
STEPS = 64
_BLOCKS = {
    "spec_name": "PandoOffloadingSpec",
    "spec_module_path": "pando_kv.vllm.offloading",
}


def engine_rows(
    address: str, devices: list[int], model: str | None, arguments: dict[str, Any]
) -> list[Row]:
    """Returns the rows of two engines, which share the device if `devices` has one
    entry. `arguments` are arguments of vLLM's LLM. Without `model` the engines run a
    small model with random weights. Raises AssertionError if their tokens differ."""
    with tempfile.TemporaryDirectory(prefix="pando-bench-") as scratch:
        folder = Path(scratch)
        given = {
            "model": model or str(make_model(folder / "model")),
            "pando": address,
            "connector": _BLOCKS,
            "enable_prefix_caching": True,
        } | arguments
        pair = [
            EngineProcess(
                Path(engine_program.__file__),
                given,
                folder / f"{name}.log",
                CUDA_VISIBLE_DEVICES=str(device),
            )
            for name, device in zip("ab", [devices[0], devices[-1]], strict=True)
        ]
        with closing_all(pair):
            for number, engine in enumerate(pair):
                engine.ready()
                # The first steps of an engine take longer than the later ones.
                engine.ask(prompts=[prompt(500, seed=9000 + number)], new=4)
            rows = [*_first_tokens(*pair), _slowdown(*pair)]
            for engine in pair:
                engine.close()
    return rows


def _first_tokens(first: EngineProcess, second: EngineProcess) -> list[Row]:
    loaded, computed = [], []
    for repeat in range(REPEATS):
        tokens, others = (prompt(TOKENS, seed=n + repeat) for n in (100, 200))
        wanted = first.ask(prompts=[tokens], new=ANSWER)["outputs"]
        began = second.ask(prompts=[tokens], new=1)
        assert began["cached"][0] > TOKENS // 2, "the second engine found too little"
        assert second.ask(prompts=[tokens], new=ANSWER)["outputs"] == wanted
        loaded.append(began["seconds"])
        computed.append(second.ask(prompts=[others], new=1)["seconds"])
    return [
        Row(
            f"first token of {TOKENS:,} tokens that the other engine computed; "
            "floor: computed anew",
            1e3 * median(loaded),
            "ms",
            1e3 * median(computed),
        )
    ]


def _slowdown(first: EngineProcess, second: EngineProcess) -> Row:
    """Times a decoding step of the second engine, alone and while the engine loads
    blocks."""
    stored = [prompt(TOKENS, seed=300 + n) for n in range(REPEATS)]
    first.ask(prompts=stored, new=1)
    second.ask(start=[prompt(100, seed=400)], new=4 * STEPS)
    second.ask(step=8)
    alone = _seconds_a_step(second)
    second.ask(start=stored, new=1)
    beside = _seconds_a_step(second)
    second.ask(step=4 * STEPS)
    return Row(
        f"a step that decodes while {REPEATS} prompts are loaded; floor: alone",
        1e3 * beside,
        "ms",
        1e3 * alone,
    )


def _seconds_a_step(engine: EngineProcess) -> float:
    begin = time.perf_counter()
    engine.ask(step=STEPS)
    return (time.perf_counter() - begin) / STEPS
