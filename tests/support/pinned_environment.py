"""Python environments of pinned packages, kept outside the clone.

The environments are in ${PANDO_CACHE:-~/.cache/pando}, under the hash of their lock
file, so that only the first run downloads packages.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path


class EnvironmentMissing(Exception):
    """The error that the packages cannot be had here; its message says why."""


def cache_folder() -> Path:
    return Path(os.environ.get("PANDO_CACHE") or Path.home() / ".cache" / "pando")


def pinned_environment(kind: str, lock_file: Path) -> Path:
    """Returns the environment with the packages of `lock_file`, and makes it if needed.

    Raises EnvironmentMissing if pip cannot install the packages.
    """
    digest = hashlib.sha256(lock_file.read_bytes()).hexdigest()[:16]
    folder = cache_folder() / kind / f"{lock_file.stem}-{digest}"
    complete = folder / ".complete"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{folder}.lock", "w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not complete.exists():
            _make(folder, lock_file)
            complete.touch()
    return folder


def site_packages(environment: Path) -> Path:
    (packages,) = environment.glob("lib/python3*/site-packages")
    return packages


def _make(folder: Path, lock_file: Path) -> None:
    print(f"making {folder}", file=sys.stderr)
    shutil.rmtree(folder, ignore_errors=True)
    # The lock file names every package, so pip has no dependencies to resolve.
    install = [folder / "bin/python", "-m", "pip", "install", "--quiet", "--no-deps"]
    install += ["--disable-pip-version-check", "--requirement", lock_file]
    for command in ([sys.executable, "-m", "venv", folder], install):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise EnvironmentMissing(f"{lock_file.name}: {done.stderr.strip()[-500:]}")
