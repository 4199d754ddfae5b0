"""vLLM's registration of host memory with its device; without it copies are slower, and
no less right. vLLM has it as functions since 0.32."""

from __future__ import annotations

try:
    from vllm.v1.kv_offload.cpu.host_register import host_register, host_unregister
except ModuleNotFoundError:
    from vllm.distributed.device_communicators.cuda_wrapper import CudaRTLibrary

    def host_register(address: int, size: int) -> bool:
        """Whether it is registered."""
        return _is_done(CudaRTLibrary().cudaHostRegister(address, size))

    def host_unregister(address: int) -> None:
        _is_done(CudaRTLibrary().cudaHostUnregister(address))

    def _is_done(result: int) -> bool:
        if result:
            # The next call of torch would raise it.
            CudaRTLibrary().cudaGetLastError()
        return not result


__all__ = ["host_register", "host_unregister"]
