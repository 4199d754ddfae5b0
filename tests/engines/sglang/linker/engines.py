"""Starts of SGLang with PandoLinker, or with SGLang's own cache alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engines.engine_process import EngineProcess
from engines.sglang.odd_models import MODELS
from pando_kv import Operator
from pandod_process import Pandod

HERE = Path(__file__).resolve().parents[1]

# Milliseconds that a step waits for pandod. They are so many that a step does not take
# pandod for away while tests share two cores. test_phases.py uses the default wait.
PATIENT_MS = 5000


class Engines:
    def __init__(self, zygote: str, models: dict[str, Path], folder: Path) -> None:
        self._zygote = zygote
        self._models = models
        self._folder = folder

    def start(
        self,
        name: str,
        model: str,
        pandod: Pandod | None = None,
        *,
        wait_ms: float | None = PATIENT_MS,
        **arguments: Any,
    ) -> EngineProcess:
        """Starts an engine, and does not wait until it is ready.

        `arguments` are fields of SGLang's ServerArgs."""
        environment = {"SGLANG_ENABLE_STRICT_MEM_CHECK_DURING_BUSY": "1"}
        if pandod is not None:
            environment["PANDO_ADDRESS"] = pandod.address
            arguments = linker_arguments(wait_ms) | arguments
        if model in MODELS:
            arguments = {"load_format": "dummy"} | arguments
        given = {"model_path": str(self._models[model])} | arguments
        return EngineProcess(
            HERE / "forked_engine.py",
            {
                "zygote": self._zygote,
                "arguments": given,
                "environment": environment,
            },
            self._folder / f"{name}.log",
        )


def linker_arguments(wait_ms: float | None) -> dict[str, Any]:
    """Returns the fields of ServerArgs that choose PandoLinker."""
    chosen: dict[str, Any] = {
        "linker": "PandoLinker",
        "linker_module_path": "pando_kv.sglang.linker",
    }
    if wait_ms is not None:
        chosen["linker_extra_config"] = {"wait_ms": wait_ms}
    return {
        "enable_unified_cache_external_linker": True,
        "unified_cache_external_linker_backend": "dynamic",
        "unified_cache_external_linker_config": chosen,
    }


def nothing_is_held(operator: Operator) -> bool:
    """Returns whether no block is locked, reserved or in quarantine."""
    blocks = operator.stats().blocks
    held = (blocks.protected_blocks, blocks.reserved_blocks, blocks.quarantined_blocks)
    return held == (0, 0, 0)


def finds(engine: EngineProcess, tokens: list[int], expected: list[list[int]]) -> bool:
    """Returns whether the engine finds tokens of the prompt in the store.

    Flushes the engine's own cache first. Fails if the output is not `expected`."""
    assert engine.ask(flush=True)["flushed"]
    answer = engine.ask(prompts=[tokens], new=len(expected[0]))
    assert answer["aborted"] == [False]
    assert answer["outputs"] == expected
    engine.ask(step=2)
    return answer["cached"][0] > 0
