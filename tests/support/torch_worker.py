"""A worker process over the pool's torch tensors, one step for each line it reads.

It answers each line with a line of JSON. usage: torch_worker.py ADDRESS
"""

import json
import sys
import threading

import numpy as np
import torch
from pando_kv import Client, PandoError

PAGES = 3


class TorchWorker:
    def __init__(self, address: str) -> None:
        self.client = Client(address, name="torch")
        page_tokens = self.client.pool.layout.page_tokens
        self.tokens = np.arange(PAGES * page_tokens, dtype=np.uint32)
        self.pool = self.views = None
        # The elements of each page of the prompt are made from one of these numbers.
        self.written = range(1, PAGES + 1)

    def attach(self) -> None:
        self.pool = self.client.attach_pool()
        self.views = self.pool.torch()

    def publish(self) -> list[int]:
        """Writes the pages of the prompt, and inserts them."""
        pages = self.client.allocate_pages(PAGES)
        for page, value in zip(pages.tolist(), self.written, strict=True):
            for layer in range(self.client.pool.layout.layers):
                self.views.keys(layer)[page] = value
                self.views.values(layer)[page] = value + 0.5
        self._wait()
        self.client.insert(self.tokens, pages)
        return pages.tolist()

    def match(self) -> bool:
        """Whether the prompt is cached, and every element is what was published."""
        pages = self.client.match_prefix(self.tokens).page_ids.tolist()
        return len(pages) == PAGES and self._holds(pages)

    def evict(self) -> int:
        return self.client.evict(PAGES)

    def load(self) -> bool:
        """Waits for a tier, and sees whether every element is what was published."""
        match = self.client.match_prefix(self.tokens, lock=True, pending_wait=60)
        with match.lock:
            pages = match.page_ids.tolist()
            return len(pages) == PAGES and self._holds(pages)

    def read(self) -> bool:
        """Whether the first pages hold what was published, without asking pandod."""
        return self._holds(range(1, PAGES + 1))

    def write_on(self) -> int:
        """Kernels write to reserved pages from now on; how many pages."""
        pages = torch.from_numpy(self.client.allocate_pages(10).astype(np.int64))
        keys = self.views.keys(0)
        pages = pages.to(keys.device)

        def run() -> None:
            while True:
                keys[pages] += 1

        threading.Thread(target=run, daemon=True).start()
        return len(pages)

    def attach_often(self) -> list[int]:
        """Free bytes of the device, before and after."""
        self.client.attach_pool().close()
        before = torch.cuda.mem_get_info()[0]
        for _ in range(1000):
            with self.client.attach_pool() as pool:
                pool.torch()
        return [before, torch.cuda.mem_get_info()[0]]

    def attach_again(self) -> bool:
        """Whether the pool is mapped where it was before."""
        before = self.pool.addresses
        self.views = None
        self.pool.close()
        self.pool = self.client.attach_pool(addresses=before)
        self.views = self.pool.torch()
        return self.pool.addresses == before

    def _holds(self, pages) -> bool:
        return all(
            bool((self.views.keys(layer)[page] == value).all())
            and bool((self.views.values(layer)[page] == value + 0.5).all())
            for page, value in zip(pages, self.written, strict=True)
            for layer in range(self.client.pool.layout.layers)
        )

    def _wait(self) -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()


def main() -> None:
    worker = TorchWorker(sys.argv[1])
    for line in sys.stdin:
        try:
            answer = getattr(worker, line.strip())()
        except PandoError as error:
            answer = {"error": type(error).__name__}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
