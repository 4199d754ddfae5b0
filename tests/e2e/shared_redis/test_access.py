"""Access to a shared store: users, passwords and certificates."""

import numpy as np
import pytest
from certificates import Authority
from eventually import eventually
from metrics_page import free_address
from protocol_worker import protocol_worker
from shared_redis import with_options
from tiered import PROMPT

SECRET = "a-password-that-nobody-may-read"
# docs/tiers.md lists these rights as all that pandod needs.
RIGHTS = (
    "~pando:1:* -@all +get +set +exists +pexpireat +unlink +scan +cluster|slots +asking"
)


@pytest.fixture
def guarded(start_server, machines_of):
    """Returns machines of a server with a user `pando` that has just these rights."""
    server = start_server()
    server.db.execute_command(
        "ACL", "SETUSER", "pando", "on", f">{SECRET}", *RIGHTS.split()
    )
    server.db.execute_command("ACL", "SETUSER", "default", "resetpass", f">{SECRET}2")
    return machines_of(server)


@pytest.fixture
def password_file(tmp_path):
    path = tmp_path / "password"
    path.write_text(f"{SECRET}\n")
    return path


def test_a_user_needs_no_more_rights_than_the_docs_say(guarded, password_file):
    access = {"user": "pando", "password_file": password_file}
    one, other = guarded.start_with(**access), guarded.start_with(**access)
    computed = one.cache(PROMPT, seed=1)
    np.testing.assert_array_equal(other.read()[1], computed)
    with protocol_worker(one.pandod.address) as worker:
        worker.call("Flush")
    eventually(lambda: one.held_pages() == 0)
    assert guarded.start_with(**access).read()[0] == 0
    assert one.failures("read") == one.failures("write") == 0


def test_a_password_may_do_without_a_user_and_may_change(guarded, password_file):
    one = guarded.start_with(password_file=password_file)
    assert one.read()[0] == 0
    assert one.failures("read") > 0
    eventually(lambda: "WRONGPASS" in one.pandod.log())
    password_file.write_text(f"{SECRET}2")
    eventually(lambda: one.read()[0] == 0 and one.refused("load") == 0)
    computed = one.cache(PROMPT, seed=1)
    other = guarded.start_with(password_file=password_file)
    np.testing.assert_array_equal(other.read()[1], computed)
    assert SECRET not in one.pandod.log() + other.pandod.log()


def test_a_password_that_the_server_repeats_is_not_in_the_log(
    start_server, machines_of, password_file
):
    # The server then does not know the command, and its error repeats the arguments.
    machines = machines_of(start_server(rename_command="AUTH OTHER"))
    one = machines.start_with(password_file=password_file)
    assert one.read()[0] == 0
    eventually(lambda: "refuses the login: ERR" in one.pandod.log())
    assert SECRET not in one.pandod.log()


def test_a_server_that_wants_a_password_gives_nothing_without(guarded):
    one = guarded.start()
    assert one.read()[0] == 0
    assert one.failures("read") > 0
    eventually(lambda: "NOAUTH" in one.pandod.log())


@pytest.fixture
def encrypted(start_server, machines_of, tmp_path):
    """Returns machines of a server that demands certificates, and its authority."""
    authority = Authority(tmp_path / "authority")
    tls = authority.sign("server")
    server = start_server(
        tls_port=free_address().rsplit(":", 1)[1],
        tls_cert_file=tls.certificate,
        tls_key_file=tls.key,
        tls_ca_cert_file=tls.ca,
    )
    return machines_of(server), authority


def start_encrypted(machines, tls, host="127.0.0.1", **options):
    """Starts a machine that asks `host` with the files of `tls`."""
    url = f"rediss://{host}:{machines.server.option('tls-port')}"
    files = {"ca": tls.ca, "certificate": tls.certificate, "key": tls.key}
    return machines.start(tier_shared=with_options(url, **files | options))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_what_is_shared_may_be_encrypted_on_its_way(encrypted, host):
    machines, authority = encrypted
    tls = authority.sign("client")
    one, other = (start_encrypted(machines, tls, host) for _ in range(2))
    computed = one.cache(PROMPT, seed=1)
    np.testing.assert_array_equal(other.read()[1], computed)
    assert other.failures("read") == other.failures("verify") == 0


def test_a_server_with_a_strange_certificate_gets_nothing(encrypted, tmp_path):
    machines, authority = encrypted
    strange = Authority(tmp_path / "strange").sign("client")
    one = start_encrypted(machines, authority.sign("client"), ca=strange.ca)
    assert one.read()[0] == 0
    eventually(lambda: "certificate verify failed" in one.pandod.log())


def test_a_server_with_a_certificate_for_another_name_gets_nothing(encrypted):
    machines, authority = encrypted
    machines.server.db.config_set("bind", "127.0.0.1 127.0.0.2")
    one = start_encrypted(machines, authority.sign("client"), host="127.0.0.2")
    assert one.read()[0] == 0
    eventually(lambda: "certificate verify failed" in one.pandod.log())


def test_a_client_without_a_certificate_gets_nothing(encrypted):
    machines, authority = encrypted
    one = start_encrypted(machines, authority.sign("client"), certificate="", key="")
    assert one.read()[0] == 0
    assert one.failures("read") > 0


def test_what_is_signed_with_a_key_only_its_machines_load(machines, tmp_path):
    key = tmp_path / "key"
    key.write_text("k" * 32)
    key.chmod(0o600)
    signed = {"tier_shared_key_file": key}
    one, other = machines.start(**signed), machines.start(**signed)
    computed = one.cache(PROMPT, seed=1)
    np.testing.assert_array_equal(other.read()[1], computed)
    stranger = machines.start()
    assert stranger.read()[0] == 0
    assert stranger.failures("verify") == 0
