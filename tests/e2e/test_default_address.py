"""The address at which pandod and its callers meet when none is given."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from pandod_process import binary
from sandbox import USER, skip_without_sandboxes, unprivileged

# The repository may lie in /tmp, which the sandbox empties.
ROOT = str(Path(__file__).parents[2])

# This program starts a pandod without an address, and prints where callers find it.
MEETING = """
import json, subprocess, sys
from pando_kv import Client, Operator
from pando_kv._default_address import default_address
pandod, pandoctl = sys.argv[1:]
flags = ["--http=", "--pool-pages=16", "--layers=1", "--log-level=error"]
process = subprocess.Popen([pandod, *flags])
try:
    subprocess.run(
        ["sh", "-c", 'until "$0" health >/dev/null 2>&1; do sleep 0.05; done', pandoctl],
        check=True, timeout=60,
    )
    with Client(timeout=30) as client, Operator() as operator:
        operator.stats()
        transport = client.transport
    status = subprocess.check_output([pandoctl, "status", "-o", "json"], text=True)
    print(json.dumps({
        "python": default_address(),
        "transport": transport,
        "pandoctl": json.loads(status)["address"],
    }))
finally:
    process.kill()
"""


@pytest.fixture(autouse=True)
def _sandboxes():
    skip_without_sandboxes()


def in_sandbox(
    program: str, *places: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a Python program as an unprivileged user in a sandbox with empty /run and
    /tmp; `places` are arguments of bwrap that change them."""
    settings = [
        argument
        for name, value in (environment or {}).items()
        for argument in ("--setenv", name, value)
    ]
    bwrap: Sequence[str] = [
        *("bwrap", "--unshare-user", "--uid", str(USER), "--gid", str(USER)),
        *("--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"),
        *("--tmpfs", "/run", "--tmpfs", "/tmp", "--ro-bind", ROOT, ROOT, *places),
        *("--clearenv", "--die-with-parent", *settings),
    ]
    return subprocess.run(
        [
            *(*unprivileged(), *bwrap, sys.executable, "-c", program),
            *(str(binary()), str(binary().with_name("pandoctl"))),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )


NO_RUN = ("--chmod", "0555", "/run")


@pytest.mark.parametrize(
    ("places", "environment", "expected"),
    [
        ((), {}, "/run/pando/pando.sock"),
        (("--dir", "/run/pando"), {"XDG_RUNTIME_DIR": "/tmp"}, "/run/pando/pando.sock"),
        (
            ("--dir", "/tmp/user", *NO_RUN),
            {"XDG_RUNTIME_DIR": "/tmp/user"},
            "/tmp/user/pando/pando.sock",
        ),
        (
            ("--dir", f"/run/user/{USER}", *NO_RUN),
            {},
            f"/run/user/{USER}/pando/pando.sock",
        ),
        (NO_RUN, {}, f"/tmp/pando-{USER}/pando.sock"),
        (
            NO_RUN,
            {"XDG_RUNTIME_DIR": "/run/user/0"},
            f"/tmp/pando-{USER}/pando.sock",
        ),
    ],
)
def test_pandod_and_all_its_callers_meet_at_one_socket(places, environment, expected):
    met = in_sandbox(MEETING, *places, environment=environment)
    assert met.returncode == 0, met.stderr
    assert json.loads(met.stdout) == {
        "python": f"unix:{expected}",
        "transport": "lane",
        "pandoctl": f"unix:{expected}",
    }


def test_a_caller_goes_to_the_pandod_of_the_system_where_it_may():
    """A user who may not write to /run/pando still calls the socket there."""
    program = """
import os, socket
from pando_kv._default_address import socket_to_call, socket_to_serve
with socket.socket(socket.AF_UNIX) as system:
    system.bind("/run/pando/pando.sock")
    os.chmod("/run/pando", 0o555)
    print(socket_to_serve(), socket_to_call())
    os.chmod("/run/pando/pando.sock", 0)
    print(socket_to_call())
    os.mkdir("/tmp/user/pando")
    with socket.socket(socket.AF_UNIX) as own:
        own.bind("/tmp/user/pando/pando.sock")
        print(socket_to_call())
"""
    places = ("--dir", "/run/pando", "--dir", "/tmp/user", *NO_RUN)
    found = in_sandbox(program, *places, environment={"XDG_RUNTIME_DIR": "/tmp/user"})
    assert found.returncode == 0, found.stderr
    own, system = "/tmp/user/pando/pando.sock", "/run/pando/pando.sock"
    assert found.stdout.split() == [own, system, system, own]


def test_a_mover_looks_beside_the_socket_that_calls_go_to():
    program = """
import os, socket, subprocess, sys
from pathlib import Path
os.mkdir("/tmp/user/pando")
with socket.socket(socket.AF_UNIX) as own:
    own.bind("/tmp/user/pando/pando.sock")
    command = [Path(sys.argv[1]).with_name("pando-mover"), "--device=host"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as mover:
        print(mover.stderr.readline())
        mover.kill()
"""
    places = ("--dir", "/tmp/user", *NO_RUN)
    found = in_sandbox(program, *places, environment={"XDG_RUNTIME_DIR": "/tmp/user"})
    assert found.returncode == 0, found.stderr
    assert "no pandod at /tmp/user/pando/mover.sock" in found.stdout


def test_a_folder_in_tmp_that_others_may_write_to_is_not_used():
    program = """
import os, subprocess, sys
from pando_kv._default_address import socket_to_call
folder = f"/tmp/pando-{os.geteuid()}"
os.mkdir(folder)
os.chmod(folder, 0o777)
open(f"{folder}/pando.sock", "w").close()
refused = subprocess.run([sys.argv[1], "--http="], capture_output=True, text=True)
print(refused.returncode)
print(refused.stderr)
"""
    refused = in_sandbox(program, *NO_RUN)
    code, _, said = refused.stdout.partition("\n")
    assert code == "1", refused.stderr
    assert f"the folder /tmp/pando-{USER} of the default socket is not user" in said


def test_an_address_that_is_named_is_used():
    program = """
from pando_kv._default_address import default_address
print(default_address())
"""
    given = {"PANDO_ADDRESS": "gpu-1:7000"}
    assert in_sandbox(program, environment=given).stdout == "gpu-1:7000\n"
