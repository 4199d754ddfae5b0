"""A worker process of the block memory that does one step for each line it reads.

The process answers each line with a line of JSON. Between two steps it waits, so a test
can kill or stop it at a known point.

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
        """Locks, checks and releases the blocks that this or another worker stored."""
        named = keys(STORED, self.prompt)
        places = self.client.acquire_blocks(2, [of(self.kind, named)], all=True)
        assert_holds(self.memory, self.kind, named, places)
        self.client.release_blocks([2])
        return places.tolist()

    def lock(self) -> list[int]:
        named = keys(STORED, self.prompt)
        return self.client.acquire_blocks(LOCK, [of(self.kind, named)]).tolist()

    def check(self) -> None:
        """Checks that the locked blocks still hold their bytes."""
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
        """Starts a thread that writes to the reserved blocks until the process ends."""
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
