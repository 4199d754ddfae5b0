"""Two machines, and two real routers that send each request to one of them."""

import random
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from eventually import eventually
from fleet import routers
from fleet.machine import Machine
from fleet.prompts_of_documents import branch, document
from fleet.routers import Source
from pando_kv import Namespace
from pandod_process import PAGE_TOKENS

QUESTION = [3] * 7


@pytest.fixture
def fleet(start_machine) -> Iterator[tuple[list[Machine], list[Source]]]:
    with ExitStack() as stack:
        machines = [start_machine(pool_pages=256) for _ in range(2)]
        yield (
            machines,
            [
                Source(
                    m.number,
                    m.events,
                    m.replay,
                    PAGE_TOKENS,
                    stack.enter_context(routers.engine()),
                )
                for m in machines
            ],
        )


def test_both_routers_send_each_request_to_the_longest_prefix(
    fleet, dynamo, vllm_router, tmp_path
):
    number = random.randrange(2**32)
    print("seed", number)
    chance = random.Random(number)
    machines, sources = fleet
    documents = [
        document(chance, chance.randint(4, 16), PAGE_TOKENS) for _ in range(12)
    ]
    for i, tokens in enumerate(documents):
        machines[i % 2].put(tokens + QUESTION)
    # Both machines hold the beginning of `longer`, and one holds more of it.
    longer = branch(chance, documents[0], 5, PAGE_TOKENS)
    machines[1].put(longer + QUESTION)
    with (
        routers.dynamo_selector(dynamo, tmp_path) as selector,
        routers.vllm_router(vllm_router, tmp_path, sources) as router,
    ):
        for source in sources:
            selector.register(source)
        for tokens in [*documents, longer]:
            prompt = tokens + QUESTION
            held = {m.number: m.holds(prompt) for m in machines}
            longest = max(held.values())
            assert longest == len(tokens)
            # If both machines hold all tokens of the prompt, either one is right.
            right = {(m, longest) for m in held if held[m] == longest}
            eventually(lambda p=prompt, r=right: selector.choose(p) in r)
            eventually(lambda p=prompt, r=right: router.choose(p) in r)


def test_small_pages_match_as_blocks_of_the_routers_size(
    start_machine, dynamo, tmp_path
):
    machine = start_machine(page_tokens=1, pool_pages=2000, kv_events_block_tokens=16)
    machine.page_tokens = 1
    tokens = document(random.Random(1), 1, 100)
    machine.put([*tokens, 1])
    with routers.dynamo_indexer(dynamo, tmp_path) as indexer:
        indexer.register(Source(1, machine.events, machine.replay, 16))
        eventually(lambda: indexer.holds(tokens) == {1: 96})


def test_adapters_and_salts_keep_namespaces_apart(start_machine, dynamo, tmp_path):
    machine = start_machine(kv_events_include="salted")
    plain, adapted, salted = (
        document(random.Random(i), 4, PAGE_TOKENS) for i in range(3)
    )
    machine.put(plain + QUESTION)
    machine.put(adapted + QUESTION, Namespace("adapter"))
    machine.put(salted + QUESTION, Namespace(cache_salt="tenant"))
    whole = {1: 4 * PAGE_TOKENS}
    with routers.dynamo_indexer(dynamo, tmp_path) as indexer:
        indexer.register(Source(1, machine.events, machine.replay, PAGE_TOKENS))
        eventually(lambda: indexer.holds(plain) == whole)
        eventually(lambda: indexer.holds(adapted, lora_name="adapter") == whole)
        eventually(lambda: indexer.holds(salted, cache_salt="tenant") == whole)
        assert indexer.holds(adapted).get(1, 0) == 0
        assert indexer.holds(salted).get(1, 0) == 0
        assert indexer.holds(plain, lora_name="adapter").get(1, 0) == 0
