"""Failures of all kinds between machines and routers, after which both must agree."""

import random
from contextlib import ExitStack

from eventually import eventually
from fleet import routers
from fleet.machine import Machine
from fleet.prompts_of_documents import branch, document
from fleet.relay import LossyRelay
from fleet.routers import DynamoIndexer, Source, VllmRouter
from pando_kv import Namespace
from pandod_process import PAGE_TOKENS

POOL_PAGES = 257
LOSS = 0.1
PROBES = 40
REQUESTS = 120
ADAPTER = Namespace("adapter")


class Storm:
    """Random requests, and the prompts that were sent so far."""

    def __init__(self, chance: random.Random, machines: list[Machine]) -> None:
        self._chance = chance
        self._machines = machines
        self._prompts: list[list[int]] = []

    def requests(self, count: int) -> None:
        """Makes far more requests than the pools hold, so many blocks are evicted."""
        chance = self._chance
        for _ in range(count):
            if self._prompts and chance.random() < 0.6:
                of = chance.choice(self._prompts)
                tokens = branch(chance, of, chance.randint(1, 4), PAGE_TOKENS)
                tokens = tokens[: 40 * PAGE_TOKENS]
            else:
                tokens = document(chance, chance.randint(2, 20), PAGE_TOKENS)
            self._prompts.append(tokens)
            machine = chance.choice(self._machines)
            # For routers the same prompt under an adapter is a different one.
            machine.put([*tokens, 1], ADAPTER if chance.random() < 0.2 else None)

    def probes(self) -> list[list[int]]:
        return [[*self._chance.choice(self._prompts), 1, 2, 3] for _ in range(PROBES)]


def test_after_each_storm_both_routers_know_what_the_machines_know(
    start_machine, dynamo, vllm_router, tmp_path
):
    number = random.randrange(2**32)
    print("seed", number)
    chance = random.Random(number)
    machines = [start_machine(pool_pages=POOL_PAGES) for _ in range(2)]
    storm = Storm(chance, machines)
    with ExitStack() as stack:
        relays = [
            stack.enter_context(LossyRelay(m.events, LOSS, chance.randrange(2**32)))
            for m in machines
        ]
        sources = [
            Source(
                m.number,
                relay.endpoint,
                m.replay,
                PAGE_TOKENS,
                stack.enter_context(routers.engine()),
            )
            for m, relay in zip(machines, relays, strict=True)
        ]
        indexer = stack.enter_context(routers.dynamo_indexer(dynamo, tmp_path))
        router = stack.enter_context(
            routers.vllm_router(vllm_router, tmp_path, sources)
        )
        for source in sources:
            indexer.register(source)

        def lossy_requests(count: int) -> None:
            """Makes requests while each machine's routers miss at least one frame."""
            before = [relay.dropped for relay in relays]
            for relay in relays:
                relay.lose_next()
            storm.requests(count)
            eventually(
                lambda: all(
                    relay.dropped > dropped
                    for relay, dropped in zip(relays, before, strict=True)
                )
            )

        def settle() -> None:
            """Makes the last frames arrive; routers see a gap only by a later frame."""
            for relay in relays:
                relay.loss = 0
            for machine in machines:
                machine.put(document(chance, 2, PAGE_TOKENS))

        def knows(
            indexer: DynamoIndexer, prompt: list[int], adapter: Namespace | None = None
        ) -> bool:
            name = {"lora_name": adapter.extra_key} if adapter else {}
            indexed = indexer.holds(prompt, **name)
            return all(
                indexed.get(m.number, 0) == m.holds(prompt, adapter) for m in machines
            )

        def chooses(router: VllmRouter, prompt: list[int]) -> bool:
            held = {m.number: m.holds(prompt) for m in machines}
            chosen, credited = router.choose(prompt)
            return credited == max(held.values()) and (
                credited == 0 or held[chosen] == credited
            )

        def agree(
            indexer: DynamoIndexer, router: VllmRouter, prompt: list[int]
        ) -> bool:
            return (
                knows(indexer, prompt)
                and knows(indexer, prompt, ADAPTER)
                and chooses(router, prompt)
            )

        def check(step: str) -> None:
            settle()
            for prompt in storm.probes():
                eventually(lambda p=prompt: agree(indexer, router, p))
            print(step, "dropped so far", [relay.dropped for relay in relays])
            for relay in relays:
                relay.loss = LOSS

        lossy_requests(REQUESTS)
        check("evictions")
        for machine in machines:
            machine.client.flush()
        lossy_requests(REQUESTS // 2)
        check("flushes")
        machines[0].kill_and_restart()
        lossy_requests(REQUESTS // 2)
        check("a kill")
        machines[1].kill_and_restart()
        check("a kill and silence")
        late_folder = tmp_path / "late"
        late_folder.mkdir()
        with (
            routers.dynamo_indexer(dynamo, late_folder) as late_indexer,
            routers.vllm_router(vllm_router, late_folder, sources) as late_router,
        ):
            for source in sources:
                late_indexer.register(source)
            lossy_requests(REQUESTS // 4)
            settle()
            for prompt in storm.probes():
                eventually(lambda p=prompt: agree(late_indexer, late_router, p))
        check("a late subscriber")
