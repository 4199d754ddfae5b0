"""The sockets and the memory of a pandod under pando-keeper outlive the pandod."""

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import sys

import blocks
import numpy as np
import pytest
from connector import connecting
from eventually import eventually
from handed_down import HANDING_DOWN, HandedDown
from kept_pandod import (
    LAYOUT,
    call_until_answered,
    config_of,
    keeper,
    kept,
    memory_files,
)
from lanes import needs_lane
from pando_kv import (
    Client,
)
from pandod_process import (
    OPEN,
    PAGE_TOKENS,
    binary,
    clean_environment,
)

TOKENS = list(range(2 * PAGE_TOKENS))
KILLS = 20


@needs_lane
def test_no_connection_is_refused_while_it_is_killed_again_and_again(tmp_path):
    with (
        kept(tmp_path) as server,
        connecting(server.socket, server.memory_socket) as connector,
    ):
        memory = memory_files(server.server_pid)
        assert len(memory) == 1
        with (
            Client(server.address, lane=False) as by_grpc,
            Client(server.address) as by_lane,
        ):
            for _ in range(KILLS):
                server.kill_server()
                call_until_answered(by_lane)
                call_until_answered(by_grpc)
                assert memory_files(server.server_pid).keys() == memory.keys()
        assert memory_files(server.pid).keys() == memory.keys()
        assert connector.stop() > KILLS


def test_memory_that_workers_have_filled_is_not_there_twice(tmp_path):
    with kept(tmp_path, pool_pages=1024, heads=8, head_size=64) as server:
        with Client(server.address) as client, client.attach_pool() as pool:
            size = pool.memory().nbytes
            pool.memory()[:] = 1
        for _ in range(3):
            server.kill_server()
            server.wait_serving()
            with Client(server.address) as client, client.attach_pool() as pool:
                pool.memory()[:] = 2
        held = memory_files(server.pid) | memory_files(server.server_pid)
        assert len(held) == 1
        assert size <= sum(held.values()) < 1.1 * size


def test_a_mapping_of_before_is_of_the_same_memory(tmp_path):
    with kept(tmp_path) as server, Client(server.address) as client:
        with client.attach_pool() as before:
            server.kill_server()
            call_until_answered(client)
            with client.attach_pool() as after:
                before.memory()[:4] = (1, 2, 3, 4)
                np.testing.assert_array_equal(after.memory()[:4], (1, 2, 3, 4))


def test_a_size_that_pandod_chose_stays(tmp_path):
    with kept(tmp_path, **blocks.BLOCKS_ONLY | {"memory": None}) as server:
        memory = memory_files(server.server_pid)
        assert memory
        server.kill_server()
        server.wait_serving()
        assert memory_files(server.server_pid).keys() == memory.keys()


def test_an_open_pool_gets_its_memory_back_with_its_layout(tmp_path):
    with kept(tmp_path, **OPEN, pool_bytes="1MiB") as server:
        with Client(server.address) as client:
            client.attach_pool(expected_layout=LAYOUT, model="m").close()
        memory = memory_files(server.server_pid)
        assert len(memory) == 1
        server.kill_server()
        server.wait_serving()
        with (
            Client(server.address) as client,
            client.attach_pool(expected_layout=LAYOUT, model="m"),
        ):
            assert memory_files(server.server_pid).keys() == memory.keys()


def test_a_socket_whose_file_is_gone_is_made_anew(tmp_path):
    with kept(tmp_path) as server:
        server.socket.unlink()
        server.kill_server()
        server.wait_serving()
        assert "its file is gone" in server.log()
        # The keeper keeps the replacement, too.
        server.kill_server()
        server.wait_serving()
        assert server.log().count("a kept socket is not used") == 1


def test_it_ends_when_pandod_ends_by_itself(tmp_path):
    with kept(tmp_path) as server:
        os.kill(server.server_pid, signal.SIGTERM)
        assert server.wait() == 0
        assert not server.socket.exists()


def test_it_tells_pandod_to_drain(tmp_path):
    with kept(tmp_path, drain_timeout="1h") as server, Client(server.address) as client:
        lock = client.match_prefix(TOKENS, lock=True).lock
        server.terminate()
        eventually(lambda: "draining" in server.log())
        assert server.running
        lock.release()
        assert server.wait() == 0


def test_wrong_options_end_it_with_their_code(tmp_path):
    ended = subprocess.run(
        [keeper(), binary(), "--pool-pages=nonsense"],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 2
    assert "pool-pages" in ended.stderr


def test_without_keep_nothing_is_kept(tmp_path):
    with kept(tmp_path, keep="no") as server:
        memory = memory_files(server.server_pid)
        assert not memory_files(server.pid)
        server.kill_server()
        server.wait_serving()
        assert memory_files(server.server_pid).keys().isdisjoint(memory)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("{'pool-0': memory(4096)}", "it has 4096 bytes, not"),
        ("{'pool-0': os.open('/dev/zero', os.O_RDWR)}", "it is no memory of a pandod"),
        ("{'listen-grpc': memory()}", "it is no listening Unix socket"),
        ("{'listen-memory': listening_at('%s/other')}", "it listens on '"),
    ],
)
def test_what_is_not_its_own_is_refused_with_a_sentence(tmp_path, given, reason):
    owned = given.replace("{", "{'owner': memory(), ") % (
        (tmp_path,) * given.count("%")
    )
    server = HandedDown(tmp_path, owned)
    server.start(NOTIFY_SOCKET=str(tmp_path / "notify"))
    with contextlib.closing(server):
        assert reason in server.log()
        with Client(server.address) as client, client.attach_pool() as pool:
            pool.memory()[:] = 1
        server.close_in_order()


def test_what_no_pandod_has_given_away_is_not_used(tmp_path):
    server = HandedDown(tmp_path, "{'web': memory(), 'pool-0': memory(1 << 20)}")
    server.start(NOTIFY_SOCKET=str(tmp_path / "notify"))
    with contextlib.closing(server):
        assert len(memory_files(server.pid)) == 1
        assert "not used" not in server.log()
        server.close_in_order()


def test_sockets_that_come_from_no_keeper_are_refused(tmp_path):
    path = tmp_path / "pando.sock"
    given = f"{{'unknown': listening_at('{path}')}}"
    ended = subprocess.run(
        [sys.executable, "-c", HANDING_DOWN, given, binary(), "--socket", path],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 1
    assert "LISTEN_FDS is 1, and NOTIFY_SOCKET is not set" in ended.stderr
    assert path.exists()


def test_a_second_owner_does_not_start(tmp_path):
    owner = os.memfd_create("owner")
    with open(f"/proc/self/fd/{owner}", "r+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        given = f"{{'owner': os.open('/proc/{os.getpid()}/fd/{owner}', os.O_RDWR)}}"
        ended = subprocess.run(
            [sys.executable, "-c", HANDING_DOWN, given, binary(), "--http="],
            env=clean_environment() | {"NOTIFY_SOCKET": str(tmp_path / "notify")},
            capture_output=True,
            text=True,
            timeout=60,
        )
    os.close(owner)
    assert ended.returncode == 1
    assert "another pandod, which lives, owns" in ended.stderr


def test_a_pandod_that_is_to_keep_nothing_any_more_starts(tmp_path):
    with kept(tmp_path, config=config_of(tmp_path, keep="auto")) as server:
        config_of(tmp_path, keep='"no"')
        server.kill_server()
        server.wait_serving()
        eventually(lambda: not memory_files(server.pid))


def test_a_socket_whose_place_another_one_has_taken_is_made_anew(tmp_path):
    with kept(tmp_path) as server:
        server.socket.unlink()
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(server.socket))
        server.kill_server()
        server.wait_serving()


def test_a_kept_socket_loses_the_group_of_an_option_that_is_gone(tmp_path):
    groups = set(os.getgroups()) | ({1} if os.getuid() == 0 else set())
    others = groups - {os.getegid()}
    if not others:
        pytest.skip("this user has no second group")
    config = config_of(tmp_path, **{"socket-group": min(others)})
    with kept(tmp_path, config=config) as server:
        assert server.socket.stat().st_gid == min(others)
        config_of(tmp_path)
        server.kill_server()
        server.wait_serving()
        assert server.socket.stat().st_gid == os.getegid()
