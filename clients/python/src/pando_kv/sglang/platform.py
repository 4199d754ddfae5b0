"""SGLang's platforms with Pando's KV pool, pool size and paged allocator."""

from __future__ import annotations

from typing import Any

from sglang.srt.platforms.cpu import CpuSRTPlatform
from sglang.srt.platforms.cuda import CudaSRTPlatform
from sglang.srt.runtime_context import get_memory

from pando_kv._seams import require_seam
from pando_kv.sglang import BACKEND, SEAM


class _OnPando:
    """A mixin for SGLang's platforms that returns Pando's pool and allocator if the
    backend was chosen, and SGLang's own otherwise."""

    def apply_server_args_defaults(self, server_args: Any) -> None:
        super().apply_server_args_defaults(server_args)  # type: ignore[misc]
        if server_args.radix_cache_backend == BACKEND:
            from pando_kv.sglang.pool_size import take_sizes_of_pool

            take_sizes_of_pool(server_args)

    def get_kv_pool_cls(self, *, kind: str) -> Any:
        # SGLang also asks for kinds of pools that the model does not have.
        if get_memory().radix_cache_backend != BACKEND or kind != "mha":
            return super().get_kv_pool_cls(kind=kind)  # type: ignore[misc]
        require_seam(SEAM)
        from pando_kv.sglang.kv_pool import PandoKVPool

        return PandoKVPool

    def get_paged_allocator_cls(self) -> Any:
        if get_memory().radix_cache_backend != BACKEND:
            return super().get_paged_allocator_cls()  # type: ignore[misc]
        from pando_kv.sglang.allocator import PandoAllocator

        return PandoAllocator


class PandoCpuPlatform(_OnPando, CpuSRTPlatform):  # type: ignore[misc]
    pass


class PandoCudaPlatform(_OnPando, CudaSRTPlatform):  # type: ignore[misc]
    pass
