"""The copies between pages on the device and their blocks."""

from __future__ import annotations

import logging
import weakref
from typing import Any, Protocol

from pando_kv import _native
from pando_kv.blocks import BlockMemory
from pando_kv.sglang.linker.pages import Fragments

_log = logging.getLogger("pando_kv.sglang")


class Copies(Protocol):
    """A way to copy between the device and blocks. Each copying thread has one of its
    own. Both methods return when the bytes have arrived."""

    def to_device(self, fragments: Fragments) -> None: ...

    def to_blocks(self, fragments: Fragments) -> None: ...


class HostCopies:
    """The copies of an engine that computes on the CPU."""

    def to_device(self, fragments: Fragments) -> None:
        _native.copy(fragments.device, fragments.block, fragments.sizes)

    def to_blocks(self, fragments: Fragments) -> None:
        _native.copy(fragments.block, fragments.device, fragments.sizes)


class CudaCopies:
    """The copies of an engine on a GPU. The GPU's copy engines do them, on a separate
    stream."""

    def __init__(self, device: int) -> None:
        self._copier = _native.CudaCopier(device)

    def to_device(self, fragments: Fragments) -> None:
        self._copy(fragments.device, fragments.block, fragments.sizes, to_device=True)

    def to_blocks(self, fragments: Fragments) -> None:
        self._copy(fragments.block, fragments.device, fragments.sizes, to_device=False)

    def _copy(self, targets: Any, sources: Any, sizes: Any, *, to_device: bool) -> None:
        self._copier.copy(targets, sources, sizes, to_device)


def make_copies(device: Any) -> Copies:
    """Returns copies for `device`, a torch device. Raises ValueError if it is neither a
    CPU nor a CUDA device."""
    if device.type == "cpu":
        return HostCopies()
    if device.type == "cuda":
        return CudaCopies(device.index or 0)
    raise ValueError(
        f"PandoLinker copies to CPUs and CUDA devices; this engine is on '{device}'"
    )


def pin(device: Any, memory: BlockMemory) -> None:
    """Pins the memory, which lets the device read and write it directly, for as long as
    it is mapped. If the driver refuses, copies are slower but still correct."""
    if device.type != "cuda":
        return
    copier = _native.CudaCopier(device.index or 0)
    address, size = memory.bytes.ctypes.data, memory.bytes.size
    try:
        copier.pin(address, size)
    except RuntimeError as error:
        _log.warning("copies will be slow, for the memory cannot be pinned: %s", error)
        return
    # The memory is unpinned before it is unmapped, which happens when its last view
    # goes.
    weakref.finalize(memory, copier.unpin, address).atexit = False
