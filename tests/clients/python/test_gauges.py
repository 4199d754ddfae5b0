"""The page of gauges that clients read without a call."""

from eventually import eventually
from lanes import needs_lane
from pando_kv import (
    Client,
)
from prompts import admit_and_publish, prompt

pytestmark = needs_lane


def test_gauges_are_what_stats_say(caller):
    admit_and_publish(caller, prompt(3))
    caller.allocate_pages(2)
    lock = caller.lock(prompt(1))
    gauges, stats = caller.gauges(), caller.stats()
    assert gauges.pages == stats.pages
    assert gauges.epoch == stats.epoch
    assert (gauges.draining, gauges.eviction_policy) == (False, "lru")
    caller.set_eviction_policy("slru")
    assert caller.gauges().eviction_policy == "slru"
    lock.release()


def test_gauges_follow_other_clients_and_the_end_of_a_worker(pandod, client):
    with Client(pandod.address) as other:
        other.allocate_pages(5)
        assert client.gauges().pages.reserved == 5
    eventually(lambda: client.gauges().pages.reserved == 0)


def test_gauges_say_that_the_server_drains(pandod, client):
    client.drain()
    eventually(lambda: client.gauges().draining)
