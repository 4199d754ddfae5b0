"""The identity of an engine's blocks: a digest of all that determines their bytes.

SGLang's keys are chained over tokens, extra_key and salt. The identity covers all else,
so two engines share blocks exactly if the bytes have the same meaning in both.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import sglang

from pando_kv._weights_digest import weights_digest
from pando_kv.sglang.kv_pool import model_digest_of
from pando_kv.sglang.linker.pages import PoolPages

# A change to the layout of a block (pages.py) must increase this number.
_FORMAT = 1


def model_identity(server_args: Any, *, replicated: bool, params: Any) -> list[Any]:
    """Returns the part of the identity that all pools of this rank have in common.
    `replicated` says whether all ranks have the same bytes; `params` are SGLang's cache
    parameters."""
    rank = None if replicated else attention_rank(params)
    return [
        "sglang",
        sglang.__version__,
        _FORMAT,
        model_digest_of(server_args),
        _weights(server_args.model_path, server_args.revision),
        server_args.load_format == "dummy" and server_args.random_seed,
        server_args.kv_cache_dtype,
        server_args.speculative_algorithm,
        _weights(server_args.speculative_draft_model_path, None),
        rank,
        [params.attn_cp_rank, params.attn_cp_size],
        [params.pp_rank, params.pp_size],
    ]


def attention_rank(params: Any) -> tuple[int, int]:
    """Returns the position of this rank among the ranks that share the heads, and the
    number of those ranks."""
    import torch.distributed as distributed

    group = params.attn_tp_cache_group or params.tp_cache_group
    if group is None or not distributed.is_initialized():
        return 0, 1
    return distributed.get_rank(group=group), distributed.get_world_size(group=group)


def pool_identity(model: list[Any], weights: str, name: str, pages: PoolPages) -> bytes:
    """Returns the identity of one pool's blocks: a SHA-256 digest. `weights` is the
    version of the weights that the engine computes with now."""
    text = json.dumps([model, weights, name, pages.layout()], default=str)
    return hashlib.sha256(text.encode()).digest()


def _weights(model: str | None, revision: str | None) -> list[str | None]:
    """Returns the digest of the weights if their files are on this machine, else the
    model's name and revision."""
    folder = _folder_of(model, revision) if model else ""
    digest = weights_digest(folder)
    return [digest] if digest else [model, revision]


def _folder_of(model: str, revision: str | None) -> str:
    """Returns the folder with the files of `model`, which is a folder or a name on the
    Hugging Face hub. Returns `model` itself if the files are not on this machine."""
    if Path(model).is_dir():
        return model
    try:
        from huggingface_hub import snapshot_download

        return str(snapshot_download(model, revision=revision, local_files_only=True))
    except (ImportError, OSError, ValueError):
        return model
