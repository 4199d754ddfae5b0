"""The worker processes of a soak, and their reports."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandod_process

PACKAGES = [Path(__file__).parents[1], Path(pandod_process.__file__).parent]


@dataclass
class WorkerProcess:
    number: int
    """The worker's number among all workers of a soak, which is also its seed."""
    process: subprocess.Popen[bytes]
    report: Path
    stderr: Path
    started: bool = False
    """Whether the worker handles signals."""
    paused: bool = False
    finished: int = 0
    refused: int = 0
    checked_pages: int = 0
    errors: list[dict[str, Any]] = field(default_factory=list)
    _read_to: int = 0

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    @property
    def is_stopped(self) -> bool:
        """Returns whether SIGSTOP has taken effect."""
        stat = Path(f"/proc/{self.process.pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] == "T"

    def read_report(self) -> None:
        with self.report.open("rb") as file:
            file.seek(self._read_to)
            lines, _, _ = file.read().rpartition(b"\n")
        self._read_to += len(lines) + 1 if lines else 0
        self.started |= bool(lines)
        for line in lines.splitlines():
            told = json.loads(line)
            if "error" in told:
                self.errors.append(told)
            else:
                self.finished = told["finished"]
                self.refused = told["refused"]
                self.checked_pages = told["checked_pages"]


class Fleet:
    """A fixed number of workers; fill() replaces those that were killed."""

    def __init__(self, socket: Path, folder: Path, size: int, seed: int) -> None:
        self._socket = socket
        self._folder = folder
        self._size = size
        self._next = seed
        self._all: list[WorkerProcess] = []
        self.running: list[WorkerProcess] = []

    def fill(self) -> None:
        while len(self.running) < self._size:
            self.running.append(self._start())

    def kill(self, worker: WorkerProcess) -> None:
        worker.process.kill()
        worker.process.wait()
        self.running.remove(worker)

    def stop(self, worker: WorkerProcess, seconds: float) -> None:
        """Makes the worker finish its request and end by itself."""
        worker.send(signal.SIGTERM)
        worker.process.wait(seconds)
        self.running.remove(worker)

    def read_reports(self) -> None:
        for worker in self._all:
            worker.read_report()

    def totals(self) -> dict[str, int]:
        names = ("finished", "refused", "checked_pages")
        return {name: sum(getattr(w, name) for w in self._all) for name in names}

    def take_errors(self) -> Iterator[tuple[WorkerProcess, dict[str, Any]]]:
        """Yields the errors since the last call, each with its worker."""
        for worker in self._all:
            errors, worker.errors = worker.errors, []
            for error in errors:
                yield worker, error

    def failures(self) -> Iterator[str]:
        """Yields a text for each worker that ended unasked or with an error."""
        for worker in self._all:
            code = worker.process.poll()
            expected = (None,) if worker in self.running else (0, -signal.SIGKILL)
            if code not in expected:
                yield (
                    f"worker {worker.number} ended with {code}: "
                    f"{worker.stderr.read_text().strip()}"
                )

    def close(self) -> None:
        for worker in self.running:
            worker.process.kill()
            worker.process.wait()

    def _start(self) -> WorkerProcess:
        number, self._next = self._next, self._next + 1
        report = self._folder / f"worker-{number}.jsonl"
        stderr = self._folder / f"worker-{number}.stderr"
        report.touch()
        path = os.pathsep.join([*map(str, PACKAGES), os.environ.get("PYTHONPATH", "")])
        with stderr.open("wb") as errors:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "soak.worker"),
                    *(str(self._socket), str(number), str(report)),
                ],
                env=os.environ | {"PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"},
                stderr=errors,
            )
        worker = WorkerProcess(number, process, report, stderr)
        self._all.append(worker)
        return worker
