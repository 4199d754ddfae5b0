"""Systems as they are freshly installed, with Python and nothing of ours."""

import fcntl
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

# The names that debootstrap has for them, the script that makes them, and the keys that their
# packages are signed with.
DEBIAN_KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
UBUNTU_KEYS = "/usr/share/keyrings/ubuntu-archive-keyring.gpg"
SYSTEMS = {
    "Debian 12": ("bookworm", "bookworm", DEBIAN_KEYS),
    "Debian 13": ("trixie", "trixie", DEBIAN_KEYS),
    "Ubuntu 22.04": ("jammy", "jammy", UBUNTU_KEYS),
    # Made as the one before it.
    "Ubuntu 24.04": ("noble", "jammy", UBUNTU_KEYS),
}
SCRIPTS = Path("/usr/share/debootstrap/scripts")
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
# The variables that let pip reach its index from here.
PASSED_ON = ("PIP_", "http_proxy", "https_proxy", "no_proxy")


@dataclass(frozen=True)
class BareRoot:
    """A root that is not written to, a folder /venv that is, and the network.

    What a command leaves running ends with it.
    """

    root: Path
    wheels: Path
    venv: Path

    def run(self, *command: str) -> str:
        """Its stdout; a command that fails fails the test."""
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
    """The root of a system of SYSTEMS, which is made if it is not there; the test is
    skipped, by name, where it cannot be made."""
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
    # Its mounts end with it, also where it is interrupted. Without a mirror it takes
    # the one of its script. In Ubuntu python3-venv is in the second component.
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
