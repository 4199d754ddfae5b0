"""Real worker processes, which do one step of a request at a time."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

# The pages of a worker's prompt: those that all workers share, all, those of a chunk.
SHARED_PAGES = 2
PROMPT_PAGES = 8
CHUNK_PAGES = 2
# The steps of a worker in a request.
STEPS = ["attach", "lock", "reserve", "write", "insert", "finish"]


def prompt(page_tokens: int, first_token: int) -> np.ndarray:
    """Returns the tokens of the shared pages, then tokens from `first_token` on."""
    shared = np.arange(SHARED_PAGES * page_tokens, dtype=np.uint32)
    own = np.arange((PROMPT_PAGES - SHARED_PAGES) * page_tokens, dtype=np.uint32)
    return np.concatenate([shared, own + np.uint32(first_token)])


class WorkerProcess:
    """A worker in a process of its own, for a `with` block."""

    def __init__(
        self,
        address: str,
        first_token: int = 1_000_000,
        program: str = "worker.py",
        **environment: str,
    ) -> None:
        self._process = subprocess.Popen(
            [
                *(sys.executable, Path(__file__).with_name(program)),
                *(address, str(first_token)),
            ],
            env=os.environ | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def do(self, *steps: str) -> Any:
        """Makes the worker do these steps; returns its answer to the last one."""
        for step in steps:
            self._process.stdin.write(step + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
            assert line, f"the worker ended at {step}"
        return json.loads(line)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def __enter__(self) -> "WorkerProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._process.stdin.close()
        self._process.stdout.close()
