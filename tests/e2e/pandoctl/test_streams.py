"""The verbs of pandoctl that run until they are stopped: stat, top and watch."""

import json
from concurrent.futures import ThreadPoolExecutor

from e2e.pandoctl.conftest import prompt, publish
from pando_kv import Namespace, SnapshotEnd


def test_stat_shows_rates_of_the_interval(ctl, client):
    publish(client, prompt(1))
    with (
        ctl.start("stat", "-i", 0.2, "-n", 100, "-o", "json") as stat,
        ThreadPoolExecutor(1) as reader,
    ):
        # On a busy machine some intervals pass without any call.
        lines = map(json.loads, stat.stdout)
        found = reader.submit(next, filter(lambda line: line["hit_tokens"], lines))
        while not found.done():
            client.match_prefix(prompt(2))
        stat.terminate()
    line = found.result()
    assert line["matches_per_second"] > 0
    assert line["hit_tokens"] * 2 == line["query_tokens"] > 0
    assert line["pages"]["evictable"] == 1
    assert line["sessions"] == 1


def test_stat_has_a_header_and_a_line_for_each_interval(ctl):
    text = ctl("stat", "-i", 0.01, "-n", 21).out
    lines = text.splitlines()
    assert len(lines) == 23
    assert lines[0] == lines[21]
    assert lines[0].split()[:2] == ["hit%", "match/s"]
    assert lines[1].split()[:2] == ["-", "0.0"]


def test_top_draws_screens_on_a_terminal_and_one_elsewhere(ctl, client):
    publish(client, prompt(32))
    with client.lock(prompt(16)):
        live = ctl.on_terminal("top", "-i", 0.01, "-n", 3).out
        once = ctl("top", "-i", 0.01).out
        answer = ctl("top", "-i", 0.01, "-o", "json").json()
    assert live.count("\x1b[H\x1b[J") == 3
    assert "\x1b" not in once
    assert "[" + 16 * "#" + 16 * "=" + 32 * "." + "]" in once
    assert answer["locks"]["total"] == answer["sessions"]["total"] == 1
    assert answer["rates"]["matches_per_second"] == 0
    for table in ("NAMESPACE  EXTRA_KEY", "SESSION  CLIENT", "1  the worker"):
        assert table in once


def test_watch_shows_what_comes_and_goes(ctl, client):
    watch = ctl.start("watch", "-n", 2)
    with client.watch_events() as events:
        while not isinstance(next(events), SnapshotEnd):
            pass
        while watch.poll() is None:
            publish(client, prompt(2), namespace=Namespace("lora"))
            next(events)
            client.evict(2)
            next(events)
    texts = {line.split(" ", 1)[1] for line in watch.communicate()[0].splitlines()}
    stored, removed = sorted(texts, reverse=True)
    assert stored.startswith("stored 2 blocks of 16 tokens, extra_key lora, up to ")
    assert removed.startswith("removed 2 blocks for request, from ")


def test_watch_shows_what_is_cached_already_when_asked(ctl, client):
    publish(client, prompt(2))
    lines = ctl("watch", "--snapshot", "-n", 3, "-o", "json").out.splitlines()
    cleared, stored, end = map(json.loads, lines)
    assert "cleared" in cleared and "snapshot_end" in end
    assert len(stored["stored"]["block_hashes"]) == 2
    assert "tokens" not in stored["stored"]
    yaml = ctl("watch", "--snapshot", "-n", 3, "-o", "yaml").out
    assert yaml.count("---\n") == 3
