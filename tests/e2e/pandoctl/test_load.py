"""`pandoctl replay` and `pandoctl bench` against a real pandod."""

import json
from pathlib import Path

import pytest
from e2e.pandoctl.conftest import FAILED, OK, UNREACHABLE, USAGE
from metrics_page import MetricsPage, free_address
from pando_kv import Client
from pandoctl import Pandoctl
from pandod_process import PAGE_TOKENS, POOL_PAGES


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Returns a trace of two requests that begin alike."""
    first = {"input_length": 600, "output_length": 1, "hash_ids": [1, 2]}
    second = {"input_length": 600, "output_length": 1, "hash_ids": [1, 3]}
    path = tmp_path / "trace.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in (first, second)))
    return path


def test_a_replay_hits_what_the_trace_repeats(ctl, trace):
    report = ctl("-o", "json", "replay", trace, "--yes").json()
    assert (report["requests"], report["input_tokens"]) == (2, 1200)
    assert report["hit_tokens"] == report["unlimited_hit_rate"] * 1200 == 512
    assert report["problems"] == report["invariant_violations"] == []


def test_only_the_first_requests_of_a_trace(ctl, trace):
    report = ctl("-o", "json", "replay", trace, "--requests", 1, "--yes").json()
    assert (report["requests"], report["hit_tokens"]) == (1, 0)


def test_a_bench_shares_system_prompts_between_client_processes(ctl):
    shared, requests = 4 * PAGE_TOKENS, 24
    report = ctl(
        *("-o", "json", "bench", "--yes", "--clients", 2, "--requests", requests),
        *("--prompt-tokens", 2 * shared, "--system-prompt-tokens", shared),
        *("--system-prompts", 1),
    ).json()
    assert (report["requests"], report["clients"]) == (requests, 2)
    # The first request of each client may find nothing yet.
    assert report["hit_tokens"] >= (requests - 2) * shared
    assert report["hit_tokens"] <= (requests - 1) * shared


@pytest.mark.parametrize("transport", ["lane", "grpc"])
def test_calls_go_by_the_transport_that_is_asked_for(start_pandod, transport):
    http = free_address()
    pandod = start_pandod(http=http)
    Pandoctl(pandod.address)(
        *("bench", "--yes", "--requests", 3, "--transport", transport),
        *("--prompt-tokens", PAGE_TOKENS, "--system-prompt-tokens", 0),
    )
    inserts = MetricsPage(http).by(
        "transport", "grpc_server_handled_total", grpc_method="Insert", grpc_code="OK"
    )
    assert {way: count for way, count in inserts.items() if count} == {transport: 3}


def test_a_second_bench_sends_other_prompts(ctl):
    for _ in range(2):
        report = ctl(
            *("-o", "json", "bench", "--yes", "--requests", 3),
            *("--prompt-tokens", PAGE_TOKENS, "--system-prompt-tokens", 0),
        ).json()
        assert report["hit_tokens"] == 0


def test_a_table_shows_the_times(ctl, trace):
    text = ctl("replay", trace, "--yes").out
    assert "MatchPrefix" in text
    assert "p99" in text


def test_progress_is_shown_on_a_terminal_and_is_gone_at_the_end(ctl):
    seen = ctl.on_terminal(
        *("bench", "--yes", "--requests", 4),
        *("--prompt-tokens", PAGE_TOKENS, "--system-prompt-tokens", 0),
    )
    assert seen.code == OK
    assert " 0 of 4 requests" in seen.out
    assert seen.out.index("of 4 requests") < seen.out.rindex("\x1b[K")


def test_a_bench_asks_first(ctl):
    refused = ctl("bench")
    assert (refused.code, "--yes" in refused.err) == (USAGE, True)
    assert ctl.on_terminal("bench", typed="no\n").code == FAILED


def test_accounts_that_do_not_add_up_are_a_failure(ctl, pandod, trace):
    with Client(pandod.address, name="another") as other:
        with other.match_prefix([1] * PAGE_TOKENS, lock=True).lock:
            shared_with = ctl("replay", trace, "--yes")
    assert shared_with.code == FAILED
    assert "does anybody else use this pandod?" in shared_with.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("replay", "/nowhere"),
        ("replay", __file__),
        ("bench", "--prompt-tokens", 5, "--system-prompt-tokens", 6),
        ("bench", "--clients", 0),
        ("bench", "--requests", 10**7, "--system-prompt-tokens", 1),
    ],
    ids=str,
)
def test_what_cannot_be_sent_is_a_mistake_in_usage(ctl, arguments):
    refused = ctl(*arguments, "--yes")
    assert (refused.code, refused.out) == (USAGE, "")


def test_a_bench_of_nobody_says_so(tmp_path):
    nobody = Pandoctl(f"unix:{tmp_path}/nobody.sock")
    assert nobody("bench", "--yes", "--timeout", 0.5).code == UNREACHABLE


def test_prompts_that_never_fit_are_counted(ctl):
    report = ctl(
        *("-o", "json", "bench", "--yes", "--requests", 2),
        *("--prompt-tokens", (POOL_PAGES + 1) * PAGE_TOKENS),
    ).json()
    assert report["exhausted"] == 2
