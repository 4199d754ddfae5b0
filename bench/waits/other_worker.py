"""A worker whose calls are short, and are timed while others make long ones."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from rows import Row

PROGRAM = Path(__file__).resolve().parent.parent / "python/lane_waits.py"
LIMIT_MS = 5
# As many as a call keeps busy: who makes it, and a thread of pandod.
COMPUTING = 2
COMPUTE = "import time; end = time.monotonic() + 5\nwhile time.monotonic() < end: pass"
Figures = dict[str, float]


class OtherWorker:
    """A process with a lane."""

    def __init__(self, address: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, PROGRAM, address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._floor = self.beside(compute)["longest"]

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait()

    def beside(self, deed: Callable[[], object]) -> Figures:
        """The times of its calls meanwhile, in milliseconds."""
        self._say("begin")
        assert self._process.stdout.readline() == "began\n"
        try:
            deed()
        finally:
            self._say("end")
            figures = json.loads(self._process.stdout.readline())
        return figures

    def row(self, name: str, deed: Callable[[], object]) -> Row:
        """The floor is what it waits for a CPU beside processes that call nothing."""
        return Row(
            f"longest wait beside {name}",
            self.beside(deed)["longest"],
            "ms",
            self._floor,
            limit=LIMIT_MS,
        )

    def _say(self, word: str) -> None:
        self._process.stdin.write(word + "\n")
        self._process.stdin.flush()


def compute() -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", COMPUTE]) for _ in range(COMPUTING)
    ]
    for process in processes:
        process.wait()
