"""Libraries that are compiled from C and preloaded into a process."""

import subprocess
from pathlib import Path

_FLAGS = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]


def preload(source: Path, folder: Path) -> dict[str, str]:
    """Compiles the source into the folder; returns the environment that preloads it."""
    library = folder / source.with_suffix(".so").name
    subprocess.run(["cc", *_FLAGS, "-o", library, source], check=True)
    return {"LD_PRELOAD": str(library)}
