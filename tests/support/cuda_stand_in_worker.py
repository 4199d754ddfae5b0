"""A worker process on a CUDA pool whose driver is the stand-in.

The process does one step for each line it reads, and answers with a line of JSON. The
CPU can reach the stand-in's memory, so the views of the pool are numpy arrays.

usage: cuda_stand_in_worker.py ADDRESS
"""

import ctypes
import json
import os
import sys
from pathlib import Path

import numpy as np
from pando_kv import Client, PandoError
from pando_kv._kv_views import KvViews

PAGES = 3


class _ByTheCpu(KvViews[np.ndarray]):
    def __init__(self, pool) -> None:
        super().__init__(pool.description, pool.mapped)
        shards = pool.description.shards
        self._shards = {
            i: (ctypes.c_ubyte * shards[i].size_bytes).from_address(pool.addresses[i])
            for i in pool.mapped
        }

    def memory(self, shard=0):
        return np.frombuffer(self._shards[shard], np.uint8)

    def _array(self, shard, offset, shape, strides):
        dtype = self.layout.dtype.numpy
        return np.ndarray(shape, dtype, self._shards[shard], offset, strides)


class CudaStandInWorker:
    def __init__(self, address: str) -> None:
        self.client = Client(address, name="on the stand-in")
        page_tokens = self.client.pool.layout.page_tokens
        self.tokens = np.arange(PAGES * page_tokens, dtype=np.uint32)
        self.shards = range(len(self.client.pool.shards))
        self.layers = range(self.client.pool.layout.layers)
        self.pool = self.views = None

    def attach(self) -> None:
        self.pool = self.client.attach_pool()
        self.views = _ByTheCpu(self.pool)

    def attach_shard(self, shard: str) -> list[int]:
        """Attaches only this shard, as the rank of this number does.

        Returns the devices that then have a context.
        """
        self.shards = [int(shard)]
        self.pool = self.client.attach_pool(shards=self.shards)
        self.views = _ByTheCpu(self.pool)
        return _driver().CudaStandInCount().devices

    def writers(self) -> list[list[bool]]:
        """Returns, for each shard, whether kernels on each device may write to it."""
        return [
            [
                bool(_driver().CudaStandInMayWrite(ctypes.c_uint64(address), device))
                for device in self.shards
            ]
            for address in self.pool.addresses
        ]

    def write(self, pages: str) -> None:
        """Writes to pages that another rank has reserved, as publish() does."""
        self._write([int(page) for page in pages.split(",")])

    def zeros(self) -> bool:
        """Returns whether all bytes of the pool are zero."""
        return not any(self.views.memory(shard).any() for shard in self.shards)

    def look_at(self, shard: str) -> str:
        """Returns the error of views of an unmapped shard, or "" if there is none."""
        try:
            self.views.keys(0, int(shard))
        except IndexError as error:
            return str(error)
        return ""

    def publish(self) -> list[int]:
        """Writes and inserts the prompt's pages in every shard; returns their ids."""
        pages = self.client.allocate_pages(PAGES)
        self._write(pages.tolist())
        self.client.insert(self.tokens, pages)
        return pages.tolist()

    def match(self) -> bool:
        """Returns whether the prompt is cached with all elements as published."""
        pages = self.client.match_prefix(self.tokens).page_ids.tolist()
        return len(pages) == PAGES and self._hold(pages)

    def evict(self) -> int:
        return self.client.evict(PAGES)

    def load(self) -> bool:
        """Loads the prompt from a tier; returns whether it is as published."""
        match = self.client.match_prefix(self.tokens, lock=True, pending_wait=60)
        with match.lock:
            pages = match.page_ids.tolist()
            return len(pages) == PAGES and self._hold(pages)

    def read(self) -> bool:
        """Returns whether the first pages are as published, without asking pandod."""
        return self._hold(range(1, PAGES + 1))

    def reserve(self) -> int:
        return len(self.client.allocate_pages(10))

    def attach_again(self) -> bool:
        """Attaches the pool again; returns whether every shard has its old address."""
        before = self.pool.addresses
        self.views = None
        self.pool.close()
        self.pool = self.client.attach_pool(addresses=before)
        self.views = _ByTheCpu(self.pool)
        return self.pool.addresses == before

    def attach_elsewhere(self) -> None:
        """Attaches the pool at addresses that this process has never used before."""
        wanted = [address + (1 << 40) for address in self.pool.addresses]
        self.views = None
        self.pool.close()
        self.client.attach_pool(addresses=wanted)

    def attach_often(self) -> bool:
        """Returns whether a hundred more mappings leave as much behind as one does."""
        self.client.attach_pool().close()
        before = self.held()
        for _ in range(100):
            self.client.attach_pool().close()
        return self.held() == before

    def held(self) -> list[int]:
        """Returns how many descriptors and how many mappings of device memory exist."""
        links = [Path("/proc/self/fd", fd) for fd in os.listdir("/proc/self/fd")]
        # A link without a target was the descriptor of the listing itself.
        names = [str(link.readlink()) for link in links if link.is_symlink()]
        maps = Path("/proc/self/maps").read_text().splitlines()
        return [
            sum("cuda_stand_in_device" in line for line in lines)
            for lines in (names, maps)
        ]

    def _write(self, pages: list[int]) -> None:
        for nth, page in enumerate(pages):
            for view, content in self._planes(nth):
                view[page] = content

    def _planes(self, nth: int):
        """Yields each plane, and the value that it holds in the prompt's nth page."""
        for shard in self.shards:
            for layer in self.layers:
                content = 100 * nth + 10 * layer + shard
                yield self.views.keys(layer, shard), content
                yield self.views.values(layer, shard), content + 0.5

    def _hold(self, pages) -> bool:
        return all(
            (view[page] == content).all()
            for nth, page in enumerate(pages)
            for view, content in self._planes(nth)
        )


class _Held(ctypes.Structure):
    """The beginning of the structure CudaStandInHeld of control.h."""

    _fields_ = [("devices", ctypes.c_int), ("rest", ctypes.c_int * 7)]


def _driver() -> ctypes.CDLL:
    driver = ctypes.CDLL("libcuda.so.1")
    driver.CudaStandInCount.restype = _Held
    driver.CudaStandInMayWrite.restype = ctypes.c_bool
    return driver


def main() -> None:
    worker = CudaStandInWorker(sys.argv[1])
    for line in sys.stdin:
        try:
            step, *arguments = line.split()
            answer = getattr(worker, step)(*arguments)
        except PandoError as error:
            answer = {"error": type(error).__name__, "message": str(error)}
        print(json.dumps(answer, default=bool), flush=True)


if __name__ == "__main__":
    main()
