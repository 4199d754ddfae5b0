"""The identities of kinds, and the way in which workers tell them to their scheduler.

vLLM's keys name tokens, a LoRA, images and a salt. Everything else that determines the
bytes of a block is in the identity of the block's kind. Only workers know it, because
only they can read vLLM's whole configuration (VllmConfig). Each rank therefore opens
one more kind, without blocks, when it has mapped the memory. The name of that kind
follows from the engine's id, and its label says which kinds the scheduler may use.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

import vllm
from vllm.v1.kv_offload.config import OffloadingConfig

from pando_kv._model_digest import ANY_CONFIGURATION
from pando_kv._weights_digest import weights_digest
from pando_kv.blocks import KindSpec
from pando_kv.vllm.identity import digest_of
from pando_kv.vllm.offloading.layout import Layout

# The version of the layout in layout.py; every change of that layout increases it.
_FORMAT = 1
_DIGITS = 32


def engine_digest(vllm_config: Any, config: OffloadingConfig, layout: Layout) -> str:
    """Returns a digest of all that determines the bytes of this engine's blocks."""
    parallel = config.parallel
    sizes = [
        parallel.tp_size,
        parallel.pp_size,
        parallel.pcp_size,
        parallel.dcp_size,
    ]
    parts = [
        _FORMAT,
        vllm.__version__,
        _models(vllm_config),
        vllm_config.cache_config.prefix_caching_hash_algo,
        vllm_config.device_config.device_type,
        _kernels(vllm_config),
        config.model.dtype,
        config.kv_cache_layout,
        config.cache.tokens_per_hash,
        [[g.group_id, g.tokens_per_block, g.layer_names] for g in config.groups],
        layout.description(),
        None if layout.is_portable else sizes,
    ]
    text = json.dumps(parts, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def kind_identity(digest: str, group_id: int) -> bytes:
    """Returns the identity of a group's kind."""
    return f"vllm {digest} {group_id}".encode()


def readiness(engine_id: str, rank: int, digest: str = "") -> KindSpec:
    """Returns the kind with which a rank announces that it has mapped the memory. The
    scheduler does not know the digest and leaves it out; it needs only the identity.
    """
    name = hashlib.sha256(f"{engine_id} {rank}".encode()).hexdigest()[:_DIGITS]
    return KindSpec(
        identity=f"vllm rank {name}".encode(),
        label=f"vllm rank {rank}, ready for {digest}",
        key_bytes=16,
        shard_bytes=4096,
        shards=1,
    )


def digest_in(label: str) -> str:
    """Returns the digest in the label of a rank's readiness kind."""
    return label.rpartition(" ")[2]


def _models(vllm_config: Any) -> list[Any]:
    """Returns what identifies the model and, with speculative decoding, the draft
    model, whose KV is in the blocks as well."""
    digests: list[Any] = [digest_of(vllm_config)]
    if os.environ.get(ANY_CONFIGURATION) == "1":
        return digests
    digests.append(_weights(vllm_config, vllm_config.model_config))
    draft = getattr(vllm_config.speculative_config, "draft_model_config", None)
    if draft is not None and draft is not vllm_config.model_config:
        digests += [str(draft.hf_config.to_dict()), _weights(vllm_config, draft)]
    return digests


def _weights(vllm_config: Any, model: Any) -> list[Any]:
    """Returns what identifies the model's weights: a digest of the files if they lie in
    a folder, because the folder's name says little, or else the name and revision."""
    if vllm_config.load_config.load_format == "dummy":
        return ["dummy", model.model, model.seed]
    digest = weights_digest(model.model)
    if digest:
        return [digest]
    commit = getattr(model.hf_config, "_commit_hash", None)
    return [model.model, model.revision, commit]


def _kernels(vllm_config: Any) -> list[str]:
    """Returns the names of the attention backends, on which the inside of a page
    depends."""
    layers = vllm_config.compilation_config.static_forward_context.values()
    backends = {getattr(layer, "attn_backend", None) for layer in layers}
    return sorted(backend.get_name() for backend in backends if backend is not None)
