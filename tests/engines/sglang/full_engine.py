"""A program that runs SGLang's Engine as a user starts it, with its processes.

usage: full_engine.py '{"model_path": ..., more of ServerArgs}'

The program reads commands as lines of JSON and answers each with one line:
{"prompts": [[ids]], "new": n}  runs the prompts one after another
"""

import json
import os
import sys

ARGUMENTS = {
    "served_model_name": "tiny",
    "radix_cache_backend": "pando",
    "device": "cpu",
    "dtype": "float32",
    "skip_tokenizer_init": True,
    "attention_backend": "torch_native",
    "sampling_backend": "pytorch",
    "grammar_backend": "none",
    "page_size": 16,
    "max_total_tokens": 8176,
    "disable_cuda_graph": True,
    "disable_overlap_schedule": True,
    "context_length": 4096,
    "chunked_prefill_size": 256,
}


def main() -> None:
    os.environ["SGLANG_USE_CPU_ENGINE"] = "1"
    import sglang

    engine = sglang.Engine(**(ARGUMENTS | json.loads(sys.argv[1])))
    say(ready=True)
    for line in sys.stdin:
        command = json.loads(line)
        sampling = {
            "max_new_tokens": command.get("new", 8),
            "temperature": 0.0,
            "ignore_eos": True,
        }
        answers = [
            engine.generate(input_ids=tokens, sampling_params=sampling)
            for tokens in command["prompts"]
        ]
        say(
            outputs=[answer["output_ids"] for answer in answers],
            cached=[answer["meta_info"]["cached_tokens"] for answer in answers],
        )
    engine.shutdown()


def say(**answer) -> None:
    print("@@" + json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
