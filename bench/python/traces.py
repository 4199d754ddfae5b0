"""Requests of a recorded trace as prompts: equal blocks get equal tokens in every run.

bench/data/README.md describes the files. A prompt is cut to whole pages, so that caches
with and without partial pages get the same requests.
"""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

# Seconds between the beginnings of two conversations of the agents' trace.
PACE = 60
VOCABULARY = 151_643


@dataclass(frozen=True)
class Request:
    block_ids: list[int]
    block_tokens: int
    tokens: int

    def prompt(self) -> npt.NDArray[np.uint32]:
        """Returns the request's tokens, which follow from the ids of its blocks."""
        ids = np.array(self.block_ids, np.uint64)[:, None]
        places = np.arange(1, self.block_tokens + 1, dtype=np.uint64)[None, :]
        with np.errstate(over="ignore"):
            x = ids * np.uint64(0x9E3779B97F4A7C15)
            x = x + places * np.uint64(0xD1B54A32D192ED03)
            x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            x ^= x >> np.uint64(31)
        tokens = (x % np.uint64(VOCABULARY)).astype(np.uint32).reshape(-1)
        return np.ascontiguousarray(tokens[: self.tokens])


def read(path: Path, page_tokens: int, limit: int) -> list[Request]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt") as lines:
        first = json.loads(next(iter(lines)))
    with opener(path, "rt") as lines:
        requests = _chats(lines) if "hash_ids" in first else _agents(lines)
        return [_cut(request, page_tokens) for request in requests][:limit]


def _cut(request: Request, page_tokens: int) -> Request:
    known = min(request.tokens, len(request.block_ids) * request.block_tokens)
    whole = known // page_tokens * page_tokens
    return Request(request.block_ids, request.block_tokens, whole)


def _chats(lines: Iterator[str]) -> Iterator[Request]:
    for line in lines:
        request = json.loads(line)
        yield Request(request["hash_ids"], 512, request["input_length"])


def _agents(lines: Iterator[str]) -> Iterator[Request]:
    timed = []
    for number, line in enumerate(lines):
        chat = json.loads(line)
        # Block ids are local to a conversation; the base makes them differ between
        # conversations.
        base = (number + 1) << 32
        for request in chat["requests"]:
            ids = [
                base + id
                for first, count in request["h"]
                for id in range(first, first + count)
            ]
            made = Request(ids, chat["block"], request["in"])
            timed.append((number * PACE + request["t"], len(timed), made))
    return iter([request for _, _, request in sorted(timed)])
