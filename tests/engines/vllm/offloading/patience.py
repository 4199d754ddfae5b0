"""Long waits for calls, with which the blocks that an engine finds do not depend on the
speed of the machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

LONG = 1000.0
# Longer than any call takes in these tests.
CALL_SECONDS = 5.0


def be_patient(
    replace: Callable[[Any, str, Any], Any] = setattr, seconds: float = CALL_SECONDS
) -> None:
    """Lets each call take `seconds` in engines that are made from now on.

    `replace` sets an attribute of a module, and may undo that later."""
    from pando_kv.vllm.offloading import spec, step_access

    replace(spec, "CALL_SECONDS", seconds)
    replace(step_access, "_STEP_SECONDS", LONG)
