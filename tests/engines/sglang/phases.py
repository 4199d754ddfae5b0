"""Moments of PandoLinker's work, at which a test stops, kills or wakes pandod."""

from __future__ import annotations

import os
import signal
from typing import Any

# For each phase, the part of the linker and the method whose call begins the phase.
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
    """Sends signal `name` to process `pid` once, when the phase begins next."""
    part, method = PHASES[phase]
    owner = getattr(linker, part)
    original = getattr(owner, method)

    def interrupted(*given: Any, **named: Any) -> Any:
        setattr(owner, method, original)
        os.kill(pid, getattr(signal, name))
        return original(*given, **named)

    setattr(owner, method, interrupted)
