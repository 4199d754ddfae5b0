"""Finds or makes the Python files of another release of vLLM, beside the environment.

They are run with the binaries of the environment's own release: enough for vLLM's
schedulers, not for its models. Kept in ${PANDO_CACHE:-~/.cache/pando}/engines, under
the hash of vllm-releases.lock, so that only the first run downloads.
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

_LOCK_FILE = Path(__file__).resolve().parent / "vllm-releases.lock"

RELEASES = {
    requirement.partition(" ")[0].partition("==")[2]: requirement
    for requirement in _LOCK_FILE.read_text().splitlines()
    if "==" in requirement
}


def release(version: str, own: Path) -> Path:
    """A folder for PYTHONPATH. `own` is the package that the environment has. Raises
    subprocess.CalledProcessError where the wheel cannot be had."""
    digest = hashlib.sha256(_LOCK_FILE.read_bytes() + str(own).encode()).hexdigest()
    cache = Path(os.environ.get("PANDO_CACHE") or Path.home() / ".cache/pando")
    folder = cache / "engines" / f"vllm-release-{version}-{digest[:16]}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    complete = folder / ".complete"
    with open(f"{folder}.lock", "w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not complete.exists():
            shutil.rmtree(folder, ignore_errors=True)
            _unpack(RELEASES[version], folder)
            for binary in own.rglob("*.so"):
                link = folder / "vllm" / binary.relative_to(own)
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(binary)
            complete.touch()
    return folder


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
            files.extractall(folder, [n for n in files.namelist() if n.endswith(".py")])
