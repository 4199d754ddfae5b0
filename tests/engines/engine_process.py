"""An engine in its own process, which takes commands as lines of JSON."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ANSWER = "@@"
START_SECONDS = 600
STEP_SECONDS = 300

# All engines of a test share two cores, so each engine computes in one thread.
QUIET = {
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "PYTHONUNBUFFERED": "1",
}


class EngineDied(AssertionError):
    """The error that reports an engine process that ended or does not answer."""


class EngineProcess:
    """A process that runs `script` with the running Python. It belongs to one test and
    is used from one thread. Lines of its output that begin with @@ are answers."""

    def __init__(
        self, script: Path, arguments: dict[str, Any], log: Path, **environment: str
    ) -> None:
        self._log_path = log
        self._log = log.open("wb")
        self.process = subprocess.Popen(
            [sys.executable, script, json.dumps(arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=os.environ | QUIET | environment,
            cwd=log.parent,
        )
        os.set_blocking(self.process.stdout.fileno(), False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self.process.stdout, selectors.EVENT_READ)
        self._unread = b""
        self._start: dict[str, Any] | None = None

    def ready(self) -> dict[str, Any]:
        """Waits until the engine has started, and returns its first answer.

        Several engines may start at once: construct all before the first wait."""
        if self._start is None:
            self._start = self.answer(START_SECONDS)
        return self._start

    def ask(self, **command: Any) -> dict[str, Any]:
        self.send(**command)
        return self.answer()

    def send(self, **command: Any) -> None:
        self.ready()
        line = json.dumps(command).encode() + b"\n"
        try:
            self.process.stdin.write(line)
            self.process.stdin.flush()
        except BrokenPipeError:
            raise EngineDied(self._epitaph()) from None

    def answer(self, seconds: float = STEP_SECONDS) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while True:
            line, end, rest = self._unread.partition(b"\n")
            if end:
                self._unread = rest
                if line.startswith(ANSWER.encode()):
                    return json.loads(line[len(ANSWER) :])
                self._log.write(line + end)
                continue
            left = deadline - time.monotonic()
            if left <= 0 or not self._selector.select(left):
                raise EngineDied(f"no answer in {seconds} s: {self._epitaph()}")
            chunk = self.process.stdout.read()
            if chunk == b"":
                raise EngineDied(self._epitaph())
            self._unread += chunk or b""

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def log(self) -> str:
        self._log.flush()
        return self._log_path.read_text(errors="replace")

    def wait_for_end(self, seconds: float = STEP_SECONDS) -> int:
        return self.process.wait(seconds)

    def close(self) -> None:
        """Ends the process.

        Raises AssertionError if its exit code is neither 0 nor that of a kill, and
        subprocess.TimeoutExpired if it runs on for 60 seconds."""
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            code = self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        finally:
            self._selector.close()
            self.process.stdout.close()
            self._log.close()
        assert code in (0, -9), f"ended with {code}: {self._epitaph()}"

    def _epitaph(self) -> str:
        text = self._log_path.read_text(errors="replace")
        return f"{self.process.poll()=}, {self._log_path}:\n{text[-4000:]}"


@contextlib.contextmanager
def closing_all(engines: list[EngineProcess]) -> Iterator[None]:
    """Kills the engines that still run at the end, also after a failure."""
    try:
        yield
    finally:
        for engine in engines:
            if engine.process.poll() is None:
                engine.kill()
