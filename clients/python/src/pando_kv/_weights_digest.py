"""A digest of a model's weights in a folder of this machine.

Two models of one architecture differ only in their weights, and a folder's name does
not identify its contents. Reading all weights would take minutes, so a few bytes of
each tensor are read.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import BinaryIO

_SUFFIXES = (".safetensors", ".bin", ".pt", ".pth", ".gguf")
# The number of pieces that are read of each file, and the bytes of a piece.
_PIECES = 64
_PIECE_BYTES = 64
_MOST_HEADER_BYTES = 64 << 20
_DIGITS = 16


def weights_digest(folder: str) -> str:
    """Returns a digest of the weight files: of their names, their sizes and samples of
    their bytes. Returns an empty string if there is no such folder, or no weight file
    in it."""
    files = sorted(
        path
        for path in (Path(folder).iterdir() if Path(folder).is_dir() else ())
        if path.suffix in _SUFFIXES
    )
    if not files:
        return ""
    digest = hashlib.sha256()
    for path in files:
        size = path.stat().st_size
        digest.update(f"{path.name} {size}\n".encode())
        with path.open("rb") as file:
            for place in _places(file, path.suffix, size):
                file.seek(place)
                digest.update(file.read(_PIECE_BYTES))
    return digest.hexdigest()[:_DIGITS]


def _places(file: BinaryIO, suffix: str, size: int) -> list[int]:
    """Returns the offsets to read at: the middles of tensors, if the file says where
    its tensors are, or else evenly spaced offsets."""
    middles = _middles_of_tensors(file, size) if suffix == ".safetensors" else []
    middles = middles or [size * n // _PIECES for n in range(_PIECES)]
    step = -(-len(middles) // _PIECES)
    return [0, *middles[::step], max(0, size - _PIECE_BYTES)]


def _middles_of_tensors(file: BinaryIO, size: int) -> list[int]:
    length = int.from_bytes(file.read(8), "little")
    if length > min(size, _MOST_HEADER_BYTES):
        return []
    try:
        tensors = json.loads(file.read(length))
        spans = [
            each["data_offsets"]
            for name, each in tensors.items()
            if name != "__metadata__"
        ]
        return sorted(8 + length + (begin + end) // 2 for begin, end in spans)
    except (ValueError, KeyError, TypeError, AttributeError):
        return []  # the file is malformed; evenly spaced samples serve as well
