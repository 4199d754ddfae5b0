"""A worker process of the block memory that does one step for each line it reads.

It answers each line with a line of JSON. Between steps it waits, so that it can be
killed or stopped at a known point.

usage: block_worker.py ADDRESS FIRST_PROMPT
"""

import json
import sys
import threading

from blocks import (
    RESERVED,
    STORED,
    assert_holds,
    bytes_at,
    content,
    keys,
    of,
    spec,
    store,
)
from pando_kv import Client, PandoError

LOCK = 7
RESERVATION = 8


class Worker:
    def __init__(self, address: str, prompt: int) -> None:
        self.client = Client(address, name="block worker")
        self.prompt = prompt
        self.memory = None
        self.kind = None
        self.places = None

    def attach(self) -> None:
        self.memory = self.client.attach_memory()
        (self.kind,) = self.client.open_kinds([spec()])

    def store(self) -> None:
        store(self.client, self.memory, 1, self.kind, keys(STORED, self.prompt))

    def read(self) -> list[int]:
        """Locks and checks what it or another worker has stored."""
        named = keys(STORED, self.prompt)
        places = self.client.acquire_blocks(2, [of(self.kind, named)], all=True)
        assert_holds(self.memory, self.kind, named, places)
        self.client.release_blocks([2])
        return places.tolist()

    def lock(self) -> list[int]:
        named = keys(STORED, self.prompt)
        return self.client.acquire_blocks(LOCK, [of(self.kind, named)]).tolist()

    def check(self) -> None:
        """Its locked blocks are as they were."""
        named = keys(STORED, self.prompt)
        places = self.client.acquire_blocks(LOCK, [of(self.kind, named)])
        assert_holds(self.memory, self.kind, named, places)

    def reserve(self) -> list[int]:
        named = keys(RESERVED, self.prompt, STORED)
        before = keys(1, self.prompt, STORED - 1)[0]
        asked = [of(self.kind, named, before=before)]
        self.places = self.client.reserve_blocks(RESERVATION, asked)
        return self.places.tolist()

    def write(self) -> None:
        """From now on it never stops writing."""
        threading.Thread(target=self._write_on, daemon=True).start()

    def _write_on(self) -> None:
        size = self.kind.spec.shard_bytes
        named = keys(RESERVED, self.prompt, STORED)
        while True:
            for key, place in zip(named, self.places, strict=True):
                bytes_at(self.memory, place, size)[:] = content(key, size)

    def publish(self) -> None:
        self.client.publish_blocks(RESERVATION)

    def generation(self) -> int:
        return self.client.generation


def main() -> None:
    worker = Worker(sys.argv[1], int(sys.argv[2]))
    for line in sys.stdin:
        try:
            answer = getattr(worker, line.strip())()
        except PandoError as error:
            answer = error.reason
        print(json.dumps(answer), flush=True)


main()
