"""Entry points, each of which replaces this process by the program of its name."""

import os
import sys
from pathlib import Path
from typing import NoReturn


def path_of(program: str) -> Path:
    return Path(__file__).parent / "bin" / program


def pandod() -> NoReturn:
    _become("pandod")


def pandoctl() -> NoReturn:
    _become("pandoctl")


def pando_keeper() -> NoReturn:
    _become("pando-keeper")


def pando_mover() -> NoReturn:
    _become("pando-mover")


def _become(program: str) -> NoReturn:
    os.execv(path_of(program), [program, *sys.argv[1:]])
