"""The identity of what an engine stores: a digest of all that determines the bytes.

SGLang's keys are chained over tokens, extra_key and salt. All else is in here: two
engines share blocks exactly where their bytes mean the same.
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

# Counts up when the layout of a block (pages.py) changes.
_FORMAT = 1


def model_identity(server_args: Any, *, replicated: bool, params: Any) -> list[Any]:
    """What holds for all pools of this rank."""
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
    """This rank among those that share the heads, and how many they are."""
    import torch.distributed as distributed

    group = params.attn_tp_cache_group or params.tp_cache_group
    if group is None or not distributed.is_initialized():
        return 0, 1
    return distributed.get_rank(group=group), distributed.get_world_size(group=group)


def pool_identity(model: list[Any], weights: str, name: str, pages: PoolPages) -> bytes:
    """`weights` is the version that the engine computes with now."""
    text = json.dumps([model, weights, name, pages.layout()], default=str)
    return hashlib.sha256(text.encode()).digest()


def _weights(model: str | None, revision: str | None) -> list[str | None]:
    """A name says nothing of the weights where the files are there to look at."""
    folder = _folder_of(model, revision) if model else ""
    digest = weights_digest(folder)
    return [digest] if digest else [model, revision]


def _folder_of(model: str, revision: str | None) -> str:
    """`model` is a folder, or a name of the Hugging Face hub."""
    if Path(model).is_dir():
        return model
    try:
        from huggingface_hub import snapshot_download

        return str(snapshot_download(model, revision=revision, local_files_only=True))
    except (ImportError, OSError, ValueError):
        return model
