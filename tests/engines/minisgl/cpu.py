"""Stand-ins that let mini-SGLang run on a CPU, although it is written for GPUs.

They replace CUDA streams and events, flashinfer, mini-SGLang's own three kernels and
its attention backend. Each does its work at once, where a GPU would queue it.
"""

from __future__ import annotations

import contextlib
import sys
from types import ModuleType
from typing import Any

import torch
from torch.utils._device import _device_constructors


class Stream:
    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def wait_stream(self, other: Any) -> None:
        pass

    def synchronize(self) -> None:
        pass


class Event:
    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def record(self, *_: Any) -> None:
        pass

    def synchronize(self) -> None:
        pass


class CurrentStream:
    def __init__(self) -> None:
        self.stream = Stream()

    def set(self, stream: Stream) -> None:
        self.stream = stream

    @contextlib.contextmanager
    def using(self, stream: Stream):
        before, self.stream = self.stream, stream
        try:
            yield
        finally:
            self.stream = before


class Streamed:
    """A stand-in for the result of torch.cuda.stream(), which may be entered again."""

    def __init__(self, current: CurrentStream, stream: Stream) -> None:
        self._current, self._stream, self._entered = current, stream, []

    def __enter__(self) -> None:
        entered = self._current.using(self._stream)
        self._entered.append(entered)
        entered.__enter__()

    def __exit__(self, *_: Any) -> None:
        self._entered.pop().__exit__(None, None, None)


def stand_in_for_the_gpu() -> None:
    """Replaces CUDA and flashinfer. Call it before you import mini-SGLang."""
    _cuda()
    _flashinfer()


def stand_in_for_the_kernels() -> None:
    """Replaces mini-SGLang's kernels, attention backend and tokenizer.

    Call it after stand_in_for_the_gpu() and before you construct an engine."""
    from minisgl import kernel
    from minisgl.attention import SUPPORTED_ATTENTION_BACKENDS
    from minisgl.engine import engine
    from minisgl.scheduler import scheduler

    kernel.indexing = lambda weights, indices, **_: weights[indices.long()]
    kernel.store_cache = _store_cache
    kernel.fast_compare_key = _common_tokens
    SUPPORTED_ATTENTION_BACKENDS.register("cpu")(_attention)
    engine.torch = _TorchOfTheCpu()
    engine.enable_pynccl_distributed = lambda *_: None
    scheduler.load_tokenizer = lambda _: _Tokenizer()


def _cuda() -> None:
    current = CurrentStream()
    cuda = torch.cuda
    cuda.Stream, cuda.Event = Stream, Event
    cuda.set_stream = current.set
    cuda.current_stream = lambda *_: current.stream
    cuda.stream = lambda stream: Streamed(current, stream)
    cuda.mem_get_info = lambda *_: (8 << 30, 8 << 30)
    cuda.nvtx.range = lambda *_, **__: contextlib.nullcontext()
    for name in ("set_device", "synchronize", "empty_cache", "reset_peak_memory_stats"):
        setattr(cuda, name, lambda *_: None)
    # `with torch.device(...)` caches the functions that it affects on its first use.
    # This call fills that cache before the loop below replaces some of them.
    _device_constructors()
    for name in ("empty", "tensor", "ones"):
        setattr(torch, name, _without_pinning(getattr(torch, name)))
    torch.Tensor.pin_memory = lambda tensor, *_: tensor


def _without_pinning(make: Any) -> Any:
    def made(*given: Any, pin_memory: bool = False, **named: Any) -> torch.Tensor:
        return make(*given, **named)

    return made


def _flashinfer() -> None:
    module = ModuleType("flashinfer")
    module.sampling = ModuleType("flashinfer.sampling")
    module.rmsnorm = _rms_norm
    module.fused_add_rmsnorm = _add_and_norm
    module.silu_and_mul = _silu_and_mul
    module.apply_rope_with_cos_sin_cache_inplace = _rotate
    sys.modules |= {"flashinfer": module, "flashinfer.sampling": module.sampling}


def _rms_norm(
    x: torch.Tensor, weight: torch.Tensor, eps: float, out: Any = None
) -> Any:
    wide = x.float()
    scaled = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    normed = scaled.to(x.dtype) * weight
    return normed if out is None else out.copy_(normed)


def _add_and_norm(x: torch.Tensor, rest: torch.Tensor, weight: Any, eps: float) -> None:
    rest.add_(x)
    x.copy_(_rms_norm(rest, weight, eps))


def _silu_and_mul(x: torch.Tensor, out: Any = None) -> torch.Tensor:
    gate, up = x.chunk(2, -1)
    return torch.nn.functional.silu(gate) * up


def _rotate(
    positions: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    head_size: int,
    cos_sin_cache: torch.Tensor,
) -> None:
    cosine, sine = cos_sin_cache[positions.long()][:, None].chunk(2, -1)
    half = head_size // 2
    for tensor in (query, key):
        heads = tensor.view(tensor.shape[0], -1, head_size)
        first, second = heads[..., :half].clone(), heads[..., half:].clone()
        heads[..., :half] = first * cosine - second * sine
        heads[..., half:] = second * cosine + first * sine


def _store_cache(k_cache: Any, v_cache: Any, indices: Any, k: Any, v: Any) -> None:
    for cache, values in ((k_cache, k), (v_cache, v)):
        cache[indices.long()] = values.view(-1, *cache.shape[1:])


def _common_tokens(one: torch.Tensor, other: torch.Tensor) -> int:
    shorter = min(len(one), len(other))
    differing = (one[:shorter] != other[:shorter]).nonzero()
    return int(differing[0]) if len(differing) else shorter


class _TorchOfTheCpu:
    """The torch module that minisgl.engine.engine sees. Its CUDA device is the CPU."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    def device(self, name: Any) -> torch.device:
        return torch.device("cpu" if str(name).startswith("cuda") else name)


class _Tokenizer:
    eos_token_id = 2

    def decode(self, ids: list[int]) -> str:
        return ""


def _attention(_: Any) -> Any:
    from minisgl.attention.base import BaseAttnBackend, BaseAttnMetadata
    from minisgl.core import get_global_ctx

    class Ends(BaseAttnMetadata):
        def __init__(self, ends: torch.Tensor) -> None:
            self.ends = ends

        def get_last_indices(self, bs: int) -> torch.Tensor:
            return self.ends[:bs]

    class Attention(BaseAttnBackend):
        """A plain attention backend that computes one request after another."""

        def prepare_metadata(self, batch: Any) -> None:
            lengths = torch.tensor([req.extend_len for req in batch.padded_reqs])
            batch.attn_metadata = Ends(lengths.cumsum(0) - 1)

        def forward(self, q: Any, k: Any, v: Any, layer_id: int, batch: Any) -> Any:
            context = get_global_ctx()
            context.kv_cache.store_kv(k, v, batch.out_loc, layer_id)
            keys = context.kv_cache.k_cache(layer_id)
            values = context.kv_cache.v_cache(layer_id)
            page_tokens = keys.shape[1]
            outputs, begin = [], 0
            for req in batch.padded_reqs:
                slots = context.page_table[req.table_idx, : req.device_len].long()
                place = (slots // page_tokens, slots % page_tokens)
                queries = q[begin : begin + req.extend_len]
                begin += req.extend_len
                outputs.append(self._of_one(req, queries, keys[place], values[place]))
            return torch.cat(outputs)

        def _of_one(self, req: Any, queries: Any, keys: Any, values: Any) -> Any:
            group = queries.shape[1] // keys.shape[1]
            keys = keys.repeat_interleave(group, 1).transpose(0, 1)
            values = values.repeat_interleave(group, 1).transpose(0, 1)
            positions = torch.arange(req.device_len)
            visible = positions <= positions[req.cached_len :, None]
            attended = torch.nn.functional.scaled_dot_product_attention(
                queries.transpose(0, 1), keys, values, attn_mask=visible[None]
            )
            return attended.transpose(0, 1)

        def init_capture_graph(self, max_seq_len: int, bs_list: list[int]) -> None:
            pass

        def prepare_for_capture(self, batch: Any) -> None:
            pass

        def prepare_for_replay(self, batch: Any) -> None:
            pass

    return Attention()
