"""Finds or makes the files of another release of an engine, beside the environment.

Its Python is run with the binaries of the environment's own release: enough for
schedulers. Kept in ${PANDO_CACHE:-~/.cache/pando}/engines, under the hash of
ENGINE-releases.lock, so that only the first run downloads.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

_HERE = Path(__file__).resolve().parent


def releases(engine: str) -> dict[str, str]:
    """What is to be downloaded for each version."""
    return {
        requirement.partition(" ")[0].partition("==")[2]: requirement
        for requirement in _lock_file(engine).read_text().splitlines()
        if "==" in requirement
    }


def release(engine: str, version: str, own: Path) -> Path:
    """A folder for PYTHONPATH. `own` is the package that the environment has. Raises
    subprocess.CalledProcessError where the wheel cannot be had."""
    lock = _lock_file(engine).read_bytes()
    digest = hashlib.sha256(lock + str(own).encode()).hexdigest()
    cache = Path(os.environ.get("PANDO_CACHE") or Path.home() / ".cache/pando")
    folder = cache / "engines" / f"{engine}-release-{version}-{digest[:16]}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    complete = folder / ".complete"
    with open(f"{folder}.lock", "w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not complete.exists():
            shutil.rmtree(folder, ignore_errors=True)
            _unpack(releases(engine)[version], folder)
            for binary in own.rglob("*.so"):
                link = folder / engine / binary.relative_to(own)
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(binary)
            complete.touch()
    return folder


def _lock_file(engine: str) -> Path:
    return _HERE / f"{engine}-releases.lock"


def _unpack(requirement: str, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        listed = Path(scratch, "requirement")
        listed.write_text(requirement)
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            + ["--no-cache-dir", "--disable-pip-version-check", "--require-hashes"]
            + ["--only-binary=:all:", "--dest", scratch, "--requirement", listed],
            check=True,
            stdout=sys.stderr,
        )
        (wheel,) = Path(scratch).glob("*.whl")
        with zipfile.ZipFile(wheel) as files:
            files.extractall(
                folder, [n for n in files.namelist() if not n.endswith(".so")]
            )
