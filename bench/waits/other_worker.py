"""A worker that times its short calls while other sessions make long calls."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from rows import Row

PROGRAM = Path(__file__).resolve().parent.parent / "python/lane_waits.py"
LIMIT_MS = 5
# The number of CPUs that a long call keeps busy: its caller and a thread of pandod
# compute.
COMPUTING = 2
COMPUTE = "import time; end = time.monotonic() + 5\nwhile time.monotonic() < end: pass"
Figures = dict[str, float]


class OtherWorker:
    """A process that makes short calls on a lane of its own."""

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
        """Runs `deed` and returns the times of the short calls meanwhile, in
        milliseconds."""
        self._say("begin")
        assert self._process.stdout.readline() == "began\n"
        try:
            deed()
        finally:
            self._say("end")
            figures = json.loads(self._process.stdout.readline())
        return figures

    def row(self, name: str, deed: Callable[[], object]) -> Row:
        """Returns a row with the longest short call beside `deed`. The floor is the
        longest one beside processes that compute and make no calls, which is a wait for
        a CPU."""
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
