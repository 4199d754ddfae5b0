"""The image's root, made and run as by a container engine, but without one."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from connector import connecting
from eventually import eventually
from kept_pandod import children_of
from pandod_process import REPOSITORY, binary
from sandbox import Sandbox, give_to_user, skip_without_sandboxes

MAKE_ROOT = REPOSITORY / "deploy" / "docker" / "make_root.sh"
SOCKETS = "/run/pando"
LAYOUT = ("--layers=4", "--heads=2", "--head-size=32", "--dtype=float32")
# The entry point of the image is the same.
PANDOD = ("/usr/bin/pando-keeper", "/usr/bin/pandod", *LAYOUT)
KILLS = 20
HEALTH = ("/usr/bin/pandoctl", "health")
MOVER = ("/usr/bin/pando-mover", f"--socket={SOCKETS}/mover.sock", "--device=host")
WORKER = ("/usr/bin/example_worker", f"unix:{SOCKETS}/pando.sock")


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Yields a folder that other users may enter."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


@pytest.fixture(scope="module")
def root(folder) -> Path:
    path = folder / "root"
    build = binary().parents[1]
    subprocess.run([MAKE_ROOT, build, path], check=True, capture_output=True)
    return path


@pytest.fixture(scope="module")
def example_root(folder, root) -> Path:
    """Makes the root of the example worker's image."""
    path = folder / "example"
    shutil.copytree(root, path, symlinks=True)
    shutil.copy(binary().with_name("example_worker"), path / "usr" / "bin")
    return path


@pytest.fixture
def sockets(folder) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=folder) as name:
        path = Path(name)
        give_to_user(path)
        yield path


@pytest.fixture
def container(root, sockets) -> Sandbox:
    skip_without_sandboxes()
    return Sandbox(root, sockets, SOCKETS)


@pytest.fixture
def worker_container(example_root, sockets) -> Sandbox:
    skip_without_sandboxes()
    return Sandbox(example_root, sockets, SOCKETS)


def wait_until_healthy(container: Sandbox) -> None:
    eventually(lambda: container.run(*HEALTH).returncode == 0)


def test_there_are_four_programs_and_no_shell(root):
    names = {path.name for path in root.glob("usr/bin/*")}
    assert names == {"pandod", "pando-keeper", "pando-mover", "pandoctl"}
    assert not (root / "bin").exists()


def test_a_folder_that_is_not_empty_is_refused(root):
    again = subprocess.run(
        [MAKE_ROOT, binary().parents[1], root], capture_output=True, text=True
    )
    assert again.returncode == 1
    assert "is not empty" in again.stderr


@pytest.mark.parametrize(
    ("program", "library"),
    [("pandod", "libgrpc"), ("pando-mover", "libspdlog"), ("pandoctl", "libgrpc")],
)
def test_every_shared_library_is_in_the_root(container, root, program, library):
    (loader,) = (root / "lib64").glob("ld-*")
    listed = container.run(f"/lib64/{loader.name}", "--list", f"/usr/bin/{program}")
    assert listed.returncode == 0, listed.stderr
    assert library in listed.stdout
    assert "not found" not in listed.stdout


def test_pandod_serves_and_ends_as_process_1_of_a_read_only_root(container, sockets):
    with container.running(*PANDOD) as pandod:
        wait_until_healthy(container)
        assert container.run(*HEALTH).stdout == "SERVING\n"
        status, errors = pandod.stop(signal.SIGTERM)
        assert status == 0, errors
        assert not list(sockets.iterdir())


def kill_pandod_of(keeper: int) -> None:
    """Kills pandod, and returns once the keeper has started another."""
    (killed,) = children_of(keeper)
    os.kill(killed, signal.SIGKILL)
    eventually(lambda: children_of(keeper) not in ([], [killed]))


def test_a_pandod_that_is_killed_is_back_in_the_same_container(container, sockets):
    with container.running(*PANDOD) as keeper:
        wait_until_healthy(container)
        with connecting(sockets / "pando.sock") as connector:
            for _ in range(KILLS):
                kill_pandod_of(keeper.pid)
                wait_until_healthy(container)
            assert connector.stop() > KILLS
        status, errors = keeper.stop(signal.SIGTERM)
        assert status == 0, errors


def test_a_mover_in_another_container_copies_for_pandod(container):
    tier = ("--tier-host-bytes=1MiB", f"--mover-socket={SOCKETS}/mover.sock")
    with container.running(*PANDOD, *tier), container.running(*MOVER) as mover:
        mover.wait_until_it_says("copies 1 shards of host")
        status, errors = mover.stop(signal.SIGTERM)
        assert status == 0, errors


def test_the_root_cannot_be_written_to(container):
    refused = container.run(*PANDOD, "--socket=/usr/pando.sock")
    assert refused.returncode == 1
    assert "Read-only file system" in refused.stderr


def test_what_a_worker_wrote_is_read_by_one_in_another_container(
    container, worker_container
):
    with container.running(*PANDOD):
        wait_until_healthy(container)
        assert worker_container.run(*WORKER).stdout == (
            "worker A: 1000 tokens, 0 from the cache\n"
            "worker B: 1000 tokens, 992 from the cache\n"
        )
        assert worker_container.run(*WORKER).stdout == (
            "worker A: 1000 tokens, 992 from the cache\n"
            "worker B: 1000 tokens, 992 from the cache\n"
        )
