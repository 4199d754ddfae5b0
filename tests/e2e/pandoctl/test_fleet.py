"""`pandoctl fleet` over several pandods, and `pandoctl watch` for routers."""

import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from eventually import eventually
from metrics_page import MetricsPage, free_address
from pando_kv import Client, Namespace
from pandoctl import Pandoctl
from pandod_process import PAGE_TOKENS, Pandod, serving
from prompts import admit_and_publish, prompt

# A page has 2 layers, each with keys and values of 2 heads of 8 floats.
PAGE_BYTES = PAGE_TOKENS * 2 * 2 * 2 * 8 * 4
NOBODY = "127.0.0.1:1"


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[list[Pandod]]:
    with ExitStack() as stack:
        started = []
        for name in ("one", "two", "three"):
            (tmp_path / name).mkdir()
            started.append(stack.enter_context(serving(tmp_path / name)))
        yield started


@pytest.fixture
def clients(machines) -> Iterator[list[Client]]:
    with ExitStack() as stack:
        yield [stack.enter_context(Client(m.address)) for m in machines]


@pytest.fixture
def fleet(machines):
    """Returns a function that asks all machines, and others that `more` names."""
    ctl = Pandoctl("unix:/nowhere")

    def ask(*arguments: object, more: str = ""):
        addresses = ",".join([m.address for m in machines] + ([more] if more else []))
        return ctl("fleet", "--addresses", addresses, *arguments)

    return ask


def columns(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_machines_are_shown_side_by_side(fleet, machines, clients):
    admit_and_publish(clients[0], prompt(3))
    admit_and_publish(clients[0], prompt(3))
    header, *rows = columns(fleet().out)
    assert header == (
        "MACHINE HEALTH VERSION MODEL HIT% FREE EVICTABLE PROTECTED SESSIONS".split()
    )
    assert [row[0] for row in rows] == [m.address for m in machines]
    assert [row[4] for row in rows] == ["50.0", "-", "-"]
    assert [row[6] for row in rows] == ["3", "0", "0"]
    listed = fleet("-o", "json").json()
    assert listed[0]["stats"]["pages"]["evictable"] == 3


def test_a_machine_that_does_not_answer_hides_no_other(fleet, machines):
    answer = fleet(more=NOBODY)
    assert answer.code == 3
    assert len(columns(answer.out)) == 5
    assert columns(answer.out)[-1] == [NOBODY, "does", "not", "answer"]
    assert f"{NOBODY} cannot be reached" in answer.err


def test_a_host_that_nobody_knows_is_named_and_hides_no_other(fleet):
    answer = fleet(more="nobody.invalid:1")
    assert answer.code == 3
    assert len(columns(answer.out)) == 5
    assert columns(answer.out)[-1] == ["nobody.invalid:1", "does", "not", "answer"]
    assert "nobody.invalid:1 cannot be reached" in answer.err


@pytest.fixture
def hosts(tmp_path: Path):
    """Returns a command prefix that replaces /etc/hosts by a file of the test."""
    file = tmp_path / "hosts"
    file.write_text("127.0.0.1 pool\n127.0.0.2 pool\n127.0.0.1 machine\n::1 machine\n")
    script = f'mount --bind {file} /etc/hosts && "$@"'
    prefix = ["unshare", "-rm", "sh", "-c", script, ""]
    if subprocess.run([*prefix, "true"], check=False).returncode != 0:
        pytest.skip("a process cannot have a mount of its own here")
    return prefix


@pytest.mark.parametrize(
    "host, machines",
    [
        ("pool", {"127.0.0.1:{}": "SERVING", "127.0.0.2:{}": "does"}),
        # The host has one address of each family, so it counts as one machine.
        ("machine", {"machine:{}": "SERVING"}),
    ],
)
def test_a_host_stands_for_the_machines_at_its_addresses(
    tmp_path, hosts, host, machines
):
    port = free_address().split(":")[1]
    ctl = Pandoctl("unix:/nowhere", run_by=hosts)
    with serving(tmp_path, tcp=f"127.0.0.1:{port}", tcp_insecure="yes"):
        rows = columns(ctl("fleet", "--addresses", f"{host}:{port}").out)[1:]
    assert {row[0]: row[1] for row in rows} == {
        name.format(port): health for name, health in machines.items()
    }


def test_without_addresses_the_one_pandod_is_asked(machines):
    ctl = Pandoctl(machines[0].address)
    assert len(columns(ctl("fleet").out)) == 2


def test_who_holds_a_prompt_is_said_the_longest_first(fleet, machines, clients):
    admit_and_publish(clients[1], prompt(4))
    admit_and_publish(clients[2], prompt(2))
    tokens = prompt(4).tolist()
    first, header, *rows = columns(fleet("explain", *tokens).out)
    assert " ".join(first) == f"of {4 * PAGE_TOKENS} tokens"
    assert header == ["MACHINE", "MATCHED", "END"]
    assert rows == [
        [machines[1].address, str(4 * PAGE_TOKENS), "COMPLETE"],
        [machines[2].address, str(2 * PAGE_TOKENS), "NEVER_CACHED"],
        [machines[0].address, "0", "NEVER_CACHED"],
    ]


def test_prefixes_on_several_machines_are_counted(fleet, machines, clients):
    shared, long = prompt(2), prompt(5)
    admit_and_publish(clients[0], long)
    admit_and_publish(clients[1], long)
    admit_and_publish(clients[2], shared)
    admit_and_publish(clients[2], prompt(3, 9000), namespace=Namespace("lora"))
    told = fleet("prefixes", "-o", "json").json()
    assert told["pages_by_holders"] == [0, 3, 3, 2]
    # Two pages are on three machines, and three more pages are on two.
    assert told["duplicated_bytes"] == (2 * 2 + 3 * 1) * PAGE_BYTES
    names = [m.address for m in machines]
    assert [
        (p["tokens"], p["duplicated_bytes"] // PAGE_BYTES, p["machines"])
        for p in told["prefixes"]
    ] == [(2 * PAGE_TOKENS, 4, names), (5 * PAGE_TOKENS, 3, names[:2])]
    text = fleet("prefixes").out
    assert "on 3 machines  2 different pages" in text
    assert len(fleet("prefixes", "--limit", 1, "-o", "json").json()["prefixes"]) == 1


def test_a_prefix_ends_where_it_branches(fleet, clients):
    for client in clients[:2]:
        for start in (100, 200):
            branch = np.concatenate([prompt(1), prompt(2, start)])
            admit_and_publish(client, branch)
    told = fleet("prefixes", "-o", "json").json()["prefixes"]
    assert sorted(p["duplicated_bytes"] // PAGE_BYTES for p in told) == [2, 3]
    assert all(p["tokens"] == 3 * PAGE_TOKENS for p in told)


@pytest.mark.parametrize("form", ["map", "array"])
def test_watch_shows_what_routers_hear(tmp_path, form):
    endpoint, http = f"tcp://{free_address()}", free_address()
    options = {"kv_events": endpoint, "kv_events_form": form, "http": http}
    with (
        serving(tmp_path, **options, kv_events_topic="pando") as pandod,
        Client(pandod.address) as client,
    ):
        ctl = Pandoctl(pandod.address)
        for output in ("table", "json"):
            known = MetricsPage(http).sum("pando_kv_event_announcements_total")
            watch = ctl.start(
                *("watch", "--kv-events", endpoint, "--topic", "pando"),
                *("-n", 3, "-o", output),
            )
            eventually(
                lambda before=known: (
                    MetricsPage(http).sum("pando_kv_event_announcements_total") > before
                )
            )
            admit_and_publish(client, prompt(2), namespace=Namespace("lora"))
            client.flush()
            lines = watch.communicate()[0].splitlines()
            assert watch.returncode == 0
            if output == "table":
                words = [line.split(" ", 1)[1] for line in lines]
                assert words[0] == "cleared"
                assert words[1].startswith(
                    "stored 2 blocks of 16 tokens, lora_name lora, up to "
                )
                continue
            stored = json.loads(lines[1])["event"]
            assert stored["type"] == "BlockStored"
            assert len(stored["block_hashes"]) == 2
            assert "token_ids" not in stored


def test_watch_says_which_tier_has_a_block(tmp_path):
    endpoint, http = f"tcp://{free_address()}", free_address()
    options = {"kv_events": endpoint, "kv_events_tiers": "yes", "http": http}
    with (
        serving(tmp_path, **options, tier_host_bytes="1MiB") as pandod,
        Client(pandod.address) as client,
    ):
        watch = Pandoctl(pandod.address).start(
            "watch", "--kv-events", endpoint, "-n", 4
        )
        announced = "pando_kv_event_announcements_total"
        eventually(lambda: MetricsPage(http).sum(announced) > 0)
        admit_and_publish(client, prompt(2))
        eventually(lambda: MetricsPage(http).sum("pando_tier_pages") == 2)
        client.flush()
        lines = [line.split(" ", 1)[1] for line in watch.communicate()[0].splitlines()]
        assert lines[1].startswith("stored 2 blocks of 16 tokens, up to ")
        assert lines[2].startswith("stored 2 blocks in CPU of 16 tokens, up to ")
        assert lines[3].startswith("removed 2 blocks")


def test_watch_hears_an_endpoint_of_ipv6(tmp_path):
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6) as probe:
            endpoint = f"tcp://[::1]:{probe.getsockname()[1]}"
    except OSError:
        pytest.skip("there is no IPv6 here")
    with serving(tmp_path, kv_events=endpoint):
        answer = Pandoctl("unix:/nowhere")("watch", "--kv-events", endpoint, "-n", 1)
    assert answer.code == 0, answer.err
    assert answer.out.endswith(" cleared\n")


def test_watch_says_what_is_no_endpoint(tmp_path):
    answer = Pandoctl("unix:/nowhere")("watch", "--kv-events", "nowhere")
    assert answer.code == 2
    assert "--kv-events is 'nowhere': Invalid argument" in answer.err


def test_watch_says_that_no_events_are_published_there():
    endpoint = f"tcp://{free_address()}"
    answer = Pandoctl("unix:/nowhere")(
        "watch", "--kv-events", endpoint, "--timeout", 0.1
    )
    assert answer.code == 3
    assert f"{endpoint} publishes no events: nobody answered in 100ms" in answer.err


def test_watch_ends_with_the_pandod_that_it_hears(tmp_path):
    endpoint = f"tcp://{free_address()}"
    with serving(tmp_path, kv_events=endpoint, kv_events_topic="pando") as pandod:
        watch = Pandoctl(pandod.address).start("watch", "--kv-events", endpoint)
        assert "cleared" in watch.stdout.readline()
    assert watch.wait(60) == 3
