"""The rules of routers that cannot run here, applied to every event.

The rules are those of llm-d-kv-cache v0.8.1 (pkg/kvevents/engineadapter, arrays alone),
llm-d-router v0.9.0 (the same, and maps) and AIBrix v0.7.0 (pkg/cache/kvcache, arrays
alone). Each function raises on an event that these routers would refuse. llm-d also
requires block ids with all 8 bytes; other tests check that where the ids are written.
"""

import random
from typing import Any

import msgpack
import pytest
from fleet.prompts_of_documents import branch, document
from fleet.subscriber import Frame, Subscriber
from pando_kv import Namespace
from pandod_process import PAGE_TOKENS

MAX_UINT32 = 2**32 - 1
STORED_ORDER = (
    "block_hashes",
    "parent_block_hash",
    "token_ids",
    "block_size",
    "lora_id",
    "medium",
    "lora_name",
    "extra_keys",
    "group_idx",
)


def integer(value: Any, most: int = 2**64 - 1) -> int:
    assert type(value) is int and 0 <= value <= most, value
    return value


def text_or_nil(value: Any) -> None:
    assert value is None or type(value) is str, value


def batch_of(frame: Frame) -> list[Any]:
    batch = msgpack.unpackb(frame.payload)
    assert type(batch) is list and len(batch) == 3
    timestamp, events, rank = batch
    assert type(timestamp) is float
    assert type(events) is list
    integer(rank)
    return events


def check_stored(fields: list[Any]) -> None:
    assert len(fields) >= 5
    ids, parent, tokens, block_size = fields[1:5]
    for block in ids:
        integer(block)
    # The routers would take a parent of 0 for none.
    assert parent is None or integer(parent) > 0
    for token in tokens:
        integer(token, MAX_UINT32)
    assert len(tokens) == len(ids) * integer(block_size)
    rest = [*fields[5:], *[None] * 5]
    assert rest[0] is None
    text_or_nil(rest[1])
    text_or_nil(rest[2])
    assert rest[3] is None and rest[4] is None


def check_array(event: Any) -> None:
    assert type(event) is list
    tag = event[0]
    if tag == "BlockStored":
        check_stored(event)
    elif tag == "BlockRemoved":
        for block in event[1]:
            integer(block)
        text_or_nil(event[2])
    else:
        assert tag == "AllBlocksCleared"


def check_map(event: Any) -> None:
    """Checks a map as llm-d-router does, which makes an array of its fields."""
    assert type(event) is dict
    order = {"BlockStored": STORED_ORDER, "BlockRemoved": ("block_hashes", "medium")}
    names = order.get(event["type"], ())
    check_array([event["type"], *(event.get(name) for name in names)])


@pytest.mark.parametrize(
    ("form", "check"), [("array", check_array), ("map", check_map)]
)
def test_every_event_is_what_llm_d_and_aibrix_read(start_machine, form, check):
    chance = random.Random(5)
    machine = start_machine(
        kv_events_form=form,
        kv_events_workers="10.0.0.1:8000",
        kv_events_topic="kv@{worker}@{model}",
        model="a/model",
    )
    with Subscriber(machine.events) as subscriber:
        subscriber.wait_for_blocks(0)
        base = document(chance, 8, PAGE_TOKENS)
        for _ in range(40):
            adapter = Namespace("adapter") if chance.random() < 0.5 else None
            machine.put([*branch(chance, base, 6, PAGE_TOKENS), 1], adapter)
        machine.client.flush()
        last = ""
        while subscriber.blocks or last == "":
            last = subscriber.next().events[-1]["type"]
    kinds = set()
    for frame in subscriber.frames:
        topic = frame.topic.split("@")
        assert topic == ["kv", "10.0.0.1:8000", "a/model"]
        for event in batch_of(frame):
            check(event)
            kinds.add(event[0] if form == "array" else event["type"])
    assert kinds == {"BlockStored", "BlockRemoved", "AllBlocksCleared"}
