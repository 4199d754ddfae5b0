"""Pages that one pandod computed and others load, bit by bit."""

import numpy as np
import pytest
from eventually import eventually
from pando_kv import Load, Tier
from pando_kv._tier_waits import TierWaits
from pandod_process import PAGE_TOKENS
from protocol_worker import protocol_worker
from redis_server import KINDS
from tiered import PAGES, PROMPT, WAIT_MS, wait_for

pytestmark = pytest.mark.parametrize("machines", KINDS, indirect=True)
HOUR_MS = 3_600_000
# pandod does not report another use of a page within this time.
PERIOD_MS = 600_000


def test_what_one_computed_another_one_loads(machines):
    one = machines.start(layout_order="layer_first")
    other = machines.start(layout_order="page_first")
    computed = one.cache(PROMPT, seed=1)
    matched, loaded = other.read()
    assert matched == PROMPT.size
    np.testing.assert_array_equal(loaded, computed)
    assert other.copied("load") == PAGES
    with protocol_worker(other.pandod.address) as observer:
        assert observer.violations() == []


def test_a_prompt_of_many_chunks_comes_bit_by_bit(machines):
    prompt = np.arange(70 * PAGE_TOKENS, dtype=np.uint32)
    one, other = machines.start(pool_pages=1024), machines.start(pool_pages=1024)
    computed = one.cache(prompt, seed=1)
    matched, loaded = other.read(prompt)
    assert matched == prompt.size
    np.testing.assert_array_equal(loaded, computed)


def test_a_new_process_finds_what_was_shared(machines):
    one = machines.start()
    computed = one.cache(PROMPT, seed=1)
    one.pandod.kill()
    one.pandod.start()
    matched, loaded = one.read()
    assert matched == PROMPT.size
    np.testing.assert_array_equal(loaded, computed)


def test_who_begins_a_load_is_told_what_is_loaded_and_who_only_asks_is_not(machines):
    one, other = machines.start(), machines.start()
    one.cache(PROMPT, seed=1)
    with other.client() as client:
        asked = client.match_prefix(PROMPT, load=Load.NO)
        assert (asked.loadable_tokens, asked.loadable_tier) == (0, Tier.NONE)
        begun = client.match_prefix(PROMPT, load=Load.START)
        # Some or all pages may be loaded by the time of the answer.
        assert begun.matched_tokens + begun.loadable_tokens == PROMPT.size
        is_there = begun.matched_tokens == PROMPT.size
        assert begun.loadable_tier == (Tier.NONE if is_there else Tier.SHARED)
        eventually(lambda: client.match_prefix(PROMPT).matched_tokens == PROMPT.size)


def test_what_an_engine_leaves_in_its_queue_is_loaded_from_the_server(machines):
    one, other = machines.start(), machines.start()
    one.cache(PROMPT, seed=1)
    with other.client() as client:
        waits = TierWaits(client, WAIT_MS / 1000)
        eventually(lambda: not waits.holds("1", lambda: (PROMPT, None)))
        assert client.match_prefix(PROMPT).matched_tokens == PROMPT.size


def test_what_was_loaded_is_not_stored_again(machines):
    one, other = machines.start(), machines.start()
    one.cache(PROMPT, seed=1)
    assert other.read()[0] == PROMPT.size
    # pandod stores prompts in turn, so it is done with the first prompt afterwards.
    other.cache(PROMPT + 1000, seed=2)
    assert other.copied("store") == PAGES


def test_a_server_is_reached_by_its_socket(machines):
    one = machines.start(tier_shared=f"unix://{machines.server.socket}")
    other = machines.start()
    computed = other.cache(PROMPT, seed=1)
    np.testing.assert_array_equal(one.read()[1], computed)


@pytest.mark.parametrize("how", [{}, {"namespace": {}}], ids=str)
def test_what_one_flushes_no_machine_finds(machines, how):
    one, other = machines.start(), machines.start()
    strange = machines.start(model="another-model")
    strange.cache(PROMPT, seed=3)
    machines.server.db.set("somebody's", "own")
    one.cache(PROMPT, seed=1)
    with protocol_worker(one.pandod.address) as worker:
        worker.cache(list(PROMPT), namespace={"extra_key": "lora"})
        eventually(lambda: one.held_pages() == 3 * PAGES)
        one.await_idle()
        worker.call("Flush", **how)
    eventually(lambda: one.held_pages() == (2 * PAGES if how else PAGES))
    assert other.read()[0] == 0
    with protocol_worker(other.pandod.address) as worker:
        lora = wait_for(worker, PROMPT, namespace={"extra_key": "lora"}).get()
        assert lora.matched_tokens == (PROMPT.size if how else 0)
    # The flush leaves blocks of another model alone.
    assert machines.start(model="another-model").read()[0] == PROMPT.size
    assert machines.server.db.get("somebody's") == b"own"


def test_the_ends_of_prompts_expire_before_their_beginnings(machines):
    one = machines.start_with(ttl="2h")
    one.cache(PROMPT, seed=1)
    db = machines.server.db
    keys = machines.server.blocks()
    expiries = [db.pexpiretime(key) for key in keys]
    assert len(set(expiries)) == PAGES
    assert all(
        2 * HOUR_MS - 2 * PERIOD_MS < db.pttl(key) <= 2 * HOUR_MS for key in keys
    )
    for key in keys[-3:]:
        db.delete(key)
    assert machines.start().read()[0] == PROMPT.size - 3 * PAGE_TOKENS


def test_what_is_loaded_lives_on(machines):
    machines.start().cache(PROMPT, seed=1)
    db = machines.server.db
    for key in machines.server.blocks():
        db.pexpire(key, HOUR_MS)
    assert machines.start().read()[0] == PROMPT.size
    eventually(
        lambda: all(db.pttl(key) > 20 * HOUR_MS for key in machines.server.blocks())
    )


def test_a_server_that_is_not_there_stops_no_start(machines):
    machines.server.kill()
    one = machines.start()
    assert one.read()[0] == 0
    machines.server.start()
    machines.start().cache(PROMPT, seed=1)
    eventually(lambda: one.read()[0] == PROMPT.size)
