"""Small models with random weights from a fixed seed; nothing is downloaded.

The weights are so large that every token depends on all tokens before it. A wrong page
therefore changes the tokens that follow.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SEED = 7
VOCABULARY = 512
LAYERS = 4


def make_model(folder: Path, head_size: int = 32, **configuration: Any) -> Path:
    """Writes a Llama of 4 layers, 2 KV heads and float32 (about 3 MB) to `folder`, and
    returns `folder`. `configuration` adds or replaces entries of its config.json."""
    import torch
    from safetensors.torch import save_file

    hidden, inner, heads, kv_heads = 128, 256, 4, 2
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": VOCABULARY,
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_size,
        "max_position_embeddings": 8192,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "attention_bias": False,
        "torch_dtype": "float32",
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
    random = torch.Generator().manual_seed(SEED)

    def weights(rows: int, columns: int, scale: float = 1.0) -> torch.Tensor:
        values = torch.randn(rows, columns, generator=random)
        return values * scale / columns**0.5

    tensors = {
        "model.embed_tokens.weight": torch.randn(VOCABULARY, hidden, generator=random),
        "lm_head.weight": weights(VOCABULARY, hidden, 2.0),
        "model.norm.weight": torch.ones(hidden),
    }
    for layer in range(LAYERS):
        at = f"model.layers.{layer}."
        tensors |= {
            at + "self_attn.q_proj.weight": weights(heads * head_size, hidden, 2.0),
            at + "self_attn.k_proj.weight": weights(kv_heads * head_size, hidden, 2.0),
            at + "self_attn.v_proj.weight": weights(kv_heads * head_size, hidden, 2.0),
            at + "self_attn.o_proj.weight": weights(hidden, heads * head_size, 3.0),
            at + "mlp.gate_proj.weight": weights(inner, hidden),
            at + "mlp.up_proj.weight": weights(inner, hidden),
            at + "mlp.down_proj.weight": weights(hidden, inner),
            at + "input_layernorm.weight": torch.ones(hidden),
            at + "post_attention_layernorm.weight": torch.ones(hidden),
        }
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config | configuration))
    return folder


LAYOUT = {
    "layers": LAYERS,
    "heads": 2,
    "head_size": 32,
    "dtype": "float32",
}
"""The pandod options for this model, except those about pages."""
