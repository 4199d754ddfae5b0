"""Recorded conversations of coding agents as prompts; see bench/data/README.md."""

import itertools
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

Tokens = npt.NDArray[np.uint32]

# Longer prompts would dominate the console's picture; shorter conversations find little
# in the cache.
LONGEST_PROMPT = 60_000
FEWEST_REQUESTS = 10


@dataclass(frozen=True)
class AgentRequest:
    prompt: Tokens
    output_tokens: int


class Conversation:
    """One conversation, from one line of the trace.

    The trace has no texts, but says which blocks two prompts of a conversation share.
    The tokens of a block follow from its id. The blocks that describe the tools have
    the same tokens in all conversations.
    """

    def __init__(self, line: str) -> None:
        trace = json.loads(line)
        self._name: str = trace["id"]
        self._requests = [r for r in trace["requests"] if r["in"] <= LONGEST_PROMPT]
        self._block: int = trace["block"]
        self._tool_blocks: int = trace["tool_tokens"] // self._block

    def __len__(self) -> int:
        return len(self._requests)

    def requests(self, round_: int) -> Iterator[AgentRequest]:
        """Yields the requests of a round. Each round is a conversation of its own, but
        its tools have the same tokens in all rounds."""
        own = np.uint32(zlib.crc32(f"{self._name} {round_}".encode()))
        for request in self._requests:
            yield AgentRequest(self._prompt(request, own), request["out"])

    def _prompt(self, request: dict, own: np.uint32) -> Tokens:
        runs = (range(first, first + count) for first, count in request["h"])
        blocks = np.array(list(itertools.chain.from_iterable(runs)), dtype=np.uint32)
        first_tokens = own + blocks * np.uint32(self._block)
        first_tokens[: self._tool_blocks] -= own
        offsets = np.arange(self._block, dtype=np.uint32)
        whole = (first_tokens[:, None] + offsets).ravel()
        # The last tokens do not fill a block, and no other prompt shares them.
        rest = np.arange(request["in"] - whole.size, dtype=np.uint32)
        return np.concatenate([whole, rest + own + np.uint32(request["in"] << 8)])


def read_conversations(trace: Path) -> list[Conversation]:
    with trace.open() as lines:
        conversations = map(Conversation, lines)
        return [c for c in conversations if len(c) >= FEWEST_REQUESTS]
