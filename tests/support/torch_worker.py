"""A worker process over the pool's torch tensors.

The process does one step for each line it reads, and answers with a line of JSON.

usage: torch_worker.py ADDRESS
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
        # Each number is the value of the elements of one page of the prompt.
        self.written = range(1, PAGES + 1)

    def attach(self) -> None:
        self.pool = self.client.attach_pool()
        self.views = self.pool.torch()

    def publish(self) -> list[int]:
        """Writes the prompt's pages, inserts them, and returns their ids."""
        pages = self.client.allocate_pages(PAGES)
        for page, value in zip(pages.tolist(), self.written, strict=True):
            for layer in range(self.client.pool.layout.layers):
                self.views.keys(layer)[page] = value
                self.views.values(layer)[page] = value + 0.5
        self._wait()
        self.client.insert(self.tokens, pages)
        return pages.tolist()

    def match(self) -> bool:
        """Returns whether the prompt is cached with all elements as published."""
        pages = self.client.match_prefix(self.tokens).page_ids.tolist()
        return len(pages) == PAGES and self._holds(pages)

    def evict(self) -> int:
        return self.client.evict(PAGES)

    def load(self) -> bool:
        """Loads the prompt from a tier; returns whether it is as published."""
        match = self.client.match_prefix(self.tokens, lock=True, pending_wait=60)
        with match.lock:
            pages = match.page_ids.tolist()
            return len(pages) == PAGES and self._holds(pages)

    def read(self) -> bool:
        """Returns whether the first pages are as published, without asking pandod."""
        return self._holds(range(1, PAGES + 1))

    def write_on(self) -> int:
        """Starts kernels that write to reserved pages for ever; returns the count."""
        pages = torch.from_numpy(self.client.allocate_pages(10).astype(np.int64))
        keys = self.views.keys(0)
        pages = pages.to(keys.device)

        def run() -> None:
            while True:
                keys[pages] += 1

        threading.Thread(target=run, daemon=True).start()
        return len(pages)

    def attach_often(self) -> list[int]:
        """Attaches a thousand times; returns the free bytes before and after."""
        self.client.attach_pool().close()
        before = torch.cuda.mem_get_info()[0]
        for _ in range(1000):
            with self.client.attach_pool() as pool:
                pool.torch()
        return [before, torch.cuda.mem_get_info()[0]]

    def attach_again(self) -> bool:
        """Attaches the pool again; returns whether its addresses are the old ones."""
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
