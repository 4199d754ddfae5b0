"""A program that makes the KV cache of mini-SGLang's engine, and prints a refusal.

usage: make_pool.py SOURCES TP_SIZE DTYPE
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

sys.path.append(str(Path(__file__).resolve().parents[2]))
from engines.minisgl.cpu import stand_in_for_the_gpu


def main() -> None:
    sources, ranks, dtype = sys.argv[1:]
    sys.path.insert(0, sources)
    stand_in_for_the_gpu()
    from minisgl.distributed import set_tp_info
    from pando_kv.minisgl.kv_cache import make_kv_cache

    set_tp_info(0, int(ranks))
    try:
        make_kv_cache(None, 512, 16, getattr(torch, dtype), torch.device("cpu"))
    except ValueError as error:
        print(error)


if __name__ == "__main__":
    main()
