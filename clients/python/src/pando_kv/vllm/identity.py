"""Names for KV: a digest of the model's configuration, and the names of prompts.

Two prompts have the same KV only if the model reads the same input for both: the same
tokens, the same LoRA and the same images.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from pando_kv import Namespace
from pando_kv._model_digest import model_digest
from pando_kv._short_name import short_name
from pando_kv._wire import Uint32Array


def digest_of(vllm_config: Any) -> str:
    """Returns the digest of the model's configuration as vLLM computes with it."""
    model = vllm_config.model_config
    # With LongRoPE the KV depends on the longest context that the engine admits.
    is_by_length = "longrope" in str(model.hf_config.to_dict())
    return model_digest(
        model.hf_config.to_dict(),
        revision=model.revision,
        dtype=model.dtype,
        quantization=model.quantization,
        cache_dtype=vllm_config.cache_config.cache_dtype,
        disable_sliding_window=model.disable_sliding_window,
        context=model.max_model_len if is_by_length else None,
    )


def can_be_cached(request: Any) -> bool:
    """Returns whether the prompt consists of tokens. A prompt of embeddings has no
    tokens by which its KV could be found."""
    return request.prompt_embeds is None


def namespace_of(request: Any, generation: str = "") -> Namespace | None:
    """Returns the namespace of the request's LoRA, salt and `generation`; None if it
    has none of these. `generation` separates the KV from before and after a reset of
    the engine's cache; it is empty until the first reset."""
    parts: dict[str, Any] = {}
    if request.lora_request is not None:
        parts["lora"] = [request.lora_request.lora_name, request.lora_request.lora_path]
    if generation:
        parts["generation"] = generation
    extra_key = short_name(json.dumps(parts)) if parts else None
    salt = short_name(request.cache_salt) if request.cache_salt else None
    if extra_key is None and salt is None:
        return None
    return Namespace(extra_key=extra_key, cache_salt=salt)


class Tokens:
    """The token ids of a request, which grow with it. Placeholder tokens of images are
    replaced by parts of the images' hashes. The scheduler's thread alone uses it."""

    def __init__(self, request: Any) -> None:
        self._request = request
        self._ids = np.empty(0, np.uint32)

    def upto(self, end: int) -> Uint32Array:
        """Returns the first `end` ids, as an array of (end,). The request must have at
        least so many tokens."""
        known = self._ids.size
        if end > known:
            added = np.array(self._request.all_token_ids[known:end], np.uint32)
            self._ids = np.concatenate([self._ids, added])
            for feature in self._request.mm_features or ():
                self._replace(feature, known)
        return self._ids[:end]

    def _replace(self, feature: Any, known: int) -> None:
        place = feature.mm_position
        begin = max(place.offset, known)
        end = min(place.offset + place.length, self._ids.size)
        if begin >= end:
            return
        digest = hashlib.shake_256(feature.identifier.encode()).digest(4 * place.length)
        pieces = np.frombuffer(digest, "<u4")
        self._ids[begin:end] = pieces[begin - place.offset : end - place.offset]
