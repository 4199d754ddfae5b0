"""Small models with random weights, one for each kind of model that blocks serve, and
the arguments of their engines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engines.models import SEED, VOCABULARY, make_model
from engines.vllm import window_models

_COMMON = {
    "vocab_size": VOCABULARY,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_attention_heads": 4,
    "max_position_embeddings": 4096,
    "torch_dtype": "float32",
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
    "tie_word_embeddings": False,
    # The weights are so large that every token depends on all tokens before it.
    "initializer_range": 0.4,
}

_LFM_2 = _COMMON | {
    "architectures": ["Lfm2ForCausalLM"],
    "model_type": "lfm2",
    "num_hidden_layers": 8,
    "num_key_value_heads": 2,
    "layer_types": ["conv", "conv", "full_attention", "conv"] * 2,
    "conv_L_cache": 3,
    "conv_dim": 128,
    "block_dim": 128,
    "block_ff_dim": 256,
    "block_multiple_of": 32,
    "block_ffn_dim_multiplier": 1.0,
    "block_use_swiglu": True,
    "conv_dim_out": 128,
    "block_auto_adjust_ff_dim": False,
    "norm_eps": 1e-5,
}

_DEEPSEEK = _COMMON | {
    "architectures": ["DeepseekV2ForCausalLM"],
    "model_type": "deepseek_v2",
    "num_hidden_layers": 4,
    "num_key_value_heads": 4,
    "kv_lora_rank": 512,
    "q_lora_rank": None,
    "moe_intermediate_size": 64,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 64,
    "v_head_dim": 32,
    "head_dim": 32,
    "n_routed_experts": 2,
    "n_shared_experts": 1,
    "num_experts_per_tok": 1,
    "first_k_dense_replace": 4,
    "rms_norm_eps": 1e-6,
    # Without rope_scaling, vLLM rotates the first rows of k_pe twice on a CPU.
    "rope_scaling": {
        "rope_type": "yarn",
        "factor": 4.0,
        "original_max_position_embeddings": 1024,
        "mscale": 0.707,
        "mscale_all_dim": 0.707,
    },
}

_OWN = {"lfm2": _LFM_2, "deepseek mla": _DEEPSEEK}

MODELS = ("llama", "llama with n-grams", *window_models.MODELS, *_OWN)

ARGUMENTS: dict[str, dict[str, Any]] = {
    "llama with n-grams": {
        "speculative_config": {
            "method": "ngram",
            "num_speculative_tokens": 3,
            "prompt_lookup_max": 3,
        }
    },
    "deepseek mla": {"dtype": "bfloat16"},
}


def make(name: str, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    if name.startswith("llama"):
        return make_model(folder)
    if name in window_models.MODELS:
        window_models.make_window_model(name, folder)
        return folder
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    (folder / "config.json").write_text(json.dumps(_OWN[name]))
    torch.manual_seed(SEED)
    configuration = AutoConfig.from_pretrained(folder)
    AutoModelForCausalLM.from_config(configuration).save_pretrained(folder)
    return folder
