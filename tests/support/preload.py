"""C sources of which a process loads the library before all others."""

import subprocess
from pathlib import Path

_FLAGS = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]


def preload(source: Path, folder: Path) -> dict[str, str]:
    """Compiles the source into the folder: the environment that loads it."""
    library = folder / source.with_suffix(".so").name
    subprocess.run(["cc", *_FLAGS, "-o", library, source], check=True)
    return {"LD_PRELOAD": str(library)}
