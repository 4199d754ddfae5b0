"""Conversations of a recorded trace, scaled to a model of the tests.

A token of the scaled trace stands for 32 of the recorded one. Each block has tokens of
its own, so that prompts share what the recorded ones share.
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
    """Tokens to be generated."""


def read(one_in: int) -> list[Request]:
    """All requests of one in so many conversations, in their order: fewer would find
    less of what was there before."""
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
    """The first block is that of all, where there is a second one."""
    return request["hash_ids"][:2][-1]


def _scaled(request: dict) -> Request:
    tokens = [token for block in request["hash_ids"] for token in _tokens(block)]
    length = max(1, request["input_length"] // SCALE)
    return Request(tokens[:length], max(1, request["output_length"] // SCALE))


def _tokens(block: int) -> list[int]:
    return random.Random(block).choices(range(3, VOCABULARY), k=BLOCK_TOKENS)
