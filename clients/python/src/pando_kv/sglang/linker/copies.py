"""Copying between pages on the device and their blocks."""

from __future__ import annotations

import ctypes
from typing import Any, Protocol

from pando_kv.sglang.linker.pages import Fragments


class Copies(Protocol):
    """One for each thread that copies. Both return when the bytes are there."""

    def to_device(self, fragments: Fragments) -> None: ...

    def to_blocks(self, fragments: Fragments) -> None: ...


class HostCopies:
    """Of an engine that computes on the CPU."""

    def to_device(self, fragments: Fragments) -> None:
        _copy(fragments.device, fragments.block, fragments.sizes)

    def to_blocks(self, fragments: Fragments) -> None:
        _copy(fragments.block, fragments.device, fragments.sizes)


def make_copies(device: str) -> Copies:
    """Raises ValueError for a device to which nothing here can copy."""
    if device == "cpu":
        return HostCopies()
    raise ValueError(
        f"PandoLinker copies to engines on the CPU, and this one is on '{device}'"
    )


def _copy(targets: Any, sources: Any, sizes: Any) -> None:
    for target, source, size in zip(
        targets.tolist(), sources.tolist(), sizes.tolist(), strict=True
    ):
        ctypes.memmove(target, source, size)
