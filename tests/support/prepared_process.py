"""Commands whose process is changed before they run in it."""

import sys
from pathlib import Path


def after(statement: str, *command: str | Path) -> list[str | Path]:
    """The command, in a process that has executed the statement of Python.

    In the place of `preexec_fn`: before that, the handlers of gRPC for forks run, and
    where this process has threads of gRPC they may abort the new one.
    """
    become = f"{statement}; import os, sys; os.execv(sys.argv[1], sys.argv[1:])"
    return [sys.executable, "-c", become, *command]
