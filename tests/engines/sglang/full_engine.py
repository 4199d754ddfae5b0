"""SGLang's Engine, as a user starts it. usage: full_engine.py MODEL '[[ids]]'"""

import json
import os
import sys


def main() -> None:
    os.environ["SGLANG_USE_CPU_ENGINE"] = "1"
    import sglang

    engine = sglang.Engine(
        model_path=sys.argv[1],
        served_model_name="tiny",
        radix_cache_backend="pando",
        device="cpu",
        dtype="float32",
        skip_tokenizer_init=True,
        attention_backend="torch_native",
        sampling_backend="pytorch",
        grammar_backend="none",
        page_size=16,
        max_total_tokens=8176,
        disable_cuda_graph=True,
        disable_overlap_schedule=True,
        context_length=4096,
        chunked_prefill_size=256,
    )
    sampling = {"max_new_tokens": 8, "temperature": 0.0, "ignore_eos": True}
    for tokens in json.loads(sys.argv[2]):
        answer = engine.generate(input_ids=tokens, sampling_params=sampling)
        print(
            "@@"
            + json.dumps(
                {
                    "output": answer["output_ids"],
                    "cached": answer["meta_info"]["cached_tokens"],
                }
            ),
            flush=True,
        )
    engine.shutdown()


if __name__ == "__main__":
    main()
