"""The TCP, HTTP and mover sockets outlive a pandod, as Unix sockets do."""

import contextlib
import socket

import pytest
from connector import connecting
from eventually import eventually
from kept_pandod import call_until_answered, config_of, kept
from metrics_page import free_address, get
from mover_process import MoverProcess
from pando_kv import Client

KILLS = 20


def test_no_caller_of_tcp_and_http_is_refused_while_it_is_killed_again_and_again(
    tmp_path,
):
    tcp, http = free_address(), free_address()
    with (
        kept(tmp_path, tcp=tcp, tcp_insecure="yes", http=http) as server,
        connecting(tcp, http) as connector,
        Client(tcp) as client,
    ):
        for _ in range(KILLS):
            server.kill_server()
            call_until_answered(client)
            assert get(http, "/healthz")[0] == 200
        assert connector.stop() > KILLS
        assert "not used" not in server.log()


def test_no_mover_is_refused_while_pandod_is_killed_again_and_again(tmp_path):
    path = tmp_path / "mover.sock"
    tier = {"mover_socket": path, "tier_host_bytes": "1MiB"}
    with (
        kept(tmp_path, **tier) as server,
        connecting(path) as connector,
        contextlib.closing(MoverProcess(path, tmp_path / "mover.log")) as mover,
    ):
        mover.start_and_copy()
        for _ in range(KILLS):
            server.kill_server()
            server.wait_serving()
        assert connector.stop() > KILLS
        before = mover.welcomes()
        server.kill_server()
        eventually(lambda: mover.welcomes() > before)
        assert "the connection is closed" not in server.log()


@pytest.mark.parametrize("name", ["tcp", "http"])
def test_a_socket_of_another_address_is_made_anew(tmp_path, name):
    old, new = free_address(), free_address()
    more = {"tcp-insecure": '"yes"', "http": '""'} if name == "tcp" else {}
    config = config_of(tmp_path, **{name: old} | more)
    with kept(tmp_path, config=config, http=None) as server:
        config_of(tmp_path, **{name: new} | more)
        server.kill_server()
        server.wait_serving()
        assert "it does not listen there" in server.log()
        # The port stays the same, and pandod now listens on all addresses.
        config_of(tmp_path, **{name: f"0.0.0.0:{new.rpartition(':')[2]}"} | more)
        server.kill_server()
        server.wait_serving()
        socket.create_connection(new.split(":")).close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(old.split(":"))


def test_a_port_may_be_given_to_another_option(tmp_path):
    port, other = free_address(), free_address()
    config = config_of(
        tmp_path, **{"tcp": port, "tcp-insecure": '"yes"', "http": other}
    )
    with kept(tmp_path, config=config, http=None) as server:
        config_of(tmp_path, http=port)
        server.kill_server()
        server.wait_serving()
        assert get(port, "/healthz")[0] == 200


def test_with_keep_no_ports_of_before_are_bound_anew(tmp_path):
    http = free_address()
    config = config_of(tmp_path, keep="auto", http=http)
    with kept(tmp_path, config=config, http=None) as server:
        config_of(tmp_path, keep='"no"', http=http)
        server.kill_server()
        server.wait_serving()
        assert get(http, "/healthz")[0] == 200
