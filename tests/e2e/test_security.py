"""Callers that may, or may not, connect to pandod."""

import contextlib
import http.client
import os
import re
import resource
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from certificates import Authority
from eventually import eventually
from metrics_page import MetricsPage, free_address
from pando_kv import Client, Tls, UnavailableError
from pando_kv._proto.pando.v1 import pool_pb2
from pandoctl import Answer, Pandoctl
from pandod_process import Pandod, refused_start, serving
from raw_calls import RawCalls
from users import STRANGER, acting_as, needs_root, open_folder

REFUSED = "connection refused: its user is not allowed"


@pytest.fixture
def folder() -> Iterator[Path]:
    with open_folder() as path:
        yield path


def is_closed_by_server(path: Path) -> bool:
    """Returns whether the server closes a connection without sending a byte."""
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


def pandoctl_of(uid: int, pandod: Pandod) -> Answer:
    """Runs `pandoctl status` as a user."""
    as_user = ("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups")
    return Pandoctl(pandod.address, as_user)("status")


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
            with pytest.raises(
                UnavailableError, match=f"user {STRANGER} .*allowed-uid"
            ):
                Client(pandod.address, timeout=0.5)
            said = f"closes the connections of user {STRANGER} to {pandod.socket}"
            assert said in pandoctl_of(STRANGER, pandod).err
        eventually(lambda: len(refusals(pandod)) >= 3)
        sockets = [str(pandod.socket), str(pandod.memory_socket)]
        assert refusals(pandod)[:2] == [(s, STRANGER, os.getpid()) for s in sockets]
        assert MetricsPage(http).sum("pando_refused_connections_total") >= 3
        # The user of pandod itself may connect.
        with Client(pandod.address) as client, client.attach_pool():
            assert client.stats().sessions == 1


@needs_root
def test_a_user_whom_the_mode_of_the_socket_keeps_out_is_told_so(folder):
    with serving(folder, socket_mode="0640") as pandod:
        says = (
            f"user {STRANGER} may not connect to {pandod.socket}, whose mode is 0640, "
            f"user {os.getuid()} and group {os.getgid()}"
        )
        with acting_as(STRANGER):
            with pytest.raises(UnavailableError, match=re.escape(says)):
                Client(pandod.address, timeout=0.5)
        assert says in pandoctl_of(STRANGER, pandod).err
        folder.chmod(0o700)
        says = f"user {STRANGER} may not look into the folder of {pandod.socket}"
        assert says in pandoctl_of(STRANGER, pandod).err
        folder.chmod(0o755)


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


def test_a_pandod_that_stops_leaves_the_sockets_of_its_successor_alone(folder):
    with serving(folder) as first:
        first.socket.unlink()
        first.memory_socket.unlink()
        with serving(folder) as second:
            first.stop()
            with Client(second.address) as client, client.attach_pool():
                assert client.stats().sessions == 1


def test_connections_are_accepted_again_once_there_are_descriptors(folder):
    """Without descriptors, gRPC's own listener would stop accepting for good."""
    with serving(folder) as pandod, contextlib.ExitStack() as connections:
        open_now = len(os.listdir(f"/proc/{pandod.pid}/fd"))
        _, hard = resource.prlimit(pandod.pid, resource.RLIMIT_NOFILE)
        limit = open_now + 4
        resource.prlimit(pandod.pid, resource.RLIMIT_NOFILE, (limit, hard))
        for _ in range(limit):
            peer = connections.enter_context(socket.socket(socket.AF_UNIX))
            peer.connect(str(pandod.socket))
        eventually(lambda: "no descriptor is left for a new connection" in pandod.log())
        connections.close()
        with Client(pandod.address) as client:
            assert client.stats().sessions == 1


def is_welcome(pandod) -> bool:
    """Returns whether a connection gets an HTTP/2 frame, rather than its end."""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(pandod.socket))
        try:
            return peer.recv(1) != b""
        except ConnectionResetError:
            return False


CONNECT_AS_ANOTHER_PROCESS = """
import sys
from pando_kv import Client
with Client(sys.argv[1]) as client:
    print(client.stats().sessions)
"""


def test_a_flood_of_connections_is_cut_off_and_keeps_nobody_else_out(folder):
    with serving(folder) as pandod, Client(pandod.address) as client:
        assert any(not is_welcome(pandod) for _ in range(20_000))
        said = subprocess.check_output(
            [sys.executable, "-c", CONNECT_AS_ANOTHER_PROCESS, pandod.address]
        )
        assert int(said) == 2
        eventually(lambda: client.stats().sessions == 1)
        assert "its peer connects too often" in pandod.log()


# Attach tokens.


def attach_token(raw: RawCalls, session: int) -> bytes:
    request = pool_pb2.AttachPoolRequest(session_id=session)
    answer = raw.unary("pando.v1.PagePool/AttachPool", request)
    return pool_pb2.AttachPoolResponse.FromString(answer).token


def show(path: Path, token: bytes) -> int:
    """Returns the status that the memory socket answers with."""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(path))
        peer.sendall(token)
        return int.from_bytes(peer.recv(16)[8:12], "little")


SHOW_AS_ANOTHER_PROCESS = """
import socket, sys
peer = socket.socket(socket.AF_UNIX)
peer.connect(sys.argv[1])
peer.sendall(bytes.fromhex(sys.argv[2]))
print(int.from_bytes(peer.recv(16)[8:12], "little"))
"""


def test_an_attach_token_is_good_in_the_process_that_asked_for_it_only(folder):
    with serving(folder) as pandod, RawCalls(pandod.address) as raw:
        with raw.session() as session:
            token = attach_token(raw, session)
            stranger = subprocess.run(
                [sys.executable, "-c", SHOW_AS_ANOTHER_PROCESS]
                + [str(pandod.memory_socket), token.hex()],
                capture_output=True,
                text=True,
                check=True,
            )
            assert stranger.stdout == "1\n"
            assert show(pandod.memory_socket, token) == 1, "it was shown already"
            assert show(pandod.memory_socket, attach_token(raw, session)) == 0


def test_sessions_that_have_ended_keep_no_attach_tokens_from_others(folder):
    """All sessions together may hold 1,024 tokens."""
    with serving(folder, attach_token_ttl="1h") as pandod:
        with RawCalls(pandod.address) as raw:
            for _ in range(17):
                with raw.session() as session:
                    for _ in range(64):
                        attach_token(raw, session)


@needs_root
def test_an_attach_token_is_not_good_for_another_user(folder):
    with serving(folder, socket_mode="0666") as pandod:
        with RawCalls(pandod.address) as raw, raw.session() as session:
            token = attach_token(raw, session)
            with acting_as(STRANGER):
                assert show(pandod.memory_socket, token) == 1


# TCP.


def with_certificates(server: Tls, client_ca: Path) -> dict[str, object]:
    return {
        "tcp": free_address(),
        "tls_certificate": server.certificate,
        "tls_key": server.key,
        "tls_client_ca": client_ca,
    }


def tcp_is_refused(address: str, tls: Tls | None) -> bool:
    try:
        Client(address, tls=tls, timeout=1).close()
    except UnavailableError:
        return True
    return False


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--tcp=127.0.0.1:0"], "or tcp-insecure yes"),
        (["--tcp=127.0.0.1:0", "--tls-key=/k"], "needs all of tls-certificate"),
        (["--tls-key=/k"], "which needs tcp"),
        (
            ["--tcp=127.0.0.1:0", "--tls-certificate=/c", "--tls-key=/k"]
            + ["--tls-client-ca=/a"],
            "tls-certificate is '/c', which cannot be read: No such file",
        ),
        (
            ["--tcp=127.0.0.1:0", "--tls-certificate=/proc/version"]
            + ["--tls-key=/proc/version", "--tls-client-ca=/proc/version"],
            "tls-certificate is '/proc/version', which is not a certificate in PEM",
        ),
    ],
)
def test_tcp_without_certificates_that_are_good_is_an_error(tmp_path, options, says):
    assert says in refused_start(tmp_path, "--pool-pages=2", *options)


def test_over_tcp_both_ends_show_certificates(folder):
    ours, theirs = Authority(folder / "ours"), Authority(folder / "theirs")
    options = with_certificates(ours.sign("pandod"), ours.certificate)
    tcp = options["tcp"]
    worker, foreign = ours.sign("worker"), theirs.sign("worker")
    with serving(folder, **options) as pandod:
        with Client(tcp, tls=worker) as far, Client(pandod.address) as near:
            assert near.stats().sessions == 2
            assert far.match_prefix([1]).matched_tokens == 0
        assert tcp_is_refused(tcp, None)
        signed_by_another = Tls(ours.certificate, foreign.certificate, foreign.key)
        assert tcp_is_refused(tcp, signed_by_another)
        trusting_another = Tls(theirs.certificate, worker.certificate, worker.key)
        assert tcp_is_refused(tcp, trusting_another)
        far_ctl = Pandoctl(tcp)
        shown = ("--tls-ca", worker.ca, "--tls-certificate", worker.certificate)
        assert far_ctl(*shown, "--tls-key", worker.key, "status").code == 0
        bench = ("--yes", "bench", "--requests", 2)
        assert far_ctl(*shown, "--tls-key", worker.key, *bench).code == 0
        assert far_ctl("--timeout", 1, "status").code == 3


@pytest.mark.parametrize("option", ["ca", "certificate", "key"])
def test_a_client_takes_no_empty_file_for_none(folder, option):
    """Without an authority, gRPC would trust those of the system."""
    good = Authority(folder / "authority").sign("worker")
    (folder / "empty").touch()
    ctl = Pandoctl("127.0.0.1:1")

    def said_by_pandoctl(tls: Tls) -> str:
        shown = ("--tls-ca", tls.ca, "--tls-certificate", tls.certificate)
        answer = ctl(*shown, "--tls-key", tls.key, "status")
        assert answer.code == 2
        return answer.err

    empty = replace(good, **{option: folder / "empty"})
    with pytest.raises(ValueError, match=f"tls: {folder}/empty is empty"):
        Client("127.0.0.1:1", tls=empty)
    assert f"--tls-{option}: {folder}/empty is empty" in said_by_pandoctl(empty)
    with pytest.raises(OSError, match=str(folder)):
        Client("127.0.0.1:1", tls=replace(good, **{option: folder}))
    for bad in (folder, folder / "none", ""):
        said = said_by_pandoctl(replace(good, **{option: bad}))
        assert f"--tls-{option}: {bad} cannot be read" in said


def test_certificates_that_are_replaced_count_without_a_restart(folder):
    old, new = Authority(folder / "old"), Authority(folder / "new")
    files = folder / "tls"
    files.mkdir()
    served = Tls(files / "ca.crt", files / "tls.crt", files / "tls.key")

    def install(authority: Authority) -> None:
        signed = authority.sign("pandod")
        for source, target in (
            (signed.key, served.key),
            (signed.certificate, served.certificate),
            (signed.ca, served.ca),
        ):
            beside = folder / "beside"
            shutil.copy(source, beside)
            beside.rename(target)

    install(old)
    options = with_certificates(served, served.ca)
    with serving(folder, **options):
        before, after = old.sign("worker"), new.sign("worker")
        assert not tcp_is_refused(options["tcp"], before)
        assert tcp_is_refused(options["tcp"], after)
        install(new)
        eventually(lambda: not tcp_is_refused(options["tcp"], after))
        assert tcp_is_refused(options["tcp"], before)


@pytest.mark.parametrize(
    ("option", "spoil"),
    [
        ("key", lambda file, _: file.write_bytes(file.read_bytes()[:60])),
        ("key", lambda file, other: shutil.copy(other, file)),
        ("key", lambda file, _: file.unlink()),
        ("certificate", lambda file, _: file.write_bytes(file.read_bytes()[:200])),
        ("client-ca", lambda file, _: file.write_bytes(b"")),
    ],
)
def test_files_that_are_half_replaced_leave_those_of_before_in_use(
    folder, option, spoil
):
    ours = Authority(folder / "ours")
    server, worker = ours.sign("pandod"), ours.sign("worker")
    files = {
        "key": server.key,
        "certificate": server.certificate,
        "client-ca": Path(shutil.copy(ours.certificate, folder / "client-ca")),
    }
    file, good = files[option], files[option].read_bytes()
    options = with_certificates(server, files["client-ca"])
    stranger = replace(
        Authority(folder / "theirs").sign("stranger"), ca=ours.certificate
    )

    def errors() -> int:
        return sum(
            event["msg"] == "certificates stay as they are"
            and f"tls-{option} is '{file}'" in event["error"]
            for event in pandod.events()
        )

    with serving(folder, **options) as pandod:
        spoil(file, worker.key)
        for _ in range(2):
            assert not tcp_is_refused(options["tcp"], worker)
        eventually(lambda: errors() == 1)
        assert tcp_is_refused(options["tcp"], stranger)
        file.write_bytes(good)
        assert not tcp_is_refused(options["tcp"], worker)
        assert errors() == 1


# The names under which callers reach the console.


def status_for_host(address: str, host: str, path: str = "/console/") -> int:
    connection = http.client.HTTPConnection(address, timeout=30)
    connection.request("GET", path, headers={"Host": host})
    with contextlib.closing(connection):
        return connection.getresponse().status


def test_the_console_answers_to_its_own_names_only(folder):
    address = free_address()
    port = address.rpartition(":")[2]
    with serving(folder, http=address, http_hosts="pando.example"):
        good = ["127.0.0.1", "10.1.2.3", "[::1]", "[fd00::7]", "localhost", "LocalHost"]
        for host in [*good, "pando.example", "Pando.Example"]:
            assert status_for_host(address, host) == 200, host
            assert status_for_host(address, f"{host}:{port}") == 200, host
        for host in ("evil.example", "127.0.0.1.evil.example", "localhost.", "", "["):
            assert status_for_host(address, host) == 403, host
            assert status_for_host(address, host, "/console/api/tree") == 403, host
            for path in ("/metrics", "/healthz", "/readyz"):
                assert status_for_host(address, host, path) == 200, (path, host)
