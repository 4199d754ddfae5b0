"""Allocates memory of a GPU with the CUDA driver alone."""

import ctypes

_GRANULARITY = 2 << 20


class _Properties(ctypes.Structure):
    """The CUDA driver's struct CUmemAllocationProp."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location_type", ctypes.c_int),
        ("location_id", ctypes.c_int),
        ("metadata", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    ]


class _Access(ctypes.Structure):
    """The CUDA driver's struct CUmemAccessDesc."""

    _fields_ = [
        ("location_type", ctypes.c_int),
        ("location_id", ctypes.c_int),
        ("flags", ctypes.c_int),
    ]


def device_count() -> int:
    """Returns the number of GPUs. Raises OSError without a CUDA driver, and
    RuntimeError if the driver reports an error."""
    driver, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
    _check(driver.cuInit(0), "cuInit")
    _check(driver.cuDeviceGetCount(ctypes.byref(count)), "cuDeviceGetCount")
    return count.value


def device_memory(device: int, size: int) -> int:
    """Returns the address of at least `size` bytes of the GPU, which stay allocated
    until this process ends. REQUIRES: a CudaCopier of the device exists. Raises
    RuntimeError if the driver reports an error."""
    driver = ctypes.CDLL("libcuda.so.1")
    size = -(-size // _GRANULARITY) * _GRANULARITY
    bytes_, none = ctypes.c_size_t(size), ctypes.c_uint64(0)
    handle, address = ctypes.c_uint64(), ctypes.c_uint64()
    pinned, by_descriptor, on_device, read_write = 1, 1, 1, 3
    properties = _Properties(pinned, by_descriptor, on_device, device)
    access = _Access(on_device, device, read_write)
    _check(
        driver.cuMemCreate(
            ctypes.byref(handle), bytes_, ctypes.byref(properties), none
        ),
        "cuMemCreate",
    )
    _check(
        driver.cuMemAddressReserve(
            ctypes.byref(address), bytes_, ctypes.c_size_t(0), none, none
        ),
        "cuMemAddressReserve",
    )
    _check(
        driver.cuMemMap(address, bytes_, ctypes.c_size_t(0), handle, none), "cuMemMap"
    )
    _check(
        driver.cuMemSetAccess(
            address, bytes_, ctypes.byref(access), ctypes.c_size_t(1)
        ),
        "cuMemSetAccess",
    )
    return address.value


def _check(result: int, function: str) -> None:
    if result != 0:
        raise RuntimeError(f"{function}: {result}")
