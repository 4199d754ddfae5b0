"""The result of `cmake --install` for the build that pandod comes from."""

import os
import subprocess
from pathlib import Path

from pandod_process import binary


def install_into(folder: Path) -> Path:
    """Installs everything into the folder, and returns the prefix."""
    subprocess.run(
        ["cmake", "--install", binary().parents[1], "--prefix", folder],
        check=True,
        capture_output=True,
    )
    return folder


def pkg_config(prefix: Path, *arguments: str) -> list[str]:
    """Returns pkg-config's answer about the client that is installed there."""
    folder = prefix / "lib" / "pkgconfig"
    return subprocess.check_output(
        ["pkg-config", *arguments, "pando-client"],
        env=os.environ | {"PKG_CONFIG_PATH": str(folder)},
        text=True,
    ).split()
