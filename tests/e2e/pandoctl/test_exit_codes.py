"""The exit codes of pandoctl, and its messages when it cannot reach pandod."""

import os
import signal

import pytest
from e2e.pandoctl.conftest import FAILED, OK, UNREACHABLE, USAGE
from metrics_page import free_address
from pandoctl import Pandoctl


def test_health_is_told_by_the_exit_code(ctl):
    answer = ctl("health", "--invariants")
    assert (answer.code, answer.out) == (OK, "SERVING\n")
    assert ctl("health", "-o", "json").json() == {
        "status": "SERVING",
        "violations": [],
    }
    unknown = ctl("health", "--service", "what")
    assert (unknown.code, '"what"' in unknown.err) == (FAILED, True)


def test_versions_are_those_of_both_programs(ctl, pandod):
    answer = ctl("version", "-o", "json").json()
    assert answer["pandoctl"] == answer["pandod"]
    pandod.kill()
    away = ctl("version")
    assert away.code == UNREACHABLE
    assert away.out == f"pandoctl  {answer['pandoctl']}\npandod    unknown\n"


def test_a_pandod_that_is_not_there_is_unreachable(ctl, pandod):
    assert ctl("--address", "unix:/nowhere", "status").code == UNREACHABLE
    away = ctl("locks", "--address", "/nowhere")
    assert (away.code, "unix:/nowhere" in away.err) == (UNREACHABLE, True)
    pandod.kill()
    for verb in ("stat", "top", "watch", "tree", "health"):
        assert ctl(verb).code == UNREACHABLE


def test_who_gives_no_address_is_told_how(ctl):
    del ctl.environment["PANDO_ADDRESS"]
    away = ctl("status")
    assert away.code == UNREACHABLE
    assert "another one is named with --address or PANDO_ADDRESS" in away.err
    given = ctl("status", "--address", "unix:/nowhere")
    assert "PANDO_ADDRESS" not in given.err


def test_who_cannot_reach_pandod_is_asked_whether_it_runs(ctl):
    away = ctl("status", "--address", "unix:/nowhere")
    assert "unix:/nowhere cannot be reached" in away.err
    assert "Does pandod run there?" in away.err


def test_a_proxy_of_the_web_is_not_asked(start_pandod):
    tcp = free_address()
    start_pandod(tcp=tcp, tcp_insecure="yes")
    ctl = Pandoctl(tcp)
    nobody = f"http://{free_address()}"
    ctl.environment |= {"http_proxy": nobody, "https_proxy": nobody, "no_proxy": ""}
    assert ctl("health").out == "SERVING\n"


def test_a_pandod_that_does_not_answer_in_time_is_unreachable(ctl, pandod):
    os.kill(pandod.pid, signal.SIGSTOP)
    try:
        late = ctl("status", "--timeout", 0.1)
    finally:
        os.kill(pandod.pid, signal.SIGCONT)
    assert (late.code, "has not answered in time" in late.err) == (UNREACHABLE, True)


@pytest.mark.parametrize(
    "arguments",
    [(), ("dance",), ("status", "--loud"), ("evict",), ("status", "-o", "xml")],
    ids=" ".join,
)
def test_what_it_does_not_understand_is_a_mistake_in_usage(ctl, arguments):
    refused = ctl(*arguments)
    assert (refused.code, refused.out) == (USAGE, "")
    assert "--help" in refused.err
