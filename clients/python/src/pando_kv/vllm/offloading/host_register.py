"""Registration of host memory with the device. vLLM has functions for that since 0.32;
for older releases they are here. Copies from memory that is not registered are slower,
but correct."""

from __future__ import annotations

try:
    from vllm.v1.kv_offload.cpu.host_register import host_register, host_unregister
except ModuleNotFoundError:
    from vllm.distributed.device_communicators.cuda_wrapper import CudaRTLibrary

    def host_register(address: int, size: int) -> bool:
        """Registers `size` bytes from `address`. Returns whether that succeeded."""
        return _is_done(CudaRTLibrary().cudaHostRegister(address, size))

    def host_unregister(address: int) -> None:
        _is_done(CudaRTLibrary().cudaHostUnregister(address))

    def _is_done(result: int) -> bool:
        if result:
            # This clears the error, which the next call of torch would raise.
            CudaRTLibrary().cudaGetLastError()
        return not result


__all__ = ["host_register", "host_unregister"]
