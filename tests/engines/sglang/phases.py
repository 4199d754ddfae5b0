"""Stops, kills or wakes pandod at a chosen moment of PandoLinker's work."""

from __future__ import annotations

import os
import signal
from typing import Any

# The part of the linker, and its method that is about to be called.
PHASES = {
    "lookup": ("_store", "lookup"),
    "acquire": ("_store", "acquire"),
    "start of a load": ("_loader", "start"),
    "copy of a load": ("_loader", "_copy"),
    "release": ("_store", "_give_back"),
    "offer": ("_offloader", "offer"),
    "reserve": ("_store", "reserve"),
    "copy to blocks": ("_offloader", "_copy"),
    "publish": ("_store", "publish"),
    "touch": ("_offloader", "_touch"),
}


def interrupt(linker: Any, phase: str, pid: int, name: str) -> None:
    """Sends a signal, once, when the phase begins next."""
    part, method = PHASES[phase]
    owner = getattr(linker, part)
    original = getattr(owner, method)

    def interrupted(*given: Any, **named: Any) -> Any:
        setattr(owner, method, original)
        os.kill(pid, getattr(signal, name))
        return original(*given, **named)

    setattr(owner, method, interrupted)
