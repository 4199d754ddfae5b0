"""The changes that pandoctl makes, and the questions it asks before them."""

import json
import re

import pytest
from blocks import BLOCKS_ONLY, keys, spec, store
from e2e.pandoctl.conftest import (
    FAILED,
    OK,
    UNHEALTHY,
    USAGE,
    prompt,
    publish,
)
from eventually import eventually
from kept_pandod import kept
from pando_kv import Client, Namespace
from pandoctl import Pandoctl
from pandod_process import PAGE_TOKENS


def test_pages_are_evicted(ctl, client):
    publish(client, prompt(3))
    assert ctl("evict", 2, "--yes").out == "evicted 2 pages\n"
    assert ctl("evict", 9, "-y", "-o", "json").json() == {"evicted_pages": 1}


def test_a_flush_is_of_one_namespace_or_of_all(ctl, client):
    publish(client, prompt(1), namespace=Namespace("a"))
    publish(client, prompt(2), namespace=Namespace("b"))
    with client.lock(prompt(1), namespace=Namespace("b")):
        assert ctl("flush", "--namespace", 1, "-y", "-o", "json").json() == {
            "evicted_pages": 1,
            "protected_pages": 0,
        }
        text = ctl("flush", "--all", "--yes").out
    assert text == "evicted 1 page; 1 locked, which stay\n"
    assert ctl("flush", "--yes").code == USAGE
    assert ctl("flush", "--all", "--namespace", 1, "--yes").code == USAGE


def test_locks_are_taken_from_a_session(ctl, client):
    publish(client, prompt(1))
    client.lock(prompt(1))
    assert ctl("locks", "--release", 1, "--yes").out == "released 1 lock\n"
    assert client.stats().locks == 0
    unknown = ctl("locks", "--release", 7, "--yes")
    assert (unknown.code, "7 is not the number of a session" in unknown.err) == (
        FAILED,
        True,
    )


def test_the_policy_is_shown_and_changed(ctl):
    assert ctl("policy").out == "lru\n"
    assert ctl("policy", "slru").out == "slru, was lru\n"
    assert ctl("policy", "-o", "json").json() == {"policy": "slru"}
    refused = ctl("policy", "best")
    assert (refused.code, "'best'" in refused.err) == (USAGE, True)


def test_the_policy_is_shown_with_what_it_hits_beside_lru(start_pandod):
    pandod = start_pandod(learn_reuse="yes")
    ctl = Pandoctl(pandod.address)
    assert ctl("policy").out == "lru\n"
    with Client(pandod.address, name="the worker") as client:
        for _ in range(2):
            match = client.match_prefix(
                prompt(4), lock=True, reserve_tokens=4 * PAGE_TOKENS
            )
            client.insert(
                [],
                match.reserved_page_ids,
                lock=match.lock,
                unlock=True,
                prompt_tokens=4 * PAGE_TOKENS - match.matched_tokens,
            )
    assert ctl("policy").out.splitlines() == [
        "policy    lru",
        "hit rate  50.0 % of 8 pages",
        "lru's     50.0 %, of the same size",
    ]
    assert ctl("policy", "-o", "json").json() == {
        "policy": "lru",
        "reuse": {
            "requested_pages": "8",
            "hit_pages": "4",
            "lru_hit_pages": "4",
        },
    }


DANGEROUS = [
    ("evict", "1"),
    ("flush", "--all"),
    ("locks", "--release", "1"),
    ("quarantine", "--free", "1"),
    ("drain",),
    ("restart",),
]


@pytest.mark.parametrize("command", DANGEROUS, ids=" ".join)
def test_a_dangerous_verb_is_refused_where_none_can_be_asked(ctl, client, command):
    publish(client, prompt(1))
    client.lock(prompt(1))
    publish(client, prompt(1, first=5))
    refused = ctl(*command, stdin="y\n")
    assert (refused.code, "--yes" in refused.err) == (USAGE, True)
    stats = client.stats()
    assert (stats.locks, stats.pages.evictable, client.draining) == (1, 1, False)


def test_a_dangerous_verb_asks_on_a_terminal(ctl, client):
    publish(client, prompt(2))
    refused = ctl.on_terminal("evict", 1, typed="n\n")
    assert (refused.code, "nothing was done" in refused.out) == (FAILED, True)
    assert ctl.on_terminal("evict", 1, typed="\n").code == FAILED
    assert client.stats().pages.evictable == 2
    agreed = ctl.on_terminal("evict", 1, typed="y\n")
    assert (agreed.code, "Evict up to 1 page? " in agreed.out) == (OK, True)
    assert client.stats().pages.evictable == 1


# Ending pandod.


def test_a_drain_admits_nothing_new_and_ends_nothing(ctl, client, pandod):
    publish(client, prompt(1))
    held = client.lock(prompt(1))
    assert ctl("drain", "--yes").out == "draining\n"
    eventually(lambda: client.draining)
    assert ctl("health").code == UNHEALTHY
    assert ctl("health", "--service", "liveness").code == OK
    waiting = ctl.start("drain", "--wait", "--yes", "-o", "json")
    held.release()
    assert json.loads(waiting.communicate()[0]) == {"state": "idle"}
    assert pandod.running


def test_a_drain_can_end_pandod(start_pandod):
    pandod = start_pandod(drain_timeout="1h")
    ctl = Pandoctl(pandod.address)
    with Client(pandod.address) as client:
        publish(client, prompt(1))
        held = client.lock(prompt(1))
        # A second request to drain does not make pandod hurry.
        for _ in range(2):
            assert ctl("drain", "--exit", "--yes").code == OK
        waiting = ctl.start("drain", "--exit", "--wait", "--yes")
        eventually(lambda: pandod.log().count("an operator drains") == 3)
        held.release()
        assert waiting.communicate()[0] == "ended\n"
        assert pandod.wait() == 0
    assert "second signal" not in pandod.log()


def test_a_restart_keeps_the_blocks_and_says_how_long_it_took(tmp_path):
    with kept(tmp_path, **BLOCKS_ONLY) as server:
        ctl = Pandoctl(server.address)
        with Client(server.address) as client:
            (kind,) = client.open_kinds([spec("a")])
            store(client, client.attach_memory(), 1, kind, keys(3))
        before = server.server_pid
        said = ctl("restart", "--yes").out
        assert re.fullmatch(
            r"restarted in \d\.\d\d s: version (\S+), before \1; blocks 3, before 3\n",
            said,
        )
        assert server.server_pid != before
        said = ctl("restart", "--yes", "-o", "json").json()
        assert (said["blocks_before"], said["blocks"]) == (3, 3)


def test_a_pandod_without_a_keeper_is_not_restarted(ctl, pandod):
    refused = ctl("restart", "--yes")
    assert (refused.code, "has no keeper that would" in refused.err) == (FAILED, True)
    assert pandod.running
