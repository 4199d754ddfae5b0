"""Commands that run in a process that was changed first."""

import sys
from pathlib import Path


def after(statement: str, *command: str | Path) -> list[str | Path]:
    """Returns the command in a process that first executes the Python statement.

    A `preexec_fn` would do the same, but before it gRPC's fork handlers run, and they
    may abort the new process where this one has threads of gRPC.
    """
    become = f"{statement}; import os, sys; os.execv(sys.argv[1], sys.argv[1:])"
    return [sys.executable, "-c", become, *command]
