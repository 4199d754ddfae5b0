"""Small models with random weights, in which some layers attend only to a window."""

from __future__ import annotations

import json
from pathlib import Path

from engines.models import SEED, VOCABULARY

_COMMON = {
    "vocab_size": VOCABULARY,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5,
    "torch_dtype": "float32",
    "bos_token_id": 1,
    "eos_token_id": 2,
    "tie_word_embeddings": False,
    "sliding_window": 64,
    # The weights are so large that every token depends on all tokens before it.
    "initializer_range": 0.4,
}

_GEMMA_3 = _COMMON | {
    "architectures": ["Gemma3ForCausalLM"],
    "model_type": "gemma3_text",
    "num_hidden_layers": 6,
    "layer_types": ["sliding_attention"] * 5 + ["full_attention"],
    "query_pre_attn_scalar": 32,
    "hidden_activation": "gelu_pytorch_tanh",
    "attention_bias": False,
}

_GPT_OSS = _COMMON | {
    "architectures": ["GptOssForCausalLM"],
    "model_type": "gpt_oss",
    "num_hidden_layers": 4,
    "layer_types": ["sliding_attention", "full_attention"] * 2,
    "hidden_act": "silu",
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "attention_bias": True,
    "rope_scaling": {
        "rope_type": "yarn",
        "factor": 32.0,
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "truncate": False,
        "original_max_position_embeddings": 4096,
    },
}

MODELS = {"gemma 3": _GEMMA_3, "gpt-oss": _GPT_OSS}


def make_window_model(name: str, folder: Path) -> int:
    """Writes the model to `folder`, and returns its number of layers."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    (folder / "config.json").write_text(json.dumps(MODELS[name]))
    torch.manual_seed(SEED)
    configuration = AutoConfig.from_pretrained(folder)
    AutoModelForCausalLM.from_config(configuration).save_pretrained(folder)
    return int(MODELS[name]["num_hidden_layers"])
