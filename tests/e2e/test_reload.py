"""SIGHUP makes pandod read the options again."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from blocks import BLOCKS_ONLY
from eventually import eventually
from pando_kv import Client, Namespace, QuotaExceededError
from pandod_process import PAGE_TOKENS, Pandod

TOKENS = list(range(2 * PAGE_TOKENS))
TENANT = Namespace(extra_key="tenant")
READ = "the options were read again"
REFUSED = "the options stay as they are"
RESTART = "changed options need a restart"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "pandod.yaml"
    path.write_text("")
    return path


def told(pandod: Pandod, words: str) -> list[dict[str, Any]]:
    return [event for event in pandod.events() if event["msg"] == words]


def reload(pandod: Pandod, expected: str = READ) -> dict[str, Any]:
    """Sends the signal, and returns the log line that follows it."""
    before = len(told(pandod, expected))
    os.kill(pandod.pid, signal.SIGHUP)
    eventually(lambda: len(told(pandod, expected)) > before)
    return told(pandod, expected)[-1]


def test_what_changes_live_is_taken_over_and_named(start_pandod, config):
    pandod = start_pandod(config=config)
    config.write_text("log-level: debug\nslow-call: 1us\n")
    changed = "log-level (info, now debug), slow-call (50ms, now 1us)"
    assert reload(pandod)["changed"] == changed
    with Client(pandod.address) as client:
        client.stats()
    eventually(lambda: bool(told(pandod, "slow call")))
    assert "changed" not in reload(pandod)


def test_what_needs_a_restart_is_named_each_time(start_pandod, config):
    pandod = start_pandod(config=config, heads=None)
    config.write_text("heads: 5\nmodel: another\nquarantine: 1s\n")
    for changed in ("quarantine (10s, now 1s)", None):
        assert reload(pandod).get("changed") == changed
        eventually(lambda: bool(told(pandod, RESTART)))
        [*_, warning] = told(pandod, RESTART)
        assert warning["level"] == "warning"
        assert warning["options"] == "heads (8, given 5), model (, given another)"
    with Client(pandod.address) as client:
        assert client.describe_pool().layout.heads == 8


def test_memory_that_pandod_chose_itself_is_no_change(start_pandod, config):
    pandod = start_pandod(**BLOCKS_ONLY | {"memory": None, "config": config})
    config.write_text("log-level: debug\n")
    assert reload(pandod)["changed"] == "log-level (info, now debug)"
    assert told(pandod, RESTART) == []


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("slow-call: 1us\nlog-levle: debug\n", "did you mean 'log-level'?"),
        ("slow-call: 1us\nlog-level: loud\n", "log-level is 'loud'"),
        ("slow-call: 1us\nlow-free-pages: 9\n", "high-free-pages is 0"),
        ("slow-call: [1us", "yaml-cpp"),
        ("pool: &pool\n  pages: *pool\n", "pool-pages is a list or a map"),
        ("pool: &pool\n  x: *pool\n", "unknown key 'pool-x'"),
        (f"tcp: {'a' * 200_000}\n", "tcp is 200000 bytes long; must be at most 300"),
        # These marks would fit only the pool of 999 pages, which needs a restart.
        (
            "slow-call: 1us\npool-pages: 999\nlow-free-pages: 9\nhigh-free-pages: 90\n",
            "high-free-pages is 90; must be less than the pages of the pool, 50",
        ),
    ],
)
def test_a_bad_file_changes_nothing(start_pandod, config, text, error):
    config.write_text("pool-pages: 50\n")
    pandod = start_pandod(config=config, pool_pages=None)
    config.write_text(text)
    refused = reload(pandod, REFUSED)
    assert refused["level"] == "error" and error in refused["error"]
    with Client(pandod.address) as client:
        client.stats()
    assert pandod.stop() == 0
    assert not told(pandod, READ) and not told(pandod, "slow call")


def test_a_file_that_is_gone_or_none_changes_nothing(start_pandod, config):
    pandod = start_pandod(config=config)
    config.unlink()
    assert str(config) in reload(pandod, REFUSED)["error"]
    os.mkfifo(config)
    assert f"{config} is not a regular file" in reload(pandod, REFUSED)["error"]


def test_sessions_locks_and_what_is_cached_stay(start_pandod, config):
    pandod = start_pandod(config=config)
    with Client(pandod.address) as client:
        client.insert(TOKENS, client.allocate_pages(2))
        lock = client.match_prefix(TOKENS, lock=True).lock
        config.write_text("eviction-policy: lfu\nsession-grace: 1s\n")
        reload(pandod)
        assert lock.held and client.generation == 1
        assert client.match_prefix(TOKENS).matched_tokens == len(TOKENS)
        lock.release()
        assert client.stats().eviction_policy == "lfu"


def test_flags_and_the_environment_still_override_the_file(tmp_path, config):
    pandod = Pandod(tmp_path, config=config, eviction_policy="fifo", drain_timeout="0s")
    try:
        pandod.start(PANDO_QUARANTINE="3s")
        config.write_text("eviction-policy: lfu\nquarantine: 4s\nheads: 77\n")
        assert "changed" not in reload(pandod)
        with Client(pandod.address) as client:
            assert client.stats().eviction_policy == "fifo"
        assert pandod.stop() == 0
        assert not told(pandod, RESTART)
    finally:
        pandod.close_in_order()


def test_the_policy_of_an_operator_stays_until_another_one_is_configured(
    start_pandod, config
):
    pandod = start_pandod(config=config)
    with Client(pandod.address) as client:
        client.set_eviction_policy("slru")
        config.write_text("quarantine: 3s\n")
        reload(pandod)
        assert client.stats().eviction_policy == "slru"
        config.write_text("eviction-policy: mru\n")
        reload(pandod)
        assert client.stats().eviction_policy == "mru"


def test_the_watermark_can_be_turned_on_and_off(start_pandod, config):
    pandod = start_pandod(config=config, pool_pages=11)

    def fill(client: Client, first: int) -> None:
        tokens = list(range(first, first + 10 * PAGE_TOKENS))
        client.insert(tokens, client.allocate_pages(10))

    with Client(pandod.address) as client:
        fill(client, 0)
        config.write_text("low-free-pages: 4\nhigh-free-pages: 6\n")
        reload(pandod)
        eventually(lambda: client.stats().pages.free == 6)
        config.write_text("")
        reload(pandod)
        fill(client, 10_000)
        assert client.stats().pages.free == 0


def test_caps_of_quotas_change_at_once(start_pandod, config):
    quota = "quotas:\n- {{class: tenants, extra_key: tenant, cap_pages: {}}}\n"
    config.write_text(quota.format(4))
    pandod = start_pandod(config=config)
    with Client(pandod.address) as client:
        client.allocate_pages(3, namespace=TENANT)
        config.write_text(quota.format(3))
        assert reload(pandod)["changed"] == "quotas"
        with pytest.raises(QuotaExceededError, match="3 of 3"):
            client.allocate_pages(1, namespace=TENANT)
        config.write_text(quota.format(5))
        reload(pandod)
        client.allocate_pages(2, namespace=TENANT)


def test_the_time_to_drain_changes(start_pandod, config):
    config.write_text("drain-timeout: 1h\n")
    pandod = start_pandod(config=config, drain_timeout=None)
    config.write_text("drain-timeout: 0s\n")
    reload(pandod)
    with Client(pandod.address) as client:
        assert client.match_prefix(TOKENS, lock=True).lock.held
        assert pandod.stop() == 0


def test_a_drain_is_not_ended_by_it(start_pandod, config):
    pandod = start_pandod(config=config, drain_timeout="1h")
    with Client(pandod.address) as client:
        lock = client.match_prefix(TOKENS, lock=True).lock
        pandod.terminate()
        eventually(lambda: client.draining)
        os.kill(pandod.pid, signal.SIGHUP)
        assert client.stats().locks == 1
        lock.release()
        assert pandod.wait() == 0
