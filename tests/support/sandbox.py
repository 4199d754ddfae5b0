"""A process in namespaces of its own, as a container runtime would start it."""

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

USER = 65532
LIMIT_SECONDS = 30


@dataclass(frozen=True)
class Sandbox:
    """A place for processes that see only a read-only root and one writable folder.

    Each process is not root, has no capabilities, and is alone in its PID, IPC and
    network namespaces.
    """

    root: Path
    folder: Path
    mounted_at: str

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self._bwrap(*command), capture_output=True, text=True, timeout=LIMIT_SECONDS
        )

    @contextlib.contextmanager
    def running(self, *command: str) -> Iterator["FirstProcess"]:
        """Runs the command as process number 1, and kills it at the end."""
        info, for_bwrap = os.pipe()
        with open(info) as told:
            process = subprocess.Popen(
                self._bwrap("--as-pid-1", "--info-fd", str(for_bwrap), *command),
                stderr=subprocess.PIPE,
                text=True,
                pass_fds=[for_bwrap],
            )
            os.close(for_bwrap)
            with process:
                try:
                    yield FirstProcess(json.loads(told.read())["child-pid"], process)
                finally:
                    process.kill()

    def _bwrap(self, *command: str) -> list[str]:
        namespaces = ["--unshare-all", "--uid", str(USER), "--gid", str(USER)]
        files = ["--ro-bind", self.root, "/", "--proc", "/proc", "--dev", "/dev"]
        shared = ["--bind", self.folder, self.mounted_at]
        end = ["--clearenv", "--die-with-parent"]
        return [*unprivileged(), "bwrap", *namespaces, *files, *shared, *end, *command]


@dataclass(frozen=True)
class FirstProcess:
    pid: int
    bwrap: subprocess.Popen[str]

    def wait_until_it_says(self, text: str) -> None:
        said = []
        for line in iter(self.bwrap.stderr.readline, ""):
            said.append(line)
            if text in line:
                return
        pytest.fail(f"it has ended, and said: {said}")

    def stop(self, signal: int) -> tuple[int, str]:
        """Sends the signal; returns the exit status and what was written to stderr."""
        os.kill(self.pid, signal)
        _, errors = self.bwrap.communicate(timeout=LIMIT_SECONDS)
        return self.bwrap.returncode, errors


def give_to_user(folder: Path) -> None:
    """Lets a sandboxed process write to the folder."""
    if os.geteuid() == 0:
        os.chown(folder, USER, USER)


def skip_without_sandboxes() -> None:
    if shutil.which("bwrap") is None:
        pytest.skip("there is no bwrap (bubblewrap) to make namespaces with")
    command = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"]
    tried = subprocess.run([*unprivileged(), *command], capture_output=True, text=True)
    if tried.returncode != 0:
        pytest.skip(f"this machine lets nobody make namespaces: {tried.stderr.strip()}")


def unprivileged() -> list[str]:
    if os.geteuid() != 0:
        return []
    return ["setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups"]
