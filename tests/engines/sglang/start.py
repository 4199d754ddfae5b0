"""Functions that start an SGLang for a test."""

from __future__ import annotations

import importlib.util
import os
import random
from pathlib import Path
from typing import Any

from engines.engine_process import EngineProcess
from engines.models import VOCABULARY
from pandod_process import Pandod

PAGE_TOKENS = 16
HERE = Path(__file__).parent


def start_engine(
    name: str,
    model: Path,
    pandod: Pandod | None,
    folder: Path,
    *,
    environment: dict[str, str] | None = None,
    **arguments: Any,
) -> EngineProcess:
    """Starts engine.py, and does not wait until it is ready.

    `arguments` are fields of SGLang's ServerArgs."""
    environment = (environment or {}) | {
        "SGLANG_ENABLE_STRICT_MEM_CHECK_DURING_BUSY": "1",
        "SGLANG_DISABLED_MODEL_ARCHS": ",".join(models_but_for("llama")),
    }
    if pandod is not None:
        arguments = {"radix_cache_backend": "pando"} | arguments
        environment["PANDO_ADDRESS"] = pandod.address
    return EngineProcess(
        HERE / "engine.py",
        {"model_path": str(model)} | arguments,
        folder / f"{name}.log",
        **environment,
    )


def start_full_engine(
    name: str,
    model: Path,
    pandod: Pandod,
    folder: Path,
    *,
    environment: dict[str, str] | None = None,
    **arguments: Any,
) -> EngineProcess:
    """Starts SGLang's Engine, whose schedulers are separate processes."""
    cpus = sorted(os.sched_getaffinity(0))
    ranks = [str(cpus[n % len(cpus)]) for n in range(arguments.get("tp_size", 1))]
    return EngineProcess(
        HERE / "full_engine.py",
        {"model_path": str(model)} | arguments,
        folder / f"{name}.log",
        PANDO_ADDRESS=pandod.address,
        SGLANG_DISABLED_MODEL_ARCHS=",".join(models_but_for("llama")),
        # Without this variable, SGLang needs a NUMA node for each rank.
        SGLANG_CPU_OMP_THREADS_BIND="|".join(ranks),
        # Otherwise each rank compiles a function for a minute.
        TORCH_COMPILE_DISABLE="1",
        **(environment or {}),
    )


def models_but_for(*kept: str) -> list[str]:
    """Returns SGLang's model modules except `kept`, for SGLANG_DISABLED_MODEL_ARCHS.

    Without that variable SGLang imports all models, which is half of its start time."""
    (package,) = importlib.util.find_spec("sglang").submodule_search_locations
    modules = Path(package, "srt/models").glob("*.py")
    return [module.stem for module in modules if module.stem not in (*kept, "__init__")]


def prompt(tokens: int, seed: int) -> list[int]:
    choose = random.Random(seed)
    return [choose.randrange(3, VOCABULARY) for _ in range(tokens)]


def whole_pages(tokens: int) -> int:
    return tokens // PAGE_TOKENS * PAGE_TOKENS
