"""Times copies of one request's blocks between Pando's memory and a GPU. The floor is
one copy of as many bytes from or to pinned memory; block copies and floor take turns.
"""

import time
from statistics import median

import numpy as np
from device_memory import device_memory
from pando_kv import BlockKeys, Client, KindSpec, _native
from pando_kv.blocks import PLACE_BYTES
from rows import Row

KEY_BYTES = 32
ROUNDS = 10
# Bytes of a block, and bytes of a piece. A piece is one layer's part of a block.
SHAPES = ((16 << 10, 16 << 10), (2 << 20, 64 << 10))
REQUEST_BYTES = 256 << 20


def bandwidth_rows(address: str, device: int, request_bytes: int) -> list[Row]:
    copier = _native.CudaCopier(device)
    gpu = device_memory(device, request_bytes)
    with Client(address) as client:
        memory = client.attach_memory()
        base = memory.bytes.ctypes.data
        copier.pin(base, memory.bytes.size)
        rows = []
        for block_bytes, piece_bytes in SHAPES:
            places = _reserve(client, device, block_bytes, request_bytes // block_bytes)
            host = base + places.astype(np.uint64) * np.uint64(PLACE_BYTES)
            rows += _rows(copier, device, host, gpu, block_bytes, piece_bytes)
        copier.unpin(base)
    return rows


def _reserve(client: Client, device: int, block_bytes: int, count: int) -> np.ndarray:
    spec = KindSpec(f"{device} {block_bytes}".encode(), "", KEY_BYTES, block_bytes)
    (kind,) = client.open_kinds([spec])
    keys = np.random.default_rng(block_bytes).bytes(count * KEY_BYTES)
    places = client.reserve_blocks(block_bytes, [BlockKeys(kind.number, keys)])
    # An engine that has run for long has its blocks in no order, either.
    return np.random.default_rng(1).permutation(places)


def _rows(
    copier: _native.CudaCopier,
    device: int,
    host: np.ndarray,
    gpu: int,
    block_bytes: int,
    piece_bytes: int,
) -> list[Row]:
    within = np.arange(0, block_bytes, piece_bytes, dtype=np.uint64)
    pieces = (host[:, None] + within).ravel()
    there = gpu + np.arange(len(pieces), dtype=np.uint64) * np.uint64(piece_bytes)
    sizes = np.full(len(pieces), piece_bytes, np.uint64)
    # The floor is one copy of the whole range; the places lie side by side from
    # host.min() on.
    whole = [np.array([n], np.uint64) for n in (host.min(), gpu, int(sizes.sum()))]
    rows = []
    for is_load, what in ((True, "to"), (False, "from")):
        blocks, one = [], []
        for _ in range(ROUNDS):
            for spent, (at, to, size) in (
                (blocks, (pieces, there, sizes)),
                (one, whole),
            ):
                targets, sources = (to, at) if is_load else (at, to)
                begin = time.perf_counter()
                copier.copy(targets, sources, size, is_load)
                spent.append(time.perf_counter() - begin)
        gib = [int(sizes.sum()) / median(spent) / 2**30 for spent in (blocks, one)]
        rows.append(
            Row(
                f"GPU {device}: {len(host):,} blocks of {block_bytes >> 10} KiB {what} "
                "it; floor: one copy",
                gib[0],
                "GiB/s",
                gib[1],
                ratio_limit=0.9,
                is_minimum=True,
            )
        )
    return rows
