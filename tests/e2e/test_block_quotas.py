"""Quotas divide the block memory between kinds, by their labels."""

import os
import signal
from pathlib import Path

import pytest
from blocks import BLOCKS_ONLY, MIB, keys, spec, store
from eventually import eventually
from metrics_page import MetricsPage, free_address
from pando_kv import BlockQuota, Client
from pandoctl import Pandoctl
from pandod_process import refused_start

QUOTA = "block_quotas: [{{name: chat, label: 'kind chat*', floor: {}, cap: {}}}]\n"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "pandod.yaml"
    path.write_text(QUOTA.format("2MiB", "4MiB"))
    return path


@pytest.fixture
def pandod(start_pandod, config):
    return start_pandod(config=config, **BLOCKS_ONLY)


def used(client: Client) -> int:
    """Returns the bytes that the kinds of the quota have."""
    (quota,) = client.stats().blocks.quotas
    return quota.used_bytes


def test_a_kind_is_kept_between_its_floor_and_its_cap(pandod):
    with Client(pandod.address) as client:
        memory = client.attach_memory()
        chat, batch = client.open_kinds([spec("chat", MIB), spec("batch", MIB)])
        for prompt in range(10):
            store(client, memory, 1, chat, keys(1, prompt))
        assert used(client) == 4 * MIB
        for prompt in range(10, 60):
            store(client, memory, 1, batch, keys(1, prompt))
        assert used(client) == 2 * MIB


def test_caps_change_at_once(pandod, config):
    with Client(pandod.address) as client:
        memory = client.attach_memory()
        (chat,) = client.open_kinds([spec("chat", MIB)])
        config.write_text(QUOTA.format("0", "6MiB"))
        os.kill(pandod.pid, signal.SIGHUP)
        eventually(lambda: client.stats().blocks.quotas[0].cap_bytes == 6 * MIB)
        for prompt in range(10):
            store(client, memory, 1, chat, keys(1, prompt))
        assert used(client) == 6 * MIB


@pytest.mark.parametrize(
    ("quota", "memory", "message"),
    [
        (
            QUOTA.format("17MiB", "18MiB"),
            "16MiB",
            "is 17825792; the floors before it leave 16777216",
        ),
        (QUOTA.format("0", "1MiB"), "16MiB", "'chat' is 1048576; must be at least 16"),
        (QUOTA.format("0", "many"), "16MiB", "cap is 'many'; must be a size such as"),
        (QUOTA.format("2MiB", "1MiB"), "16MiB", "floor is 2097152; must be at most"),
        ("block_quotas: [{name: a}]", "16MiB", "block_quotas[0]: label is missing"),
        (
            f"block_quotas: [{', '.join(['{name: a, label: b}'] * 2)}]",
            *("16MiB", "block_quotas[1]: name is 'a', as of another one"),
        ),
    ],
)
def test_a_quota_that_cannot_be_kept_is_refused(
    config, tmp_path, quota, memory, message
):
    config.write_text(quota)
    arguments = (f"--config={config}", f"--memory={memory}")
    assert message in refused_start(tmp_path, *arguments)


def test_quotas_need_block_memory(config, tmp_path):
    refused = refused_start(tmp_path, f"--config={config}", "--pool-pages=64")
    assert "block_quotas are given, which need memory" in refused


def test_operators_see_quotas(start_pandod, config):
    http = free_address()
    pandod = start_pandod(config=config, http=http, **BLOCKS_ONLY)
    with Client(pandod.address) as client:
        memory = client.attach_memory()
        (chat,) = client.open_kinds([spec("chat", MIB)])
        store(client, memory, 1, chat, keys(3))
        (quota,) = client.stats().blocks.quotas
        assert quota == BlockQuota("chat", 2 * MIB, 4 * MIB, 3 * MIB)
    [_, line] = Pandoctl(pandod.address)("status").out.split("\n\n")[1].splitlines()
    assert line.split() == ["chat", "2.0", "MiB", "4.0", "MiB", "3.0", "MiB"]
    seen = MetricsPage(http)
    assert seen.by("quota", "pando_block_quota_bytes") == {"chat": 3 * MIB}
