"""Copying between pages on the device and their blocks."""

from __future__ import annotations

import logging
import weakref
from typing import Any, Protocol

from pando_kv import _native
from pando_kv.blocks import BlockMemory
from pando_kv.sglang.linker.pages import Fragments

_log = logging.getLogger("pando_kv.sglang")


class Copies(Protocol):
    """One for each thread that copies. Copies return when the bytes are there."""

    def to_device(self, fragments: Fragments) -> None: ...

    def to_blocks(self, fragments: Fragments) -> None: ...


class HostCopies:
    """For an engine that computes on the CPU."""

    def to_device(self, fragments: Fragments) -> None:
        _native.copy(fragments.device, fragments.block, fragments.sizes)

    def to_blocks(self, fragments: Fragments) -> None:
        _native.copy(fragments.block, fragments.device, fragments.sizes)


class CudaCopies:
    """For an engine on a GPU: its copy engines do the work, on a stream of its own."""

    def __init__(self, device: int) -> None:
        self._copier = _native.CudaCopier(device)

    def to_device(self, fragments: Fragments) -> None:
        self._copy(fragments.device, fragments.block, fragments.sizes, to_device=True)

    def to_blocks(self, fragments: Fragments) -> None:
        self._copy(fragments.block, fragments.device, fragments.sizes, to_device=False)

    def _copy(self, targets: Any, sources: Any, sizes: Any, *, to_device: bool) -> None:
        self._copier.copy(targets, sources, sizes, to_device)


def make_copies(device: Any) -> Copies:
    """`device` is a torch device. Raises ValueError for one to which nothing here can
    copy."""
    if device.type == "cpu":
        return HostCopies()
    if device.type == "cuda":
        return CudaCopies(device.index or 0)
    raise ValueError(
        f"PandoLinker copies to CPUs and CUDA devices; this engine is on '{device}'"
    )


def pin(device: Any, memory: BlockMemory) -> None:
    """Lets the device read and write the memory by itself, for as long as it is mapped.
    Where that is refused, copies are slower, and no less right."""
    if device.type != "cuda":
        return
    copier = _native.CudaCopier(device.index or 0)
    address, size = memory.bytes.ctypes.data, memory.bytes.size
    try:
        copier.pin(address, size)
    except RuntimeError as error:
        _log.warning("copies will be slow, for the memory cannot be pinned: %s", error)
        return
    # Before the mapping goes, which is when the last view of it does.
    weakref.finalize(memory, copier.unpin, address).atexit = False
