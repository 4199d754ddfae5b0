"""One cache for a machine with one or two GPUs: copies of blocks beside one pinned copy
of as many bytes, and two engines over one pandod.

A part whose CUDA driver or vLLM is missing is skipped, with the reason. With vLLM's
build for CPUs the engines only show that the benchmark runs; their figures say nothing
about GPUs.

usage: PYTHONPATH=tests:tests/support python bench/gpu/machine.py [--build build/release]
           [--model NAME] [--engine '{"dtype": "bfloat16", ...}'] [--only copies|engines]
"""

import argparse
import importlib.util
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))

from block_bandwidth import REQUEST_BYTES, bandwidth_rows  # noqa: E402
from device_memory import device_count  # noqa: E402
from rows import Row, print_rows  # noqa: E402
from started_pandod import started_pandod  # noqa: E402

MOST_GPUS = 2


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--memory", default="4GiB", help="of pandod")
    parser.add_argument("--request-bytes", type=int, default=REQUEST_BYTES)
    parser.add_argument("--model", help="of both engines; default: a small one")
    parser.add_argument(
        "--engine", type=json.loads, default={}, help="arguments of vLLM's LLM, as JSON"
    )
    parser.add_argument("--only", choices=["copies", "engines"])
    options = parser.parse_args()
    try:
        devices = list(range(min(device_count(), MOST_GPUS)))
        why_none = "the driver for CUDA sees no GPU"
    except (OSError, RuntimeError) as error:
        devices, why_none = [], f"no driver for CUDA: {error}"
    rows: list[Row] = []
    if options.only != "engines":
        if not devices:
            print(f"skipped: copies: {why_none}")
        for device in devices:
            with started_pandod(options.build, "--memory", options.memory) as (at, _):
                rows += bandwidth_rows(at, device, options.request_bytes)
    if options.only != "copies":
        if importlib.util.find_spec("vllm") is None:
            print("skipped: engines: this Python has no vLLM")
        else:
            from two_engines import engine_rows

            with started_pandod(options.build, "--memory", options.memory) as (at, _):
                rows += engine_rows(at, devices or [0], options.model, options.engine)
    print_rows(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
