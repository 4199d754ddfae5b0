"""SGLang and vLLM as HTTP servers: how to start them for a small model on a CPU, and
how to ask them for tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engines.engine_process import QUIET
from engines.sglang.start import models_but_for


@dataclass(frozen=True)
class Kind:
    serve: str
    own_cache: str
    """The options that an engine has from the pool, for an engine without Pando."""
    page_tokens: int
    environment: Callable[[], dict[str, str]]
    path: str
    request: Callable[[list[int], int], dict[str, Any]]
    """Builds the request for so many tokens after a prompt."""
    read: Callable[[dict[str, Any]], tuple[list[int], int]]
    """Reads an answer: its tokens, and the number of tokens of its prompt that were
    cached."""

    def command(self, model: Path) -> list[str]:
        return [word.format(model=model) for word in self.serve.split()]


def _sglang_environment() -> dict[str, str]:
    return {
        **QUIET,
        "SGLANG_USE_CPU_ENGINE": "1",
        "SGLANG_DISABLED_MODEL_ARCHS": ",".join(models_but_for("llama")),
    }


def _sglang_request(prompt: list[int], new: int) -> dict[str, Any]:
    sampling = {"max_new_tokens": new, "temperature": 0, "ignore_eos": True}
    return {"input_ids": prompt, "sampling_params": sampling}


def _vllm_request(prompt: list[int], new: int) -> dict[str, Any]:
    return {
        "prompt": prompt,
        "max_tokens": new,
        "temperature": 0,
        "ignore_eos": True,
        "return_token_ids": True,
    }


KINDS = {
    "sglang": Kind(
        serve="sglang serve --model-path {model} --device cpu --dtype float32"
        " --skip-tokenizer-init --attention-backend torch_native"
        " --sampling-backend pytorch --grammar-backend none --disable-cuda-graph"
        " --disable-overlap-schedule --context-length 4096 --chunked-prefill-size 256",
        own_cache="--page-size 16 --max-total-tokens 16368",
        page_tokens=16,
        environment=_sglang_environment,
        path="/generate",
        request=_sglang_request,
        read=lambda said: (said["output_ids"], said["meta_info"]["cached_tokens"]),
    ),
    "vllm": Kind(
        # `vllm serve` asks for the metadata of a package named vllm; the package of
        # vLLM for CPUs has another name.
        serve="python3 -m vllm.entrypoints.openai.api_server --model {model}"
        " --dtype float32 --skip-tokenizer-init --enforce-eager --max-model-len 4096"
        " --max-num-seqs 4 --max-num-batched-tokens 256 --kv-cache-memory-bytes 64M"
        " --enable-prompt-tokens-details",
        own_cache="--block-size 32",
        # vLLM has no kernel for pages of 16 tokens on a CPU.
        page_tokens=32,
        environment=lambda: (
            QUIET | {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_NO_USAGE_STATS": "1"}
        ),
        path="/v1/completions",
        request=_vllm_request,
        read=lambda said: (
            said["choices"][0]["token_ids"],
            said["usage"]["prompt_tokens_details"]["cached_tokens"],
        ),
    ),
}
