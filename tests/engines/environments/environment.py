"""A program that finds or makes the Python environment of an engine or of peers.

usage: environment.py sglang|vllm|peers

The program prints the path of the environment's Python. It keeps environments outside
the clone, in ${PANDO_CACHE:-~/.cache/pando}/engines. A folder's name has the hash of
the files that the environment depends on, so only the first run downloads packages. If
the packages are unavailable, the program prints the error and exits with 75 (try again
later).
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from cuda_stubs import make_stubs

HERE = Path(__file__).resolve().parent
ENGINES = ("sglang", "vllm", "peers")
TRY_AGAIN_LATER = 75


def environment(engine: str) -> Path:
    """Returns the Python of `engine`'s environment; makes the environment if needed.

    Raises subprocess.CalledProcessError or OSError if the environment cannot be made.
    """
    lock_file = HERE / f"{engine}.lock"
    parts = [lock_file, HERE / "cuda_stubs.py", *sorted(HERE.glob("stand_ins/*.py"))]
    digest = hashlib.sha256(b"\0".join(part.read_bytes() for part in parts))
    cache = Path(os.environ.get("PANDO_CACHE") or Path.home() / ".cache/pando")
    folder = cache / "engines" / f"{engine}-{digest.hexdigest()[:16]}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    python = folder / "bin/python"
    complete = folder / ".complete"
    with open(f"{folder}.lock", "w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not complete.exists():
            _make(folder, lock_file)
            complete.touch()
    return python


def _make(folder: Path, lock_file: Path) -> None:
    begin = time.monotonic()
    print(f"making {folder} from {lock_file.name}", file=sys.stderr)
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    # The lock file names every package, so pip need not resolve dependencies. --no-deps
    # also leaves out the CUDA packages that torch depends on.
    subprocess.run(
        [folder / "bin/python", "-m", "pip", "install", "--quiet", "--no-deps"]
        + ["--no-compile", "--no-cache-dir", "--disable-pip-version-check"]
        + ["--requirement", lock_file],
        check=True,
        stdout=sys.stderr,
    )
    (packages,) = folder.glob("lib/python3*/site-packages")
    stubs = make_stubs(packages / "torch/lib")
    for stand_in in HERE.glob("stand_ins/*.py"):
        shutil.copy(stand_in, packages)
    print(
        f"made in {time.monotonic() - begin:.0f} s, with {len(stubs)} stub libraries",
        file=sys.stderr,
    )


def main() -> int:
    (engine,) = sys.argv[1:]
    if engine not in ENGINES:
        sys.exit(f"{engine}: not one of {', '.join(ENGINES)}")
    try:
        print(environment(engine))
    except (subprocess.CalledProcessError, OSError) as error:
        print(f"no environment for {engine}: {error}", file=sys.stderr)
        return TRY_AGAIN_LATER
    return 0


if __name__ == "__main__":
    sys.exit(main())
