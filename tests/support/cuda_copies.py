"""A program that copies with a CudaCopier between host memory and the stand-in's GPU.

The CPU can reach that GPU's memory. The program prints whether all bytes arrived.

usage: cuda_copies.py
"""

import ctypes
import json
import mmap
import sys
from pathlib import Path

import numpy as np
from pando_kv import _native

sys.path.insert(0, str(Path(__file__).parents[2] / "bench" / "gpu"))

from device_memory import device_memory  # noqa: E402

PIECES, PIECE_BYTES = 64, 4096
SIZE = 2 << 20


def main() -> None:
    copier = _native.CudaCopier(0)
    address = device_memory(0, SIZE)
    device = np.frombuffer((ctypes.c_ubyte * SIZE).from_address(address), np.uint8)
    host = np.frombuffer(mmap.mmap(-1, SIZE), np.uint8)
    copier.pin(host.ctypes.data, SIZE)
    random = np.random.default_rng(3)
    host[:] = random.integers(0, 256, SIZE, np.uint8)
    at = random.permutation(SIZE // PIECE_BYTES)[:PIECES].astype(np.uint64)
    to = random.permutation(SIZE // PIECE_BYTES)[:PIECES].astype(np.uint64)
    sizes = np.full(PIECES, PIECE_BYTES, np.uint64)
    sources = np.uint64(host.ctypes.data) + at * np.uint64(PIECE_BYTES)
    targets = np.uint64(device.ctypes.data) + to * np.uint64(PIECE_BYTES)
    copier.copy(targets, sources, sizes, True)
    pieces = host.reshape(-1, PIECE_BYTES)
    expected = pieces[at].copy()
    came = device.reshape(-1, PIECE_BYTES)[to]
    host[:] = 0
    copier.copy(sources, targets, sizes, False)
    try:
        not_pinned = np.zeros(PIECE_BYTES, np.uint8)
        source = np.array([not_pinned.ctypes.data], np.uint64)
        copier.copy(targets[:1], source, sizes[:1], True)
        refusal = ""
    except RuntimeError as error:
        refusal = str(error)
    copier.unpin(host.ctypes.data)
    answer = {
        "to_device": bool((came == expected).all()),
        "to_host": bool((pieces[at] == expected).all()),
        "others": int(np.count_nonzero(pieces.any(axis=1))),
        "is_batched": copier.is_batched,
        "refusal": refusal,
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
