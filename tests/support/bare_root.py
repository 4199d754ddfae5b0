"""Roots of freshly installed systems that have Python and nothing of Pando."""

import fcntl
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

# Each entry has debootstrap's name of the system, the script that makes the system, and
# the keys that sign its packages.
DEBIAN_KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
UBUNTU_KEYS = "/usr/share/keyrings/ubuntu-archive-keyring.gpg"
SYSTEMS = {
    "Debian 12": ("bookworm", "bookworm", DEBIAN_KEYS),
    "Debian 13": ("trixie", "trixie", DEBIAN_KEYS),
    "Ubuntu 22.04": ("jammy", "jammy", UBUNTU_KEYS),
    "Ubuntu 24.04": ("noble", "jammy", UBUNTU_KEYS),
}
SCRIPTS = Path("/usr/share/debootstrap/scripts")
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
# The variables by which pip reaches its index on this machine. A name that begins with
# one of these prefixes counts.
PASSED_ON = ("PIP_", "http_proxy", "https_proxy", "no_proxy")


@dataclass(frozen=True)
class BareRoot:
    """A read-only root with the network and a writable folder /venv.

    When a command ends, all processes that it left running end with it.
    """

    root: Path
    wheels: Path
    venv: Path

    def run(self, *command: str) -> str:
        """Returns the command's stdout; fails the test if the command fails."""
        settings = [
            argument
            for name, value in os.environ.items()
            if name.lower().startswith(tuple(p.lower() for p in PASSED_ON))
            and "FIND_LINKS" not in name
            for argument in ("--setenv", name, value)
        ]
        bwrap = [
            *("bwrap", "--ro-bind", str(self.root), "/"),
            *("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/run"),
            *("--bind", str(self.venv), "/venv", "--ro-bind", str(self.wheels), "/mnt"),
            *("--ro-bind", "/etc/resolv.conf", "/etc/resolv.conf"),
            *("--ro-bind", CERTIFICATES, CERTIFICATES),
            *("--unshare-pid", "--die-with-parent", "--clearenv", *settings),
            *("--setenv", "PATH", "/venv/bin:/usr/bin:/bin", "--chdir", "/"),
        ]
        done = subprocess.run(
            [*bwrap, *command], capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def root_of(system: str) -> Path:
    """Returns the root of a system of SYSTEMS, and makes that root first if it is
    missing. Skips the test, with the system's name, if the root cannot be made."""
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        pytest.skip(f"{system}: only root can make it, with debootstrap")
    suite, script, keys = SYSTEMS[system]
    if not Path(keys).exists():
        pytest.skip(f"{system}: there are no keys to check its packages with, {keys}")
    cache = Path(os.environ.get("PANDO_CACHE") or Path.home() / ".cache/pando")
    root = cache / "roots" / suite
    root.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{root}.lock", "w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not root.exists():
            _make(system, suite, script, keys, root)
    return root


def _make(system: str, suite: str, script: str, keys: str, root: Path) -> None:
    part = root.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    # In a mount namespace of its own, debootstrap's mounts end with debootstrap, even
    # if it is interrupted. The empty argument stands for the mirror: debootstrap then
    # takes the one of its script. Ubuntu has python3-venv in its component "universe".
    components = "main,universe" if keys == UBUNTU_KEYS else "main"
    command = ["unshare", "--mount", "debootstrap", "--variant=minbase"]
    command += [f"--keyring={keys}", f"--components={components}"]
    command += ["--include=python3-venv,ca-certificates"]
    command += [suite, str(part), "", str(SCRIPTS / script)]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode != 0:
        last = (made.stdout + made.stderr).strip().splitlines()[-1:]
        pytest.skip(f"{system} cannot be made here: {' '.join(last)}")
    for folder in ("venv", "mnt"):
        (part / folder).mkdir(exist_ok=True)
    (part / "etc" / "resolv.conf").unlink(missing_ok=True)
    (part / "etc" / "resolv.conf").touch()
    part.rename(root)
