"""Random programs on a small pool with a disk, with and without a host memory tier.
Each call must find at least the blocks that surely exist, at most those that may exist,
and the bytes that were computed.

PANDO_TEST_SEED sets the seed of the programs.
"""

import os
import random
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from eventually import eventually
from pando_kv import Namespace, PrefixQuery
from pandod_process import PAGE_TOKENS
from protocol_worker import protocol_worker
from tiered import WAIT_MS, Tiered, contents, fill

SEED = int(os.environ.get("PANDO_TEST_SEED", "1"))
STEPS = 40
DEPTH = 4
NAMESPACES = [None, Namespace(extra_key="lora")]
# The same namespaces, as `Flush` takes them.
FLUSHED = [{}, {"extra_key": "lora"}]
# A quarter of the pool holds any prompt; the whole pool holds half of all blocks.
POOL_PAGES = 32
PAGE_BYTES = 4096
SLOT_BYTES = PAGE_BYTES + 64
ALL_BLOCKS = len(NAMESPACES) * (2 ** (DEPTH + 1) - 2)
SOME_BLOCKS = 9

# A block is a page and all before it: its namespace, and the turns the prompt took.
Block = tuple[int, tuple[int, ...]]


class Reference:
    """The blocks that must be on disk, and the blocks that may be there."""

    def __init__(self) -> None:
        self.must: set[Block] = set()
        self.may: set[Block] = set()

    def store(self, blocks: Iterable[Block], *, surely: bool) -> None:
        blocks = set(blocks)
        self.may |= blocks
        if surely:
            self.must |= blocks

    def forget(self, namespace: int) -> None:
        self.must = {block for block in self.must if block[0] != namespace}
        self.may = {block for block in self.may if block[0] != namespace}


def blocks_of(prompt: Block) -> list[Block]:
    namespace, path = prompt
    return [(namespace, path[:end]) for end in range(1, len(path) + 1)]


def number_of(block: Block) -> int:
    namespace, path = block
    return int("".join(map(str, (1 + namespace, 1, *path))))


def tokens_of(prompt: Block) -> np.ndarray:
    pages = [number_of((0, path)) for _, path in blocks_of(prompt)]
    return np.repeat(np.array(pages, dtype=np.uint32), PAGE_TOKENS)


def count_while_in(blocks: list[Block], known: set[Block]) -> int:
    return next(
        (i for i, block in enumerate(blocks) if block not in known), len(blocks)
    )


class Program:
    """A random program that makes one call after another and keeps a Reference."""

    def __init__(self, tiered: Tiered, seed: int, *, has_room: bool) -> None:
        self._tiered = tiered
        self._seed = seed
        self._random = random.Random(seed)
        # With room, the disk drops no block by itself, and each step waits for its
        # stores.
        self._has_room = has_room
        self._disk = Reference()
        self._computed: dict[Block, np.ndarray] = {}
        self._said: list[str] = []
        self._connection = ExitStack()
        self._connect()

    def run(self) -> None:
        steps = [self._serve] * 14 + [self._evict] * 4
        if self._has_room:
            steps += [self._restart, self._flush]
        with self._connection:
            for _ in range(STEPS):
                self._random.choice(steps)()
                self._check_accounts()

    def _connect(self) -> None:
        self._client = self._connection.enter_context(self._tiered.client())
        self._pool = self._connection.enter_context(self._client.attach_pool())
        self._worker = self._connection.enter_context(
            protocol_worker(self._tiered.pandod.address)
        )

    def _say(self, what: str) -> None:
        self._said.append(what)

    def _why(self) -> str:
        said = "\n".join(self._said)
        return f"PANDO_TEST_SEED={self._seed}, after:\n{said}"

    def _serve(self) -> None:
        depth = self._random.randint(1, DEPTH)
        path = tuple(self._random.randrange(2) for _ in range(depth))
        prompt = (self._random.randrange(len(NAMESPACES)), path)
        waits = self._random.random() < 0.8
        self._say(f"serve {prompt}, waits: {waits}")
        namespace, tokens = NAMESPACES[prompt[0]], tokens_of(prompt)
        [score] = self._client.match_prefixes([PrefixQuery(tokens, namespace)])
        cached = score.matched_tokens // PAGE_TOKENS
        match = self._client.match_prefix(
            tokens,
            namespace=namespace,
            lock=True,
            reserve_tokens=tokens.size,
            pending_wait=WAIT_MS / 1000 if waits else 0,
        )
        blocks = blocks_of(prompt)
        matched = match.matched_tokens // PAGE_TOKENS
        rest = blocks[cached:] if waits else []
        assert matched - cached >= count_while_in(rest, self._disk.must), self._why()
        assert matched - cached <= count_while_in(rest, self._disk.may), self._why()
        with match.lock:
            self._check_bytes(blocks[:matched], match.page_ids)
            self._compute(blocks[matched:], match.reserved_page_ids)
            self._client.insert(
                [],
                match.reserved_page_ids,
                lock=match.lock,
                prompt_tokens=tokens.size - match.matched_tokens,
            )
        self._disk.store(blocks[matched:], surely=self._has_room)

    def _check_bytes(self, blocks: list[Block], pages: np.ndarray) -> None:
        for block, page in zip(blocks, pages, strict=True):
            found = contents(self._pool, self._client, np.array([page]))
            assert np.array_equal(found, self._computed[block]), self._why()

    def _compute(self, blocks: list[Block], pages: np.ndarray) -> None:
        for block, page in zip(blocks, pages, strict=True):
            fill(self._pool, self._client, np.array([page]), number_of(block))
            computed = contents(self._pool, self._client, np.array([page]))
            self._computed[block] = computed

    def _evict(self) -> None:
        pages = self._random.randint(1, POOL_PAGES)
        self._say(f"evict {pages}")
        self._client.evict(pages)

    def _flush(self) -> None:
        """Flushes, then stops in order: a kill might leave flushed blocks on disk."""
        namespace = self._random.randrange(len(NAMESPACES))
        self._say(f"flush {namespace}")
        self._worker.call("Flush", namespace=FLUSHED[namespace])
        self._disk.forget(namespace)
        self._restart_after("stop")

    def _restart(self) -> None:
        self._restart_after(self._random.choice(["stop", "kill"]))

    def _restart_after(self, end: str) -> None:
        self._say(f"{end}, start")
        self._connection.close()
        getattr(self._tiered.pandod, end)()
        self._tiered.pandod.start()
        self._connect()

    def _check_accounts(self) -> None:
        if self._has_room:
            on_disk = len(self._disk.must)
            eventually(lambda: self._tiered.figure("pages", tier="disk") == on_disk)
            self._tiered.await_idle()
            assert self._worker.stats().pages.reserved == 0, self._why()
        held, room = (self._tiered.figure(f) for f in ("pages", "capacity_pages"))
        assert held <= room, self._why()
        assert self._worker.violations() == [], self._why()


@pytest.mark.parametrize("seed", range(SEED, SEED + 2))
@pytest.mark.parametrize(
    ("has_room", "host_bytes"),
    [(True, None), (False, None), (True, SOME_BLOCKS * PAGE_BYTES)],
)
def test_random_programs_find_what_may_be_there(
    start_pandod, tmp_path: Path, seed: int, has_room: bool, host_bytes: int | None
):
    slots = ALL_BLOCKS if has_room else SOME_BLOCKS
    tiered = Tiered(
        start_pandod,
        tmp_path / "tier",
        pool_pages=POOL_PAGES,
        tier_host_bytes=host_bytes,
        tier_disk_bytes=4096 + slots * SLOT_BYTES,
    )
    Program(tiered, seed, has_room=has_room).run()
    assert tiered.failures("verify") == 0
