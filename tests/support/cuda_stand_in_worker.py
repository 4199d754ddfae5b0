"""A worker process on a CUDA pool whose driver is the stand-in: one step a line.

The stand-in's memory can be reached by the CPU, so numpy is laid over it. It answers
each line with a line of JSON. usage: cuda_stand_in_worker.py ADDRESS
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
        super().__init__(pool.description)
        self._shards = [
            (ctypes.c_ubyte * shard.size_bytes).from_address(address)
            for shard, address in zip(
                pool.description.shards, pool.addresses, strict=True
            )
        ]

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

    def publish(self) -> list[int]:
        """Writes the pages of the prompt in every shard, and inserts them."""
        pages = self.client.allocate_pages(PAGES)
        for nth, page in enumerate(pages.tolist()):
            for view, content in self._planes(nth):
                view[page] = content
        self.client.insert(self.tokens, pages)
        return pages.tolist()

    def match(self) -> bool:
        """Whether the prompt is cached, and every element is what was published."""
        pages = self.client.match_prefix(self.tokens).page_ids.tolist()
        return len(pages) == PAGES and self._hold(pages)

    def evict(self) -> int:
        return self.client.evict(PAGES)

    def load(self) -> bool:
        """Waits for a tier, and sees whether every element is what was published."""
        match = self.client.match_prefix(self.tokens, lock=True, pending_wait=60)
        with match.lock:
            pages = match.page_ids.tolist()
            return len(pages) == PAGES and self._hold(pages)

    def read(self) -> bool:
        """Whether the first pages hold what was published, without asking pandod."""
        return self._hold(range(1, PAGES + 1))

    def reserve(self) -> int:
        return len(self.client.allocate_pages(10))

    def attach_again(self) -> bool:
        """Whether every shard is mapped where it was before."""
        before = self.pool.addresses
        self.views = None
        self.pool.close()
        self.pool = self.client.attach_pool(addresses=before)
        self.views = _ByTheCpu(self.pool)
        return self.pool.addresses == before

    def attach_often(self) -> bool:
        """Whether a hundred more mappings leave as much behind as one."""
        self.client.attach_pool().close()
        before = self.held()
        for _ in range(100):
            self.client.attach_pool().close()
        return self.held() == before

    def held(self) -> list[int]:
        """Descriptors and mappings of device memory."""
        links = [Path("/proc/self/fd", fd) for fd in os.listdir("/proc/self/fd")]
        # The listing's own descriptor is gone by now.
        names = [str(link.readlink()) for link in links if link.is_symlink()]
        maps = Path("/proc/self/maps").read_text().splitlines()
        return [
            sum("cuda_stand_in_device" in line for line in lines)
            for lines in (names, maps)
        ]

    def _planes(self, nth: int):
        """Each plane, and what it holds of the prompt's nth page."""
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


def main() -> None:
    worker = CudaStandInWorker(sys.argv[1])
    for line in sys.stdin:
        try:
            answer = getattr(worker, line.strip())()
        except PandoError as error:
            answer = {"error": type(error).__name__, "message": str(error)}
        print(json.dumps(answer, default=bool), flush=True)


if __name__ == "__main__":
    main()
