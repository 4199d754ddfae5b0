"""The log of pandod, and the secrets that never appear in it."""

import fcntl
import os
import subprocess
from contextlib import ExitStack

import grpc
import numpy as np
import pytest
from eventually import eventually
from pando_kv import Client, Namespace, PandoError, UnknownLockError
from pandod_process import PAGE_TOKENS, Pandod, binary, clean_environment
from terminal import Terminal
from worker_process import WorkerProcess

# No other logged number looks like this token.
FIRST_TOKEN = 77_000_000
SALT = "a secret salt"


def prompt(pages: int) -> np.ndarray:
    return np.arange(FIRST_TOKEN, FIRST_TOKEN + pages * PAGE_TOKENS, dtype=np.uint32)


def called(pandod: Pandod, words: str) -> list[dict[str, object]]:
    return [event for event in pandod.events() if event["msg"] == words]


def test_each_line_is_an_object_with_time_level_and_words(start_pandod):
    pandod = start_pandod()
    with Client(pandod.address, name="worker 7"):
        pass
    eventually(lambda: bool(called(pandod, "session closed")))
    assert pandod.stop() == 0
    events = pandod.events()
    for event in events:
        assert {"ts", "level", "msg"} <= event.keys()
    assert [event["msg"] for event in events] == [
        "pandod serves",
        "session opened",
        "session closed",
        "draining",
        "stopped",
    ]
    assert events[1] | {"session": 1, "client_name": "worker 7"} == events[1]


def test_on_a_terminal_it_is_text(tmp_path):
    command = [str(binary()), "--socket", str(tmp_path / "pando.sock"), "--http="]
    with Terminal(command, clean_environment()) as terminal:
        terminal.read_until("start_ms=")
        assert "info pandod serves socket=" in terminal.seen


def test_a_killed_worker_is_told_by_the_number_of_its_session(start_pandod):
    pandod = start_pandod()
    with WorkerProcess(pandod.address) as worker:
        worker.do("attach")
        worker.kill()
        eventually(lambda: bool(called(pandod, "session lost")))
    [opened], [lost] = (
        called(pandod, f"session {what}") for what in ("opened", "lost")
    )
    assert lost["session"] == opened["session"] == 1


def test_a_refused_call_is_named_with_its_reason_and_request_id(start_pandod):
    pandod = start_pandod()
    with Client(pandod.address) as client, pytest.raises(PandoError):
        client.insert(prompt(1), [5])
    eventually(lambda: bool(called(pandod, "call refused")))
    [refused] = called(pandod, "call refused")
    assert refused["method"] == "pando.v1.PrefixCache/Insert"
    assert refused["reason"] == "PAGE_NOT_OWNED"
    assert refused["request_id"] != 0
    assert refused["peer"].startswith("unix:")


def test_a_full_pool_is_no_event(start_pandod):
    pandod = start_pandod()
    with Client(pandod.address) as client, pytest.raises(PandoError):
        client.allocate_pages(10_000)
    assert pandod.stop() == 0
    assert called(pandod, "call refused") == []


def test_slow_calls_are_told_with_their_time(start_pandod):
    pandod = start_pandod(slow_call="1us")
    with Client(pandod.address) as client:
        client.stats()
    eventually(lambda: bool(called(pandod, "slow call")))
    for event in called(pandod, "slow call"):
        assert event["level"] == "warning"
        assert event["duration_us"] >= 1


def test_repeats_are_counted_and_not_written(start_pandod):
    pandod = start_pandod()
    calls = 500
    with Client(pandod.address) as client:

        def refused() -> None:
            with pytest.raises(PandoError):
                client.insert(prompt(1), [5])

        for _ in range(calls):
            refused()
        written = len(called(pandod, "call refused"))
        assert written < calls / 2

        # The next refusal that pandod writes says how many it did not write.
        def is_told() -> bool:
            refused()
            return any("repeats" in event for event in called(pandod, "call refused"))

        eventually(is_told)


def test_how_many_were_not_written_is_told_without_another_one(start_pandod):
    pandod = start_pandod()
    calls = 30
    with Client(pandod.address) as client:
        for _ in range(calls):
            with pytest.raises(PandoError):
                client.insert(prompt(1), [5])

        def told() -> int:
            lines = called(pandod, "call refused")
            return sum("method" in e for e in lines) + sum(
                e.get("repeats", 0) for e in lines
            )

        eventually(lambda: told() == calls)


def test_how_many_were_not_written_is_told_at_the_end(start_pandod):
    pandod = start_pandod()
    workers = 30
    with ExitStack() as stack:
        for _ in range(workers):
            stack.enter_context(Client(pandod.address))
        assert pandod.stop() == 0
    lines = called(pandod, "session ends with the server")
    assert sum("session" in e for e in lines) == 10
    assert sum(e.get("repeats", 0) for e in lines) == workers - 10


def test_a_worker_that_is_there_at_the_end_is_no_warning(start_pandod):
    pandod = start_pandod()
    with Client(pandod.address):
        assert pandod.stop() == 0
    assert {event["level"] for event in pandod.events()} == {"info"}
    assert called(pandod, "session ends with the server")[0]["session"] == 1


def test_a_session_that_is_lost_just_before_the_end_is_told(start_pandod):
    pandod = start_pandod(session_grace="0s")
    with WorkerProcess(pandod.address) as worker:
        worker.do("attach")
        worker.kill()
        eventually(lambda: bool(called(pandod, "the stream of a session broke")))
        assert pandod.stop() == 0
    assert called(pandod, "session lost")[0]["session"] == 1


def test_what_operators_do_is_told(start_pandod):
    pandod = start_pandod()
    with Client(pandod.address) as client:
        client.insert(prompt(2), client.allocate_pages(2))
        lock = client.lock(prompt(2))
        client.set_eviction_policy("lfu")
        client.release_locks(1)
        client.flush()
        with pytest.raises(UnknownLockError):
            lock.release()
    assert pandod.stop() == 0
    [policy] = called(pandod, "an operator changed the eviction policy")
    assert (policy["previous"], policy["policy"]) == ("lru", "lfu")
    assert called(pandod, "an operator released locks")[0]["locks"] == 1
    assert called(pandod, "an operator flushed")[0]["evicted_pages"] == 2


def test_requests_that_are_no_text_do_not_break_the_lines(start_pandod):
    pandod = start_pandod()
    # The text field client_name holds bytes that are no UTF-8.
    with grpc.insecure_channel(pandod.address) as channel:
        opening = channel.stream_stream("/pando.v1.Sessions/Open")
        with pytest.raises(grpc.RpcError):
            list(opening(iter([b"\x0a\x02\xff\xfe"]), timeout=30))
    assert pandod.stop() == 0
    # Each line is JSON.
    assert pandod.events()


@pytest.mark.parametrize("level", ["debug", "info"])
def test_tokens_and_salts_are_never_logged(start_pandod, level):
    pandod = start_pandod(log_level=level, slow_call="1us", check_invariants_every="1s")
    secret = Namespace(extra_key="a tenant", cache_salt=SALT)
    with Client(pandod.address, name="worker") as client:
        client.insert(prompt(2), client.allocate_pages(2), namespace=secret)
        client.match_prefix(prompt(2), namespace=secret)
        client.explain(prompt(2), namespace=secret)
        with pytest.raises(PandoError):
            client.insert(prompt(2), [60, 61], namespace=secret)
        with pytest.raises(PandoError):
            client.match_prefix(prompt(2000), namespace=secret, reserve_tokens=1)
        client.flush(namespace=secret)
    assert pandod.stop() == 0
    assert SALT not in pandod.log()
    assert str(FIRST_TOKEN)[:7] not in pandod.log()


def test_a_reader_of_the_log_that_goes_takes_nobody_along(tmp_path):
    socket = tmp_path / "pando.sock"
    command = [binary(), "--socket", socket, "--http=", "--pool-pages=2"]
    with subprocess.Popen(
        command, env=clean_environment(), stderr=subprocess.PIPE
    ) as process:
        # pandod serves now.
        process.stderr.readline()
        process.stderr.close()
        for _ in range(2):
            with Client(f"unix:{socket}") as client:
                assert client.stats().sessions >= 1
        process.terminate()
        assert process.wait(30) == 0


def test_a_log_that_nobody_reads_does_not_keep_it_from_ending(tmp_path):
    socket = tmp_path / "pando.sock"
    command = [binary(), "--socket", socket, "--http=", "--pool-pages=2"]
    with subprocess.Popen(
        command, env=clean_environment(), stderr=subprocess.PIPE
    ) as process:
        # pandod serves now.
        process.stderr.readline()
        # No byte of the later lines fits into the full pipe.
        fcntl.fcntl(process.stderr, fcntl.F_SETPIPE_SZ, 4096)
        with open(f"/proc/{process.pid}/fd/2", "wb", buffering=0) as pipe:
            os.set_blocking(pipe.fileno(), False)
            while pipe.write(b"x"):
                pass
        with Client(f"unix:{socket}") as client:
            assert client.stats().sessions == 1
        process.terminate()
        assert process.wait(30) == 0


def test_a_session_that_is_refused_is_told(start_pandod):
    pandod = start_pandod()
    with grpc.insecure_channel(pandod.address) as channel:
        opening = channel.stream_stream("/pando.v1.Sessions/Open")
        too_long = b"x" * 129
        with pytest.raises(grpc.RpcError):
            list(opening(iter([b"\x0a\x81\x01" + too_long]), timeout=30))
    eventually(lambda: bool(called(pandod, "call refused")))
    [refused] = called(pandod, "call refused")
    assert refused["method"] == "pando.v1.Sessions/Open"
    assert refused["reason"] == "INVALID_FIELD"
