"""Who may connect to pandod."""

import contextlib
import os
import resource
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from eventually import eventually
from metrics_page import MetricsPage, free_address
from pando_kv import Client, UnavailableError
from pandod_process import Pandod, binary, clean_environment, serving
from raw_calls import RawCalls
from users import STRANGER, acting_as, needs_root, open_folder

REFUSED = "connection refused: its user is not allowed"


@pytest.fixture
def folder() -> Iterator[Path]:
    with open_folder() as path:
        yield path


def refused_start(folder: Path, *arguments: str) -> str:
    """What a pandod says that cannot start with these options."""
    refused = subprocess.run(
        [binary(), f"--socket={folder}/pando.sock", "--http=", *arguments],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert refused.returncode != 0
    return refused.stdout + refused.stderr


def is_closed_by_server(path: Path) -> bool:
    """Whether a connection to the socket is closed without a word."""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(30)
        peer.connect(str(path))
        return peer.recv(1) == b""


def refusals(pandod: Pandod) -> list[tuple[str, int, int]]:
    return [
        (event["socket"], event["uid"], event["pid"])
        for event in pandod.events()
        if event["msg"] == REFUSED
    ]


# The Unix sockets.


def test_both_socket_files_have_the_mode_and_the_group_that_are_given(folder):
    options = {"socket_mode": "0606", "socket_group": os.getgid()}
    with serving(folder, **options) as pandod:
        for path in (pandod.socket, pandod.memory_socket):
            info = path.stat()
            assert stat.S_IMODE(info.st_mode) == 0o606
            assert info.st_gid == os.getgid()
    assert not pandod.socket.exists()


@needs_root
def test_the_group_of_the_socket_files_may_be_named(folder):
    with serving(folder, socket_group="daemon") as pandod:
        assert pandod.socket.group() == "daemon"
        assert pandod.memory_socket.group() == "daemon"


def test_a_group_that_does_not_exist_is_named_and_nothing_is_served(tmp_path):
    said = refused_start(tmp_path, "--socket-group=no-such-group")
    assert "socket-group is 'no-such-group'; there is no such group" in said
    assert list(tmp_path.iterdir()) == []


@needs_root
def test_a_user_who_is_not_allowed_is_refused_at_both_sockets_and_counted(folder):
    http = free_address()
    options = {"socket_mode": "0666", "allowed_uids": STRANGER + 1, "http": http}
    with serving(folder, **options) as pandod:
        with acting_as(STRANGER):
            assert is_closed_by_server(pandod.socket)
            assert is_closed_by_server(pandod.memory_socket)
            with pytest.raises(UnavailableError):
                Client(pandod.address, timeout=0.5)
        eventually(lambda: len(refusals(pandod)) >= 3)
        sockets = [str(pandod.socket), str(pandod.memory_socket)]
        assert refusals(pandod)[:2] == [(s, STRANGER, os.getpid()) for s in sockets]
        assert MetricsPage(http).sum("pando_refused_connections_total") >= 3
        # The user of pandod itself.
        with Client(pandod.address) as client, client.attach_pool():
            assert client.stats().sessions == 1


@needs_root
def test_a_user_who_is_allowed_works_as_any_other(folder):
    options = {"socket_mode": "0666", "allowed_uids": f"{STRANGER + 1},{STRANGER}"}
    with serving(folder, **options) as pandod:
        with acting_as(STRANGER):
            client = Client(pandod.address)
            client.attach_pool().close()
        with client:
            assert client.stats().sessions == 1
        assert refusals(pandod) == []


def test_a_refused_call_is_logged_with_the_process_that_made_it(folder):
    with serving(folder) as pandod:
        with RawCalls(pandod.address) as raw:
            raw.failure("pando.v1.PrefixCache/Unlock", b"")
        peer = f"unix:uid={os.geteuid()},pid={os.getpid()}"
        eventually(
            lambda: any(
                event["msg"] == "call refused" and event["peer"] == peer
                for event in pandod.events()
            )
        )


def test_connections_are_accepted_again_once_there_are_descriptors(folder):
    """A connection of gRPC's own listener would be the last one it accepts."""
    with serving(folder) as pandod, contextlib.ExitStack() as connections:
        open_now = len(os.listdir(f"/proc/{pandod.pid}/fd"))
        _, hard = resource.prlimit(pandod.pid, resource.RLIMIT_NOFILE)
        limit = open_now + 4
        resource.prlimit(pandod.pid, resource.RLIMIT_NOFILE, (limit, hard))
        for _ in range(limit):
            peer = connections.enter_context(socket.socket(socket.AF_UNIX))
            peer.connect(str(pandod.socket))
        eventually(
            lambda: "no descriptor is left for a new connection" in pandod.log()
        )
        connections.close()
        with Client(pandod.address) as client:
            assert client.stats().sessions == 1
