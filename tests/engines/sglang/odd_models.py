"""Small models with latent attention or sliding windows, and stand-ins with which
SGLang runs them on a CPU.

SGLang makes their weights when it loads them (load_format "dummy"). The weights are so
large that every token depends on all tokens before it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engines.models import VOCABULARY

_COMMON = {
    "vocab_size": VOCABULARY,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_attention_heads": 4,
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-6,
    "torch_dtype": "float32",
    "bos_token_id": 1,
    "eos_token_id": 2,
    "tie_word_embeddings": False,
    "hidden_act": "silu",
}

_LATENT = _COMMON | {
    "architectures": ["DeepseekV2ForCausalLM"],
    "model_type": "deepseek_v2",
    "num_hidden_layers": 2,
    "num_key_value_heads": 4,
    "kv_lora_rank": 64,
    "q_lora_rank": None,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16,
    "v_head_dim": 32,
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 64,
    # Both layers are dense, so no layer is a mixture of experts.
    "first_k_dense_replace": 2,
    "moe_layer_freq": 1,
    "n_group": 1,
    "topk_group": 1,
    "topk_method": "greedy",
    "scoring_func": "softmax",
    "norm_topk_prob": False,
    "routed_scaling_factor": 1.0,
    "rope_theta": 10000.0,
    "rope_scaling": {
        "type": "yarn",
        "rope_type": "deepseek_yarn",
        "factor": 4.0,
        "original_max_position_embeddings": 2048,
        "beta_fast": 32,
        "beta_slow": 1,
        "mscale": 0.707,
        "mscale_all_dim": 0.707,
    },
    "attention_bias": False,
    "pretraining_tp": 1,
}

_WINDOWS = _COMMON | {
    "architectures": ["LagunaForCausalLM"],
    "model_type": "laguna",
    "num_hidden_layers": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "sliding_window": 64,
    "layer_types": ["sliding_attention", "full_attention"] * 2,
    "mlp_layer_types": ["dense"] * 4,
}

MODELS = {"latent": (_LATENT, "deepseek_v2"), "windows": (_WINDOWS, "laguna")}
"""For each name, the configuration and the SGLang module that has the model."""


def make_odd_model(name: str, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(MODELS[name][0]))
    return folder


def stand_in_for_kernels() -> None:
    """Patches SGLang. Call it in the engine's process before SGLang loads a model."""
    _make_large_weights()
    _compute_latent_attention()
    _read_windows_through_the_table()


def _make_large_weights() -> None:
    import torch
    from sglang.srt.model_loader import loader

    def initialize(model: torch.nn.Module, *_: Any, **__: Any) -> None:
        for place, (name, weights) in enumerate(sorted(model.state_dict().items())):
            if not torch.is_floating_point(weights) or "cos_sin" in name:
                continue
            if weights.ndim < 2:
                weights.fill_(0.0 if "bias" in name else 1.0)
                continue
            random = torch.Generator().manual_seed(place)
            scale = 2.0 / weights.shape[-1] ** 0.5
            weights.copy_(torch.randn(weights.shape, generator=random) * scale)

    loader.initialize_dummy_weights = initialize


def _compute_latent_attention() -> None:
    """Registers MLA for torch_native, for which SGLang has no latent attention."""
    from sglang.srt.models.deepseek_common.attention_backend_handler import (
        AttentionBackendRegistry,
        AttnForwardMethod,
    )

    AttentionBackendRegistry.register("torch_native", lambda *_: AttnForwardMethod.MLA)


def _read_windows_through_the_table() -> None:
    """Makes torch_native read pages of windows by their window slots.

    SGLang's torch_native writes them through the table from full slots to window slots,
    but reads them by the full slots."""
    from sglang.srt.layers.attention.torch_native_backend import TorchNativeAttnBackend

    def reading(run: Any) -> Any:
        def translated(
            self: Any,
            q: Any,
            out: Any,
            k: Any,
            v: Any,
            table: Any,
            *rest: Any,
            **named: Any,
        ) -> Any:
            window = named.get("sliding_window_size")
            if window is not None and self.use_sliding_window_kv_pool:
                pool = self.token_to_kv_pool
                table = pool.translate_loc_from_full_to_swa(table.long())
            return run(self, q, out, k, v, table, *rest, **named)

        return translated

    for name in ("_run_sdpa_forward_extend", "_run_sdpa_forward_decode"):
        setattr(
            TorchNativeAttnBackend, name, reading(getattr(TorchNativeAttnBackend, name))
        )
