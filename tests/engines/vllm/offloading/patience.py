"""An engine that waits for a busy machine: what it finds then does not depend on time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

LONG = 1000.0
# More than any call of these tests takes.
CALL_SECONDS = 5.0


def be_patient(
    replace: Callable[[Any, str, Any], Any] = setattr, seconds: float = CALL_SECONDS
) -> None:
    """For engines that are made from now on, whose calls may take so many seconds;
    `replace` may undo it later."""
    from pando_kv.vllm.offloading import spec, step_access

    replace(spec, "CALL_SECONDS", seconds)
    replace(step_access, "_STEP_SECONDS", LONG)
