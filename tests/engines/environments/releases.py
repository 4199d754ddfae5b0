"""Functions that download another release of an engine and run the quick tests with it.

The release's Python files run with the binaries of the release in the environment. That
is enough to test schedulers. The files are in ${PANDO_CACHE:-~/.cache/pando}/engines,
beside the environment. A folder's name has the hash of the lock file, or of a newest
version that the lock file lacks, so only the first run downloads.
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
_TESTS = _HERE.parents[1]
# The quick tests of each engine: paths in tests/engines/ENGINE.
_QUICK = {
    "sglang": ["test_seams.py", "test_publisher.py", "test_two_engines.py"],
    "vllm": [
        "test_signatures.py",
        "schedulers/test_scheduler_alone.py",
        "offloading/test_sharing.py",
        "offloading/test_events.py",
        "offloading/test_programs.py",
    ],
}
_FEWER = {"PANDO_TEST_PROGRAMS": "5"}


def releases(engine: str) -> dict[str, str]:
    """Returns the pip requirement of each version in the engine's lock file."""
    return {
        requirement.partition(" ")[0].partition("==")[2]: requirement
        for requirement in _lock_file(engine).read_text().splitlines()
        if "==" in requirement
    }


def newest_version(engine: str) -> str:
    """Returns the newest version that has a wheel for this Python.

    Raises subprocess.CalledProcessError if no package index answers."""
    said = subprocess.check_output(
        [sys.executable, "-m", "pip", "index", "versions", engine]
        + ["--disable-pip-version-check", "--only-binary=:all:"],
        text=True,
    )
    # pip prints "vllm (0.33.0)" and more lines.
    return said.split()[1].strip("()")


def release(engine: str, version: str, own: Path) -> Path:
    """Returns a folder for PYTHONPATH that has the release, and makes it if needed.

    `own` is the folder of the engine's package in the environment; its binaries are
    linked into the release. Raises subprocess.CalledProcessError if pip cannot download
    the wheel."""
    wanted = releases(engine).get(version)
    made_of = _lock_file(engine).read_bytes()
    if wanted is None:
        # The newest release may not be in the lock file yet.
        wanted = f"{engine}=={version}"
        made_of = wanted.encode()
    digest = hashlib.sha256(made_of + str(own).encode()).hexdigest()
    cache = Path(os.environ.get("PANDO_CACHE") or Path.home() / ".cache/pando")
    folder = cache / "engines" / f"{engine}-release-{version}-{digest[:16]}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    complete = folder / ".complete"
    with open(f"{folder}.lock", "w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not complete.exists():
            shutil.rmtree(folder, ignore_errors=True)
            _unpack(wanted, folder)
            for binary in own.rglob("*.so"):
                link = folder / engine / binary.relative_to(own)
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(binary)
            complete.touch()
    return folder


def environment_of(folder: Path) -> dict[str, str]:
    """Returns environment variables that make Python import the release in `folder`."""
    paths = [str(folder), os.environ["PYTHONPATH"]]
    # Without VLLM_TARGET_DEVICE, vLLM reads its device from the installed package.
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(paths),
        "VLLM_TARGET_DEVICE": "cpu",
    }


def run_quick_tests(
    engine: str, environment: dict[str, str], scratch: Path
) -> subprocess.CompletedProcess[bytes]:
    """Runs the quick tests of `engine` and returns the finished process.

    `scratch` must be a short path, because the tests make sockets there."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        + ["-c", _TESTS / "pytest.ini", "--rootdir", _TESTS, "--timeout=600"]
        + ["--basetemp", scratch]
        + [_TESTS / "engines" / engine / part for part in _QUICK[engine]],
        env=_FEWER | environment,
    )


def _lock_file(engine: str) -> Path:
    return _HERE / f"{engine}-releases.lock"


def _unpack(requirement: str, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        listed = Path(scratch, "requirement")
        listed.write_text(requirement)
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            + ["--no-cache-dir", "--disable-pip-version-check"]
            + (["--require-hashes"] if "--hash=" in requirement else [])
            + ["--only-binary=:all:", "--dest", scratch, "--requirement", listed],
            check=True,
            stdout=sys.stderr,
        )
        (wheel,) = Path(scratch).glob("*.whl")
        with zipfile.ZipFile(wheel) as files:
            files.extractall(
                folder, [n for n in files.namelist() if not n.endswith(".so")]
            )
