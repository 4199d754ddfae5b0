"""The wheels of `make package`, installed on systems that have nothing of Pando.

The wheels contain the programs that the other tests run, but stripped. Everything else
is as `make package` does it for a release build.
"""

import json
import re
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from bare_root import SYSTEMS, BareRoot, root_of
from pandod_process import REPOSITORY, binary
from sandbox import skip_without_sandboxes

# The program runs inside the system: it serves, and prints what its callers see.
SERVED = """
import json, subprocess, sys, urllib.request
import numpy as np
from pando_kv import Client
http = "127.0.0.1:19464"
subprocess.check_output(
    ["pando", "up", "--pool-pages=64", "--layers=1", f"--http={http}"]
)
with Client(name="first") as client, client.attach_pool() as pool:
    tokens = np.arange(32, dtype=np.uint32)
    match = client.match_prefix(tokens, lock=True, reserve_tokens=32)
    pool.keys(0)[match.reserved_page_ids] = 1
    client.insert([], match.reserved_page_ids, lock=match.lock, unlock=True,
                  prompt_tokens=32)
    matched = client.match_prefix(tokens).matched_tokens
    transport = client.transport, client.why_no_lane
status = subprocess.check_output(["pandoctl", "status", "-o", "json"], text=True)
console = urllib.request.urlopen(f"http://{http}/console/").read().decode()
keeper = subprocess.check_output(["pando-keeper", "--version"], text=True)
mover = subprocess.check_output(["pando-mover", "--version"], text=True)
print(json.dumps({
    "python": sys.version_info[:2], "matched": matched, "transport": transport,
    "health": json.loads(status)["health"], "console": "<title>" in console,
    "keeper": keeper.split()[0], "mover": mover.split()[0],
}))
"""

# The most bytes of each wheel. They leave room for the stripped programs of a debug
# build; the server's wheel of a release build is a sixth smaller.
MOST_BYTES = {"pando_kv": 400_000, "pando_server": 15_000_000}
# pip fetches only these packages for the client.
DEPENDENCIES = {
    "googleapis_common_protos",
    "grpcio",
    "nanobind_backend",
    "numpy",
    "protobuf",
    "typing_extensions",
}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    tool = REPOSITORY / "tools" / "wheels.py"
    programs = binary().parent
    subprocess.run(
        [sys.executable, tool, "--programs", programs, "--to", folder], check=True
    )
    return folder


def wheel_of(wheels: Path, name: str) -> Path:
    (wheel,) = wheels.glob(f"{name}-*.whl")
    return wheel


def names_in(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_one_wheel_of_each_is_for_all_pythons_and_old_systems(wheels):
    tags = {"pando_kv": "cp310-abi3", "pando_server": "py3-none"}
    for name, tag in tags.items():
        wheel = wheel_of(wheels, name).name
        assert re.search(rf"-{tag}-.*manylinux_2_(\d+)_x86_64\.whl$", wheel), wheel
        oldest = min(map(int, re.findall(r"manylinux_2_(\d+)_", wheel)))
        assert oldest <= 34
    assert len(list(wheels.iterdir())) == 2


def test_the_licences_of_all_that_is_inside_travel_along(wheels):
    names = names_in(wheel_of(wheels, "pando_server"))
    texts = {Path(n).name for n in names if ".dist-info/licenses/" in n}
    libraries = {Path(n).name for n in names if n.startswith("pando_server.libs/")}
    assert {"LICENSE", "pando.copyright", "zeromq.copyright", "Apache-2.0"} <= texts
    # For libgrpc-HASH.so.29, for example, the text is that of the package libgrpc29.
    for library, text in {
        "libgrpc-": "libgrpc29",
        "libabsl_base-": "libabsl20220623",
        "libcrypto-": "libssl3",
        "libcivetweb-": "libcivetweb1",
        "libspdlog-": "libspdlog1.10",
        "libsodium-": "libsodium",
    }.items():
        assert any(name.startswith(library) for name in libraries), library
        assert f"{text}.copyright" in texts
    client = names_in(wheel_of(wheels, "pando_kv"))
    assert any(
        name.endswith(".dist-info/licenses/licenses/nanobind.txt") for name in client
    )


def test_no_library_is_inside_that_pando_does_not_use(wheels):
    names = names_in(wheel_of(wheels, "pando_server"))
    for name in ("krb5", "gssapi", "pgm", "norm", "systemd", "gcrypt"):
        assert not [
            n for n in names if n.startswith("pando_server.libs/") and name in n
        ]


@pytest.mark.parametrize("name", MOST_BYTES)
def test_a_wheel_stays_small(wheels, name):
    assert wheel_of(wheels, name).stat().st_size <= MOST_BYTES[name]


# A system may have to be made first.
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("system", SYSTEMS)
def test_they_serve_where_there_was_only_python(wheels, tmp_path, system):
    """Prints, with `-s`, the seconds that the installation took and its bytes."""
    skip_without_sandboxes()
    bare = BareRoot(root_of(system), wheels, tmp_path)
    began = time.monotonic()
    bare.run("python3", "-m", "venv", "/venv")
    pip = ("/venv/bin/pip", "--quiet", "--disable-pip-version-check")
    download = (*pip, "download", "--only-binary=:all:", "--find-links=/mnt")
    bare.run(*download, "--dest=/venv/wheels", "pando-kv[server]")
    install = (*pip, "install", "--no-index", "--find-links=/venv/wheels")
    bare.run(*install, "pando-kv[server]")
    told = json.loads(bare.run("/venv/bin/python", "-c", SERVED))
    seconds = time.monotonic() - began
    bytes_of = {
        path.name.split("-")[0]: path.stat().st_size
        for path in (tmp_path / "wheels").iterdir()
    }
    print(f"\n{system}: {seconds:.1f} s, {sum(bytes_of.values())} bytes: {bytes_of}")
    assert bytes_of.keys() <= DEPENDENCIES | MOST_BYTES.keys()
    version = {
        "Debian 12": [3, 11],
        "Debian 13": [3, 13],
        "Ubuntu 22.04": [3, 10],
        "Ubuntu 24.04": [3, 12],
    }
    assert told == {
        "python": version[system],
        "matched": 32,
        "transport": ["lane", ""],
        "health": "SERVING",
        "console": True,
        "keeper": "pando-keeper",
        "mover": "pando-mover",
    }
