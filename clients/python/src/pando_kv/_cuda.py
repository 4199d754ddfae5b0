"""GPU memory that another process exported, mapped with the CUDA driver alone.

The driver is loaded at first use, so a pool in host memory needs neither the driver nor
torch.
"""

from __future__ import annotations

import ctypes
import functools
import uuid
import weakref
from contextlib import ExitStack, suppress
from typing import Any

from pando_kv.errors import PandoError

# Constants of cuda.h.
_POSIX_FILE_DESCRIPTOR = 1
_LOCATION_DEVICE = 1
_ACCESS_READ_WRITE = 3


class _AccessDesc(ctypes.Structure):
    """The struct CUmemAccessDesc of cuda.h."""

    _fields_ = [
        ("location_type", ctypes.c_int),
        ("location_id", ctypes.c_int),
        ("flags", ctypes.c_int),
    ]


class CudaMemory:
    """A mapping of device memory, which lasts until the last reference to this object
    is gone; each tensor over the memory holds one. Any thread may use it.

    Kernels reach the memory on its own device, and on each visible device that has peer
    access to that device. torch and other libraries read `__cuda_array_interface__`.
    """

    def __init__(
        self, device_uuid: str, fd: int, size: int, wanted_address: int = 0
    ) -> None:
        """Maps the memory at `wanted_address`, or anywhere if that is 0.

        The caller keeps the descriptor. Raises PandoError with the reason ADDRESS_TAKEN
        if the wanted address is not available, and with the reason CUDA for every other
        failure.
        """
        driver = _driver()
        self.ordinal = _ordinal(driver, device_uuid)
        self.size = size
        with ExitStack() as undo:
            self.address = _map(driver, self.ordinal, fd, size, wanted_address, undo)
            finalizer = weakref.finalize(self, undo.pop_all().close)
        # When the process exits, the driver is gone before finalizers run.
        finalizer.atexit = False

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "version": 3,
            "typestr": "|u1",
            "shape": (self.size,),
            "strides": None,
            "data": (self.address, False),
        }


class _Driver:
    """The loaded CUDA driver library. One object per process, which any thread
    may use."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise PandoError(
                "CUDA", f"no CUDA driver was found on this machine: {error}"
            ) from None
        self.call("cuInit", ctypes.c_uint(0))

    def call(self, function: str, *arguments: Any) -> None:
        """Calls a driver function. Arguments must be ctypes values, because a bare int
        would be cut to 32 bits. Raises PandoError if the function is missing or fails.
        """
        try:
            found = getattr(self._library, function)
        except AttributeError:
            raise PandoError(
                "CUDA", f"the CUDA driver has no {function}; a newer one is needed"
            ) from None
        result = found(*arguments)
        if result != 0:
            raise PandoError("CUDA", f"{function}: {self._words(result)}")

    def _words(self, result: int) -> str:
        words = ctypes.c_char_p()
        self._library.cuGetErrorString(ctypes.c_int(result), ctypes.byref(words))
        return f"{(words.value or b'unknown error').decode()} ({result})"


@functools.cache
def _driver() -> _Driver:
    return _Driver()


def _ordinals(driver: _Driver) -> range:
    count = ctypes.c_int()
    driver.call("cuDeviceGetCount", ctypes.byref(count))
    return range(count.value)


def _ordinal(driver: _Driver, device_uuid: str) -> int:
    wanted = uuid.UUID(device_uuid).bytes
    ordinals = _ordinals(driver)
    for ordinal in ordinals:
        found = (ctypes.c_ubyte * 16)()
        driver.call("cuDeviceGetUuid_v2", found, ctypes.c_int(ordinal))
        if bytes(found) == wanted:
            return ordinal
    raise PandoError(
        "CUDA",
        f"the pool is on the GPU {device_uuid}, which is none of the {len(ordinals)} "
        "that this process sees",
    )


def _map(
    driver: _Driver, ordinal: int, fd: int, size: int, wanted: int, undo: ExitStack
) -> int:
    """Maps the memory and returns its address. `undo` receives the callbacks that take
    the mapping down again."""
    device, bytes_ = ctypes.c_int(ordinal), ctypes.c_size_t(size)
    context = ctypes.c_void_p()
    driver.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    undo.callback(driver.call, "cuDevicePrimaryCtxRelease_v2", device)
    driver.call("cuCtxPushCurrent_v2", context)
    try:
        memory = ctypes.c_uint64()
        driver.call(
            "cuMemImportFromShareableHandle",
            ctypes.byref(memory),
            ctypes.c_void_p(fd),
            ctypes.c_int(_POSIX_FILE_DESCRIPTOR),
        )
        undo.callback(driver.call, "cuMemRelease", memory)
        address = ctypes.c_uint64(_reserve(driver, ordinal, size, wanted))
        undo.callback(_kept_ranges.add, (address.value, size))
        none = ctypes.c_uint64(0)
        driver.call("cuMemMap", address, bytes_, ctypes.c_size_t(0), memory, none)
        undo.callback(driver.call, "cuMemUnmap", address, bytes_)
        access = _access_of_all(driver, ordinal)
        driver.call(
            "cuMemSetAccess", address, bytes_, access, ctypes.c_size_t(len(access))
        )
    finally:
        driver.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
    return address.value


# Address ranges, with their sizes, whose mapping is gone. The ranges take no memory,
# and are not freed, because a driver may refuse the address of a freed range, which
# captured graphs still hold. At most as many ranges of a size are kept as were mapped
# at once.
_kept_ranges: set[tuple[int, int]] = set()


def _reserve(driver: _Driver, ordinal: int, size: int, wanted: int) -> int:
    """Returns the address of a range in which nothing is mapped. No other caller gets
    the same range. Raises PandoError with the reason ADDRESS_TAKEN."""
    for kept, kept_size in [*_kept_ranges]:
        if kept_size == size and wanted in (0, kept):
            # Another thread may have taken the range meanwhile.
            with suppress(KeyError):
                _kept_ranges.remove((kept, size))
                return kept
    address, bytes_ = ctypes.c_uint64(), ctypes.c_size_t(size)
    driver.call(
        "cuMemAddressReserve",
        ctypes.byref(address),
        bytes_,
        ctypes.c_size_t(0),
        ctypes.c_uint64(wanted),
        ctypes.c_uint64(0),
    )
    # The driver takes the wanted address only as a hint.
    if wanted not in (0, address.value):
        driver.call("cuMemAddressFree", address, bytes_)
        raise PandoError(
            "ADDRESS_TAKEN",
            f"address {wanted:#x} of the GPU {ordinal} is not to be had; the driver "
            f"gives {address.value:#x} instead",
        )
    return address.value


def _access_of_all(driver: _Driver, ordinal: int) -> ctypes.Array[_AccessDesc]:
    """Returns access descriptors for the device and for each device with peer access to
    it. A kernel on a device without access would end its process."""
    reaching = [
        each
        for each in _ordinals(driver)
        if each == ordinal or _reaches(driver, each, ordinal)
    ]
    return (_AccessDesc * len(reaching))(
        *(_AccessDesc(_LOCATION_DEVICE, each, _ACCESS_READ_WRITE) for each in reaching)
    )


def _reaches(driver: _Driver, device: int, peer: int) -> bool:
    reaches = ctypes.c_int()
    driver.call(
        "cuDeviceCanAccessPeer",
        ctypes.byref(reaches),
        ctypes.c_int(device),
        ctypes.c_int(peer),
    )
    return reaches.value != 0
