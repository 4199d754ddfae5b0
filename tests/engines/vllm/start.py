"""Functions that start a vLLM for a test."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from engines.engine_process import EngineProcess
from engines.models import VOCABULARY
from engines.vllm.pool import BLOCK_TOKENS, MODEL, PAGE_FORMAT
from pandod_process import Pandod

SCRIPT = Path(__file__).parent / "engine.py"


def start_engine(
    name: str,
    model: Path,
    pandod: Pandod | None,
    folder: Path,
    connector: dict[str, Any] | None = None,
    **arguments: Any,
) -> EngineProcess:
    """Starts engine.py, and does not wait until it is ready.

    `connector` are options of Pando, and `arguments` are arguments of vLLM's LLM."""
    given = {
        "model": str(model),
        "pando": pandod.address if pandod is not None else None,
        "served_model_name": MODEL,
        "connector": {"pando_page_format": PAGE_FORMAT} | (connector or {}),
    }
    return EngineProcess(SCRIPT, given | arguments, folder / f"{name}.log")


def prompt(tokens: int, seed: int) -> list[int]:
    choose = random.Random(seed)
    return [choose.randrange(3, VOCABULARY) for _ in range(tokens)]


def whole_blocks(tokens: int) -> int:
    return tokens // BLOCK_TOKENS * BLOCK_TOKENS
