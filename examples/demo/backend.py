"""Chooses how a process computes: with numpy in float32, or with torch in bfloat16.

The module needs torch only for a config that names a device.
"""

import importlib.util

import pando_kv
from model import ModelConfig, Transformer
from paged_kv import KvPages, PagedKv, PageIds, PrivatePages


def missing(config: ModelConfig) -> str:
    """Names the part that this machine lacks to compute the config; "" means none."""
    if config.device is None:
        return ""
    if importlib.util.find_spec("torch") is None:
        return "torch is not installed (pip install torch)"
    import torch

    if config.device == "cuda" and not torch.cuda.is_available():
        return "torch finds no GPU here"
    return ""


def kv_dtype(config: ModelConfig) -> pando_kv.DType:
    return pando_kv.DType.FLOAT32 if config.device is None else pando_kv.DType.BFLOAT16


def make_model(config: ModelConfig) -> Transformer:
    if config.device is None:
        return Transformer(config)
    from torch_model import TorchTransformer

    return TorchTransformer(config)


def shared_pages(config: ModelConfig, pool: pando_kv.MappedPool) -> KvPages:
    """Returns the pool's pages as arrays, or as torch tensors if the config has a
    device."""
    return pool if config.device is None else pool.torch()


def private_pages(config: ModelConfig, count: int) -> KvPages:
    if config.device is None:
        return PrivatePages(
            config.layers, count, config.page_tokens, config.kv_heads, config.head_size
        )
    from torch_model import TorchPages

    return TorchPages(config, count)


def paged_kv(config: ModelConfig, pages: KvPages, block_table: PageIds) -> PagedKv:
    if config.device is None:
        return PagedKv(pages, config.layers, block_table)
    from torch_model import TorchPagedKv

    return TorchPagedKv(pages, config.layers, block_table)
