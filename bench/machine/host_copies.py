"""Times copies of one request's blocks between vLLM's memory and Pando's, which both
lie in host memory. The floor is one memcpy of as many bytes; copies and floor take
turns."""

import ctypes
from collections.abc import Callable

import numpy as np
import torch
from in_turns import p50s_in_turns
from pando_kv import BlockKeys, Client, KindSpec
from pando_kv.vllm.offloading.block_places import BlockPlaces
from pando_kv.vllm.offloading.host_copies import HostCopies
from pando_kv.vllm.offloading.layout import Layout, Piece
from rows import Row
from vllm.v1.kv_offload.base import CanonicalKVCacheRef, GPULoadStoreSpec

KEY_BYTES = 32
# The name, the number of layers, the bytes of a page in a layer, and the number of
# blocks of the request.
SHAPES = (("16 KiB", 1, 16 << 10, 2048), ("2 MiB", 32, 64 << 10, 64))


def host_copy_rows(address: str) -> list[Row]:
    rows = []
    with Client(address) as client:
        for name, layers, page_bytes, blocks in SHAPES:
            measured = _measure(client, name, layers, page_bytes, blocks)
            whole = layers * page_bytes * blocks
            gib = {what: whole / s / 2**30 for what, s in measured.items()}
            rows += [
                Row(
                    f"{what} {blocks:,} blocks of {name}; floor: memcpy",
                    gib[what],
                    "GiB/s",
                    gib[f"memcpy of {what}"],
                    ratio_limit=0.9,
                    is_minimum=True,
                )
                for what in ("load", "store")
            ]
    return rows


def _measure(
    client: Client, name: str, layers: int, page_bytes: int, blocks: int
) -> dict[str, float]:
    """Returns the median seconds of each kind of copy, by its name."""
    (kind,) = client.open_kinds(
        [KindSpec(name.encode(), name, KEY_BYTES, layers * page_bytes)]
    )
    keys = np.random.default_rng(1).bytes(blocks * KEY_BYTES)
    places = client.reserve_blocks(1 + layers, [BlockKeys(kind.number, keys)])
    memory = client.attach_memory()
    kv = [torch.ones(blocks, page_bytes, dtype=torch.int8) for _ in range(layers)]
    pieces = [
        Piece(CanonicalKVCacheRef(n, page_bytes), pages, page_bytes, n * page_bytes)
        for n, pages in enumerate(kv)
    ]
    copies = HostCopies(
        Layout([pieces], 1, False, False, 1, 0), memory, [kind.shard_stride]
    )
    there = BlockPlaces(places.tolist(), memory.epoch, 0)
    order = np.random.default_rng(2).permutation(blocks).tolist()
    here = GPULoadStoreSpec(order, [blocks], [0])
    # The floor copies as many bytes between the same two memories, one layer at a time.
    host = memory.bytes.ctypes.data + int(places[0]) * 4096

    def memcpy(to_host: bool) -> None:
        for n, pages in enumerate(kv):
            size = blocks * page_bytes
            at, device = host + n * size, pages.data_ptr()
            ctypes.memmove(*((at, device) if to_host else (device, at)), size)

    def copy(way: Callable[..., None], source: object, target: object) -> None:
        way(0, source, target)
        copies.take_finished()

    do: dict[str, Callable[[], None]] = {
        "store": lambda: copy(copies.store, here, there),
        "memcpy of store": lambda: memcpy(True),
        "load": lambda: copy(copies.load, there, here),
        "memcpy of load": lambda: memcpy(False),
    }
    for each in do.values():  # the first copy pays for allocating memory
        each()
    return p50s_in_turns(
        {what: lambda _, each=each: each for what, each in do.items()}, calls=2
    )
