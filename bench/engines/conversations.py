"""Conversations of a recorded trace, scaled to a small model of the tests.

One token of the scaled trace stands for 32 recorded tokens. Each recorded block gets
tokens of its own, so scaled prompts share the blocks that the recorded prompts share.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path

from engines.models import VOCABULARY

TRACE = Path(__file__).resolve().parents[1] / "data/conversation_excerpt.jsonl"
SCALE = 32
BLOCK_TOKENS = 512 // SCALE


@dataclass(frozen=True)
class Request:
    prompt: list[int]
    new: int
    """The number of tokens to generate."""


def read(one_in: int) -> list[Request]:
    """Returns all requests of every `one_in`-th conversation, in recorded order.
    Conversations stay whole, because a request finds in the cache what the earlier
    requests of its conversation left there."""
    with TRACE.open() as lines:
        recorded = [json.loads(line) for line in lines]
    order: dict[int, int] = {}
    for request in recorded:
        order.setdefault(_conversation(request), len(order))
    return [
        _scaled(request)
        for request in recorded
        if order[_conversation(request)] % one_in == 0
    ]


def _conversation(request: dict) -> int:
    """Returns the id of the block that identifies a request's conversation: the second
    block, because all conversations share the first, or the only block."""
    return request["hash_ids"][:2][-1]


def _scaled(request: dict) -> Request:
    tokens = [token for block in request["hash_ids"] for token in _tokens(block)]
    length = max(1, request["input_length"] // SCALE)
    return Request(tokens[:length], max(1, request["output_length"] // SCALE))


def _tokens(block: int) -> list[int]:
    return random.Random(block).choices(range(3, VOCABULARY), k=BLOCK_TOKENS)
