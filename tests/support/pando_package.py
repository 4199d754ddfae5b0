"""The package pando_server with the built programs, laid out as in its wheel."""

import shutil
import sys
from pathlib import Path

from pandod_process import REPOSITORY, binary

SOURCES = REPOSITORY / "deploy" / "wheel" / "src" / "pando_server"


def put_into(folder: Path) -> None:
    """Puts the package into `folder`, which belongs into PYTHONPATH."""
    shutil.copytree(SOURCES, folder / "pando_server")
    programs = folder / "pando_server" / "bin"
    programs.mkdir()
    for name in ("pandod", "pandoctl", "pando-keeper"):
        (programs / name).symlink_to(binary().with_name(name))


def command(*arguments: object) -> list[str]:
    """Returns the command `pando`, as the wheel's entry point runs it."""
    main = "import sys; from pando_server.command import main; sys.exit(main())"
    return [sys.executable, "-c", main, *map(str, arguments)]
