"""The Debian packages that cpack makes of the build: their files, and that they run."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from eventually import eventually
from pandod_process import REPOSITORY, binary, clean_environment

CONFIG = "etc/pando/pandod.yaml"
MONITORING = REPOSITORY / "deploy" / "monitoring"


@pytest.fixture(scope="module")
def packages(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("packages")
    command = ["cpack", "--config", binary().parents[1] / "CPackConfig.cmake"]
    # Compression would take longer than all the rest.
    command += ["-B", folder, "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=none"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def package(packages: Path, name: str) -> Path:
    (found,) = packages.glob(f"{name}_*.deb")
    return found


@pytest.fixture(scope="module")
def programs(packages) -> Path:
    return package(packages, "pando")


@pytest.fixture(scope="module")
def client(packages) -> Path:
    return package(packages, "libpando-client-dev")


@pytest.fixture(scope="module")
def root(programs, tmp_path_factory) -> Path:
    """Unpacks the files of the package pando."""
    folder = tmp_path_factory.mktemp("root")
    subprocess.run(["dpkg-deb", "-x", programs, folder], check=True)
    return folder


def field(deb: Path, name: str) -> str:
    return subprocess.check_output(["dpkg-deb", "-f", deb, name], text=True).strip()


def names_needed(deb: Path) -> set[str]:
    return set(re.findall(r"(?:^|, )([a-z0-9.+-]+)", field(deb, "Depends")))


def files_of(deb: Path) -> dict[str, str]:
    """Returns the mode and owner of each path."""
    listing = subprocess.check_output(["dpkg-deb", "-c", deb], text=True)
    lines = [line.split() for line in listing.splitlines()]
    return {line[5].removeprefix("./"): f"{line[0]} {line[1]}" for line in lines}


def run(root: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, arguments)),
        cwd=root,
        env=clean_environment(),
        capture_output=True,
        text=True,
    )


def test_everything_is_roots_and_nobody_else_may_write_to_it(programs, client):
    for path, mode in (files_of(programs) | files_of(client)).items():
        assert re.fullmatch(r"[-d]rw[x-]r-[x-]r-[x-] root/root", mode), (path, mode)


def test_files_are_where_debian_has_them(programs, client):
    top = {path.split("/")[0] for path in files_of(programs) if path}
    assert top == {"etc", "usr"}
    names = ("pandod", "pando-keeper", "pando-mover", "pandoctl")
    assert {f"usr/bin/{name}" for name in names} <= set(files_of(programs))
    units = ("pandod.service", "pando-mover@.service")
    assert {f"usr/lib/systemd/system/{name}" for name in units} <= set(
        files_of(programs)
    )
    assert "usr/lib/pkgconfig/pando-client.pc" in files_of(client)
    assert not set(filter(is_file, files_of(client))) & set(files_of(programs))


def is_file(path: str) -> bool:
    return not path.endswith("/")


def test_it_needs_the_libraries_that_are_linked_and_they_exist(programs, client):
    assert {"libc6", "libgrpc++1.51", "libprotobuf32"} <= names_needed(programs)
    for name in names_needed(programs) | names_needed(client):
        subprocess.run(["dpkg-query", "-W", name], check=True, capture_output=True)


def test_both_packages_say_how_they_may_be_used(programs, client):
    for deb, name in ((programs, "pando"), (client, "libpando-client-dev")):
        assert f"usr/share/doc/{name}/copyright" in files_of(deb)
    assert "usr/share/doc/pando/README.md" in files_of(programs)


def test_programs_are_stripped(root):
    told = subprocess.check_output(["file", root / "usr/bin/pandod"], text=True)
    assert ", stripped" in told


def test_dashboards_and_rules_are_those_of_the_repository(root):
    installed = root / "usr/share/pando/monitoring"
    files = [*MONITORING.glob("rules/*.yaml"), *MONITORING.glob("**/*.json")]
    for file in files:
        assert (installed / file.parent.name / file.name).read_bytes() == (
            file.read_bytes()
        )
    assert sum(map(Path.is_file, installed.rglob("*"))) == len(files)


def test_the_configuration_is_kept_when_the_package_is_upgraded(programs, tmp_path):
    subprocess.run(["dpkg-deb", "-e", programs, tmp_path], check=True)
    assert (tmp_path / "conffiles").read_text() == f"/{CONFIG}\n"


def called_by(programs: Path, folder: Path, script: str, *arguments: str) -> list[str]:
    """Returns the systemd commands that a script of the package calls."""
    subprocess.run(["dpkg-deb", "-e", programs, folder], check=True)
    calls = folder / "calls"
    calls.touch()
    for tool in ("systemd-sysusers", "systemctl"):
        (folder / tool).write_text(f'#!/bin/sh\necho {tool} "$@" >> {calls}\n')
        (folder / tool).chmod(0o755)
    # The script tests for a folder that exists only where systemd runs.
    text = (folder / script).read_text().replace("/run/systemd/system", str(folder))
    subprocess.run(
        ["sh", "-c", text, script, *arguments],
        env={"PATH": f"{folder}:{os.environ['PATH']}"},
        check=True,
    )
    return calls.read_text().splitlines()


@pytest.mark.parametrize(
    ("script", "argument", "calls"),
    [
        (
            "postinst",
            "configure",
            ["systemd-sysusers pando.conf", "systemctl daemon-reload"],
        ),
        ("postinst", "abort-upgrade", []),
        (
            "prerm",
            "remove",
            [
                "systemctl stop pando-mover@*.service",
                "systemctl disable pando-mover@.service",
                "systemctl disable --now pandod.service",
            ],
        ),
        ("prerm", "upgrade", []),
        ("postrm", "remove", ["systemctl daemon-reload"]),
    ],
)
def test_its_scripts_make_the_user_and_stop_only_what_is_removed(
    programs, tmp_path, script, argument, calls
):
    assert called_by(programs, tmp_path, script, argument) == calls


def test_systemd_makes_the_user_of_the_service(programs, tmp_path):
    tool = shutil.which("systemd-sysusers")
    if tool is None:
        pytest.skip("there is no systemd-sysusers")
    subprocess.run(["dpkg-deb", "-x", programs, tmp_path], check=True)
    subprocess.run([tool, f"--root={tmp_path}", "pando.conf"], check=True)
    unit = (tmp_path / "usr/lib/systemd/system/pandod.service").read_text()
    for kind, file in (("User", "passwd"), ("Group", "group")):
        name = re.search(rf"^{kind}=(.*)$", unit, re.MULTILINE)[1]
        assert (tmp_path / "etc" / file).read_text().startswith(f"{name}:")


def test_links_between_the_documents_hold(root):
    for page in (root / "usr/share/doc/pando").rglob("*.md"):
        for link in re.findall(r"\]\(([\w./-]+)[)#]", page.read_text()):
            assert (page.parent / link).exists(), (page, link)


def test_pandod_takes_the_configuration(root):
    checked = run(root, "usr/bin/pandod", "--config", CONFIG, "--check-config")
    assert checked.returncode == 0, checked.stderr
    assert "blocks in a quarter of the free memory" in checked.stdout


def test_pandod_takes_what_the_configuration_has_in_comments(root, tmp_path):
    config = tmp_path / "all.yaml"
    text = (root / CONFIG).read_text()
    config.write_text(re.sub(r"^# ((?:  )?[a-z-]+:)", r"\1", text, flags=re.MULTILINE))
    checked = run(root, "usr/bin/pandod", "--config", config, "--check-config")
    assert checked.returncode == 0, checked.stderr
    assert "an open pool with shards of 4294967296 bytes" in checked.stdout
    assert "blocks in 4294967296 bytes" in checked.stdout


def test_what_is_unpacked_runs(root, tmp_path):
    socket = tmp_path / "pando.sock"
    command = [root / "usr/bin/pandod", "--config", root / CONFIG]
    options = ["--socket", socket, "--http", "", "--pool-bytes", "64MiB"]
    health = [root / "usr/bin/pandoctl", "--address", f"unix:{socket}", "health"]
    with subprocess.Popen(
        [*command, *options], env=clean_environment(), stderr=subprocess.DEVNULL
    ) as pandod:
        try:
            eventually(lambda: run(tmp_path, *health).stdout == "SERVING\n")
        finally:
            pandod.terminate()
    assert pandod.returncode == os.EX_OK
