"""The help of pandoctl, and its look on a terminal."""

import re
import shlex
from collections.abc import Callable

import pytest
from pando_kv import Client
from pandoctl import Pandoctl
from pandod_process import REPOSITORY, Pandod

USAGE, UNREACHABLE = 2, 3


@pytest.fixture
def ctl(start_pandod: Callable[..., Pandod]) -> Pandoctl:
    return Pandoctl(start_pandod().address)


def verbs(ctl: Pandoctl) -> list[str]:
    listed = ctl("--help").out.split("Subcommands:\n")[1]
    return [line.split()[0] for line in listed.splitlines() if line.strip()]


def test_the_help_of_every_verb_has_examples_and_the_options_of_all(ctl):
    assert len(verbs(ctl)) > 15
    for verb in verbs(ctl):
        text = ctl(verb, "--help").out
        assert f"pandoctl {verb}" in text.split("\nExamples:\n")[1], verb
        assert "  --address ADDRESS " in text.split("\nOptions of every verb:\n")[1]
        # CLI11 prints these words for types and ranges unless it is told otherwise.
        assert not re.search("UINT|TEXT|FLOAT|INT in|Needs:|Env:", text), verb


def test_every_example_is_understood(ctl, monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    ctl.environment["PANDO_ADDRESS"] = "unix:/nowhere"
    for verb in verbs(ctl):
        examples = ctl(verb, "--help").out.split("\nExamples:\n")[1].split("\n\n")[0]
        for example in examples.splitlines():
            _, _, arguments = example.rpartition("pandoctl ")
            if verb == "completion":
                continue
            answer = ctl(
                *shlex.split(arguments), "--yes", "--timeout", 0.5, stdin="[1, 2]"
            )
            assert answer.code == UNREACHABLE, (example, answer.err)


def test_an_unknown_verb_is_named_with_the_one_it_is_like(ctl):
    refused = ctl("stauts")
    assert refused.code == USAGE
    assert "unknown verb 'stauts'; did you mean 'status'?" in refused.err
    assert "unknown verb 'dance'; see --help" in ctl("dance").err


def test_headings_and_health_are_in_colour_on_a_terminal_alone(ctl):
    ctl.environment |= {"TERM": "xterm", "NO_COLOR": ""}
    with Client(ctl.environment["PANDO_ADDRESS"]):
        assert "\x1b[1mSESSION" in ctl.on_terminal("sessions").out
        assert "\x1b" not in ctl.on_terminal("sessions", "-o", "json").out
        assert "\x1b" not in ctl("sessions").out
    assert "\x1b[32mSERVING\x1b[0m" in ctl.on_terminal("health").out
    away = ctl.on_terminal("status", "--address", "unix:/nowhere").out
    assert away.startswith("\x1b[1;31mpandoctl:\x1b[0m unix:/nowhere")
    ctl.environment["NO_COLOR"] = "1"
    assert "\x1b" not in ctl.on_terminal("health").out
    ctl.environment |= {"NO_COLOR": "", "TERM": "dumb"}
    assert "\x1b" not in ctl.on_terminal("health").out
